"""A partition that moves whole has all its old and new replicas at once; in steps of R it has R more."""

from results.contract.move import BatchingPolls, Move
from results.contract.verdict import Finding
from results.criteria.batching import batching_finding, polled_finding
from results.criteria.criterion import FACTS, Criterion
from results.criteria.run_view import MODES


def judge_fetching(steps: BatchingPolls | None, move: Move) -> list[Finding]:
    """Judge KIP-435's motivation: moved whole, a partition has all its old and all its new replicas at once.

    In steps of R replicas it has R more than it had. Without a limit R there is nothing to compare with.
    """
    moving = [(flow.topic, p) for flow in move.flows if flow.kind == "throttled" for p in flow.partitions]
    followers = max((_followers(move, *tp) for tp in moving), default=0)
    before = max((_followers(move, *tp, ("in_sync",)) for tp in moving), default=0)
    if steps is None:
        return [batching_finding("replicas-fetching", "known", "inconclusive", None, "the steps were not watched")]
    stepwise, limit = steps.mode in MODES, steps.limits.replicas
    if stepwise and limit is None:
        return []
    most = before + (limit or 0) if stepwise else followers
    # Where no poll listed a step, none can say how many fetched.
    broken = steps.fetching > most if stepwise else steps.steps > 0 and steps.fetching < most
    expected = (
        f"at most {most}: as before, and {limit} more" if stepwise else f"{most}: all of the old and of the new ones"
    )
    why = f"{steps.fetching} at most fetched from one leader; {before} before the move"
    return [polled_finding(steps, "replicas-fetching", expected, broken, float(steps.fetching), why)]


def _followers(move: Move, topic: str, partition: int, kinds: tuple[str, ...] = ("in_sync", "throttled")) -> int:
    mine = [flow for flow in move.flows if flow.kind in kinds and flow.topic == topic and partition in flow.partitions]
    return len({flow.follower for flow in mine})


CRITERION = Criterion(
    name="replicas-fetching",
    title="As many replicas at once as expected",
    section=FACTS,
    judge=lambda run: judge_fetching(run.manifest.facts.batching, run.move),
    catches="A batched move that adds more replicas at once than R.",
)
