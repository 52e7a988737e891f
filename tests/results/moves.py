"""Simulated moves between any brokers: several flows, quotas that change, restarts, live load, and faults.

Everything is sampled as on real brokers: at instants of each host's own, from counters and file sizes.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from results.contract.live_load import LiveAudit, LiveLoad, LoadProcess
from results.contract.logs import HostLog
from results.contract.manifest import Expected, Fetchers, Flow, NicMeasurement, new_run_id
from results.contract.schema import Event, Sample, events_table, samples_table
from tests.results.flowing import SHARE, Flowing, Group, Scene
from tests.results.sensed import Sensed
from tests.results.synthetic import EPOCH, LINE_BPS, PAYLOAD, F, SyntheticRun, plain_run, us

CONTROL_BYTES, CONTROL_RATE, CONTROL_FROM_S = 120e6, 30e6, 2.0


class Simulator:
    """From a scene to a run: its samples, its events, its manifest."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.flow = Flowing(scene)
        self.rng = np.random.default_rng(scene.seed)
        self.samples: list[Sample] = []
        self.before_s, self.after_s = -12.0, self.flow.end_s + 8.0

    def add(self, t: float, host: str, metric: str, value: float, **where: Any) -> None:
        gap = self.scene.gap
        if metric in self.scene.without or (gap is not None and gap[0] == host and gap[1] <= t < gap[2]):
            return
        self.samples.append(Sample(us(t), host, metric, float(value), **where))

    def instants(self, offset: float, step: float = 1.0) -> list[float]:
        grid = np.arange(self.before_s + offset, self.after_s, step)
        return [float(t) for t in grid + self.rng.normal(0, 0.003, len(grid))]

    def written(self, group: Group, t: float) -> float:
        return group.inbound * (t - self.before_s)

    def log(self, group: Group, host: str, t: float) -> float | None:
        """Bytes of a group's logs on a host; None when it has none."""
        done = self.flow.done_at.get(group)
        over = done is not None and t > done + 0.3
        base = group.bytes - group.inbound * (0.0 - self.before_s)
        if host == group.leader:
            return None if over and group.leader_leaves and group.adding else base + self.written(group, t)
        if host in group.in_sync:
            return base + self.written(group, t)
        if host in group.adding and t > 0:
            grown = self.flow.at(group, host, t)
            return grown + (group.inbound * max(0.0, t - done) if done is not None else 0.0)
        return None

    def control(self, t: float) -> float:
        """Bytes of the unlisted partitions that go the first group's way."""
        return float(np.clip((t - CONTROL_FROM_S) * CONTROL_RATE, 0, CONTROL_BYTES))

    def carried(self, host: str, way: str, t: float) -> float:
        """All bytes of logs that a host has sent or received."""
        first = self.scene.groups[0]
        beside = (way, host) in (("transmit", first.leader), ("receive", first.adding[0]))
        return self.passed(host, way, t) + (self.control(t) if beside else 0.0)

    def passed(self, host: str, way: str, t: float) -> float:
        """Listed bytes that a host has sent or received."""
        total = 0.0
        for group in self.scene.groups:
            stop = min(t, self.flow.done_at.get(group, t))
            kept = group.inbound * (stop - self.before_s)
            if way == "transmit" and group.leader == host:
                total += sum(self.flow.at(group, f, t) for f in group.adding) + kept * len(group.in_sync)
            if way == "receive":
                total += self.flow.at(group, host, t) if host in group.adding else 0.0
                total += kept if self.scene.wildcard and host in group.in_sync else 0.0
        return total

    def sensed(self, host: str, way: str) -> Sensed:
        instants = np.arange(self.before_s, self.after_s, 0.05)
        passed = np.array([self.passed(host, way, float(t)) for t in instants])
        return Sensed(instants, passed - passed[0], self.scene.response)

    def host(self, number: int, host: str) -> None:
        scene = self.scene
        sensed = {way: self.sensed(host, way) for way in ("transmit", "receive")}
        for t in self.instants(0.1 + 0.27 * number):
            if any(h == host and left <= t < back for h, left, back, _ in scene.restarts):
                continue
            for group in scene.groups:
                total = self.log(group, host, t)
                for p in range(group.partitions if total is not None else 0):
                    share = int((total or 0.0) * (p + 1) / group.partitions) - int(
                        (total or 0.0) * p / group.partitions
                    )
                    self.add(t, host, "log.bytes", share, topic=group.topic, partition=p)
            for p in range(2 if host == scene.groups[0].adding[0] and t > CONTROL_FROM_S else 0):
                self.add(t, host, "log.bytes", int(self.control(t) / 2), topic="control", partition=p)
            ways = (("transmit", "nic.tx.bytes", "leader"), ("receive", "nic.rx.bytes", "follower"))
            for way, counter, side in ways:
                self.add(t, host, counter, int(self.carried(host, way, t) * F), label="data0")
                self.add(t, host, f"broker.{side}_replication.byte_rate", sensed[way].byte_rate(t))
            began = self.flow.end_s / 2 if host in scene.resets else self.before_s
            self.add(t, host, "broker.bytes_in", int(1000 * (t - (began if t > began else self.before_s))))
            flaps = scene.flapping is not None and scene.flapping[0] == host and t >= scene.flapping[1]
            self.add(t, host, "broker.isr_shrinks", (0 if host in scene.resets and t > began else 5) + 3 * flaps)

    def driver(self) -> None:
        scene, end = self.scene, self.flow.end_s
        for t in np.arange(-1.0, end + 0.4, 0.3):
            for host in scene.brokers:
                if any(h == host and left <= t < back for h, left, back, _ in scene.restarts):
                    continue
                quota = [q for at, q in scene.quotas if at <= max(0.0, t)][-1]
                if scene.told_quota:
                    quota = self.flow.quota(host, max(0.0, float(t)))
                lacking = sum(n for h, since, until, n in scene.unlisted if h == host and since <= t < until)
                for side in ("leader", "follower"):
                    self.add(float(t), host, f"quota.{side}.rate", quota)
                    self.add(float(t), host, f"quota.{side}.unlisted", lacking)
        for t in np.arange(0.05, end, 0.3) if scene.rests else ():
            self.add(t, "driver", "move.listed", 0.0 if any(a <= t < b for a, b in scene.rests) else 2.0)
        for t in self.instants(0.05):
            # Brokers that start keep the cores busy themselves.
            restarting = any(left <= t < back for _, left, back, _ in scene.restarts)
            self.add(t, "machine", "cpu.busy", 1.0 if restarting else 0.5)
            self.add(t, "machine", "cpu.steal", 0.001)
        for t in self.instants(0.2):
            lag = sum(
                max(0.0, group.bytes + group.inbound * max(0.0, t) - self.flow.at(group, f, t))
                for group in scene.groups
                for f in group.adding
                if group not in self.flow.done_at or t < self.flow.done_at[group]
            )
            if t > 0:
                self.add(t, "driver", "move.lag", lag)
                self.add(t, "driver", "move.in_flight", float(lag > 0))
        for t in self.instants(0.33, 0.5):
            for group in scene.groups:
                done = self.flow.done_at.get(group)
                size = 1 + len(group.in_sync)
                size += len(group.adding) if done is not None and done < t < done + 0.4 else 0
                flaps = scene.flapping is not None and scene.flapping[1] <= t < scene.flapping[1] + 2
                size -= 1 if flaps and group.in_sync else 0
                for p in range(group.partitions):
                    self.add(t, "driver", "isr.size", size, topic=group.topic, partition=p)

    def clients(self) -> None:
        scene = self.scene
        if not any(group.inbound for group in scene.groups):
            return
        acked = 0
        for second in np.arange(np.ceil(EPOCH.timestamp() + self.before_s), EPOCH.timestamp() + self.after_s):
            t = float(second - EPOCH.timestamp())
            silent = scene.silent is not None and scene.silent[0] <= t < scene.silent[1]
            during = 0 < t < self.flow.end_s
            for name, kind, count in (("producer-1", "produce", 200), ("consumer-1", "consume", 180)):
                slow = scene.latency_us * (3 if during else 1)
                for factor, part in ((1.0, 0.9), (2.0, 0.09), (8.0, 0.01)):
                    bucket = int(slow * factor * (1.5 if kind == "consume" else 1))
                    self.add(t, name, f"client.{kind}.latency", int(count * part), label=str(bucket))
            acked += 0 if silent else 200
            self.add(t + 0.01, "producer-1", "client.produce.acked", acked)
            self.add(t + 0.02, "consumer-1", "client.consume.records", 0.9 * acked)

    def events(self) -> list[Event]:
        scene, end = self.scene, self.flow.end_s
        first = scene.quotas[0][1]
        rows: list[tuple[float, str, str | None, dict[str, Any]]] = [
            (-11.0, "load.before", None, {}),
            (-1.0, "throttle.in_force", None, {"rate_bytes_per_s": first}),
            (0.0, "move.started", None, {}),
            (end + 0.6, "move.done", None, {}),
            (end + 1.2, "throttle.restored", None, {}),
        ]
        for at, quota in scene.quotas[1:]:
            rows.append((at - 0.01, "throttle.changing", None, {"rate_bytes_per_s": quota}))
            rows.append((at + scene.change_s, "throttle.in_force", None, {"rate_bytes_per_s": quota}))
        for host, left, back, as_planned in scene.restarts:
            rows.append((left, "broker.leaving", host, {}))
            rows.append((back + 0.5, "broker.back", host, {"leaders_as_planned": as_planned}))
        if scene.stuck is not None:
            at, seconds = scene.stuck
            rows.append((at, "move.stuck", None, {"lag": 1.0, "seconds": seconds}))
            rows.append((at + 0.001, "move.raised", None, {"rate_bytes_per_s": scene.quotas[-1][1]}))
        return [Event(us(t), kind, "", host, detail) for t, kind, host, detail in rows]

    def run(self) -> SyntheticRun:
        for number, host in enumerate(self.scene.brokers):
            self.host(number, host)
        self.driver()
        self.clients()
        return SyntheticRun(self.manifest(), samples_table(self.samples), events_table(self.events()))

    def manifest(self) -> Any:
        scene, plain = self.scene, plain_run().manifest
        assert plain.move is not None
        inbound = sum(group.inbound for group in scene.groups)
        expected = _expected(scene)
        move = replace(
            plain.move,
            quota_bytes_per_s=scene.quotas[0][1],
            fetch=scene.fetch,
            response_max_bytes=scene.response,
            brokers=scene.brokers,
            flows=_flows(scene),
            fetchers=_fetchers(scene),
            total_log_bytes=int(sum(g.bytes for g in scene.groups)),
            kip73_seconds=sum(g.bytes for g in scene.groups if g.adding) / max(1.0, scene.quotas[0][1] - inbound),
            expected=expected,
            model_seconds=self.model_seconds(expected) * scene.model_factor,
            inbound_bytes_per_s=inbound,
            nic_bound=scene.nic_bound,
            wildcard=scene.wildcard,
            batches_s=scene.batches_s,
        )
        nics = tuple(
            NicMeasurement(host, "data0", way, LINE_BPS, PAYLOAD * 0.999, 0.999, 2.0)
            for host in scene.brokers
            for way in ("transmit", "receive")
        )
        logs = tuple(HostLog(host) for host in scene.brokers)
        facts = replace(plain.facts, logs=logs, live=self.live() if inbound else None)
        return replace(
            plain,
            run_id=new_run_id(scene.experiment, EPOCH, scene.token),
            experiment=scene.experiment,
            move=move,
            nics=nics,
            facts=facts,
        )

    def model_seconds(self, expected: tuple[Expected, ...]) -> float:
        """By the model of one quota; of several the time that it would take without losses."""
        if len(self.scene.quotas) > 1 or self.scene.restarts:
            return self.flow.end_s * SHARE
        return max(e.seconds(self.scene.quotas[0][1]) for e in expected)

    def live(self) -> LiveLoad:
        why = "" if self.scene.load_held else "3.4 s of records had no answer when the load ended"
        declared = sum(group.inbound for group in self.scene.groups)
        process = LoadProcess("producer-1", "producer", declared, 9000, 9000, 9000, 0, 0, not why, why, 0.2)
        lost = self.scene.lost_live
        audit = LiveAudit("producer-1", 9000, 9000 - lost, lost, 0, 0, 0, True, ("kip73-4 at 77",) if lost else ())
        return LiveLoad((process,), (audit,))


