"""After a move of tiered partitions their new leaders upload what clients write."""

from results.contract.texts import shortened
from results.contract.verdict import Finding, Verdict
from results.criteria.criterion import BROKERS_UNRESTRAINED, FACTS, Criterion, has_relocation
from results.criteria.findings import finding
from results.criteria.run_view import RunView

SHOWN = 5


def _judge(run: RunView) -> list[Finding]:
    """Return nothing where clients wrote to no tiered partition after the move, and of a run of an earlier version."""
    found = run.relocation.uploads
    if found is None or not (found.partitions or found.problem):
        return []
    verdict: Verdict = "fail" if found.missing else "inconclusive" if found.problem else "pass"
    why = f"new leaders closed segments of {found.partitions} partitions"
    if said := "; ".join(shortened(found.missing, SHOWN)) or found.problem:
        why += f": {said}"
    return [
        finding(
            "new-leader-uploads",
            "a record of after the move, of each partition",
            verdict,
            why,
            observed=None if verdict == "inconclusive" else float(len(found.missing)),
            unit="missing",
            series=("manifest.relocation",),
        )
    ]


CRITERION = Criterion(
    name="new-leader-uploads",
    title="New leaders upload segments",
    section=FACTS,
    judge=_judge,
    needs=has_relocation,
    by_name=False,
    rests_on_preconditions=True,
    # It names a store that was down as well.
    excused_by=(BROKERS_UNRESTRAINED,),
    catches="A leader that took over a tiered partition and uploads none of its segments, until its disk is full.",
    smallest="one partition",
)
