"""What groups had committed before a broker left is what their coordinators have afterwards."""

from results.contract.relocation import CommittedOffsets
from results.contract.texts import shortened
from results.contract.verdict import Finding, Verdict
from results.criteria.criterion import FACTS, Criterion
from results.criteria.findings import finding
from results.criteria.run_view import RunView

SHOWN = 5


def measure_offsets(run: RunView) -> CommittedOffsets | None:
    """Return the offsets that were compared; None where no broker left, and in runs of earlier versions."""
    return None if run.membership is None else run.membership.offsets


def judge_offsets(found: CommittedOffsets | None) -> list[Finding]:
    """Judge whether each offset that a coordinator acknowledged is there after the coordinators moved."""
    if found is None:
        return []
    verdict: Verdict = "fail" if found.wrong else "inconclusive" if found.problem else "pass"
    why = f"{found.groups} groups had committed offsets of {found.partitions} partitions"
    if said := "; ".join(shortened(found.wrong, SHOWN)) or found.problem:
        why += f": {said}"
    return [
        finding(
            "committed-offsets",
            "every acknowledged offset, in each group",
            verdict,
            why,
            observed=None if verdict == "inconclusive" else float(len(found.wrong)),
            unit="wrong",
            series=("manifest.relocation",),
        )
    ]


CRITERION: Criterion[CommittedOffsets | None] = Criterion(
    name="committed-offsets",
    title="Committed offsets are there after the drain",
    section=FACTS,
    measure=measure_offsets,
    judge=lambda _run, found: judge_offsets(found),
    needs=lambda run: measure_offsets(run) is not None,
    by_name=False,
    catches="A partition of `__consumer_offsets` that moves wrongly, or a coordinator that reads it wrongly.",
    smallest="one offset",
)
