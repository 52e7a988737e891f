"""A load's producers and consumers as declared, and the schedule of every record. Pure."""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from testbed.errors import UsageError
from testbed.workload.connections import BATCH_BYTES
from testbed.workload.records import HEADER_BYTES, Envelope

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@dataclass(frozen=True, slots=True)
class Size:
    """One size of records, and its frequency relative to the other sizes."""

    record_bytes: int
    weight: float


@dataclass(frozen=True, slots=True)
class Pause:
    """The time during which a consumer does not read, in seconds after the load's begin."""

    begin_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class ProducerSpec:
    """One open-loop producer, acks=all: records are due at a steady rate, however fast the brokers answer.

    `name` is its host in the samples. The rate counts the bytes of records' values. With a size distribution (`sizes`)
    the record rate is rate ÷ mean size. Without keys the producer sends a batch's worth of records to one partition
    before it goes to the next, as Java's producer does. With `keys` each record has one of so many keys, and a key
    belongs to one partition. `skew` is Zipf's exponent over the partitions: with 0 all get the same, with 1 the first
    gets twice as much as the second. With `transaction_s` a transaction holds the records of so many seconds, and its
    commit acknowledges them. One transaction in `abort_every` is aborted on purpose; 0: none.
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
    abort_every: int = 0
    linger_ms: float = 5.0
    """`linger.ms`. Experiments set their own, `LOAD_LINGER_MS` in `testbed/experiments/load.py`."""
    batch_bytes: int = BATCH_BYTES
    """Java's default. Larger batches make fetches less even (a broker cuts a response within a batch). From some MB/s
    on with followers they are necessary: librdkafka sends one batch a request, and each waits for the one before it."""
    give_up_s: float = 30.0
    """A record that is not acknowledged by then is in doubt."""
    buffer_bytes: int = 512 << 20
    """The bytes that may wait for the brokers; with a full buffer the producer does not keep its declared rate."""
    client: Mapping[str, str] = field(default_factory=dict)
    """librdkafka's settings for reaching the cluster: SASL, TLS."""
    connections: int = 1
    """The connections to each broker, each with its share of the partitions; see `testbed/workload/connections.py`."""

    @property
    def mean_bytes(self) -> float:
        """Return the mean size of a record in bytes."""
        if not self.sizes:
            return float(self.record_bytes)
        return sum(s.record_bytes * s.weight for s in self.sizes) / sum(s.weight for s in self.sizes)

    @property
    def records_per_s(self) -> float:
        """Return the records due per second."""
        return self.rate_bytes_per_s / self.mean_bytes

    @property
    def exactly_once(self) -> bool:
        """Return whether the brokers must keep no record twice or out of order."""
        return self.idempotence or self.transaction_s is not None

    @property
    def envelope(self) -> Envelope:
        """Return the rule of the records' keys and headers."""
        return Envelope(max(1, self.keys // len(self.partitions)) if self.keys else 0)

    def problems(self) -> list[str]:
        """Return one line for each mistake."""
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
            (self.abort_every < 0 or self.abort_every == 1, f"abort_every {self.abort_every}: must be 0, or 2 or more"),
            (self.give_up_s <= 0, "give_up_s must be above 0"),
            (self.connections < 1, f"{self.connections} connections: must be 1 or more"),
            (
                self.connections > max(1, len(self.partitions)),
                f"{self.connections} connections for {len(self.partitions)} partitions: too many",
            ),
            (self.transaction_s is not None and self.connections > 1, "a transaction has one connection only"),
        ]
        return [f"producer {self.name}: {text}" for wrong, text in checks if wrong]


@dataclass(frozen=True, slots=True)
class ConsumerSpec:
    """One member of a consumer group. It reads committed records in a separate process.

    In each of its `pauses` it does not read but stays in its group, and catches up afterwards. A latency counts from
    the time when a record was due.
    """

    name: str
    topics: tuple[str, ...]
    group: str
    from_beginning: bool = False
    pauses: tuple[Pause, ...] = ()
    client: Mapping[str, str] = field(default_factory=dict)

    def problems(self) -> list[str]:
        """Return one line for each mistake."""
        bad = [f"{p.begin_s:g}..{p.end_s:g}" for p in self.pauses if not 0 <= p.begin_s < p.end_s]
        checks = [
            (not self.topics, "no topics"),
            (not self.group, "no group"),
            (bool(bad), f"pauses {', '.join(bad)}: a pause must end after it begins"),
        ]
        return [f"consumer {self.name}: {text}" for wrong, text in checks if wrong]


Spec = ProducerSpec | ConsumerSpec


def check(specs: Sequence[Spec]) -> None:
    """Raise `UsageError` with every mistake when the specifications have any."""
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
    """The schedule of a producer: `turn` records go to one of `partitions`, then to the next, in a cycle.

    `sizes` are the records' sizes, also in a cycle; `interval_us` is the time between two records.
    """

    interval_us: float
    turn: int
    partitions: tuple[int, ...]
    sizes: tuple[int, ...]

    def due(self, now_us: int, began_us: int) -> int:
        """Return the number of records due by now."""
        return 0 if now_us < began_us else int((now_us - began_us) / self.interval_us) + 1


def schedule(spec: ProducerSpec, seed: int) -> Schedule:
    """Return the schedule; the same specification and seed give the same schedule."""
    rng = random.Random(seed)
    # A batch's worth of records, as Java's sticky partitioner does: batches of one record would cost the brokers many
    # times more. With keys the key decides the partition.
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
    """Return a shuffled table in which each value has its share (at least one place)."""
    total = sum(weights.values())
    table = [value for value, weight in weights.items() for _ in range(max(1, round(weight / total * _TABLE)))]
    rng.shuffle(table)
    return table
