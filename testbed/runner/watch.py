"""The live view of a testbed: rates against quotas, the progress of a move, replicas in sync, latency, and changes.

An observer of its own reads the hosts' counters and the cluster once a second. It changes nothing, and it needs no
run: it also shows what a user does by hand.
"""

import math
import time
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from results.contract.schema import Sample
from results.contract.texts import shortened
from testbed.errors import TestbedError
from testbed.kafka.admin import Admin
from testbed.kafka.node import DATA_DIR
from testbed.kafka.types import PartitionState, Reassignment, TopicPartition
from testbed.probes.brokers import sampled_bps, sampled_nic
from testbed.probes.recorder import Recorder
from testbed.provision.testbed import Testbed
from testbed.reassignment.monitor import Monitor
from testbed.reassignment.stall import PATIENCE_S
from testbed.software.jvm import AGENT_PORT
from testbed.throttle.configs import FOLLOWER_RATE, LEADER_RATE, RATES
from testbed.topology.host import names_by_id
from testbed.units import format_byte_rate

INTERVAL_S = 1.0
HISTORY = 600
"""Readings that the view keeps: ten minutes."""
MOST_NAMED = 3
COUNTERS = ("nic.tx.bytes", "nic.rx.bytes")
GAUGES = (
    "broker.leader_replication.byte_rate",
    "broker.follower_replication.byte_rate",
    "broker.produce.p99_ms",
    "broker.fetch.p99_ms",
)


@dataclass(frozen=True, slots=True)
class BrokerView:
    """One broker in one reading. Rates in B/s, latencies in ms; None: unknown, or no quota."""

    host: str
    serves: bool | None
    """None: the cluster gave no answer."""
    sent: float | None
    received: float | None
    sends_at_most: float
    receives_at_most: float
    leader_rate: float | None
    leader_quota: float | None
    follower_rate: float | None
    follower_quota: float | None
    produce_p99_ms: float | None
    fetch_p99_ms: float | None


@dataclass(frozen=True, slots=True)
class MoveView:
    """The running reassignments in one reading; `remaining_s` is None while it cannot be estimated."""

    partitions: int
    partitions_done: int
    lag_bytes: int
    remaining_s: float | None
    stalled: bool


@dataclass(frozen=True, slots=True)
class WatchReading:
    """One reading: µs since the epoch, the brokers, the move or None, and the partitions that lack replicas in sync."""

    at_us: int
    brokers: tuple[BrokerView, ...]
    move: MoveView | None
    partitions: int
    under_replicated: int
    problem: str = ""
    """Why the cluster gave no answer; empty: it answered."""


@dataclass(frozen=True, slots=True)
class Change:
    """Something that differs from the reading before: µs since the epoch, and a sentence."""

    at_us: int
    text: str

    @property
    def clock(self) -> str:
        """Return the time of day, UTC."""
        return f"{datetime.fromtimestamp(self.at_us / 1e6, UTC):%H:%M:%S}"


@dataclass(frozen=True, slots=True)
class ObservedCluster:
    """The cluster at one time: running reassignments, partitions, quotas by host and side, hosts that serve."""

    listed: Mapping[TopicPartition, Reassignment] = field(default_factory=dict)
    states: Mapping[TopicPartition, PartitionState] = field(default_factory=dict)
    quotas: Mapping[tuple[str, str], str | None] = field(default_factory=dict)
    serving: Collection[str] = ()


def changes(before: ObservedCluster, after: ObservedCluster) -> list[str]:
    """Return one sentence for each kind of difference between two states of a cluster. Pure."""
    found = [f"{host} serves" for host in sorted({*after.serving} - {*before.serving})]
    found += [f"{host} does not serve" for host in sorted({*before.serving} - {*after.serving})]
    for (host, side), quota in after.quotas.items():
        if quota != before.quotas.get((host, side)):
            shown = "removed" if quota is None else f"set to {format_byte_rate(int(quota))}"
            found.append(f"the {side} quota of {host} is {shown}")
    both = [(tp, was, after.states[tp]) for tp, was in before.states.items() if tp in after.states]
    partitions = {
        "begins to move": [tp for tp in after.listed if tp not in before.listed],
        "has moved": [tp for tp in before.listed if tp not in after.listed],
        "has lost replicas in sync": [tp for tp, was, now in both if {*was.isr} - {*now.isr}],
        "has more replicas in sync": [tp for tp, was, now in both if {*now.isr} - {*was.isr}],
        "has another leader": [tp for tp, was, now in both if now.leader != was.leader],
    }
    found += [_of_partitions(tps, what) for what, tps in partitions.items() if tps]
    return found


_PLURAL = {"begins": "begin", "has": "have"}


def _of_partitions(tps: Sequence[TopicPartition], what: str) -> str:
    named = ", ".join(shortened(sorted(tps), MOST_NAMED))
    verb, rest = what.split(" ", 1)
    return f"{named} {verb if len(tps) == 1 else _PLURAL[verb]} {rest}"


