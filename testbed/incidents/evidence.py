"""What was recorded of a replay, as the expectations ask for it. Pure."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from results.contract.schema import Event, Records, Sample

US = 1_000_000
GAP_S = 3.0
"""Longest time between two readings that still counts as sampled once a second."""
DRIVER = "driver"

Reading = tuple[int, float]
"""When (µs since the epoch), and what."""


@dataclass(frozen=True)
class Evidence:
    """A finished replay. `records` is what the audit found: None when it was not made.

    `nic_bps` has each host's declared rates (sent, received), `uplink_bps` those of each rack's uplink.
    """

    samples: Sequence[Sample]
    events: Sequence[Event]
    started_us: int
    ended_us: int
    records: Records | None = None
    nic_bps: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    uplink_bps: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    @cached_property
    def _by_metric(self) -> Mapping[tuple[str, str], list[Sample]]:
        found: dict[tuple[str, str], list[Sample]] = {}
        for sample in sorted(self.samples, key=lambda s: s.ts_us):
            found.setdefault((sample.host, sample.metric), []).append(sample)
        return found

    def gauge(self, host: str, metric: str, topic: str | None = None) -> list[Reading]:
        """Readings of a metric, in order of time; of all topics unless one is given."""
        found = self._by_metric.get((host, metric), [])
        return [(s.ts_us, s.value) for s in found if topic is None or s.topic == topic]

    def topics_of(self, host: str, metric: str) -> list[str]:
        """The topics a metric was read of."""
        return sorted({s.topic for s in self._by_metric.get((host, metric), []) if s.topic})

    def log_bytes(self, host: str, topic: str) -> list[Reading]:
        """The size of all of a topic's logs on a host; 0 while it has none."""
        # The agent reads NIC and logs at one instant; a host without a log of the topic has no log reading.
        logs = {s.ts_us: 0.0 for s in self._by_metric.get((host, "nic.rx.bytes"), [])}
        for sample in self._by_metric.get((host, "log.bytes"), []):
            if sample.topic == topic:
                logs[sample.ts_us] = logs.get(sample.ts_us, 0.0) + sample.value
        return sorted(logs.items())

    def happened(self, kind: str, name: str | None = None) -> list[Event]:
        """Events of a kind, in order of time."""
        found = [e for e in self.events if e.kind == kind and (name is None or e.name == name)]
        return sorted(found, key=lambda e: e.ts_us)

    def after(self, readings: Sequence[Reading], since_us: int) -> list[Reading]:
        """Those of the replay from an instant on, with the last one before it."""
        before = [r for r in readings if r[0] <= since_us]
        return before[-1:] + [r for r in readings if since_us < r[0] <= self.ended_us]

    def gap(self, readings: Sequence[Reading], since_us: int) -> str | None:
        """What is missing of readings that should be there once a second; None when nothing is."""
        if not readings:
            return "nothing was sampled"
        instants = [max(readings[0][0], since_us), *(t for t, _ in readings[1:]), self.ended_us]
        if readings[0][0] > since_us:
            instants.insert(0, since_us)
        longest = max((b - a for a, b in itertools.pairwise(instants)), default=0) / US
        return f"no sample for {longest:.1f} s" if longest > GAP_S else None

    def seconds(self, ts_us: int) -> float:
        """An instant in seconds after the beginning."""
        return (ts_us - self.started_us) / US


def growth_within(readings: Sequence[Reading], window_s: float) -> tuple[float, int] | None:
    """Most growth between two readings at most `window_s` apart, and when that window begins; None below two."""
    best: tuple[float, int] | None = None
    end = 0
    for begin, (begun_us, low) in enumerate(readings):
        end = max(end, begin)
        while end + 1 < len(readings) and readings[end + 1][0] - begun_us <= window_s * US:
            end += 1
        if end > begin and (best is None or readings[end][1] - low > best[0]):
            best = readings[end][1] - low, begun_us
    return best


def highest_rate(readings: Sequence[Reading], at_least_s: float) -> tuple[float, int] | None:
    """The highest mean growth per second over windows of at least `at_least_s`, and when it begins."""
    best: tuple[float, int] | None = None
    end = 0
    for begun_us, low in readings:
        while end < len(readings) and readings[end][0] - begun_us < at_least_s * US:
            end += 1
        if end == len(readings):
            break
        rate = (readings[end][1] - low) / ((readings[end][0] - begun_us) / US)
        if best is None or rate > best[0]:
            best = rate, begun_us
    return best


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` of all are at or below. Raises ValueError without values."""
    if not values:
        raise ValueError("no values")
    ordered = sorted(values)
    return ordered[max(0, -(-int(len(ordered) * share * 1000) // 1000) - 1)]
