"""What groups had committed before a broker left is what their coordinators have afterwards."""

from results.contract.texts import shortened
from results.contract.verdict import Finding, Verdict
from results.criteria.criterion import FACTS, Criterion, has_relocation
from results.criteria.findings import finding
from results.criteria.run_view import RunView

SHOWN = 5


def _judge(run: RunView) -> list[Finding]:
    """Return nothing where no broker left, and of a run of an earlier version."""
    found = None if run.membership is None else run.membership.offsets
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


CRITERION = Criterion(
    name="committed-offsets",
    title="Committed offsets are there after the drain",
    section=FACTS,
    judge=_judge,
    needs=has_relocation,
    by_name=False,
    catches="A partition of `__consumer_offsets` that moves wrongly, or a coordinator that reads it wrongly.",
    smallest="one offset",
)