class CounterRates:
    """The rates of counters and the newest values of gauges, by host."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str], tuple[int, float]] = {}
        self._values: dict[tuple[str, str], float] = {}

    def add(self, samples: Iterable[Sample]) -> None:
        """Add samples; a counter that falls has begun again, and gives no rate for that time."""
        for sample in samples:
            key = sample.host, sample.metric
            if sample.metric in GAUGES:
                self._values[key] = sample.value
            elif sample.metric in COUNTERS:
                before = self._counts.get(key)
                self._counts[key] = sample.ts_us, sample.value
                self._values.pop(key, None)
                if before is not None and sample.ts_us > before[0] and sample.value >= before[1]:
                    self._values[key] = (sample.value - before[1]) / (sample.ts_us - before[0]) * 1e6

    def value(self, host: str, metric: str) -> float | None:
        """Return a counter's rate per second, or a gauge's value; None while there is none."""
        return self._values.get((host, metric))


class Watch:
    """The observer of one testbed. A context manager: its agents end with the block."""

    def __init__(self, testbed: Testbed, admin: Admin) -> None:
        self._testbed, self._admin = testbed, admin
        self._recorder = Recorder()
        self._rates = CounterRates()
        self._monitor = Monitor(admin, PATIENCE_S)
        self._before: ObservedCluster | None = None
        self.readings: deque[WatchReading] = deque(maxlen=HISTORY)
        self.changes: deque[Change] = deque(maxlen=HISTORY)

    def __enter__(self) -> "Watch":
        """Start the agent on every broker."""
        for broker in self._testbed.topology.brokers:
            self._recorder.watch_host(
                self._testbed.hosts[broker.name],
                topics=(),
                devices=[sampled_nic(broker).name],
                log_dir=DATA_DIR,
                jmx_port=AGENT_PORT,
                latency=True,
            )
        return self

    def __exit__(self, *_error: object) -> None:
        """End the agents."""
        self._recorder.stop()

    def follow(self, seconds: float | None = None, interval_s: float = INTERVAL_S) -> Iterator[WatchReading]:
        """Yield a reading every `interval_s` seconds, for `seconds`; None: until the caller stops."""
        due = time.monotonic()
        end = math.inf if seconds is None else due + seconds
        while due < end:
            yield self.read()
            due = max(due + interval_s, time.monotonic())
            time.sleep(max(0.0, min(due, end) - time.monotonic()))

    def read(self) -> WatchReading:
        """Return the next reading, and remember it with its changes. A cluster that does not answer is a reading."""
        self._rates.add(self._recorder.drain())
        at_us = time.time_ns() // 1000
        problem, move = "", None
        try:
            now = self._cluster()
            move = self._move(now)
        except TestbedError as error:
            problem, now = str(error), ObservedCluster()
        else:
            before = self._before or now
            self.changes.extend(Change(at_us, text) for text in changes(before, now))
            # The quota of a broker that does not serve is not known; that of before is compared when it is back.
            self._before = replace(now, quotas={**before.quotas, **now.quotas})
        under = sum(len(state.isr) < len(state.replicas) for tp, state in now.states.items() if tp not in now.listed)
        brokers = tuple(self._broker(broker.name, now, problem) for broker in self._testbed.topology.brokers)
        reading = WatchReading(at_us, brokers, move, len(now.states), under, problem)
        self.readings.append(reading)
        return reading

    def latest(self, reading: WatchReading) -> list[Change]:
        """Return the changes that a reading brought."""
        return [change for change in self.changes if change.at_us == reading.at_us]

    def _cluster(self) -> ObservedCluster:
        live = {broker.id for broker in self._admin.cluster().brokers}
        names = names_by_id(self._testbed.topology.brokers)
        serving = [name for broker, name in names.items() if broker in live]
        quotas: dict[tuple[str, str], str | None] = {}
        for broker, name in names.items():
            if broker in live:
                configs = self._admin.broker_configs(broker, RATES)
                quotas[name, "leader"] = configs.in_force(LEADER_RATE)
                quotas[name, "follower"] = configs.in_force(FOLLOWER_RATE)
        topics = self._admin.topics()
        states = self._admin.partitions(topics) if topics else {}
        return ObservedCluster(self._admin.reassignments(), states, quotas, serving)

    def _move(self, now: ObservedCluster) -> MoveView | None:
        if not now.listed:
            self._monitor = Monitor(self._admin, PATIENCE_S)
            return None
        found = self._monitor.read()
        left_s = None if found.remaining is None or math.isinf(found.remaining.seconds) else found.remaining.seconds
        return MoveView(found.partitions, found.partitions_done, found.lag_bytes, left_s, found.stall is not None)

    def _broker(self, host: str, now: ObservedCluster, problem: str) -> BrokerView:
        sends, receives = sampled_bps(self._testbed.topology.host(host))
        leader, follower = now.quotas.get((host, "leader")), now.quotas.get((host, "follower"))
        return BrokerView(
            host,
            None if problem else host in now.serving,
            self._rates.value(host, "nic.tx.bytes"),
            self._rates.value(host, "nic.rx.bytes"),
            sends / 8,
            receives / 8,
            self._rates.value(host, "broker.leader_replication.byte_rate"),
            None if leader is None else float(leader),
            self._rates.value(host, "broker.follower_replication.byte_rate"),
            None if follower is None else float(follower),
            self._rates.value(host, "broker.produce.p99_ms"),
            self._rates.value(host, "broker.fetch.p99_ms"),
        )
