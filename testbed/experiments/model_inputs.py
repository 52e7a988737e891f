"""The model's inputs from measurements: NIC bytes per log byte, inbound rates, the throttles in force. Pure."""

from collections.abc import Iterable, Mapping, Sequence

from results.contract.move import RoundTrip
from results.contract.schema import Event, Sample
from testbed.experiments.layout import Layout
from testbed.kafka.types import TopicPartition
from testbed.probes.brokers import sampled_nic
from testbed.throttle.duration import Share
from testbed.throttle.quota_window import (
    BURST_BYTES_PER_S,
    KAFKAS_WINDOW,
    WindowSettings,
    seconds_changing,
    seconds_in_bursts,
)
from testbed.topology.links import Link
from testbed.topology.model import Topology

_US = 1e6


def inbound_rates(
    samples: Iterable[Sample], leaders: Mapping[TopicPartition, str], begun_us: int, ended_us: int
) -> dict[TopicPartition, float]:
    """Return the growth of the leaders' logs of these partitions in B/s, from their first to their last sample.

    The growth includes batch headers: followers fetch them, too. A partition with one sample is omitted.
    """
    first: dict[TopicPartition, tuple[int, float]] = {}
    last: dict[TopicPartition, tuple[int, float]] = {}
    for sample in samples:
        if sample.metric != "log.bytes" or not begun_us <= sample.ts_us <= ended_us:
            continue
        tp = TopicPartition(str(sample.topic), int(sample.partition or 0))
        if leaders.get(tp) != sample.host:
            continue
        read = sample.ts_us, sample.value
        first[tp] = min(first.get(tp, read), read)
        last[tp] = max(last.get(tp, read), read)
    return {
        tp: (last[tp][1] - begin) * _US / (last[tp][0] - at) for tp, (at, begin) in first.items() if last[tp][0] > at
    }


def instant(events: Iterable[Event], kind: str) -> int | None:
    """Return the time of the first event of a kind, µs since the epoch; None without one."""
    return min((event.ts_us for event in events if event.kind == kind), default=None)


def throttles(events: Sequence[Event], first_bytes_per_s: float) -> list[tuple[float, float]]:
    """Return the throttles of a move in order, (seconds, B/s) each; the last one has no end and 0 seconds.

    A change counts from the time when every broker reports it.
    """
    started = instant(events, "move.started")
    found, since, quota = [], started or 0, first_bytes_per_s
    for event in sorted(events, key=lambda each: each.ts_us):
        rate = event.detail.get("rate_bytes_per_s")
        if started is None or event.kind != "throttle.in_force" or event.ts_us < started or rate in (None, quota):
            continue
        found.append(((event.ts_us - since) / _US, quota))
        since, quota = event.ts_us, float(rate)
    return [*found, (0.0, quota)]


def sent_at(layout: Layout, host: str, share: Share, throttle_bytes_per_s: float) -> float | None:
    """Return the rate of a leader's bursts in B/s: its followers' possible inbound rate, and in-sync traffic.

    None for a leader without followers before the move: its quota window has no samples yet.
    """
    led = [group for group in layout.throttled if group.leader == host]
    if share.direction == "receive" or not any(group.in_sync for group in led):
        return None
    adding = {follower for group in led for follower in group.adding}
    return len(adding) * throttle_bytes_per_s + share.in_sync_bytes_per_s


def predicted_seconds(
    layout: Layout,
    ids: Mapping[str, int],
    carried: Sequence[Share],
    throttles: Sequence[tuple[float, float]],
    line_bytes_per_s: float = BURST_BYTES_PER_S,
    window: WindowSettings = KAFKAS_WINDOW,
) -> float:
    """Return the duration of the move under its throttles (`throttles`), in seconds.

    Leaders with a filled quota window send in bursts. So does every broker after a raise, at `line_bytes_per_s`.
    """
    if len(throttles) > 1:
        return seconds_changing(carried, throttles, line_bytes_per_s, window)
    (_lasts, throttle), hosts = throttles[0], {broker: host for host, broker in ids.items()}
    found = [0.0]
    for share in carried:
        at = sent_at(layout, hosts[share.broker], share, throttle)
        found.append(share.seconds(throttle) if at is None else seconds_in_bursts(share, throttle, at, window.period_s))
    return max(found)


SOCKET_HOLDS = 2
"""The kernel makes a socket's buffer twice as large as it is asked to."""


def round_trips(
    topology: Topology, layout: Layout, response_max_bytes: int, buffers: Mapping[str, int]
) -> tuple[RoundTrip, ...]:
    """Return the round trips of throttled copies between hosts for which the topology declares a delay.

    `buffers` has the bytes of the sockets with which followers fetch, where they are not the kernel's choice.
    """
    pairs = {(group.leader, follower) for group in layout.throttled for follower in group.adding}
    found = []
    for leader, follower in sorted(pairs):
        seconds = round_trip_s(topology, leader, follower)
        if seconds > 0:
            held = SOCKET_HOLDS * buffers.get(follower, response_max_bytes)
            found.append(RoundTrip(leader, follower, seconds, min(response_max_bytes, held)))
    return tuple(found)


def round_trip_s(topology: Topology, one: str, other: str) -> float:
    """Return the delay of a frame from one host to another and of one back, as declared: of NICs and of uplinks."""
    hosts = topology.host(one), topology.host(other)
    links: list[Link] = [sampled_nic(host) for host in hosts]
    if hosts[0].rack != hosts[1].rack:
        links += [topology.uplinks[host.rack] for host in hosts if host.rack in topology.uplinks]
    return sum(side.impairment.delay_us for link in links for side in link.sides) / _US


def conversion_factor(
    samples: Sequence[Sample], *, source: str, target: str, topic: str, begun_us: int, ended_us: int
) -> float | None:
    """Return NIC bytes per byte of log over a transfer of `topic` from `source` to `target`. Pure.

    The factor is the bytes sent by the source's NIC ÷ the growth of the target's log. Both count from the last samples
    before the transfer to the first samples after it. Return None without enclosing samples or copies.
    """
    sent = _enclosing(
        [(s.ts_us, s.value) for s in samples if s.host == source and s.metric == "nic.tx.bytes"], begun_us, ended_us
    )
    logs: dict[int, float] = {}
    for sample in samples:
        if sample.host == target and sample.metric == "nic.rx.bytes":
            logs.setdefault(sample.ts_us, 0.0)  # before its first replica a host has no log of the topic: 0 bytes
        if sample.host == target and sample.metric == "log.bytes" and sample.topic == topic:
            logs[sample.ts_us] = logs.get(sample.ts_us, 0.0) + sample.value
    grown = _enclosing(sorted(logs.items()), begun_us, ended_us)
    if sent is None or grown is None or grown <= 0:
        return None
    return sent / grown


def _enclosing(series: Sequence[tuple[int, float]], begun_us: int, ended_us: int) -> float | None:
    """Return the growth from the last point at or before `begun_us` to the first at or after `ended_us`."""
    before = [value for ts, value in series if ts <= begun_us]
    after = [value for ts, value in series if ts >= ended_us]
    return after[0] - before[-1] if before and after else None
