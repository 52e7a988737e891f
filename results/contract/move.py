"""The request of a throttled move, in the manifest: what the judgement needs in addition to the samples.

A move in steps also has what polls of the controller's list showed (`BatchingPolls`).

Sizes are bytes, rates are bytes per second, times are seconds.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from results.contract.verdict import Direction

FlowKind = Literal["throttled", "in_sync", "control", "calibration"]
Fetch = Literal["tuned", "default"]
WINDOW_SAMPLES = 11
"""Kafka's default of `replication.quota.window.num`: the samples of a quota window."""
SAMPLE_S = 1
"""Kafka's default of `replication.quota.window.size.seconds`: the length of each of these samples."""
RECORDED: tuple[FlowKind, ...] = ("throttled", "in_sync")
"""The kinds of flows whose bytes a quota records."""


@dataclass(frozen=True, slots=True)
class Fetchers:
    """Replica fetchers that carry listed bytes through one host, each way: a leader has one for each follower
    that fetches listed partitions, in sync or not; a follower has one for each leader (× `num.replica.fetchers`)."""

    transmit: int
    receive: int


@dataclass(frozen=True, slots=True)
class Flow:
    """Partitions of one topic copied from a leader's host to a follower's host.

    *throttled*: to an adding replica, listed on both sides. *in_sync*: to a follower in sync. It is throttled on
    the leader's side only, and counts on the leader's transmit; with a wildcard throttle on both sides.
    A flow ends when the leader's log of the partition is gone from its host: another broker leads from then on.
    """

    kind: FlowKind
    topic: str
    partitions: tuple[int, ...]
    leader: str
    follower: str


@dataclass(frozen=True, slots=True)
class RoundTrip:
    """The delay that the topology declares from a leader's host to a follower's host and back, in seconds.

    `bytes` is the most that one of the follower's fetchers receives in this time.
    """

    leader: str
    follower: str
    seconds: float
    bytes: int


@dataclass(frozen=True, slots=True)
class Expected:
    """What the model says that one host's quota has to carry in one direction: bytes that catch up, and the rate
    at which the listed partitions keep being written to meanwhile, times the listed replicas it goes to."""

    host: str
    direction: Direction
    bytes: int
    in_sync_bytes_per_s: float

    def seconds(self, quota_bytes_per_s: float) -> float:
        """Return how long it takes there; infinite when in-sync replication traffic takes the whole quota."""
        left = quota_bytes_per_s - self.in_sync_bytes_per_s
        return self.bytes / left if left > 0 else math.inf if self.bytes else 0.0


