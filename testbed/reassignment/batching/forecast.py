"""The batches of a whole plan, computed in advance, and their duration. Pure.

The forecast assumes that every step succeeds, that producers write nothing, and that batches follow each other without
a pause. In a batch the bottleneck decides, as in a move without batches. `docs/throttle-bound.md` says how the throttle
compensates for pauses.
"""

import gc
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from testbed.kafka.types import TopicPartition
from testbed.reassignment.batching.batch import Batch, BatchLimits
from testbed.reassignment.batching.queues import StepQueues
from testbed.reassignment.batching.step import PartitionView, Step, next_step
from testbed.throttle.duration import Copy, Share, seconds_over, shares


@contextmanager
def _no_collections() -> Iterator[None]:
    """Disable garbage collection within the block. A plan has no reference cycles, and repeated searches through the
    objects of a hundred thousand partitions take longer than the plan itself."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@_no_collections()
def forecast(
    views: Mapping[TopicPartition, PartitionView], online: Collection[int], limits: BatchLimits
) -> tuple[Batch, ...]:
    """Return every batch until no partition can take a step. Every replica on an online broker comes into sync.

    The time grows with the number of steps, not with partitions × batches: the forecast considers again only partitions
    that took a step, and `StepQueues` finds the next ones.
    """
    ordered = sorted(views.items(), key=lambda item: (item[0].topic, item[0].partition))
    names, state = [tp for tp, _view in ordered], [view for _tp, view in ordered]
    brokers = frozenset(online)
    queues = StepQueues(replace(limits, starts=None))

    def consider(rank: int) -> None:
        step = next_step(state[rank], brokers, limits.replicas)
        if isinstance(step, Step):
            queues.put(rank, step)

    for rank in range(len(names)):
        consider(rank)
    batches = []
    while taken := queues.take():
        for rank, step in taken.items():
            _current, target, _isr, least = state[rank]
            replicas = step.replicas
            isr = replicas if brokers.issuperset(replicas) else brokers.intersection(replicas)
            state[rank] = PartitionView(replicas, target, isr, least)
            consider(rank)
        batches.append(Batch({names[rank]: step for rank, step in taken.items()}))
    return tuple(batches)


LogBytes = Mapping[TopicPartition, int]
QuotaPhases = Sequence[tuple[float, float]]
"""(seconds, B/s) in sequence; the last one has no end."""


def carried(batches: Sequence[Batch], sizes: LogBytes) -> tuple[Share, ...]:
    """Return what each broker carries in each direction in all of these batches; the present leader sends each copy."""
    return shares(
        Copy(tp, step.current[0], (), step.adding, sizes.get(tp, 0), 0.0)
        for batch in batches
        for tp, step in batch.steps.items()
        if step.adding
    )


def one_carries_all(batches: Sequence[Batch], sizes: LogBytes) -> bool:
    """Return whether all bytes pass through one broker direction: then the order of the steps decides nothing."""
    found = carried(batches, sizes)
    total = sum(share.bytes for share in found if share.direction == "receive")
    return any(share.bytes == total for share in found)


def finished_s(batches: Sequence[Batch], sizes: LogBytes, quotas: QuotaPhases) -> tuple[float, ...]:
    """Return the time in seconds at which all copies up to each batch end; infinite if they never end."""
    total, found = 0, []
    for batch in batches:
        total += max((share.bytes for share in carried([batch], sizes)), default=0)
        found.append(seconds_over([Share(0, "receive", total, 0.0)], quotas))
    return tuple(found)


ADVISED = 1.2
"""How many times longer than necessary copying may take before a cap is advised."""


@dataclass(frozen=True, slots=True)
class SpreadAdvice:
    """With at most `per_broker` replicas in copy to any one broker, copying takes 1 ÷ `times` of the time."""

    per_broker: int
    times: float


def spread_advice(
    views: Mapping[TopicPartition, PartitionView], brokers: Collection[int], limits: BatchLimits, sizes: LogBytes
) -> SpreadAdvice | None:
    """Return the cap that spreads the batches over the receiving brokers; None where it saves less than a sixth.

    Batches take partitions sorted by topic and number. Such a batch may copy to a few of the plan's targets alone:
    the quotas of the others are not used. The cap is the number of a batch's copies ÷ the number of receiving brokers.
    """
    if limits.partitions is None or limits.per_broker is not None:
        return None
    plain = forecast(views, brokers, limits)
    copies = [len(step.adding) for batch in plain for step in batch.steps.values() if step.adding]
    targets = {broker for batch in plain for step in batch.steps.values() for broker in step.adding}
    if not copies:
        return None
    plain_s = finished_s(plain, sizes, [(0.0, 1.0)])[-1]
    least_s = seconds_over(carried(plain, sizes), [(0.0, 1.0)])
    if plain_s < ADVISED * least_s:  # no order is faster than the busiest broker
        return None
    cap = max(1, math.ceil(limits.partitions * max(copies) / len(targets)))
    spread_s = finished_s(forecast(views, brokers, replace(limits, per_broker=cap)), sizes, [(0.0, 1.0)])[-1]
    times = plain_s / spread_s if spread_s > 0 else 1.0
    return SpreadAdvice(cap, times) if times >= ADVISED else None
