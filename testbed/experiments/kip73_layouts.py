"""Layouts of throttled moves, made from an experiment's settings and the brokers' hosts: KIP-73's test plan, KIP-435's.

Every layout has a calibration transfer and, where possible, an unthrottled control. Pure.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from testbed.errors import UsageError
from testbed.experiments.experiment import Hosts, Settings, number
from testbed.experiments.layout import Layout, PartitionGroup, carried
from testbed.experiments.model_inputs import sent_at
from testbed.throttle.duration import bottleneck
from testbed.throttle.quota_window import bytes_ending_in_a_burst
from testbed.units import format_byte_rate

SIDE_PARTITIONS = 4
CALIBRATION_BYTES, CONTROL_BYTES = 32_000_000, 48_000_000


def side(topic: str, source: str, target: str, size_bytes: int, partitions: int = SIDE_PARTITIONS) -> PartitionGroup:
    """Return a calibration or control group: partitions with one replica, which moves from `source` to `target`."""
    return PartitionGroup(topic, range(partitions), (source,), (target,), size_bytes)


def throttled_layout(
    groups: Sequence[PartitionGroup], source: str, target: str, *, control: bool = True, wildcard: bool = False
) -> Layout:
    """Return the layout of throttled groups, with a control and a calibration from `source` to `target`."""
    return Layout(
        tuple(groups),
        calibration=side("calibration", source, target, CALIBRATION_BYTES),
        control=side("control", source, target, CONTROL_BYTES) if control else None,
        wildcard=wildcard,
    )


def sized_for(layout: Layout, throttle_bytes_per_s: float, move_s: float) -> Layout:
    """Return the layout with the bytes that, by the model, take `move_s` seconds under this throttle.

    When the bottleneck is a leader that sends in bursts, the move is shorter, so that it ends within a burst. Raise
    `UsageError` when the throttle leaves no bytes for catching up.
    """
    hosts = layout.hosts
    ids = {host: number for number, host in enumerate(hosts)}
    unit = layout.sized(1_000_000_000)
    bound = bottleneck(carried(unit, ids), throttle_bytes_per_s)
    unit_s = bound.seconds(throttle_bytes_per_s)
    if not math.isfinite(unit_s):
        raise UsageError(
            f"a throttle of {format_byte_rate(throttle_bytes_per_s)} never makes progress: what is written meanwhile "
            f"takes {format_byte_rate(bound.inbound_bytes_per_s)} of it; raise it, or lower inbound"
        )
    at = sent_at(layout, hosts[bound.broker], bound, throttle_bytes_per_s)
    if at is None:
        return layout.sized(round(1_000_000_000 * move_s / unit_s))
    sent = bytes_ending_in_a_burst(bound.inbound_bytes_per_s, throttle_bytes_per_s, at, move_s)
    return layout.sized(round(1_000_000_000 * sent / bound.bytes))


def lasting(settings: Settings, layout: Layout) -> Layout:
    """Return the layout with the bytes that take the time of `preload` under the throttle `rate`; see `sized_for`."""
    return sized_for(layout, number(settings, "rate"), number(settings, "preload"))


def moved(
    settings: Settings, current: Sequence[str], target: Sequence[str], inbound_bytes_per_s: float = 0.0
) -> PartitionGroup:
    """Return all moving partitions as one group of the size 1, which `lasting` replaces."""
    partitions = range(int(number(settings, "partitions")))
    return PartitionGroup("kip73", partitions, tuple(current), tuple(target), 1, inbound_bytes_per_s)


def parts(count: int, number_of_parts: int) -> list[range]:
    """Return the ranges into which this number of partitions is divided, as equal as possible."""
    edges = [count * turn // number_of_parts for turn in range(number_of_parts + 1)]
    return [range(first, last) for first, last in pairwise(edges)]


def _inbound(settings: Settings) -> float:
    """Return the inbound rate of all moving partitions, B/s; 0 without the setting."""
    return number(settings, "inbound") if "inbound" in settings else 0.0


def _enough(settings: Settings, leaders: int) -> int:
    """Return the number of partitions. Raise `UsageError` when not each of so many leaders has one."""
    count = int(number(settings, "partitions"))
    if count < leaders:
        raise UsageError(f"partitions={count}: each of {leaders} brokers leads one; give {leaders} or more")
    return count


def two_node(settings: Settings, hosts: Hosts) -> Layout:
    """Return (A) → (B), or with ``add=yes`` (A) → (A, B)."""
    a, b = hosts
    target = (a, b) if settings.get("add") == "yes" else (b,)
    return lasting(settings, throttled_layout([moved(settings, (a,), target, _inbound(settings))], a, b))


def one_of_two(settings: Settings, hosts: Hosts) -> Layout:
    """Return (A, B) → (C, B), all led by A: another broker always has all data."""
    a, b, c = hosts
    return lasting(settings, throttled_layout([moved(settings, (a, b), (c, b), _inbound(settings))], a, c))


def _in_halves(settings: Settings, hosts: Hosts, *moves: tuple[tuple[str, ...], tuple[str, ...]]) -> Layout:
    """Return the layout in which each half of the partitions makes one of two moves: replicas before and after."""
    each = _inbound(settings) / 2
    groups = [
        PartitionGroup("kip73", half, current, target, 1, each)
        for half, (current, target) in zip(parts(int(number(settings, "partitions")), 2), moves, strict=True)
    ]
    return lasting(settings, throttled_layout(groups, hosts[0], hosts[-1]))


def one_to_two(settings: Settings, hosts: Hosts) -> Layout:
    """Return partitions led by A: half of them (A, B) → (C, B), half (A, C) → (B, C)."""
    a, b, c = hosts
    return _in_halves(settings, hosts, ((a, b), (c, b)), ((a, c), (b, c)))


def two_to_one(settings: Settings, hosts: Hosts) -> Layout:
    """Return (A, B) → (C, B) led by A, and (B, A) → (C, A) led by B: C's receiving quota is the bottleneck."""
    a, b, c = hosts
    return _in_halves(settings, hosts, ((a, b), (c, b)), ((b, a), (c, a)))


