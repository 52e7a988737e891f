"""A synthetic run that looks like a real one: 100 partitions from b1 to b2 in about a minute under a quota.

Bytes move in whole responses; hosts are sampled once a second at their own instants with some jitter. Seeded, so that
the same options always give the same run.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cache, cached_property, lru_cache

import numpy as np
import pyarrow as pa

from results.contract.logs import HostLog
from results.contract.manifest import (
    Differences,
    Done,
    Facts,
    Fetchers,
    Flow,
    InForce,
    Load,
    Machine,
    Manifest,
    Move,
    NicMeasurement,
    Records,
    TopologyRecord,
    Versions,
    new_run_id,
)
from results.contract.move import SAMPLE_S, WINDOW_SAMPLES
from results.contract.schema import Event, Sample, events_table, samples_table
from results.contract.store import RunData
from results.criteria import Judgement, judge
from tests.results.sensed import Sensed
from tools.fetching import Fetching
from tools.fetching import copied as fetch

EPOCH = datetime(2026, 11, 21, 18, 15, 8, 250_000, tzinfo=UTC)
EPOCH_US = round(EPOCH.timestamp() * 1e6)
MIB = 1 << 20
F = 1.062
LINE_BPS = 400_000_000
PAYLOAD = LINE_BPS * 1448 / 1514 / 8
FIRST_S, AFTER_S = -9.0, 6.0

Cumulative = Callable[[float], float]


@dataclass(frozen=True)
class Options:
    """What kind of run. `gap` drops one host's samples between two instants (seconds after the start)."""

    quota: float = 10e6
    fetch: str = "tuned"
    log_bytes: float = 580e6
    partitions: int = 100
    real_quota: float | None = None
    late_quota_host: str | None = None
    late_quota_s: float = 4.0
    gap: tuple[str, float, float] | None = None
    burst_at_s: float | None = None
    cpu_busy: float = 0.46
    steal: float = 0.004
    nic_ratio: float = 0.999
    nic_counter_factor: float = 1.0
    background_bytes_per_s: float = 0.0
    """What crosses each NIC each way besides copies and clients."""
    kafka_rate_factor: float = 1.0
    lost_records: int = 0
    client_bytes_per_s: float = 0.0
    control_rate: float = 36e6
    control_bytes: float = 260e6
    window: tuple[int, float] = (WINDOW_SAMPLES, float(SAMPLE_S))
    """The brokers' quota window: samples, and seconds of each."""
    fetching: Fetching | None = None
    """How the copy goes, response by response, instead of evenly; its bytes, quota and settings are those."""
    seed: int = 7
    token: str = "ab12cd"
    without_metrics: tuple[str, ...] = field(default=())


@dataclass(frozen=True)
class SyntheticRun:
    manifest: Manifest
    samples: pa.Table
    events: pa.Table

    def judged(self) -> Judgement:
        return self._judgement

    @cached_property
    def _judgement(self) -> Judgement:
        return judge(self.manifest, self.samples, self.events)

    def data(self) -> RunData:
        judgement = self.judged()
        manifest = replace(self.manifest, verdict=judgement.verdict)
        return RunData(manifest, self.samples, self.events, list(judgement.criteria))


def synthetic_run(options: Options = Options()) -> SyntheticRun:
    """Return the run of these options. Tests share it: they change copies."""
    return _made(options)


@lru_cache(maxsize=64)
def _made(options: Options) -> SyntheticRun:
    return _Generator(options).run()


def responses(options: Options) -> Cumulative:
    """Cumulative throttled bytes at an instant: whole responses at line rate, spaced by the quota."""
    rng = np.random.default_rng(options.seed)
    quota = options.real_quota or options.quota
    default = options.fetch == "default"
    size = 10 * MIB if default else MIB
    spread = 0.5 if default else 0.06
    times, totals = [0.0], [0.0]
    t, total = 0.15, 0.0
    while total < options.log_bytes:
        share = 0.932 if default else (0.952 if t < 11 else 0.9855)
        if options.burst_at_s is not None and options.burst_at_s <= t < options.burst_at_s + 1.2:
            share = 3.5
        amount = min(size * (rng.uniform(0.3, 1.0) if default else 1.0), options.log_bytes - total)
        flow_s = amount / (PAYLOAD * 0.95)
        times += [t, t + flow_s]
        totals += [total, total + amount]
        total += amount
        t += max(flow_s * 1.02, amount / (quota * share) * rng.uniform(1 - spread, 1 + spread))
    at_s, log_bytes = np.array(times), np.array(totals)
    return lambda at: float(np.interp(at, at_s, log_bytes))


