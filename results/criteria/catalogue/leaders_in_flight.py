"""No more steps that move the preferred leader are in flight at once than the limit L."""

from results.contract.move import BatchingPolls
from results.contract.texts import counted
from results.contract.verdict import Finding
from results.criteria.batching import cannot_exceed, most_at_once_finding
from results.criteria.criterion import FACTS, Criterion, has_batches


def judge_leaders(polls: BatchingPolls | None) -> list[Finding]:
    """Return nothing without polls, without the limit, or where the plan has no more partitions."""
    limit = None if polls is None else polls.limits.leaders
    if polls is None or limit is None or cannot_exceed(polls, limit):
        return []
    what = f"{counted(limit, 'step', 'is')} listed at once to move the preferred leader"
    return [most_at_once_finding(polls, "leaders-in-flight", limit, polls.most_leaders, what)]


CRITERION = Criterion(
    name="leaders-in-flight",
    title="No more than L leader movements at once",
    section=FACTS,
    judge=lambda run: judge_leaders(run.manifest.facts.batching),
    needs=has_batches,
    by_name=False,
    catches="A driver that moves more leaders at once than its limit.",
)
