"""The throttle was raised and lowered while data moved."""

from itertools import pairwise

from results.contract.texts import plural
from results.contract.verdict import Finding, Verdict
from results.criteria.criterion import FACTS, Criterion
from results.criteria.findings import finding
from results.criteria.measures import MoveMeasures
from results.criteria.quantities import rate


def judge_changes(measures: MoveMeasures) -> Finding:
    """Judge by the phases: one begins only once every broker shows the new rate."""
    quotas = [phase.quota_bytes_per_s for phase in measures.phases]
    steps = list(pairwise(quotas))
    seen = ", then ".join(rate(quota) for quota in quotas)
    verdict: Verdict = "inconclusive"
    if measures.started_us is None:
        why = "no move.started was recorded"
    elif not any(after > before for before, after in steps):
        why = f"no raised throttle was seen in force while data moved, only {seen}"
    elif not any(after < before for before, after in steps):
        why = f"no lowered throttle was seen in force while data moved, only {seen}"
    else:
        verdict, why = "pass", f"{plural(len(quotas), 'phase')}: {seen}"
    return finding(
        "throttle-changed",
        "raised and lowered, each seen in force on every broker while data moved",
        verdict,
        why,
        observed=seen or None,
        series=("events",),
    )


CRITERION = Criterion(
    name="throttle-changed",
    title="Raised and lowered while data moved",
    section=FACTS,
    judge=lambda run: [judge_changes(run.measures)],
    catches="A run that does not contain the change that it is about.",
)