class _Generator:
    def __init__(self, options: Options) -> None:
        self.o = options
        self.rng = np.random.default_rng(options.seed + 1)
        copied = None if options.fetching is None else fetch(options.fetching)
        self.throttled = responses(options) if copied is None else lambda t: float(copied.log(np.array([t]))[0])
        self.fetched = self.throttled if copied is None else copied.fetched_by
        self.end_s = next(t for t in np.arange(0, 600, 0.05) if self.throttled(t) >= options.log_bytes)
        self.control_start, self.control_s = 21.3, options.control_bytes / options.control_rate
        self.samples: list[Sample] = []
        instants = np.arange(0, self.end_s + AFTER_S, 0.005)
        size = (10 if options.fetch == "default" else 1) * MIB
        passed = np.array([self.throttled(float(t)) for t in instants]) if copied is None else np.zeros(1)
        sensed = {
            side: Sensed(instants[: len(passed)], passed, size, *options.window) for side in ("leader", "follower")
        }
        self.byte_rate = lambda side, t: sensed[side].byte_rate(t) if copied is None else copied.byte_rate_at(side, t)

    def control(self, t: float) -> float:
        return float(np.clip((t - self.control_start) / self.control_s, 0, 1)) * self.o.control_bytes

    def calibration(self, t: float) -> float:
        return float(np.clip((t + 7.5) / 2.0, 0, 1)) * 80e6

    def background(self, t: float) -> float:
        return self.o.background_bytes_per_s * (t - FIRST_S)

    def client(self, t: float) -> float:
        return self.o.client_bytes_per_s * (t - FIRST_S)

    def add(self, t: float, host: str, metric: str, value: float, **where: object) -> None:
        gap = self.o.gap
        if gap is not None and gap[0] == host and gap[1] <= t < gap[2]:
            return
        if metric not in self.o.without_metrics:
            self.samples.append(Sample(us(t), host, metric, float(value), **where))  # type: ignore[arg-type]

    def instants(self, offset: float, step: float = 1.0) -> list[float]:
        grid = np.arange(FIRST_S + offset, self.end_s + AFTER_S, step)
        return [float(t) for t in grid + self.rng.normal(0, 0.004, len(grid))]

    def logs(self, t: float, host: str, topic: str, total: float, partitions: int) -> None:
        edges = [int(total * p / partitions) for p in range(partitions + 1)]
        for p in range(partitions):
            size = edges[p + 1] - edges[p]
            self.add(t, host, "log.bytes", size, topic=topic, partition=p)
            self.add(t, host, "log.end_offset", size // 10_240, topic=topic, partition=p)

    def leader(self) -> None:
        o = self.o
        for t in self.instants(0.137):
            self.logs(t, "b1", "moving", o.log_bytes, o.partitions)
            self.logs(t, "b1", "control", o.control_bytes, 10)
            sent = self.sent(t) * o.nic_counter_factor
            self.add(t, "b1", "nic.tx.bytes", int(sent * F + self.background(t)), label="data0")
            self.add(t, "b1", "nic.rx.bytes", int(sent * 0.014), label="data0")
            self.broker(t, "b1", "leader")

    def sent(self, t: float) -> float:
        return self.throttled(t) + self.control(t) + self.calibration(t)

    def follower(self) -> None:
        o = self.o
        for t in self.instants(0.412):
            if t > 0:
                self.logs(t, "b2", "moving", self.throttled(t), o.partitions)
            self.logs(t, "b2", "control", self.control(t), 10)
            self.logs(t, "b2", "calibration", self.calibration(t), 1)
            received = self.sent(t) + self.client(t)
            crossed = received * F * o.nic_counter_factor + self.background(t)
            self.add(t, "b2", "nic.rx.bytes", int(crossed), label="data0")
            self.add(t, "b2", "nic.tx.bytes", int(received * 0.014), label="data0")
            self.add(t, "b2", "broker.bytes_in", int(self.client(t)))
            self.broker(t, "b2", "follower")

    def broker(self, t: float, host: str, side: str) -> None:
        if t > 0.5:
            rate = self.byte_rate(side, t) * self.o.kafka_rate_factor
            self.add(t, host, f"broker.{side}_replication.byte_rate", rate * self.rng.normal(1, 0.001))
        fetched = int(self.fetched(t) + self.control(t) + self.calibration(t))
        if host == "b1":
            self.add(t, host, "broker.bytes_in", 0)
            self.add(t, host, "broker.reassignment.bytes_out", fetched)
        else:
            self.add(t, host, "broker.reassignment.bytes_in", fetched)
        self.add(t, host, "broker.under_replicated", 0)
        self.add(t, host, "broker.reassigning", self.o.partitions if 0 < t < self.end_s else 0)

    def polls(self) -> None:
        for host in ("b1", "b2"):
            for t in np.arange(-1.0, self.end_s + 0.6, 0.31):
                late = host == self.o.late_quota_host and t < self.o.late_quota_s
                value = -1.0 if late else (self.o.real_quota or self.o.quota)
                for side in ("leader", "follower"):
                    self.add(float(t), host, f"quota.{side}.rate", value)
        for t in self.instants(0.05):
            busy = self.o.cpu_busy + (0.18 if self.control_start < t < self.control_start + 8 else 0.0)
            self.add(t, "machine", "cpu.busy", float(np.clip(busy + self.rng.normal(0, 0.03), 0, 1)))
            self.add(t, "machine", "cpu.steal", max(0.0, self.o.steal + self.rng.normal(0, 0.001)))
        for t in self.instants(0.2):
            left = 0 if t < 0 else max(0.0, 1 - self.throttled(t) / self.o.log_bytes)
            self.add(t, "driver", "move.in_flight", round(self.o.partitions * left))
            self.add(t, "driver", "move.lag", int(self.o.log_bytes * left / 10_240))

    def run(self) -> SyntheticRun:
        self.leader()
        self.follower()
        self.polls()
        return SyntheticRun(self.manifest(), samples_table(self.samples), self.events())

    def events(self) -> pa.Table:
        end, control_end = self.end_s, self.control_start + self.control_s
        rows = [
            (-9.0, "step", "calibrate", {"phase": "begin"}),
            (-7.5, "calibration.started", "", {}),
            (-5.5, "calibration.done", "", {"f": F}),
            (-1.6, "throttle.set", "", {"quota_bytes_per_s": self.o.quota}),
            (-0.9, "throttle.in_force", "", {"seconds": 0.7}),
            (0.0, "move.started", "", {"partitions": self.o.partitions}),
            (self.control_start, "control.started", "", {}),
            (control_end, "control.done", "", {}),
            (end + 0.9, "move.done", "", {}),
            (end + 1.7, "throttle.restored", "", {}),
        ]
        return events_table([Event(us(t), kind, name, None, detail) for t, kind, name, detail in rows])

    def manifest(self) -> Manifest:
        o = self.o
        wrong = o.lost_records
        expected = int(o.log_bytes / 10_240)
        nics = tuple(
            NicMeasurement(
                host,
                "data0",
                way,
                LINE_BPS,
                PAYLOAD * (o.nic_ratio if host == "b1" else 0.998),
                o.nic_ratio if host == "b1" else 0.998,
                2.0,
            )
            for host in ("b1", "b2")
            for way in ("transmit", "receive")
        )
        flows = (
            Flow("throttled", "moving", tuple(range(o.partitions)), "b1", "b2"),
            Flow("control", "control", tuple(range(10)), "b1", "b2"),
            Flow("calibration", "calibration", (0,), "b1", "b2"),
        )
        move = Move(
            quota_bytes_per_s=o.quota,
            fetch="default" if o.fetch == "default" else "tuned",
            response_max_bytes=10 * MIB if o.fetch == "default" else MIB,
            nic_bytes_per_log_byte=F,
            fetchers={"b1": Fetchers(1, 0), "b2": Fetchers(0, 1)},
            brokers=("b1", "b2"),
            flows=flows,
            total_log_bytes=int(o.log_bytes),
            move_ratio=1.0,
            kip73_seconds=o.log_bytes / o.quota,
            window_samples=o.window[0],
            sample_s=o.window[1],
            warmup_s=(o.window[0] + 1) * o.window[1],
        )
        facts = Facts(
            records=Records(expected, expected - wrong, wrong, 0, 0, ("moving-17",) if wrong else ()),
            restored=Differences(True),
            leaders=Differences(True),
            done=Done(True, "replicas = target, ISR holds the target, old replicas gone from b1"),
            in_force=InForce(True, 0.7),
            logs=(HostLog("b1"), HostLog("b2")),
        )
        started = EPOCH - timedelta(seconds=9)
        ended = EPOCH + timedelta(seconds=float(self.end_s) + 6)
        kafka = {"b1": "4.3.1", "b2": "4.3.1"}
        document = {"name": "two-brokers", "hosts": {h: {"nic": {"rate": "400mbit"}} for h in ("b1", "b2")}}
        return Manifest(
            run_id=new_run_id("kip73-two-node", EPOCH, o.token),
            experiment="kip73-two-node",
            profile="ci",
            started=started.isoformat().replace("+00:00", "Z"),
            ended=ended.isoformat().replace("+00:00", "Z"),
            verdict="inconclusive",
            parameters={"rate": f"{o.quota / 1e6:g}MB/s", "fetch": o.fetch, "partitions": o.partitions},
            topology=TopologyRecord("two-brokers", "4b1f" * 16, document),
            versions=Versions("0.1.0", "6f2c9e1", kafka, "9a" * 32, "c3" * 32, "3.11.2", "docker 20.10.24", "6.18.0"),
            machine=Machine("AMD EPYC 7B13", 2, 24 << 30, "6.18.0", "docker 20.10.24", "overlay2"),
            nics=nics,
            load=Load(o.cpu_busy, min(1.0, o.cpu_busy + 0.2), o.steal),
            move=move,
            facts=facts,
        )


def us(t: float) -> int:
    return EPOCH_US + round(t * 1e6)


@cache
def plain_run() -> SyntheticRun:
    """The run without options, for all that a test says nothing of."""
    return synthetic_run()