def swap(settings: Settings, hosts: Hosts) -> Layout:
    """Return half of the partitions (A) → (B) and half (B) → (A): each broker sends and receives at the same time."""
    a, b = hosts
    return _in_halves(settings, hosts, ((a,), (b,)), ((b,), (a,)))


def half_to_half(settings: Settings, hosts: Hosts) -> Layout:
    """Return partitions with one replica, each moved from a host of the first half to its counterpart of the other.

    Each pair has a topic of its own: the controller creates at most 10,000 partitions in one request.
    """
    half = len(hosts) // 2
    shares = parts(_enough(settings, half), half)
    groups = [
        PartitionGroup(f"kip73-{turn}", range(len(share)), (old,), (new,), 1)
        for turn, (share, old, new) in enumerate(zip(shares, hosts[:half], hosts[half:], strict=True), 1)
    ]
    return lasting(settings, throttled_layout(groups, hosts[0], hosts[half]))


def whole_move(settings: Settings, hosts: Hosts) -> Layout:
    """Return a move from the first half of the hosts to the other half. Each host of the first half leads equally many.

    For instance (A, B) → (C, D) and (B, A) → (D, C).
    """
    half = len(hosts) // 2
    old, new, count = tuple(hosts[:half]), tuple(hosts[half:]), _enough(settings, half)
    each = number(settings, "inbound") / count
    groups = [
        PartitionGroup("kip435", mine, old[turn:] + old[:turn], new[turn:] + new[:turn], len(mine), each * len(mine))
        for turn, mine in enumerate(parts(count, half))
    ]
    return _replicated(settings, throttled_layout(groups, old[0], new[0]))


def led_by_one(settings: Settings, hosts: Hosts) -> Layout:
    """Return the move of `whole_move` with all partitions led by the first host: the bottleneck is this leader."""
    half = len(hosts) // 2
    group = replace(moved(settings, hosts[:half], hosts[half:], number(settings, "inbound")), topic="kip435")
    # A control would use a large part of the leader's NIC, whose traffic the experiment compares.
    return _replicated(settings, throttled_layout([group], hosts[0], hosts[half], control=False))


def _replicated(settings: Settings, layout: Layout) -> Layout:
    return lasting(settings, replace(layout, min_insync=int(number(settings, "min-insync"))))
