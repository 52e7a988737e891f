"""The stored run of a replayed incident: its samples and events in the timeline's own time."""

import copy
import json
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from results.contract.manifest import Manifest
from results.contract.schema import EVENTS, conform
from results.criteria.findings import gap_text
from results.criteria.quantities import US
from results.criteria.sample_series import Floats, Micros, RunSeries, Series
from results.criteria.unfit import ALWAYS_FIT, UnfitTime, unfit_time
from results.criteria.windows import longest_gap_s


class ReplayedRun:
    """A stored replay as expectations read it: its manifest, samples and events, and when the timeline ran."""

    def __init__(self, manifest: Manifest, samples: Any, events: Any) -> None:
        self.manifest = manifest
        self.series = RunSeries(samples, events)
        self.spares = ALWAYS_FIT
        """The time that is no part of a wait."""
        self._events = conform(events, EVENTS, "events")
        started, ended = self.events("incident.started"), self.events("incident.ended")
        if not started or not ended:
            raise ValueError(f"run {manifest.run_id}: its events have no beginning and end of a timeline")
        self.started_us: int = started[0]["us"]
        self.ended_us: int = ended[-1]["us"]

    @cached_property
    def unfit(self) -> UnfitTime:
        """Return when the machine was unfit during the timeline, and brokers were not the cause."""
        return unfit_time(self.series, self.manifest.machine.cores).between(self.started_us, self.ended_us)

    def sparing(self) -> "ReplayedRun":
        """Return the run as if the time had not passed in which the machine was unfit."""
        spared = copy.copy(self)
        spared.spares = self.unfit
        return spared

    def lasted_s(self, begin_us: int, end_us: int) -> float:
        """Return the time from one instant to another, as far as it counts."""
        return (end_us - begin_us) / US - self.spares.seconds(begin_us, end_us)

    @cached_property
    def _by_kind(self) -> Mapping[str, list[dict[str, Any]]]:
        found: dict[str, list[dict[str, Any]]] = {}
        instants = pc.cast(self._events["ts"], pa.int64()).to_pylist()
        for us, row in zip(instants, self._events.to_pylist(), strict=True):
            detail = json.loads(row["detail"] or "{}")
            found.setdefault(row["kind"], []).append({"us": us, "name": row["name"], "detail": detail})
        return {kind: sorted(rows, key=lambda row: row["us"]) for kind, rows in found.items()}

    def broker_id(self, host: str) -> int:
        """Return the id of the broker on a host. Raise KeyError in a run that did not record it."""
        return int(self.brokers()[host])

    def brokers(self) -> Mapping[str, int]:
        """Return host → the id of its broker; empty in a run that did not record it."""
        found: Mapping[str, int] = self.events("incident.started")[0]["detail"].get("brokers", {})
        return found

    def least_in_sync(self, topic: str) -> int:
        """Return the topic's min.insync.replicas at the start; of an older run by the incident's file, else 1."""
        in_force = self.events("incident.started")[0]["detail"].get("min_insync", {})
        if topic in in_force:
            return int(in_force[topic])
        record = self.manifest.incident
        topics = {} if record is None else record.document.get("state", {}).get("topics", {})
        configs = topics.get(topic, {}).get("configs") or {}
        return int(configs.get("min.insync.replicas", 1))

    def logs(self, host: str, instants: Micros) -> Iterator[tuple[str, int, Floats]]:
        """Yield each partition of which a host had a log, with its bytes at these instants; 0 without one."""
        for (topic, partition), (t, bytes_) in self.series.logs_of(host).items():
            here = np.isin(t, instants)
            sizes = np.zeros(len(instants))
            sizes[np.searchsorted(instants, t[here])] = bytes_[here]
            yield topic, partition, sizes

    def log_between(self, host: str, topic: str, partition: int, begin_us: int, end_us: int) -> tuple[Micros, Floats]:
        """Return the readings of one log on a host between two instants: their times and bytes."""
        nothing = np.zeros(0, np.int64), np.zeros(0)
        t, bytes_ = self.series.logs_of(host).get((topic, partition), nothing)
        log = Series(t, t, bytes_).between(begin_us, end_us)
        return log.t, log.value

    def events(self, *kinds: str, name: str | None = None) -> list[dict[str, Any]]:
        """Return the events of these kinds in order of time, each with `us`, `kind`, `name` and `detail`."""
        found = [{**row, "kind": kind} for kind in kinds for row in self._by_kind.get(kind, ())]
        return sorted((row for row in found if name in (None, row["name"])), key=lambda row: row["us"])

    def topics(self, metric: str) -> list[str]:
        """Return the topics that a metric of the driver was sampled of."""
        table = self.series.of_metric(metric)
        return sorted({topic for topic in table["topic"].to_pylist() if topic})

    def readings(self, metric: str, host: str, topic: str | None = None) -> Series:
        """Return the readings of a host, summed per instant; only those of the topic if one is given.

        Of a topic's logs, the readings are the bytes by which they have grown.
        """
        if topic is not None and metric == "log.bytes":
            return self._log_growth(host, topic)
        return self.series.gauge(metric, host, topic=topic)

    def _log_growth(self, host: str, topic: str) -> Series:
        """Return the bytes by which a topic's logs on a host have grown. A deleted log takes away none of another's."""
        # The agent reads NIC and logs at one instant. A host without a log of the topic has no log reading.
        t = self.series.looked(host)
        grown = np.zeros(len(t))
        for name, _partition, sizes in self.logs(host, t):
            if name == topic:
                grown[1:] += np.maximum(np.diff(sizes), 0)
        return Series(t, t, np.cumsum(grown))

    def since(self, series: Series, since_us: int) -> Series:
        """Return the readings from an instant to the timeline's end, with the last one before the instant."""
        first = max(int(np.searchsorted(series.t, since_us, side="right")) - 1, 0)
        return series.cut(first, int(np.searchsorted(series.t, self.ended_us, side="right")) - 1)

    def latencies(self) -> tuple[Micros, Floats]:
        """Return when each record of the load was due, and its latency in seconds.

        The producer counts the records of a second in buckets. Runs of an earlier version have a sample each.
        """
        due, latency_s = self._waits()
        return due, self.spares.spare(due, latency_s * US) / US if self.spares else latency_s

    def _waits(self) -> tuple[Micros, Floats]:
        single = self.series.of_metric("load.latency")
        if len(single):
            return single["us"].to_numpy(), single["value"].to_numpy()
        table = self.series.of_metric("client.produce.latency")
        table = table.filter(pc.is_valid(table["label"]))
        count = table["value"].to_numpy().astype(np.int64)
        latency_s = np.array([int(label) / 1e6 for label in table["label"].to_pylist()], dtype=np.float64)
        return np.repeat(table["us"].to_numpy() - US, count), np.repeat(latency_s, count)

    def gap(self, series: Series, since_us: int) -> str | None:
        """Return what is missing of readings that are due once a second; None when nothing is."""
        longest_s = longest_gap_s(series.t, since_us, self.ended_us, inside=True)
        return "nothing was sampled" if longest_s is None else gap_text(longest_s)

    def seconds(self, us: int) -> float:
        """Return an instant in seconds after the timeline's start."""
        return (us - self.started_us) / US

    def quota_since_us(self, topic: str, until_us: int) -> int | None:
        """Return since when every broker had shown the rates and lists of a topic; None when not all did.

        `throttle.in_force` is about the last `throttle.set`: while one action waits no other sets a throttle.
        """
        lists: int | None = None
        rates: int | None = None
        listed = rated = False
        known: dict[str, Any] = {}
        for event in self.events("throttle.set", "throttle.in_force", "throttle.removed"):
            us, detail = event["us"], event["detail"]
            if not self.started_us <= us <= until_us:
                continue
            if event["kind"] == "throttle.set":
                written = {name: keys for name, keys in detail.items() if name.startswith("broker")}
                listed, rated = f"topic {topic}" in detail, bool(written)
                lists = None if listed else lists
                # The same rates once more, for another topic, change nothing of what the brokers reported.
                rates = rates if written.items() <= known.items() else None
                known |= written
            elif event["kind"] == "throttle.in_force":
                lists = us if listed else lists
                rates = us if rated and rates is None else rates
            else:
                rates, known = None, {}
                lists = None if topic in detail["topics"] else lists
        return None if lists is None or rates is None else max(lists, rates)
