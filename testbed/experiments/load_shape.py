"""The shape of an experiment's live load: its records, keys, codec, transactions and topics, as parameters."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from results.contract.texts import plural
from testbed.errors import UsageError
from testbed.experiments.experiment import NONE, Parameter, Settings, Value, number, one_of, or_none, whole
from testbed.experiments.layout import Layout, PartitionGroup
from testbed.units import format_size, parse_duration, parse_size
from testbed.workload.records import HEADER_BYTES
from testbed.workload.spec import CODECS, Size

LARGEST_BYTES = 900_000
"""A broker refuses batches of more than `message.max.bytes`, 1,048,588 by default, and librdkafka of 1,000,000."""
FIXED = "fixed"
MOST_TOPICS = 20
"""Each topic has producers of its own, and each producer is a process."""
LOG_HEAD_BYTES = 16
"""What a log has for each record besides its value: 9 bytes of a record of 1 KiB without a key, a key, and its part of
the head of a batch, 61 bytes."""


@dataclass(frozen=True, slots=True)
class LoadShape:
    """What every producer of a load writes; see `ProducerSpec`. `keys` is the number of keys of the whole load."""

    record_bytes: int = 1024
    sizes: tuple[Size, ...] = ()
    keys: int = 0
    skew: float = 0.0
    compression: str = NONE
    redundancy: float = 0.0
    transaction_s: float | None = None
    topics: int = 1

    @property
    def log_bytes_per_byte(self) -> float:
        """Return the bytes of logs for each byte of values: a codec saves some, heads of records add some."""
        weights = sum(size.weight for size in self.sizes)
        mean = sum(size.record_bytes * size.weight for size in self.sizes) / weights if weights else self.record_bytes
        return (1 - (0.0 if self.compression == NONE else self.redundancy)) * (1 + LOG_HEAD_BYTES / mean)


def shape_parameters(size: str = "size") -> tuple[Parameter, ...]:
    """Return the parameters of the load's shape. `size` is the name of that of the records' size."""
    return (
        Parameter(size, "1KiB", record_size, "the load: bytes of a record's value"),
        Parameter(
            "distribution",
            FIXED,
            distribution,
            f"the load: {FIXED}, or sizes with weights in place of one size, such as 200B*9,10KiB*1",
        ),
        Parameter("keys", NONE, or_none(whole(1, 10_000_000)), "the load: the number of keys, each in one partition"),
        Parameter("skew", "0", real(0.0, 10.0), "the load: Zipf's exponent over a producer's partitions; 0: even"),
        Parameter("compression", NONE, one_of(*CODECS), "the load: the producers' codec"),
        Parameter("redundancy", "0", real(0.0, 0.99), "the load: the share of a payload that a codec can save"),
        Parameter(
            "transactions", NONE, or_none(interval), "the load: how much time a transaction's records take, such as 1s"
        ),
        Parameter(
            "topics",
            "1",
            whole(1, MOST_TOPICS),
            "over how many topics the partitions that move, or are written, are spread",
        ),
    )


def record_size(text: str) -> Value:
    """Parse the size of a record. Raise ValueError unless it has room for the header, and brokers take it."""
    size = parse_size(text)
    if not HEADER_BYTES < size <= LARGEST_BYTES:
        raise ValueError(
            f"a record has {HEADER_BYTES} bytes of header, and brokers refuse large ones: "
            f"allowed are {HEADER_BYTES + 1}B to {format_size(LARGEST_BYTES)}"
        )
    return size


def distribution(text: str) -> Value:
    """Check a distribution and return its text. Raise ValueError that names the wrong part."""
    read_sizes(text)
    return text


def read_sizes(text: str) -> tuple[Size, ...]:
    """Return the sizes of `SIZE*WEIGHT,SIZE*WEIGHT`; none of `fixed`. Raise ValueError that names the wrong part."""
    if text == FIXED:
        return ()
    found = []
    for part in text.split(","):
        size, star, weight = part.partition("*")
        try:
            if not star:
                raise ValueError("expected SIZE*WEIGHT")
            found.append(Size(int(record_size(size)), float(real(0.0, 1e6)(weight))))
        except ValueError as error:
            raise ValueError(f"{part!r}: {error}; allowed are {FIXED}, or such as 200B*9,10KiB*1") from None
        if found[-1].weight <= 0:
            raise ValueError(f"{part!r}: a weight must be above 0")
    return tuple(found)


def real(lowest: float, highest: float) -> Callable[[str], Value]:
    """Return a parser for a number within bounds."""

    def parse(text: str) -> Value:
        expected = f"expected a number from {lowest:g} to {highest:g}"
        try:
            value = float(text)
        except ValueError:
            raise ValueError(expected) from None
        if not lowest <= value <= highest:
            raise ValueError(expected)
        return value

    return parse


def interval(text: str) -> Value:
    """Parse the time of a transaction. Raise ValueError unless producers and brokers bear it."""
    seconds = parse_duration(text)
    if not 0.05 <= seconds <= 10:
        raise ValueError("expected 50ms to 10s: a commit takes some ms, and records count as unanswered until then")
    return seconds


def load_shape(settings: Settings, size: str = "size") -> LoadShape:
    """Return the shape that the settings describe; the default for an experiment without these parameters."""
    if "distribution" not in settings:
        return LoadShape()
    return LoadShape(
        record_bytes=int(number(settings, size)),
        sizes=read_sizes(str(settings["distribution"])),
        keys=int(number(settings, "keys")),
        skew=number(settings, "skew"),
        compression=str(settings["compression"]),
        redundancy=number(settings, "redundancy"),
        transaction_s=number(settings, "transactions") or None,
        topics=int(number(settings, "topics")),
    )


def with_shape(layout: Layout, shape: LoadShape) -> Layout:
    """Return the layout with the topics of the shape. Raise `UsageError` for a shape that does not suit the layout."""
    found = spread(layout, shape.topics)
    check_shape(shape, found)
    return found


def check_shape(shape: LoadShape, layout: Layout) -> None:
    """Raise `UsageError` for a shape that contradicts itself or does not suit the layout."""
    written = sum(len(group.partitions) for group in layout.throttled if group.inbound_bytes_per_s)
    problems = []
    if not written and replace(shape, topics=1) != LoadShape():
        problems.append("nothing is written to any partition, so the load has no shape; give inbound, or leave it out")
    if written and 0 < shape.keys < written:
        problems.append(
            f"keys={shape.keys} is too few for {plural(written, 'written partition')}, as each key is in one partition"
            f"; give at least {written}, or {NONE}"
        )
    if shape.redundancy and shape.compression == NONE:
        problems.append(
            f"redundancy={shape.redundancy:g} changes nothing without a codec; give compression as well: "
            f"{', '.join(codec for codec in CODECS if codec != NONE)}"
        )
    if problems:
        raise UsageError("\n".join(problems))


def in_logs(layout: Layout, shape: LoadShape) -> Layout:
    """Return the layout with the rates at which its logs grow in place of those of the records' values."""
    grows = shape.log_bytes_per_byte
    groups = (replace(group, inbound_bytes_per_s=grows * group.inbound_bytes_per_s) for group in layout.throttled)
    return replace(layout, throttled=tuple(groups))


