"""No more partitions are in flight at once than the limit P."""

from results.contract.move import BatchingPolls
from results.contract.texts import counted
from results.contract.verdict import Finding
from results.criteria.batching import most_at_once_finding
from results.criteria.criterion import FACTS, Criterion, has_batches


def judge_partitions(polls: BatchingPolls | None) -> list[Finding]:
    """Return nothing without polls or without the limit."""
    if polls is None or polls.limits.partitions is None:
        return []
    what = f"{counted(polls.limits.partitions, 'partition', 'is')} listed at once"
    return [most_at_once_finding(polls, "partitions-in-flight", polls.limits.partitions, polls.most_in_flight, what)]


CRITERION = Criterion(
    name="partitions-in-flight",
    title="No more than P partitions at once",
    section=FACTS,
    judge=lambda run: judge_partitions(run.manifest.facts.batching),
    needs=has_batches,
    by_name=False,
    catches="A driver that starts more partitions than its limit.",
)
