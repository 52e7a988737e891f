"""Every broker and topic setting is as before the move."""

from collections.abc import Iterator

from results.contract.verdict import Finding
from results.criteria.catalogue.move_done import spared_of_late
from results.criteria.criterion import BROKERS_UNRESTRAINED, FACTS, Criterion
from results.criteria.findings import difference_finding
from results.criteria.run_view import RunView


def _judge(run: RunView) -> Iterator[Finding]:
    """Yield the finding of what the run found after the move."""
    expected = "every broker and topic setting as before the move"
    yield difference_finding("config-restored", expected, run.manifest.facts.restored, "restored")


CRITERION = Criterion(
    name="config-restored",
    title="Configuration put back",
    section=FACTS,
    judge=_judge,
    # A broker that is late does not answer yet.
    spared=lambda run: spared_of_late(run, _judge(run)),
    by_name=False,
    rests_on_preconditions=True,
    # A broker alone accepts its own configuration: one that somebody ended or stopped takes none back.
    excused_by=(BROKERS_UNRESTRAINED,),
    catches="A throttle that stays after the move.",
)
