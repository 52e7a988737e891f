"""Every broker and topic setting is as before the move."""

from collections.abc import Iterator
from dataclasses import replace

from results.contract.verdict import Finding
from results.criteria.catalogue.move_done import late_wait
from results.criteria.criterion import BROKERS_UNRESTRAINED, FACTS, Criterion
from results.criteria.findings import difference_finding
from results.criteria.run_view import RunView


def _judge(run: RunView) -> Iterator[Finding]:
    """Yield the finding of what the run found after the move."""
    expected = "every broker and topic setting as before the move"
    yield difference_finding("config-restored", expected, run.manifest.facts.restored, "restored")


def _spared(run: RunView) -> list[Finding]:
    """Return the finding, left open where a broker that the run restarted had too little time of a fit machine.

    Such a broker may not answer yet, and takes no setting back.
    """
    wait = late_wait(run)
    why = "" if wait is None else wait.too_short
    return [replace(each, verdict="inconclusive", why=why) if why else each for each in _judge(run)]


CRITERION = Criterion(
    name="config-restored",
    title="Configuration put back",
    section=FACTS,
    judge=_judge,
    spared=_spared,
    by_name=False,
    rests_on_preconditions=True,
    # A broker alone accepts its own configuration: one that somebody ended or stopped takes none back.
    excused_by=(BROKERS_UNRESTRAINED,),
    catches="A throttle that stays after the move.",
)
