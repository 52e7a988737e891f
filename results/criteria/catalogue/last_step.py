"""Every partition ends at its target, order included."""

from results.contract.move import BatchingPolls
from results.contract.verdict import Finding
from results.criteria.batching import batching_finding, none_wrong
from results.criteria.catalogue.move_done import CRITERION as MOVE_DONE
from results.criteria.catalogue.move_done import spared_of_late
from results.criteria.criterion import FACTS, Criterion, has_batches
from results.criteria.run_view import RunView


def judge_last_step(polls: BatchingPolls | None) -> list[Finding]:
    """Leave the criterion open when the steps were not polled."""
    expected = "the target, order included"
    if polls is None:
        return [batching_finding("last-step", expected, "inconclusive", None, "the steps were not watched")]
    return [none_wrong(polls, "last-step", expected, polls.astray, "every partition is at its target")]


def _excuses(run: RunView, precondition: str, failed: Finding) -> bool:
    """Return whether a precondition explains the end: that of a move that is not done, and of no other."""
    done = run.manifest.facts.done
    return (done is None or not done.ok) and MOVE_DONE.excuses(run, precondition, failed)


CRITERION = Criterion(
    name="last-step",
    title="The last step is the target",
    section=FACTS,
    judge=lambda run: judge_last_step(run.manifest.facts.batching),
    spared=lambda run: spared_of_late(run, judge_last_step(run.manifest.facts.batching)),
    needs=has_batches,
    by_name=False,
    rests_on_preconditions=True,
    excused_by=MOVE_DONE.excused_by,
    excuses=_excuses,
    catches="A driver that loses a partition between two steps.",
)
