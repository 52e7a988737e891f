"""The throttle that a move needs, and how long the move takes with it. Pure, except `observe`.

The model (`testbed.throttle.duration`) says how long a move takes under a quota. This module inverts it: from a
deadline or a share of the NIC to the throttle. It refuses an impossible goal and names a possible one.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from results.contract.texts import counted, plural, shortened
from testbed.errors import TestbedError
from testbed.kafka.admin import Admin
from testbed.kafka.errors import KafkaError, TopicConfigsError, UnreachableError
from testbed.kafka.types import PartitionMove, PartitionState, TopicPartition
from testbed.reassignment.lag import MONOTONIC, LogSizes, PollClock, growth, measure
from testbed.reassignment.plan import Plan, PlanError, kip73_move_seconds, move_ratio, moves
from testbed.reassignment.progress import already_moving
from testbed.throttle.configs import FOLLOWER_REPLICAS, LEADER_REPLICAS, LISTS, ListedReplicas
from testbed.throttle.duration import Copy, Share, bottleneck, shares, throttle_for
from testbed.units import format_byte_rate, format_duration

WIRE = 1.062
"""Bytes on the NIC for each byte of a log: headers of Kafka, TCP/IP and Ethernet (docs/throttle-bound.md)."""
MARGIN = 1.1
"""The factor by which a move may exceed the model: a quota delays whole responses, so a part of it stays unused."""
_LUMPY_BELOW = 1_000_000
_SHOWN = 8


class InfeasibleError(TestbedError):
    """An impossible goal: ``why``, and a possible goal (seconds, or a share of the NIC), if any."""

    exit_code = 1

    def __init__(self, why: str, instead: str, *, deadline_s: float | None = None, share: float | None = None) -> None:
        self.why, self.instead, self.deadline_s, self.share = why, instead, deadline_s, share
        super().__init__(f"cannot be met: {why}; {instead}")


@dataclass(frozen=True, slots=True)
class ClusterLoad:
    """The bytes that a plan copies, and the cluster's traffic meanwhile; rates in B/s, by broker.

    ``listed`` are partitions that do not move and are listed as throttled already: quotas count their in-sync traffic.
    """

    copies: tuple[Copy, ...]
    total_partitions: int
    log_bytes: Mapping[int, int]
    produced_bytes_per_s: Mapping[int, float]
    received_bytes_per_s: Mapping[int, float]
    sent_bytes_per_s: Mapping[int, float]
    """The rate that a broker sends to followers; the Admin API does not report consumers' reads."""
    measured_s: float
    cautions: tuple[str, ...] = ()
    listed: tuple[Copy, ...] = ()


@dataclass(frozen=True, slots=True)
class BrokerEstimate:
    """One broker direction under the throttle; ``room_bytes_per_s`` is the NIC's rest for the move, if known."""

    share: Share
    quota_bytes_per_s: float
    seconds: float
    room_bytes_per_s: float | None
    is_bottleneck: bool

    @property
    def limited_by_nic(self) -> bool:
        """Return whether the NIC leaves less than the throttle allows."""
        return self.room_bytes_per_s is not None and self.room_bytes_per_s < self.quota_bytes_per_s


@dataclass(frozen=True, slots=True)
class ThrottleEstimate:
    """A throttle in B/s, and the seconds that the move takes with it: by the model, and at most."""

    throttle_bytes_per_s: int
    seconds: float
    at_most_s: float
    lines: tuple[BrokerEstimate, ...]
    kip73_seconds: float
    observed: ClusterLoad
    cautions: tuple[str, ...]


def for_deadline(observed: ClusterLoad, deadline_s: float, nic_bps: int | None = None) -> ThrottleEstimate:
    """Return the lowest throttle that meets the deadline with a tenth of its time in reserve. Raise `InfeasibleError`.

    Without the NIC's rate the estimate does not check whether the network can carry it.
    """
    found = _shares(observed)
    quota = math.ceil(round(throttle_for(found, deadline_s / MARGIN), 3))  # a rounding error must not add a byte
    rooms = _rooms(observed, found, nic_bps)
    lacking = [share for share in found if rooms.get(share, math.inf) < quota]
    if lacking:
        shortest_s = MARGIN * max(share.seconds(rooms[share]) for share in lacking)
        worst = min(lacking, key=lambda share: rooms[share] - share.inbound_bytes_per_s)
        why = (
            f"in {format_duration(deadline_s)} {_where(worst)} needs a throttle of {_rate(quota)}, "
            f"and its NIC leaves {_rate(rooms[worst])} for it"
        )
        if math.isinf(shortest_s):
            incoming = f"{_rate(worst.inbound_bytes_per_s)} of what is written takes all of that"
            raise InfeasibleError(f"{why}; {incoming}, so it never makes progress", "no deadline can be met")
        raise InfeasibleError(why, f"{format_duration(shortest_s)} can", deadline_s=shortest_s)
    return _estimate(observed, found, quota, nic_bps)


