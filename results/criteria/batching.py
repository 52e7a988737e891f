"""Moves in steps (KIP-435): findings from polls of the controller's list, and the rests between batches.

A rest between two batches is not lost: the throttle divides by the time since the oldest of its samples *began*, so
that what was not copied in a rest may be copied afterwards. Only when that sample begins just after a rest is the rest
left out of the time. So the mean lies between the quota and the quota × (1 − rest ÷ window): `docs/throttle-bound.md`.
"""

import math
from collections.abc import Callable, Sequence

from results.contract.move import BatchingPolls, Move
from results.contract.texts import plural
from results.contract.verdict import Finding, Verdict
from results.criteria.findings import finding
from results.criteria.measures import LISTED_METRIC, MoveMeasures, Rests
from results.criteria.quantities import GAP_S
from results.criteria.run_view import RunView


def _unseen(steps: BatchingPolls) -> str | None:
    """Return why what was not seen may have been all the same."""
    if steps.steps == 0:
        return f"no step was listed in {plural(steps.polls, 'poll')}"
    if steps.gap_s is None or steps.gap_s > GAP_S:
        return f"the list was not polled for {steps.gap_s or 0.0:.1f} s"
    return None


def cannot_exceed(steps: BatchingPolls, limit: int) -> bool:
    """Return whether no more partitions than a limit can be in flight at once: the plan has no more.

    The polls count the partitions that brokers described. Where more were listed, the plan has more.
    """
    return 0 < steps.partitions <= limit and steps.most_in_flight <= limit


def most_at_once_finding(steps: BatchingPolls, name: str, limit: int, most: int, what: str) -> Finding:
    """Return the finding of a limit on what is in flight at once; `what` has the limit in words."""
    why = f"{most} of {limit} at most, in {plural(steps.polls, 'poll')} of {plural(steps.partitions, 'partition')}"
    return polled_finding(steps, name, f"at most {what}", most > limit, float(most), why)


def none_wrong(steps: BatchingPolls, name: str, expected: str, wrong: tuple[str, ...], fine: str) -> Finding:
    """Return a finding that fails when anything is in `wrong`."""
    seen = f"{plural(steps.steps, 'step')} of {plural(steps.partitions, 'partition')}"
    why = ", ".join(wrong[:5]) or f"{fine}; seen: {seen}"
    return polled_finding(steps, name, expected, bool(wrong), float(len(wrong)), why)


def polled_finding(steps: BatchingPolls, name: str, expected: str, broken: bool, observed: float, why: str) -> Finding:
    """Return what the polls show: broken is broken, however seldom the list was polled."""
    unseen = _unseen(steps)
    verdict: Verdict = "fail" if broken else "inconclusive" if unseen else "pass"
    return batching_finding(name, expected, verdict, observed, why if broken or not unseen else unseen)


def batching_finding(name: str, expected: str, verdict: Verdict, observed: float | None, why: str) -> Finding:
    """Return a finding that was made from polls of the list."""
    return finding(name, expected, verdict, why, observed=observed, series=("manifest.facts.batching", "move.listed"))


def kept(move: Move, rests: Rests) -> float:
    """Return the least part of the quota that is left to a move with these rests."""
    return 1.0 - rests.mean_s / (move.window_s - move.sample_s)


def why_not(measures: MoveMeasures, move: Move) -> str | None:
    """Return why the rests of a move leave its rates open; None when they do not."""
    rests = measures.rests
    if rests is None or rests.gap_s is None:
        return "the list of reassignments was not polled"
    if rests.gap_s > GAP_S:
        return f"the list of reassignments was not polled for {rests.gap_s:.1f} s"
    if rests.mean_s >= move.window_s - move.sample_s:
        return f"a rest is {rests.mean_s:.1f} s on average: longer than what the throttle makes up for"
    shortest = min(copying_s(move), default=math.inf)
    if shortest < rests.mean_s:
        return f"a batch is copied in {shortest:.1f} s, and then rests {rests.mean_s:.1f} s: the quota does not decide"
    return None


def copying_s(move: Move) -> list[float]:
    """Return how long each batch that copies anything takes, by the model."""
    begins = (0.0, *move.batches_s)
    return [end - begin for begin, end in zip(begins, move.batches_s, strict=False) if end > begin]


def open_in_steps(name: str, expected: str, why: str) -> Finding:
    """Return an inconclusive finding about the pace of a move in steps."""
    return finding(name, expected, "inconclusive", why, observed=None, series=("log.bytes", LISTED_METRIC))


def without_batch_model(run: RunView) -> str | None:
    """Return why a move in steps has no model of its batches; None for any other move."""
    if not run.batched or run.move.batches_s:
        return None
    return run.move.model_why or "the run has no model of its batches"


def where_sent(found: Sequence[Finding], run: RunView) -> list[Finding]:
    """Return those findings whose bytes are known to have gone that way.

    In steps the second replica that a partition adds may be copied from the first: only who received it is known.
    """
    added: dict[tuple[str, int], int] = {}
    for flow in run.move.flows:
        for partition in flow.partitions if flow.kind == "throttled" else ():
            added[flow.topic, partition] = added.get((flow.topic, partition), 0) + 1
    if not run.batched or max(added.values(), default=0) < 2:
        return list(found)
    return [each for each in found if each.direction != "transmit"]


def in_steps(why: str) -> Callable[[RunView], str | None]:
    """Return a function that gives `why` as the reason to skip a move in steps."""
    return lambda run: why if run.batched else None
