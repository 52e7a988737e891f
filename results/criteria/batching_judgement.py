"""Criteria about a move in steps: KIP-435's limits and promises, as the controller's own list was seen to keep them."""

from results.contract.batching import BatchingSeen
from results.contract.manifest import Move
from results.contract.verdict import Finding, Verdict
from results.criteria.frame import criterion
from results.criteria.measures import GAP_S, MoveMeasures
from results.criteria.words import rate

MODES = ("batched", "incremental")
"""What `mode` is of a move that is carried out in steps."""


def judge_batching(steps: BatchingSeen | None) -> list[Finding]:
    """What was seen of the steps, poll by poll; a limit that was not asked for is not judged.

    What was seen to be broken is broken, however seldom anybody looked.
    """
    if steps is None:
        return [
            _criterion("last-step", "the target, order included", "inconclusive", None, "nobody looked at the steps")
        ]
    limits = steps.limits
    found = []
    if limits.partitions is not None:
        found.append(
            _most(
                steps, "partitions-in-flight", limits.partitions, steps.most_in_flight, "partitions are listed at once"
            )
        )
    if limits.leaders is not None:
        what = "steps that move the preferred leader are listed at once"
        found.append(_most(steps, "leaders-in-flight", limits.leaders, steps.most_leaders, what))
    if limits.replicas is not None:
        found.append(_added(steps, limits.replicas))
    found.append(
        _none(steps, "last-step", "the target, order included", steps.astray, "every partition is at its target")
    )
    again = "no replica is copied to a broker that had it"
    found.append(_none(steps, "no-double-copy", again, steps.again, "no replica was added that had been one before"))
    return found


def judge_fetching(steps: BatchingSeen | None, move: Move) -> list[Finding]:
    """KIP-435's motivation: moved whole, a partition has all its old and all its new replicas at once.

    In steps of R replicas it has R more than it had. Without a limit R there is nothing to compare with.
    """
    moving = [(flow.topic, p) for flow in move.flows if flow.kind == "throttled" for p in flow.partitions]
    followers = max((_followers(move, *tp) for tp in moving), default=0)
    before = max((_followers(move, *tp, ("keepup",)) for tp in moving), default=0)
    if steps is None:
        return [_criterion("replicas-fetching", "known", "inconclusive", None, "nobody looked at the steps")]
    stepwise, limit = steps.mode in MODES, steps.limits.replicas
    if stepwise and limit is None:
        return []
    most = before + (limit or 0) if stepwise else followers
    broken = steps.fetching > most if stepwise else steps.fetching < most
    expected = (
        f"at most {most}: as before, and {limit} more" if stepwise else f"{most}: all of the old and of the new ones"
    )
    why = f"{steps.fetching} at most fetched from one leader; {before} before the move"
    return [_judged(steps, "replicas-fetching", expected, broken, float(steps.fetching), why)]


def _followers(move: Move, topic: str, partition: int, kinds: tuple[str, ...] = ("keepup", "throttled")) -> int:
    mine = [flow for flow in move.flows if flow.kind in kinds and flow.topic == topic and partition in flow.partitions]
    return len({flow.follower for flow in mine})


def judge_in_sync(measures: MoveMeasures) -> list[Finding]:
    """A throttle below what is written times the replicas in sync holds none of them back: they go on as before."""
    lowest = min(measures.phases, key=lambda phase: phase.quota_bytes_per_s, default=None)
    verdict: Verdict = "inconclusive"
    observed: float | None = None
    if lowest is None or len({phase.quota_bytes_per_s for phase in measures.phases}) < 2:
        why = "the throttle was not seen to be lowered while data moved"
    else:
        sent = {r.host: r.all.bytes / r.all.elapsed_s for r in lowest.rates if r.direction == "transmit" and r.all}
        host = max(sent, key=lambda each: sent[each], default=None)
        if host is None:
            why = "no leader's bytes were seen in that phase"
        else:
            observed = sent[host] / lowest.quota_bytes_per_s
            verdict = "pass" if observed > 1 else "fail"
            why = f"{host} sent {rate(sent[host])} of listed bytes under a quota of {rate(lowest.quota_bytes_per_s)}"
    expected = "replicas in sync take more than a throttle that is below what is written to them"
    return [
        criterion(
            "in-sync-unbounded", expected, verdict, why, observed=observed, unit="of the quota", series=("log.bytes",)
        )
    ]


def _unseen(steps: BatchingSeen) -> str | None:
    """Why what was not seen may have been all the same."""
    if steps.steps == 0:
        return f"no step was listed in {steps.polls} polls"
    if steps.gap_s is None or steps.gap_s > GAP_S:
        return f"nobody looked for {steps.gap_s or 0.0:.1f} s"
    return None


def _most(steps: BatchingSeen, name: str, limit: int, most: int, what: str) -> Finding:
    why = f"{most} of {limit} at most, in {steps.polls} polls of {steps.partitions} partitions"
    return _judged(steps, name, f"at most {limit} {what}", most > limit, float(most), why)


def _added(steps: BatchingSeen, limit: int) -> Finding:
    why = f"{steps.most_added} at most, in {steps.steps} steps"
    if steps.added_over:
        why = f"more without need: {', '.join(steps.added_over[:5])}"
    expected = f"a step adds at most {limit} replicas, or as many as min.insync.replicas lacks"
    return _judged(steps, "replicas-per-step", expected, bool(steps.added_over), float(steps.most_added), why)


def _none(steps: BatchingSeen, name: str, expected: str, wrong: tuple[str, ...], fine: str) -> Finding:
    why = ", ".join(wrong[:5]) or f"{fine}; {steps.steps} steps of {steps.partitions} partitions were seen"
    return _judged(steps, name, expected, bool(wrong), float(len(wrong)), why)


def _judged(steps: BatchingSeen, name: str, expected: str, broken: bool, observed: float, why: str) -> Finding:
    unseen = _unseen(steps)
    verdict: Verdict = "fail" if broken else "inconclusive" if unseen else "pass"
    return _criterion(name, expected, verdict, observed, why if broken or not unseen else unseen)


def _criterion(name: str, expected: str, verdict: Verdict, observed: float | None, why: str) -> Finding:
    return criterion(name, expected, verdict, why, observed=observed, series=("manifest.facts.batching", "move.listed"))