def for_share(observed: ClusterLoad, share: float, nic_bps: int) -> ThrottleEstimate:
    """Return the estimate for a throttle of this share (0 to 1) of the NIC, with headers. Raise `InfeasibleError`."""
    return for_rate(observed, int(share * _carried(nic_bps)), nic_bps)


def for_rate(observed: ClusterLoad, throttle_bytes_per_s: int, nic_bps: int | None = None) -> ThrottleEstimate:
    """Return the estimate for a given throttle. Raise `InfeasibleError` when the move never ends with it."""
    found = _shares(observed)
    estimate = _estimate(observed, found, throttle_bytes_per_s, nic_bps)
    if math.isinf(estimate.seconds):
        raise _never(estimate, nic_bps)
    return estimate


def observe(admin: Admin, plan: Plan, measure_s: float, pauses: PollClock = MONOTONIC) -> ClusterLoad:
    """Return the bytes that a plan copies, and the load of the cluster over ``measure_s`` seconds.

    Raise `PlanError` when the plan does not fit the cluster or a reassignment runs already, and `KafkaError`.
    """
    running = admin.reassignments()
    if running:
        raise PlanError("plan", [f"{already_moving(running)}; `testbed throttle watch` follows them"])
    topics = admin.topics()
    states = admin.partitions(topics)
    todo = moves(plan, {tp: state for tp, state in states.items() if tp in plan.targets})
    live = sorted(broker.id for broker in admin.cluster().brokers)
    problems = [
        f"{move.tp}: brokers {dead} are its targets but not alive; live are {live}"
        for move in todo
        if (dead := sorted(set(move.target) - set(live)))
    ]
    problems += [f"{move.tp} has no leader to copy from" for move in todo if states[move.tp].leader is None]
    if problems:
        raise PlanError("plan", shortened(problems, _SHOWN))
    errors: dict[int, KafkaError] = {}
    readings = measure(admin, live, measure_s, pauses=pauses, problems=errors)
    if silent := next((error for error in errors.values() if isinstance(error, UnreachableError)), None):
        raise silent
    lists, cautions = _lists(admin, topics)
    found = observed(todo, states, readings, lists)
    cautions += [f"{error}: the replicas there are not in the estimate" for error in errors.values()]
    return replace(found, cautions=(*found.cautions, *cautions))


def _lists(admin: Admin, topics: Sequence[str]) -> tuple[ListedReplicas, list[str]]:
    """Return the lists of throttled replicas, and a caution when the user may not read those of some topics."""
    try:
        return ListedReplicas(admin.topics_configs(topics, LISTS)), []
    except TopicConfigsError as error:
        named = ", ".join(shortened(error.refused, _SHOWN))
        caution = (
            f"the lists of {plural(len(error.refused), 'topic')} cannot be read ({named}): what these list already is "
            "not in the estimate"
        )
        return ListedReplicas(error.found), [caution]


def observed(
    todo: tuple[PartitionMove, ...],
    states: Mapping[TopicPartition, PartitionState],
    readings: tuple[LogSizes, ...],
    lists: ListedReplicas,
) -> ClusterLoad:
    """Return the load of a cluster from its metadata, readings of log sizes, and the lists of throttled replicas."""
    last = readings[-1].logs
    led = {tp: state.leader for tp, state in states.items() if state.leader in last}
    written = {tp: growth(readings, leader, tp) for tp, leader in led.items() if leader is not None}
    copies, listed, cautions = [], [], []
    for move in todo:
        state = states[move.tp]
        leader = state.leader
        if leader is None or not move.adding:
            continue
        behind = sorted(set(state.replicas) - set(state.isr) - {leader})
        if behind:
            cautions.append(f"{move.tp}: replicas {behind} are not in sync; what they lack is not in the estimate")
        size = last[leader].get(move.tp, 0)
        in_sync, receiving = _in_sync(state, leader), _receiving(state, leader, lists)
        copies.append(Copy(move.tp, leader, in_sync, move.adding, size, written[move.tp], receiving))
    for tp in sorted(led.keys() - {copy.tp for copy in copies}):
        state, leader = states[tp], led[tp]
        assert leader is not None
        sent_to = _in_sync(state, leader) if lists.names(LEADER_REPLICAS, tp, leader) else ()
        receiving = _receiving(state, leader, lists)
        if written[tp] and (sent_to or receiving):
            listed.append(Copy(tp, leader, sent_to, (), 0, written[tp], receiving))
    if listed:
        named = ", ".join(shortened(sorted({copy.tp.topic for copy in listed}), _SHOWN))
        cautions.append(
            f"{counted(len(listed), 'partition', 'is')} listed as throttled without being moved ({named}): the quotas "
            "count what followers fetch there"
        )
    return ClusterLoad(
        tuple(copies),
        len(states),
        {broker: sum(logs.values()) for broker, logs in last.items()},
        {broker: sum(rate for tp, rate in written.items() if led[tp] == broker) for broker in last},
        {broker: sum(growth(readings, broker, tp) for tp in logs) for broker, logs in last.items()},
        {
            broker: sum(rate * (len(states[tp].isr) - 1) for tp, rate in written.items() if led[tp] == broker)
            for broker in last
        },
        max(readings[-1].at_s[broker] - readings[0].at_s[broker] for broker in last),
        tuple(cautions),
        tuple(listed),
    )


