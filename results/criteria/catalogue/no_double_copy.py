"""No replica is copied to a broker that had it before."""

from results.contract.move import BatchingPolls
from results.contract.verdict import Finding
from results.criteria.batching import none_wrong
from results.criteria.criterion import FACTS, Criterion, has_batches


def judge_copies(polls: BatchingPolls | None) -> list[Finding]:
    """Return nothing without polls."""
    if polls is None:
        return []
    fine = "no replica was added that had been one before"
    return [none_wrong(polls, "no-double-copy", "no replica is copied to a broker that had it", polls.again, fine)]


CRITERION = Criterion(
    name="no-double-copy",
    title="No replica copied twice",
    section=FACTS,
    judge=lambda run: judge_copies(run.manifest.facts.batching),
    needs=has_batches,
    by_name=False,
    catches="A driver that copies data again after it was resumed.",
)