def spread(layout: Layout, topics: int) -> Layout:
    """Return the layout with each topic that moves or is written divided: partition p is p ÷ N of topic p mod N.

    Raise `UsageError` when such a topic has fewer partitions than N.
    """
    if topics == 1:
        return layout
    divided = {group.topic for group in layout.throttled if group.moves or group.inbound_bytes_per_s}
    for name in sorted(divided):
        count = sum(len(group.partitions) for group in layout.throttled if group.topic == name)
        if count < topics:
            there = plural(count, "partition")
            raise UsageError(f"topics={topics} is more than the {there} of {name}; give at most {count}")
    parts = (
        part for group in layout.throttled for part in (_divided(group, topics) if group.topic in divided else [group])
    )
    return replace(layout, throttled=tuple(part for part in parts if part.partitions))


def _divided(group: PartitionGroup, topics: int) -> list[PartitionGroup]:
    found = []
    for turn in range(topics):
        # The p of the group with p = topics · i + turn have i from the one edge, divided and rounded up, to the other.
        first, last = (-((turn - edge) // topics) for edge in (group.partitions.start, group.partitions.stop))
        share = (last - first) / len(group.partitions)
        found.append(
            replace(
                group,
                topic=f"{group.topic}-{turn + 1}",
                partitions=range(first, last),
                bytes=round(group.bytes * share),
                inbound_bytes_per_s=group.inbound_bytes_per_s * share,
            )
        )
    return found