def _in_sync(state: PartitionState, leader: int) -> tuple[int, ...]:
    return tuple(broker for broker in state.isr if broker != leader)


def _receiving(state: PartitionState, leader: int, lists: ListedReplicas) -> tuple[int, ...]:
    """Return the followers in sync whose own quota counts what they fetch: the follower's list names them."""
    return tuple(broker for broker in _in_sync(state, leader) if lists.names(FOLLOWER_REPLICAS, state.tp, broker))


def _shares(observed: ClusterLoad) -> tuple[Share, ...]:
    """Return what brokers must carry in the directions in which the plan copies, with all that quotas count there."""
    return tuple(share for share in shares((*observed.copies, *observed.listed)) if share.bytes)


def _estimate(observed: ClusterLoad, found: tuple[Share, ...], quota: int, nic_bps: int | None) -> ThrottleEstimate:
    rooms = _rooms(observed, found, nic_bps)
    times = {share: share.seconds(min(quota, rooms.get(share, math.inf))) for share in found}
    slowest = max(times.values(), default=0.0)
    # Among equal shares the model's order decides, also among shares that never end.
    slowest_share = bottleneck([share for share in found if times[share] == slowest], quota) if found else None
    lines = tuple(
        BrokerEstimate(share, quota, times[share], rooms.get(share), share == slowest_share) for share in found
    )
    cautions = list(observed.cautions)
    if 0 < quota < _LUMPY_BELOW:
        cautions.append(
            "below 1MB/s one batch of `replica.fetch.max.bytes` (1 MiB) takes seconds: the rate comes in lumps"
        )
    cautions += [
        f"{_where(line.share)}: the NIC leaves {_rate(line.room_bytes_per_s or 0)}, less than the throttle"
        for line in lines
        if line.limited_by_nic
    ]
    return ThrottleEstimate(quota, slowest, MARGIN * slowest, lines, _kip73(observed, quota), observed, tuple(cautions))


def _kip73(observed: ClusterLoad, quota: int) -> float:
    if not observed.copies:
        return 0.0
    brokers = len(observed.log_bytes)
    return kip73_move_seconds(
        move_ratio(len(observed.copies), observed.total_partitions),
        sum(observed.log_bytes.values()) / brokers,
        brokers,
        quota,
        max(observed.produced_bytes_per_s.values()),
    )


def _never(estimate: ThrottleEstimate, nic_bps: int | None) -> InfeasibleError:
    worst = next(line for line in estimate.lines if line.is_bottleneck)
    share = worst.share
    limit = f"its NIC leaves {_rate(worst.room_bytes_per_s or 0)}" if worst.limited_by_nic else "which is the quota"
    why = (
        f"never makes progress: {_where(share)} {_rate(share.inbound_bytes_per_s)} come in "
        f"(what is written, once for each listed replica), at or above {_rate(estimate.throttle_bytes_per_s)}, {limit}"
    )
    needed = max(line.share.inbound_bytes_per_s for line in estimate.lines)
    instead = f"a throttle must be above {_rate(needed)}"
    if nic_bps is None:
        return InfeasibleError(why, instead)
    lowest = needed / _carried(nic_bps)
    fastest_s = MARGIN * max(line.share.seconds(line.room_bytes_per_s or 0) for line in estimate.lines)
    if math.isinf(fastest_s):
        return InfeasibleError(why, "with this NIC no throttle is enough")
    return InfeasibleError(
        why, f"{instead}, {lowest:.1%} of the NIC; the shortest deadline is {format_duration(fastest_s)}",
        deadline_s=fastest_s, share=lowest,
    )  # fmt: skip


def _rooms(observed: ClusterLoad, found: tuple[Share, ...], nic_bps: int | None) -> dict[Share, float]:
    """Return the rate that each NIC leaves for throttled traffic, in B/s of logs: its rate less its other traffic."""
    if nic_bps is None:
        return {}
    rooms: dict[Share, float] = {}
    for share in found:
        now = observed.received_bytes_per_s if share.direction == "receive" else observed.sent_bytes_per_s
        other = now.get(share.broker, 0.0) - share.in_sync_bytes_per_s
        rooms[share] = max(0.0, _carried(nic_bps) - max(0.0, other))
    return rooms


def _carried(nic_bps: int) -> float:
    return nic_bps / 8 / WIRE


def _where(share: Share) -> str:
    return f"broker {share.broker} ({share.direction})"


def _rate(bytes_per_s: float) -> str:
    return format_byte_rate(bytes_per_s, 4)
