"""When each record of a producer is due, where it goes and how large it is: decided before the first one. Pure."""

import random
from dataclasses import dataclass

from testbed.workload.spec import ProducerSpec

_TABLE = 4096
_RECORD_OVERHEAD = 36
_BATCH_OVERHEAD = 100


@dataclass(frozen=True, slots=True)
class Schedule:
    """`turn` records go to a partition before the next one of `partitions` has its turn, round and round.

    `sizes` are the records' sizes, round and round; `interval_us` lies between two of them.
    """

    interval_us: float
    turn: int
    partitions: tuple[int, ...]
    sizes: tuple[int, ...]

    def due(self, now_us: int, began_us: int) -> int:
        """How many records are due by now."""
        return 0 if now_us < began_us else int((now_us - began_us) / self.interval_us) + 1


def schedule(spec: ProducerSpec, seed: int) -> Schedule:
    """The same specification and seed give the same schedule."""
    rng = random.Random(seed)
    # A batch's worth of records, as Java's sticky partitioner has it: a batch of one record for each would cost the
    # brokers many times more. With keys it is the key that decides.
    each = spec.mean_bytes + _RECORD_OVERHEAD
    turn = 1 if spec.keys else max(1, int((spec.batch_bytes - _BATCH_OVERHEAD) / each))
    partitions = spec.partitions
    if spec.skew:
        weights = [1 / (rank + 1) ** spec.skew for rank in range(len(partitions))]
        partitions = tuple(_spread(dict(zip(partitions, weights, strict=True)), rng))
    sizes = (
        tuple(_spread({size.record_bytes: size.weight for size in spec.sizes}, rng))
        if spec.sizes
        else (spec.record_bytes,)
    )
    return Schedule(1e6 / spec.records_per_s, turn, partitions, sizes)


def _spread(weights: dict[int, float], rng: random.Random) -> list[int]:
    """A table in which each value has its share (at least one place), shuffled."""
    total = sum(weights.values())
    table = [value for value, weight in weights.items() for _ in range(max(1, round(weight / total * _TABLE)))]
    rng.shuffle(table)
    return table
