"""Criteria about the scenario itself: did what a run is about happen while data moved? If not, nothing else tells."""

from itertools import pairwise

from results.contract.manifest import Move
from results.contract.verdict import Finding, Verdict
from results.criteria.frame import criterion
from results.criteria.measures import MoveMeasures
from results.criteria.words import rate


def judge_changes(measures: MoveMeasures) -> list[Finding]:
    """The throttle was raised and lowered; a phase begins only once every broker shows the new rate."""
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
        verdict, why = "pass", f"{len(quotas)} phases: {seen}"
    return [
        criterion(
            "throttle-changed",
            "raised and lowered, each seen in force on every broker while data moved",
            verdict,
            why,
            observed=seen or None,
            series=("events",),
        )
    ]


def judge_restarts(measures: MoveMeasures, move: Move) -> list[Finding]:
    """Every broker was restarted during the move, and came back."""
    stayed = [host for host in move.brokers if host not in measures.left]
    away = [host for host in measures.left if host not in measures.back]
    verdict: Verdict = "inconclusive"
    if measures.started_us is None:
        why = "no move.started was recorded"
    elif stayed:
        why = f"not restarted during the move: {', '.join(stayed)}"
    elif away:
        why = f"not seen to come back during the move: {', '.join(away)}"
    else:
        verdict, why = "pass", f"restarted and back: {', '.join(measures.back)}"
    return [
        criterion(
            "brokers-restarted",
            "every broker left and came back during the move",
            verdict,
            why,
            observed=", ".join(measures.left) or None,
            series=("events",),
        )
    ]