def _flows(scene: Scene) -> tuple[Flow, ...]:
    found = []
    for g in scene.groups:
        partitions = tuple(range(g.partitions))
        found += [Flow("throttled", g.topic, partitions, g.leader, f) for f in g.adding]
        found += [Flow("in_sync", g.topic, partitions, g.leader, f) for f in g.in_sync]
    first = scene.groups[0]
    return (*found, Flow("control", "control", (0, 1), first.leader, first.adding[0]))


def _fetchers(scene: Scene) -> dict[str, Fetchers]:
    sends: dict[str, set[str]] = {}
    receives: dict[str, set[str]] = {}
    for flow in _flows(scene)[:-1]:
        sends.setdefault(flow.leader, set()).add(flow.follower)
        if flow.kind == "throttled" or scene.wildcard:
            receives.setdefault(flow.follower, set()).add(flow.leader)
    return {h: Fetchers(len(sends.get(h, ())), len(receives.get(h, ()))) for h in scene.brokers}


def _expected(scene: Scene) -> tuple[Expected, ...]:
    carried: dict[tuple[str, str], list[float]] = {}
    for g in scene.groups:
        at = carried.setdefault((g.leader, "transmit"), [0.0, 0.0])
        at[0] += g.bytes * len(g.adding)
        at[1] += g.inbound * (len(g.adding) + len(g.in_sync))
        for f in g.adding:
            to = carried.setdefault((f, "receive"), [0.0, 0.0])
            to[0] += g.bytes
            to[1] += g.inbound
    return tuple(Expected(h, way, int(b), k) for (h, way), (b, k) in carried.items())  # type: ignore[arg-type]


def simulate(scene: Scene) -> SyntheticRun:
    """The run of a scene."""
    return Simulator(scene).run()
