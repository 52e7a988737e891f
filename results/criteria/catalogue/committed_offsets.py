"""What groups had committed before a broker left is what their coordinators have afterwards."""

from results.contract.texts import plural
from results.contract.verdict import Finding
from results.criteria.criterion import FACTS, Criterion, has_relocation
from results.criteria.findings import answers_finding
from results.criteria.run_view import RunView


def _judge(run: RunView) -> list[Finding]:
    """Return nothing where no broker left, and of a run of an earlier version."""
    found = None if run.membership is None else run.membership.offsets
    if found is None:
        return []
    asked = f"{plural(found.groups, 'group')} had committed offsets of {plural(found.partitions, 'partition')}"
    expected, wrong = "every acknowledged offset, in each group", found.wrong
    field = "manifest.relocation"
    return [answers_finding("committed-offsets", expected, asked, wrong, found.problem, unit="wrong", field=field)]


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
