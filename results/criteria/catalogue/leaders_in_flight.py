"""No more steps that move the preferred leader are in flight at once than the limit L."""

from results.contract.move import BatchingPolls
from results.contract.texts import counted
from results.contract.verdict import Finding
from results.criteria.batching import most_at_once_finding
from results.criteria.criterion import FACTS, Criterion, has_batches


def judge_leaders(polls: BatchingPolls | None) -> list[Finding]:
    """Return nothing without polls or without the limit."""
    if polls is None or polls.limits.leaders is None:
        return []
    what = f"{counted(polls.limits.leaders, 'step', 'is')} listed at once to move the preferred leader"
    return [most_at_once_finding(polls, "leaders-in-flight", polls.limits.leaders, polls.most_leaders, what)]


CRITERION = Criterion(
    name="leaders-in-flight",
    title="No more than L leader movements at once",
    section=FACTS,
    judge=lambda run: judge_leaders(run.manifest.facts.batching),
    needs=has_batches,
    by_name=False,
    catches="A driver that moves more leaders at once than its limit.",
)
