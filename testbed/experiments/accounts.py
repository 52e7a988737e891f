"""What the model needs of what was measured: what was written during a move, and which quotas it had. Pure."""

from collections.abc import Iterable, Mapping, Sequence

from results.contract.schema import Event, Sample
from testbed.experiments.scene import Scene
from testbed.kafka.types import TopicPartition
from testbed.throttle.duration import Share
from testbed.throttle.quota_window import BURST_BYTES_PER_S, seconds_changing, seconds_in_bursts

_US = 1e6


def inbound_rates(
    samples: Iterable[Sample], leaders: Mapping[TopicPartition, str], begun_us: int, ended_us: int
) -> dict[TopicPartition, float]:
    """B/s by which the leaders' logs of these partitions grew, between their first and last reading in that time.

    Of the log, not of the records: it is what followers have to fetch, batches' headers included. A partition that
    was not read twice is left out.
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
    """When the first event of a kind was, µs since the epoch."""
    return min((event.ts_us for event in events if event.kind == kind), default=None)


def quotas(events: Sequence[Event], first_bytes_per_s: float) -> list[tuple[float, float]]:
    """The quotas that a move had: (seconds, B/s) one after the other; the last for as long as it takes.

    A change counts from when every broker shows it.
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


def sent_at(scene: Scene, host: str, share: Share, quota_bytes_per_s: float) -> float | None:
    """How fast a leader sends listed bytes while its quota lets it: as fast as its followers may receive, and what
    keeps up. None for one whose window has not been running: nobody followed it before the move."""
    led = [group for group in scene.listed if group.leader == host]
    if share.direction == "receive" or not any(group.in_sync for group in led):
        return None
    adding = {follower for group in led for follower in group.adding}
    return len(adding) * quota_bytes_per_s + share.in_sync_bytes_per_s


def predicted_seconds(
    scene: Scene,
    ids: Mapping[str, int],
    carried: Sequence[Share],
    quotas: Sequence[tuple[float, float]],
    line_bytes_per_s: float = BURST_BYTES_PER_S,
) -> float:
    """How long the move takes under its quotas (`quotas`); leaders whose windows were running send in bursts, and so
    does whoever's quota was raised, as fast as `line_bytes_per_s`."""
    if len(quotas) > 1:
        return seconds_changing(carried, quotas, line_bytes_per_s)
    (_lasts, quota), hosts = quotas[0], {broker: host for host, broker in ids.items()}
    found = [0.0]
    for share in carried:
        at = sent_at(scene, hosts[share.broker], share, quota)
        found.append(share.seconds(quota) if at is None else seconds_in_bursts(share, quota, at))
    return max(found)
