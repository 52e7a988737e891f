"""A load's producers and consumers as declared, and the schedule of every record. Pure."""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from testbed.errors import UsageError
from testbed.workload.records import HEADER_BYTES

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@dataclass(frozen=True, slots=True)
class Size:
    """One size of records, and how often it comes compared with the others."""

    record_bytes: int
    weight: float


@dataclass(frozen=True, slots=True)
class Pause:
    """When a consumer stands still, in seconds after the load's begin."""

    begin_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class ProducerSpec:
    """One open-loop producer, acks=all: records are due at a steady rate, whatever the brokers do.

    `name` is its host in the samples. The rate is of records' values; with a size distribution (`sizes`) records are
    due at rate ÷ mean size. Without keys a partition gets a batch's worth of records before the next one's turn, as
    Java's producer does it; with `keys` each record has one of so many keys, and a key belongs to one partition.
    `skew` is Zipf's exponent over the partitions: 0 is even, with 1 the first one gets twice what the second gets. With
    `transaction_s` the records of so many seconds are committed together, and a record counts as acknowledged once its
    transaction is committed.
    """

    name: str
    topic: str
    partitions: tuple[int, ...]
    rate_bytes_per_s: float
    record_bytes: int = 1024
    sizes: tuple[Size, ...] = ()
    keys: int = 0
    skew: float = 0.0
    compression: str = "none"
    redundancy: float = 0.0
    """Share of a payload that a codec can save, 0 to 1."""
    idempotence: bool = True
    transaction_s: float | None = None
    linger_ms: float = 5.0
    batch_bytes: int = 16384
    """Java's default. Larger batches make fetches less even (a response is cut within a batch), and are needed from
    some MB/s on with followers: librdkafka sends one batch a request, and each waits for the one before it."""
    give_up_s: float = 30.0
    """A record that is not acknowledged by then is in doubt."""
    buffer_bytes: int = 512 << 20
    """What may wait for the brokers; when it is full, the declared rate is not held."""
    client: Mapping[str, str] = field(default_factory=dict)
    """librdkafka's settings for reaching the cluster: SASL, TLS."""

    @property
    def mean_bytes(self) -> float:
        """Of a record."""
        if not self.sizes:
            return float(self.record_bytes)
        return sum(s.record_bytes * s.weight for s in self.sizes) / sum(s.weight for s in self.sizes)

    @property
    def records_per_s(self) -> float:
        """How many are due."""
        return self.rate_bytes_per_s / self.mean_bytes

    @property
    def exactly_once(self) -> bool:
        """Whether the brokers may keep no record twice or out of order."""
        return self.idempotence or self.transaction_s is not None

    def problems(self) -> list[str]:
        """Every mistake."""
        smallest = min((size.record_bytes for size in self.sizes), default=self.record_bytes)
        checks = [
            (not self.partitions, "no partitions"),
            (len(set(self.partitions)) != len(self.partitions), "a partition is named twice"),
            (self.rate_bytes_per_s <= 0, f"rate {self.rate_bytes_per_s:g} bytes/s: must be above 0"),
            (smallest <= HEADER_BYTES, f"records of {smallest} bytes: the header alone has {HEADER_BYTES}"),
            (any(size.weight <= 0 for size in self.sizes), "a size's weight must be above 0"),
            (self.keys < 0, f"{self.keys} keys: must be 0 (none) or more"),
            (0 < self.keys < len(self.partitions), f"{self.keys} keys for {len(self.partitions)} partitions: too few"),
            (self.skew < 0, f"skew {self.skew:g}: must be 0 (even) or above"),
            (self.compression not in CODECS, f"compression {self.compression!r}: there are {', '.join(CODECS)}"),
            (not 0 <= self.redundancy < 1, f"redundancy {self.redundancy:g}: must be 0 or above, and below 1"),
            (self.transaction_s is not None and self.transaction_s <= 0, "transaction_s must be above 0"),
            (self.transaction_s is not None and not self.idempotence, "transactions need idempotence"),
            (self.give_up_s <= 0, "give_up_s must be above 0"),
        ]
        return [f"producer {self.name}: {text}" for wrong, text in checks if wrong]


@dataclass(frozen=True, slots=True)
class ConsumerSpec:
    """One member of a consumer group, reading in its own process; committed records only.

    It stands still in each of its `pauses`, stays in its group, and catches up
    afterwards: its latency counts from when a record was due.
    """

    name: str
    topics: tuple[str, ...]
    group: str
    from_beginning: bool = False
    pauses: tuple[Pause, ...] = ()
    client: Mapping[str, str] = field(default_factory=dict)

    def problems(self) -> list[str]:
        """Every mistake."""
        bad = [f"{p.begin_s:g}..{p.end_s:g}" for p in self.pauses if not 0 <= p.begin_s < p.end_s]
        checks = [
            (not self.topics, "no topics"),
            (not self.group, "no group"),
            (bool(bad), f"pauses {', '.join(bad)}: a pause must end after it begins"),
        ]
        return [f"consumer {self.name}: {text}" for wrong, text in checks if wrong]


Spec = ProducerSpec | ConsumerSpec


def check(specs: Sequence[Spec]) -> None:
    """Raise `UsageError` with every mistake of all of them."""
    problems = [problem for spec in specs for problem in spec.problems()]
    named = Counter(spec.name for spec in specs)
    problems += [f"{count} processes are called {name!r}" for name, count in named.items() if count > 1]
    problems += ["a process has no name"] * ("" in named)
    if problems:
        raise UsageError("load:\n  " + "\n  ".join(problems))


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
