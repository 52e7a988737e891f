"""Layouts of throttled moves, made from an experiment's settings and the brokers' hosts: KIP-73's test plan, KIP-435's.

Every layout has a calibration transfer and, where possible, an unthrottled control. Pure.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

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
    hosts = sorted({host for group in layout.groups for host in (*group.current, *group.target)})
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


def halves(partitions: int) -> tuple[range, range]:
    """Return the two halves of this number of partitions."""
    return range(partitions // 2), range(partitions // 2, partitions)


def _written(settings: Settings) -> float:
    """Return the inbound rate of all moving partitions, B/s; 0 without the setting."""
    return number(settings, "inbound") if "inbound" in settings else 0.0


def _sized(settings: Settings, found: Layout) -> Layout:
    return sized_for(found, number(settings, "rate"), number(settings, "preload"))


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
    partitions = range(int(number(settings, "partitions")))
    return _sized(
        settings, throttled_layout([PartitionGroup("kip73", partitions, (a,), target, 1, _written(settings))], a, b)
    )


def one_to_two(settings: Settings, hosts: Hosts) -> Layout:
    """Return partitions led by A: half of them (A, B) → (C, B), half (A, C) → (B, C)."""
    a, b, c = hosts
    first, second = halves(int(number(settings, "partitions")))
    each = _written(settings) / 2
    groups = [
        PartitionGroup("kip73", first, (a, b), (c, b), 1, each),
        PartitionGroup("kip73", second, (a, c), (b, c), 1, each),
    ]
    return _sized(settings, throttled_layout(groups, a, c))


def two_to_one(settings: Settings, hosts: Hosts) -> Layout:
    """Return (A, B) → (C, B) led by A, and (B, A) → (C, A) led by B: C's receiving quota is the bottleneck."""
    a, b, c = hosts
    first, second = halves(int(number(settings, "partitions")))
    each = _written(settings) / 2
    groups = [
        PartitionGroup("kip73", first, (a, b), (c, b), 1, each),
        PartitionGroup("kip73", second, (b, a), (c, a), 1, each),
    ]
    return _sized(settings, throttled_layout(groups, a, c))


def one_of_two(settings: Settings, hosts: Hosts) -> Layout:
    """Return (A, B) → (C, B), all led by A: another broker always has all data."""
    a, b, c = hosts
    partitions = range(int(number(settings, "partitions")))
    return _sized(
        settings, throttled_layout([PartitionGroup("kip73", partitions, (a, b), (c, b), 1, _written(settings))], a, c)
    )


def half_to_half(settings: Settings, hosts: Hosts) -> Layout:
    """Return partitions with one replica, each moved from a host of the first half to its counterpart of the other.

    Each pair has a topic of its own: the controller creates at most 10,000 partitions in one request.
    """
    half = len(hosts) // 2
    count = _enough(settings, half)
    groups = [
        PartitionGroup(f"kip73-{turn + 1}", range(count * (turn + 1) // half - count * turn // half), (old,), (new,), 1)
        for turn, (old, new) in enumerate(zip(hosts[:half], hosts[half:], strict=True))
    ]
    return _sized(settings, throttled_layout(groups, hosts[0], hosts[half]))


def whole_move(settings: Settings, hosts: Hosts) -> Layout:
    """Return a move from the first half of the hosts to the other half. Each host of the first half leads equally many.

    For instance (A, B) → (C, D) and (B, A) → (D, C).
    """
    half = len(hosts) // 2
    old, new, count = hosts[:half], hosts[half:], _enough(settings, half)
    each = number(settings, "inbound") / count
    groups = []
    for turn in range(half):
        mine = range(count * turn // half, count * (turn + 1) // half)
        current, target = (tuple(part[turn:]) + tuple(part[:turn]) for part in (old, new))
        groups.append(PartitionGroup("kip435", mine, current, target, len(mine), each * len(mine)))
    return _under(settings, groups, old[0], new[0])


def led_by_one(settings: Settings, hosts: Hosts) -> Layout:
    """Return the move of `whole_move` with all partitions led by the first host: the bottleneck is this leader."""
    half = len(hosts) // 2
    partitions = range(int(number(settings, "partitions")))
    group = PartitionGroup(
        "kip435", partitions, tuple(hosts[:half]), tuple(hosts[half:]), 1, number(settings, "inbound")
    )
    # A control would use a large part of the leader's NIC, whose traffic the experiment compares.
    return _under(settings, [group], hosts[0], hosts[half], control=False)


def _under(
    settings: Settings, groups: Sequence[PartitionGroup], source: str, target: str, *, control: bool = True
) -> Layout:
    found = replace(
        throttled_layout(groups, source, target, control=control), min_insync=int(number(settings, "min-insync"))
    )
    return sized_for(found, number(settings, "rate"), number(settings, "preload"))
