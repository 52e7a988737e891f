"""How long a move in steps takes when nothing is written meanwhile and nothing rests between its batches. Pure.

In a batch the broker and direction that has most to carry decides, as in a move at once. Rests are not in it: what the
throttle makes up for them is `docs/throttle-bound.md`.
"""

from collections.abc import Collection, Mapping, Sequence

from testbed.kafka.types import TopicPartition
from testbed.reassignment.batching.batch import Batch, Limits
from testbed.reassignment.batching.forecast import forecast
from testbed.reassignment.batching.step import View
from testbed.reassignment.model import Copy, Share, seconds_over, shares

Sizes = Mapping[TopicPartition, int]
Quotas = Sequence[tuple[float, float]]
"""(seconds, B/s) one after the other; the last for as long as it takes."""


def batches_of(views: Mapping[TopicPartition, View], brokers: Collection[int], limits: Limits) -> tuple[Batch, ...]:
    """The batches of a move in steps, in their order."""
    return forecast(views, brokers, limits).batches


def carried(batches: Sequence[Batch], sizes: Sizes) -> tuple[Share, ...]:
    """What each broker has to carry each way in all of these batches; each copy from who leads by then."""
    return shares(_copies(batches, sizes))


def one_carries_all(batches: Sequence[Batch], sizes: Sizes) -> bool:
    """Whether everything goes through one broker in one direction: then the order of the steps decides nothing."""
    found = carried(batches, sizes)
    total = sum(share.bytes for share in found if share.direction == "receive")
    return any(share.bytes == total for share in found)


def finished_s(batches: Sequence[Batch], sizes: Sizes, quotas: Quotas) -> tuple[float, ...]:
    """When everything up to each batch has been copied, seconds; infinite when that never is."""
    total, found = 0, []
    for batch in batches:
        total += max((share.bytes for share in carried([batch], sizes)), default=0)
        found.append(seconds_over([Share(0, "receive", total, 0.0)], quotas))
    return tuple(found)


def _copies(batches: Sequence[Batch], sizes: Sizes) -> list[Copy]:
    return [
        Copy(tp, step.current[0], (), step.adding, sizes.get(tp, 0), 0.0)
        for batch in batches
        for tp, step in batch.steps.items()
        if step.adding
    ]