@dataclass(frozen=True, slots=True)
class Move:
    """A throttled reassignment, as it was asked for: everything the judgement needs in addition to the samples.

    `quota_bytes_per_s` is the first quota; events have the later ones. `nic_bytes_per_log_byte` comes
    from the calibration transfer, None when that failed. `total_log_bytes`, `move_ratio` and `kip73_seconds` are
    KIP-73's estimate and its inputs. `expected` is the model of all listed traffic; `model_seconds` how long it says
    that the move takes under the quotas it had, None when there is none and `model_why` says why.
    `batches_s` is of a move in steps that has a model: when everything up to each batch has been copied if nothing
    rests between them, seconds from the start (`incremental` has no batches: one value); then `model_seconds` is the
    least that the quota lets it take.
    `inbound_bytes_per_s` is the highest rate at which any broker was declared to be produced to (KIP-73's
    max(BytesInPerSec)). With `nic_bound` the quota lies above what the NICs carry, on purpose. With `wildcard` the
    throttle lists every replica: what keeps up is recorded by its follower as well. `min_insync` is the listed topics'
    `min.insync.replicas`. `round_trips` has the pairs of hosts between which the topology declares a delay.
    """

    quota_bytes_per_s: float
    fetch: Fetch
    response_max_bytes: int
    nic_bytes_per_log_byte: float | None
    fetchers: Mapping[str, Fetchers]
    brokers: tuple[str, ...]
    flows: tuple[Flow, ...]
    total_log_bytes: int
    move_ratio: float
    kip73_seconds: float
    window_samples: int = WINDOW_SAMPLES
    sample_s: float = float(SAMPLE_S)
    warmup_s: float = float((WINDOW_SAMPLES + 1) * SAMPLE_S)
    tail_s: float = 5.0
    expected: tuple[Expected, ...] = ()
    model_seconds: float | None = None
    model_why: str = ""
    inbound_bytes_per_s: float = 0.0
    nic_bound: bool = False
    wildcard: bool = False
    min_insync: int = 1
    batches_s: tuple[float, ...] = ()
    round_trips: tuple[RoundTrip, ...] = ()

    def __post_init__(self) -> None:
        for name in ("quota_bytes_per_s", "response_max_bytes", "window_samples", "sample_s"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be positive")
        for flow in self.flows:
            for host in (flow.leader, flow.follower):
                if host not in self.brokers:
                    raise ValueError(f"flow of {flow.topic!r} names {host!r}, not among brokers {list(self.brokers)}")
        for expected in self.expected:
            if expected.host not in self.brokers:
                raise ValueError(f"expected names {expected.host!r}, not among brokers {list(self.brokers)}")

    @property
    def window_s(self) -> float:
        """Return the quota's window in seconds."""
        return self.window_samples * self.sample_s


def recorded_through(move: Move, host: str, direction: Direction) -> tuple[Flow, ...]:
    """Return the flows whose bytes the quota of a host records in a direction."""
    return (*throttled_through(move, host, direction), *in_sync_through(move, host, direction))


def throttled_through(move: Move, host: str, direction: Direction) -> tuple[Flow, ...]:
    """Return the flows to adding replicas that leave (transmit) or enter (receive) a host."""
    return flows_through(move.flows, "throttled", host, direction)


def in_sync_through(move: Move, host: str, direction: Direction) -> tuple[Flow, ...]:
    """Return the flows to followers in sync that a host's quota records: the leader's, or with a wildcard both."""
    if direction == "receive" and not move.wildcard:
        return ()
    return flows_through(move.flows, "in_sync", host, direction)


def flows_through(flows: Iterable[Flow], kind: FlowKind, host: str, direction: Direction) -> tuple[Flow, ...]:
    """Return the flows of a kind that leave (transmit) or enter (receive) a host."""
    end = "leader" if direction == "transmit" else "follower"
    return tuple(f for f in flows if f.kind == kind and getattr(f, end) == host)


@dataclass(frozen=True, slots=True)
class Limits:
    """KIP-435's limits as they were asked for; None is no limit.

    `replicas` (R) are added by one step of a partition, `partitions` (P) in flight at once, `leaders` (L) of them
    moving the preferred leader.
    """

    replicas: int | None
    partitions: int | None
    leaders: int | None


@dataclass(frozen=True, slots=True)
class BatchingPolls:
    """A move as it was listed, poll by poll; instants are not kept here, the trace is among the run's events.

    `gap_s` is the longest time between two polls, None with fewer than two. `most_in_flight` partitions were listed at
    once, `most_leaders` of them in a step that moves the preferred leader. `most_added` replicas were added by one
    step; `added_over` names the steps that added more than R without having to, for `min.insync.replicas`.
    `fetching` is the most replicas that fetched from one partition's leader at once. `steps` were seen, of `partitions`
    partitions. `astray` says where a partition ended otherwise than the plan has it, `again` which replica was copied
    that had been one before.
    """

    mode: str
    limits: Limits
    polls: int
    gap_s: float | None
    partitions: int
    steps: int
    most_in_flight: int
    most_leaders: int
    most_added: int
    fetching: int
    added_over: tuple[str, ...] = ()
    astray: tuple[str, ...] = ()
    again: tuple[str, ...] = ()
