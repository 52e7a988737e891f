"""The record of a move without a throttle, and its expected cost: logs on disk, tiered, or streams in S3.

Sizes are bytes, rates are bytes per second, times are seconds.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from results.contract.verdict import Direction

Storage = Literal["disk", "tiered", "automq"]
STORAGES: tuple[Storage, ...] = get_args(Storage)
LOCAL_MOST = 0.1
"""The share of a tiered log below which the part on disk must be when a move begins. Otherwise the disk is measured."""


@dataclass(frozen=True, slots=True)
class Sent:
    """What one broker has to send to another: `total_bytes` is the whole log of these partitions, wherever it lies,
    `local_bytes` what of it lay on the leader's disk when the move began; None: it was not seen."""

    leader: str
    follower: str
    partitions: int
    total_bytes: int
    local_bytes: int | None


@dataclass(frozen=True, slots=True)
class ColdRead:
    """A consumer that read from the beginning while data moved: `consumed_bytes` of records in `records`.

    `evicted_bytes` is what the page cache dropped on request before, None where it was not. `source` says whose reads
    count: the brokers' devices, or the object store.
    """

    consumer: str
    records: int
    consumed_bytes: int
    evicted_bytes: int | None
    source: Literal["device", "store"]


CALM = "calm"
"""The step in which a new broker waited for a calm machine: it is no part of the time that joining takes."""


@dataclass(frozen=True, slots=True)
class MembershipStep:
    """The end of one step of a broker that joins or leaves, in microseconds since the epoch."""

    name: str
    ts_us: int


@dataclass(frozen=True, slots=True)
class CommittedOffsets:
    """Offsets of each of `partitions` that each of `groups` committed before a broker left, read after it.

    `wrong` says which differ from what the coordinator had acknowledged. `problem` says why they could not be committed
    or read; empty: they were.
    """

    groups: int
    partitions: int
    wrong: tuple[str, ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Uploads:
    """What the new leaders of tiered partitions uploaded after a move.

    In each of `partitions` a leader closed a segment with records of after the move. `missing` says of which the object
    store got none of them. `problem` says why that could not be seen; empty: it was.
    """

    partitions: int
    missing: tuple[str, ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Membership:
    """A broker that joined or left while clients wrote. `asked_us` is when that was asked for.

    `registered` says whether the controller knows the broker afterwards, `container` whether its container exists.
    `steps` are in order; the move is none of them. `offsets` is of a broker that left, None in runs of before.
    """

    host: str
    change: Literal["joined", "left"]
    asked_us: int
    steps: tuple[MembershipStep, ...]
    registered: bool
    container: bool
    offsets: CommittedOffsets | None = None

    @property
    def wrong(self) -> str:
        """Return what the controller or the engine knows that contradicts the change; empty where nothing does."""
        joined = self.change == "joined"
        found = []
        if self.registered is not joined:
            found.append(f"{self.host} is {'not' if joined else 'still'} registered")
        if self.container is not joined:
            found.append(f"the container of {self.host} {'does not exist' if joined else 'still exists'}")
        return "; ".join(found)


@dataclass(frozen=True, slots=True)
class Relocation:
    """The move as it was asked for, and as it lay when it began.

    `stores` are the hosts of the object store. `nic_bytes_per_log_byte` is that, of an unthrottled transfer before the
    move; None when that failed. On shared storage, where nothing is copied, it is that of full frames.
    `written_bytes_per_s` is the rate at which logs grow, also logs that stay, as the load was declared. `balanced` says
    whether every broker was to have its share of partitions afterwards. `membership` is the broker that joined or left;
    None without one. `uploads` is of tiered partitions that clients write to, None in runs of before.
    """

    storage: Storage
    brokers: tuple[str, ...]
    stores: tuple[str, ...]
    sent: tuple[Sent, ...]
    nic_bytes_per_log_byte: float | None
    written_bytes_per_s: float
    balanced: bool = False
    cold: ColdRead | None = None
    membership: Membership | None = None
    uploads: Uploads | None = None

    def __post_init__(self) -> None:
        if self.storage not in STORAGES:
            raise ValueError(f"storage {self.storage!r} is none of {', '.join(STORAGES)}")
        for sent in self.sent:
            for host in (sent.leader, sent.follower):
                if host not in self.brokers:
                    raise ValueError(f"sent names {host!r}, not among brokers {list(self.brokers)}")

    @property
    def partitions(self) -> int:
        """Return how many partitions move."""
        return sum(sent.partitions for sent in self.sent)

    @property
    def total_bytes(self) -> int:
        """Return the whole logs of what moves."""
        return sum(sent.total_bytes for sent in self.sent)

    @property
    def local_bytes(self) -> int | None:
        """Return what of it lay on disks; None when that is not known of a part."""
        known = [sent.local_bytes for sent in self.sent if sent.local_bytes is not None]
        return sum(known) if len(known) == len(self.sent) else None

    @property
    def local_share(self) -> float | None:
        """Return the share of what moves that lay on disks; None when it is not known."""
        local, total = self.local_bytes, self.total_bytes
        return local / total if local is not None and total else None


def formula_seconds(
    sent: Iterable[tuple[Sent, int]], carries: Mapping[tuple[str, Direction], float | None]
) -> float | None:
    """Return the article's formula: log size ÷ NIC, where that takes longest; `sent` has the bytes that count of each.

    `carries` is each NIC's payload rate. None when one that is needed is not known.
    """
    through: dict[tuple[str, Direction], int] = {}
    for each, size in sent:
        for key in ((each.leader, "transmit"), (each.follower, "receive")):
            through[key] = through.get(key, 0) + size
    found = []
    for key, size in through.items():
        rate = carries.get(key)
        if not rate:
            return None
        found.append(size / rate)
    return max(found, default=0.0)
