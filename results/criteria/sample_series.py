"""The samples of one run as arrays: cumulative series of one metric, and of flows summed over partitions and hosts.

Instants are int64 microseconds since the epoch. Sums carry each partition's last reading forward.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from results.contract.move import Flow
from results.contract.network import NicMeasurement
from results.contract.schema import EVENTS, SAMPLES, conform
from results.contract.untrusted import parse_json
from results.contract.verdict import Direction
from results.criteria.quantities import NIC_BYTES, US

Micros = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Logs = dict[tuple[str, int], tuple[Micros, Floats]]
"""Topic and partition → instants and values."""


@dataclass(frozen=True, slots=True)
class Series:
    """Readings in order of time. `oldest` is the instant of the oldest reading that a value contains.

    It equals `t` for one host. Where several hosts are summed they were not read at one instant: a
    difference of values then covers `t[j] - oldest[i]`, never less time than the bytes took.
    """

    t: Micros
    oldest: Micros
    value: Floats

    def __len__(self) -> int:
        return len(self.t)

    def cut(self, first: int, last: int) -> "Series":
        """Return readings first..last, both included."""
        part = slice(first, last + 1)
        return Series(self.t[part], self.oldest[part], self.value[part])

    def between(self, start_us: int, end_us: int) -> "Series":
        """Return the readings from start to end, both included."""
        first, end = np.searchsorted(self.t, start_us), np.searchsorted(self.t, end_us, side="right")
        return self.cut(int(first), int(end) - 1)

    def at(self, instants: Micros) -> Floats:
        """Return the last value at or before each instant; 0 before the first."""
        return at_instants(self.t, self.value, instants)

    @property
    def seconds(self) -> float:
        """Return the time from the first reading to the last."""
        return (int(self.t[-1]) - int(self.t[0])) / US


def at_instants(t: Micros, value: Floats, instants: Micros) -> Floats:
    """Return the last of these values at or before each instant; 0 before the first."""
    at = np.searchsorted(t, instants, side="right") - 1
    return np.where(at >= 0, value[np.maximum(at, 0)], 0.0) if len(t) else np.zeros(len(instants))


def summed(parts: Sequence[Series]) -> Series:
    """Return the sum of series, none of them empty, from when all have a reading; empty when there are none."""
    if not parts:
        empty = np.empty(0, np.int64)
        return Series(empty, empty, np.empty(0))
    if len(parts) == 1:
        return parts[0]
    grid = np.unique(np.concatenate([p.t for p in parts]))
    grid = grid[grid >= max(p.t[0] for p in parts)]
    at = [np.searchsorted(p.t, grid, side="right") - 1 for p in parts]
    oldest = np.min([p.t[i] for p, i in zip(parts, at, strict=True)], axis=0)
    return Series(grid, oldest, np.sum([p.value[i] for p, i in zip(parts, at, strict=True)], axis=0))


def by_partition(rows: pa.Table) -> Logs:
    """Return instants and values of each partition, both in order of time."""
    rows = rows.sort_by([("topic", "ascending"), ("partition", "ascending"), ("us", "ascending")])
    t, value = rows["us"].to_numpy(), rows["value"].to_numpy()
    keys = list(zip(rows["topic"].to_pylist(), rows["partition"].to_pylist(), strict=True))
    starts = [i for i in range(len(keys)) if i == 0 or keys[i] != keys[i - 1]]
    return {keys[a]: (t[a:b], value[a:b]) for a, b in zip(starts, [*starts[1:], len(keys)], strict=False)}


class RunEvent(NamedTuple):
    """An event; `detail` is empty when it was no JSON object."""

    us: int
    kind: str
    host: str | None
    detail: Mapping[str, Any]

    def number(self, name: str) -> float | None:
        """Return a number of the detail; None for anything else."""
        value = self.detail.get(name)
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


class RunSeries:
    """The samples and events of one run by metric and host. Takes Arrow tables or pandas DataFrames."""

    def __init__(self, samples: Any, events: Any) -> None:
        table = conform(samples, SAMPLES, "samples")
        self._samples = table.append_column("us", pc.cast(table["ts"], pa.int64()))
        self._events = conform(events, EVENTS, "events")
        self._metrics: dict[str, pa.Table] = {}
        self._logs: dict[str, Logs] = {}
        self._looked: dict[str, Micros] = {}
        self._led: dict[tuple[str, int], list[tuple[int, str]]] | None = None

    def events_of(self, kinds: Collection[str]) -> list[RunEvent]:
        """Return the events of these kinds, in order of time."""
        chosen = self._events.filter(pc.is_in(self._events["kind"], pa.array(sorted(kinds), pa.string())))
        instants = pc.cast(chosen["ts"], pa.int64()).to_pylist()
        rows = zip(instants, *(chosen[n].to_pylist() for n in ("kind", "host", "detail")), strict=True)
        found = [RunEvent(us, kind, host, _object(detail)) for us, kind, host, detail in rows]
        return sorted(found, key=lambda event: event.us)

    def last_events(self, most: int) -> list[tuple[int, str, str]]:
        """Return the last events in order of time: instant, kind, and name with host and detail."""
        table = self._events
        instants = pc.cast(table["ts"], pa.int64()).to_pylist()
        columns = (table[name].to_pylist() for name in ("kind", "name", "host", "detail"))
        rows = sorted(zip(instants, *columns, strict=True), key=lambda row: row[0])[-most:]
        return [
            (us, kind, " ".join(filter(None, (name, host, "" if detail in (None, "{}") else detail))))
            for us, kind, name, host, detail in rows
        ]

    def event_us(self, kind: str) -> int | None:
        """Return the instant of the first event of a kind, None when there was none."""
        found = self._events.filter(pc.equal(self._events["kind"], kind))
        return None if found.num_rows == 0 else int(pc.min(pc.cast(found["ts"], pa.int64())).as_py())

    def of_metric(self, metric: str) -> pa.Table:
        """Return the rows of one metric, with a column `us`."""
        if metric not in self._metrics:
            self._metrics[metric] = self._samples.filter(pc.equal(self._samples["metric"], metric))
        return self._metrics[metric]

    def gauge(self, metric: str, host: str, labels: Iterable[str] | None = None, *, topic: str | None = None) -> Series:
        """Return readings of one metric of a host, or of a topic there; several labels are summed per instant."""
        table = self.of_metric(metric)
        chosen = table.filter(pc.equal(table["host"], host))
        if labels is not None:
            chosen = chosen.filter(pc.is_in(chosen["label"], pa.array(list(labels), pa.string())))
        if topic is not None:
            chosen = chosen.filter(pc.equal(chosen["topic"], topic))
        t = chosen["us"].to_numpy()
        instants, where = np.unique(t, return_inverse=True)
        value = np.bincount(where, weights=chosen["value"].to_numpy(), minlength=len(instants))
        return Series(instants, instants, value.astype(np.float64))

    def nic_bytes(self, nics: Iterable[NicMeasurement], host: str, direction: Direction) -> Series:
        """Return what a host's measured NICs counted in a direction; empty where none was measured."""
        devices = [nic.device for nic in nics if (nic.host, nic.direction) == (host, direction)]
        return self.gauge(NIC_BYTES[direction], host, devices)

    def last_us(self) -> int | None:
        """Return the instant of the last sample of the run."""
        return pc.max(self._samples["us"]).as_py()  # type: ignore[no-any-return]

    def flow_bytes(self, flows: Sequence[Flow], *, received: bool = False) -> Series:
        """Return cumulative log bytes of the flows' partitions at their followers; empty when none was sampled.

        A flow ends when its leader has no log any more, or when another host leads. With `received` that host must be
        the follower: when a leader restarts, the follower copies from the next one.
        """
        followers = sorted({f.follower for f in flows})
        parts = [self._at_follower(host, [f for f in flows if f.follower == host], received) for host in followers]
        return summed(parts if all(map(len, parts)) else ())

    def logs_of(self, host: str) -> Logs:
        """Return instants and bytes of each log of a host."""
        if host not in self._logs:
            table = self.of_metric("log.bytes")
            self._logs[host] = by_partition(table.filter(pc.equal(table["host"], host)))
        return self._logs[host]

    def looked(self, host: str) -> Micros:
        """Return when a host was sampled. Without a log there is no reading of one, but its NIC is read as well."""
        if host not in self._looked:
            metrics = pa.array(["log.bytes", *NIC_BYTES.values()], pa.string())
            wanted = pc.and_(pc.is_in(self._samples["metric"], metrics), pc.equal(self._samples["host"], host))
            self._looked[host] = np.unique(self._samples.filter(wanted)["us"].to_numpy())
        return self._looked[host]

    def logs_grown(self, host: str, first_us: int, last_us: int) -> float:
        """Return what all logs of a host grew by between two instants; a deleted log counts up to its last reading."""
        total = 0.0
        for t, value in self.logs_of(host).values():
            first, last = at_instants(t, value, np.array([first_us, last_us]))
            total += float(last - first)
        return total

    def _at_follower(self, host: str, flows: Sequence[Flow], received: bool) -> Series:
        logs = self.logs_of(host)
        instants = self.looked(host) if logs else np.empty(0, np.int64)
        total = np.zeros(len(instants))
        for topic, partition, leader in {(f.topic, p, f.leader) for f in flows for p in f.partitions}:
            if (topic, partition) not in logs:
                continue
            t, value = logs[topic, partition]
            gone = self._no_more_us(leader, topic, partition, host if received else None)
            if gone is not None:  # from here on what is written comes from elsewhere
                last = int(np.searchsorted(t, gone))
                t, value = t[: last + 1], value[: last + 1]
            total += at_instants(t, value, instants)  # absent before its first reading: no bytes
        return Series(instants, instants, total)

    def _no_more_us(self, leader: str, topic: str, partition: int, follower: str | None) -> int | None:
        """Return when it was first seen that the host leads no more: its log is gone, or another host leads.

        With a `follower` only that one counts as another host.
        """
        ends = self._gone_us(leader, topic, partition), self._lost_us(leader, topic, partition, follower)
        return min((us for us in ends if us is not None), default=None)

    def _lost_us(self, leader: str, topic: str, partition: int, follower: str | None) -> int | None:
        """Return when another host was first seen to lead after this one; None without a poll, or when none was.

        With a `follower` only that one counts as another host.
        """
        if self._led is None:
            led: dict[tuple[str, int], list[tuple[int, str]]] = {}
            for row in self.of_metric("partition.led").sort_by("us").to_pylist():
                led.setdefault((row["topic"], row["partition"]), []).append((row["us"], row["host"]))
            self._led = led
        seen = self._led.get((topic, partition), [])
        first = min((us for us, host in seen if host == leader), default=None)
        if first is None:
            return None
        others = (us for us, host in seen if host != leader and us > first and follower in (None, host))
        return min(others, default=None)

    def _gone_us(self, host: str, topic: str, partition: int) -> int | None:
        """Return when the host was first read without a log that it had had; None while it has it, or never had it.

        The log may come back: after a throttled move under load, the partitions move back.
        """
        logs = self.logs_of(host)
        if (topic, partition) not in logs:
            return None
        looks, there = self.looked(host), logs[topic, partition][0]
        looks = looks[np.searchsorted(looks, there[0]) :]
        without = np.flatnonzero(np.diff(np.searchsorted(there, looks, side="right")) == 0)
        return int(looks[without[0] + 1]) if len(without) else None


def _object(text: str) -> Mapping[str, Any]:
    try:
        found = parse_json(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
