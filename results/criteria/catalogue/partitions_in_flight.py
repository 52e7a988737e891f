"""No more partitions are in flight at once than the limit P."""

from results.contract.move import BatchingPolls
from results.contract.texts import counted
from results.contract.verdict import Finding
from results.criteria.batching import cannot_exceed, most_at_once_finding
from results.criteria.criterion import FACTS, Criterion, has_batches


def judge_partitions(polls: BatchingPolls | None) -> list[Finding]:
    """Return nothing without polls, without the limit, or where the plan has no more partitions."""
    limit = None if polls is None else polls.limits.partitions
    if polls is None or limit is None or cannot_exceed(polls, limit):
        return []
    what = f"{counted(limit, 'partition', 'is')} listed at once"
    return [most_at_once_finding(polls, "partitions-in-flight", limit, polls.most_in_flight, what)]


CRITERION = Criterion(
    name="partitions-in-flight",
    title="No more than P partitions at once",
    section=FACTS,
    judge=lambda run: judge_partitions(run.manifest.facts.batching),
    needs=has_batches,
    by_name=False,
    catches="A driver that starts more partitions than its limit.",
)
