"""After a move of tiered partitions their new leaders upload what clients write."""

from results.contract.texts import plural
from results.contract.verdict import Finding
from results.criteria.criterion import BROKERS_UNRESTRAINED, FACTS, Criterion, has_relocation
from results.criteria.findings import answers_finding
from results.criteria.run_view import RunView


def _judge(run: RunView) -> list[Finding]:
    """Return nothing where clients wrote to no tiered partition after the move, and of a run of an earlier version."""
    found = run.relocation.uploads
    if found is None or not (found.partitions or found.problem):
        return []
    asked = f"new leaders closed segments of {plural(found.partitions, 'partition')}"
    expected, missing = "a record of after the move, of each partition", found.missing
    field = "manifest.relocation"
    return [answers_finding("new-leader-uploads", expected, asked, missing, found.problem, unit="missing", field=field)]


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
