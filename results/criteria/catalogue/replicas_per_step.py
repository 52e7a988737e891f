"""A step adds no more replicas than the limit R."""

from results.contract.move import BatchingPolls
from results.contract.texts import plural
from results.contract.verdict import Finding
from results.criteria.batching import polled_finding
from results.criteria.criterion import FACTS, Criterion, has_batches


def judge_replicas(polls: BatchingPolls | None) -> list[Finding]:
    """Return nothing without polls or without the limit."""
    if polls is None or polls.limits.replicas is None:
        return []
    why = f"{polls.most_added} at most, in {plural(polls.steps, 'step')}"
    if over := polls.added_over:
        why = f"more without need: {', '.join(over[:5])}"
    most = plural(polls.limits.replicas, "replica")
    expected = f"a step adds at most {most}, or as many as min.insync.replicas lacks"
    return [polled_finding(polls, "replicas-per-step", expected, bool(over), float(polls.most_added), why)]


CRITERION = Criterion(
    name="replicas-per-step",
    title="No more than R replicas in a step",
    section=FACTS,
    judge=lambda run: judge_replicas(run.manifest.facts.batching),
    needs=has_batches,
    by_name=False,
    catches="A driver that adds more replicas in a step than its limit.",
)
