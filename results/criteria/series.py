"""Samples as arrays: cumulative series of one metric, and of flows summed over partitions and hosts.

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
from results.contract.schema import EVENTS, SAMPLES, conform
from results.contract.untrusted import parse_json

Micros = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


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


class RunEvent(NamedTuple):
    """An event; `detail` is empty when it was no JSON object."""

    us: int
    kind: str
    host: str | None
    detail: Mapping[str, Any]


class RunSeries:
    """The samples and events of one run by metric and host. Takes Arrow tables or pandas DataFrames."""

    def __init__(self, samples: Any, events: Any) -> None:
        table = conform(samples, SAMPLES, "samples")
        self._samples = table.append_column("us", pc.cast(table["ts"], pa.int64()))
        self._events = conform(events, EVENTS, "events")
        self._metrics: dict[str, pa.Table] = {}
        self._logs: dict[str, tuple[Micros, dict[tuple[str, int], tuple[Micros, Floats]]]] = {}
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

    def gauge(self, metric: str, host: str, labels: Iterable[str] | None = None) -> Series:
        """Return readings of one metric of a host; values of several labels are summed per instant."""
        table = self.of_metric(metric)
        chosen = table.filter(pc.equal(table["host"], host))
        if labels is not None:
            chosen = chosen.filter(pc.is_in(chosen["label"], pa.array(list(labels), pa.string())))
        t = chosen["us"].to_numpy()
        instants, where = np.unique(t, return_inverse=True)
        value = np.bincount(where, weights=chosen["value"].to_numpy(), minlength=len(instants))
        return Series(instants, instants, value.astype(np.float64))

    def last_us(self) -> int | None:
        """Return the instant of the last sample of the run."""
        return pc.max(self._samples["us"]).as_py()  # type: ignore[no-any-return]

    def flow_bytes(self, flows: Sequence[Flow]) -> Series:
        """Return cumulative log bytes of the flows' partitions at their followers; empty when none was sampled."""
        followers = sorted({f.follower for f in flows})
        parts = [self._at_follower(host, [f for f in flows if f.follower == host]) for host in followers]
        parts = [p for p in parts if len(p)]
        if len(parts) < len(followers) or not parts:
            empty = np.empty(0, np.int64)
            return Series(empty, empty, np.empty(0))
        if len(parts) == 1:
            return parts[0]
        grid = np.unique(np.concatenate([p.t for p in parts]))
        grid = grid[grid >= max(p.t[0] for p in parts)]
        at = [np.searchsorted(p.t, grid, side="right") - 1 for p in parts]
        oldest = np.min([p.t[i] for p, i in zip(parts, at, strict=True)], axis=0)
        return Series(grid, oldest, np.sum([p.value[i] for p, i in zip(parts, at, strict=True)], axis=0))

    def logs_of(self, host: str) -> Mapping[tuple[str, int], tuple[Micros, Floats]]:
        """Return instants and bytes of each log of a host, by topic and partition."""
        return self._host_logs(host)[1]

    def looked(self, host: str) -> Micros:
        """Return the instants at which a host was sampled, with logs or without."""
        return self._looks(host)

    def logs_grown(self, host: str, first_us: int, last_us: int) -> float:
        """Return what all logs of a host grew by between two instants; a deleted log counts up to its last reading."""
        total = 0.0
        for t, value in self._host_logs(host)[1].values():
            first, last = (int(np.searchsorted(t, us, side="right")) - 1 for us in (first_us, last_us))
            if last >= 0:
                total += float(value[last]) - (float(value[first]) if first >= 0 else 0.0)
        return total

    def _at_follower(self, host: str, flows: Sequence[Flow]) -> Series:
        instants, logs = self._host_logs(host)
        if len(instants):
            instants = self._looks(host)
        total = np.zeros(len(instants))
        for topic, partition, leader in {(f.topic, p, f.leader) for f in flows for p in f.partitions}:
            if (topic, partition) not in logs:
                continue
            t, value = logs[topic, partition]
            gone = self._no_more_us(leader, topic, partition)
            if (
                gone is not None
            ):  # another broker leads from here on: what is written now does not come from this leader
                last = int(np.searchsorted(t, gone))
                t, value = t[: last + 1], value[: last + 1]
            at = np.searchsorted(t, instants, side="right") - 1
            total += np.where(at >= 0, value[np.maximum(at, 0)], 0.0)  # absent before its first reading: no bytes
        return Series(instants, instants, total)

    def _no_more_us(self, leader: str, topic: str, partition: int) -> int | None:
        """Return from when on the host is known not to lead: its log is gone, or another one was seen to lead after
        it."""
        ends = self._gone_us(leader, topic, partition), self._lost_us(leader, topic, partition)
        return min((us for us in ends if us is not None), default=None)

    def _lost_us(self, leader: str, topic: str, partition: int) -> int | None:
        """Return when another host was first seen to lead after this one; None without a poll, or when none was."""
        if self._led is None:
            led: dict[tuple[str, int], list[tuple[int, str]]] = {}
            for row in self.of_metric("partition.led").sort_by("us").to_pylist():
                led.setdefault((row["topic"], row["partition"]), []).append((row["us"], row["host"]))
            self._led = led
        seen = self._led.get((topic, partition), [])
        first = min((us for us, host in seen if host == leader), default=None)
        return None if first is None else min((us for us, host in seen if host != leader and us > first), default=None)

    def _gone_us(self, host: str, topic: str, partition: int) -> int | None:
        """Return when the host was first read without a log that it had had; None while it has it, or never had it."""
        _, logs = self._host_logs(host)
        if (topic, partition) not in logs:
            return None
        looks, last = self._looks(host), logs[topic, partition][0][-1]
        after = int(np.searchsorted(looks, last, side="right"))
        return int(looks[after]) if after < len(looks) else None

    def _looks(self, host: str) -> Micros:
        """Return when a host was read. Without a log there is no reading of one, but its NIC is read as well."""
        if host not in self._looked:
            metrics = pa.array(["log.bytes", "nic.tx.bytes", "nic.rx.bytes"], pa.string())
            wanted = pc.and_(pc.is_in(self._samples["metric"], metrics), pc.equal(self._samples["host"], host))
            self._looked[host] = np.unique(self._samples.filter(wanted)["us"].to_numpy())
        return self._looked[host]

    def _host_logs(self, host: str) -> tuple[Micros, dict[tuple[str, int], tuple[Micros, Floats]]]:
        if host not in self._logs:
            wanted = pc.and_(pc.equal(self._samples["metric"], "log.bytes"), pc.equal(self._samples["host"], host))
            rows = self._samples.filter(wanted).sort_by(
                [("topic", "ascending"), ("partition", "ascending"), ("us", "ascending")]
            )
            t, value = rows["us"].to_numpy(), rows["value"].to_numpy()
            topics, partitions = rows["topic"].to_pylist(), rows["partition"].to_pylist()
            keys = list(zip(topics, partitions, strict=True))
            starts = [i for i in range(len(keys)) if i == 0 or keys[i] != keys[i - 1]]
            ends = [*starts[1:], len(keys)] if keys else []
            logs = {keys[a]: (t[a:b], value[a:b]) for a, b in zip(starts, ends, strict=True)}
            self._logs[host] = (np.unique(t), logs)
        return self._logs[host]


def _object(text: str) -> Mapping[str, Any]:
    try:
        found = parse_json(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
