"""One throttled move from a broker to another, with everything that is needed to judge it."""

import contextlib
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from typing import Literal

from results.manifest import (
    Differences,
    Done,
    Facts,
    Fetchers,
    Flow,
    InForce,
    Move,
    NicMeasurement,
    Records,
)
from results.schema import Sample
from testbed.errors import TestbedError
from testbed.experiments.conversion import calibrate
from testbed.experiments.experiment import Context, Outcome
from testbed.kafka.admin import Admin
from testbed.kafka.properties import DATA_DIR
from testbed.kafka.types import TopicPartition
from testbed.probes.allowlist import new_replicas
from testbed.probes.logwatch import LogWatch
from testbed.probes.machine import cpu_probe
from testbed.probes.recorder import now_us
from testbed.reassignment.changes import ThrottleError
from testbed.reassignment.driver import Driver, DriverError
from testbed.reassignment.journal import JournalFolder
from testbed.reassignment.plan import Plan, kip73_move_seconds, move_ratio
from testbed.reassignment.progress import Poll
from testbed.software.jvm import AGENT_PORT
from testbed.workload.preload import Fill, audit, preload
from testbed.workload.records import Recipe

RECORD_BYTES = 4096
WINDOW_SAMPLES, SAMPLE_S = 11, 1.0
SIDE_PARTITIONS = 4
CALIBRATION_BYTES, CONTROL_BYTES = 32_000_000, 64_000_000
QUOTA_POLL_S = 0.3
DEFAULT_RESPONSE_BYTES = 10_485_760
"""Kafka's own `replica.fetch.response.max.bytes`."""
DRIVER = "driver"


@dataclass(frozen=True, slots=True)
class Placement:
    """From which broker's host to which."""

    source: str
    target: str


@dataclass(frozen=True, slots=True)
class MoveSetup:
    """What is moved, and how fast it may go; `preload_s` seconds' worth of the quota is moved."""

    quota_bytes_per_s: int
    fetch: Literal["tuned", "default"]
    preload_s: float
    partitions: int
    placement: Placement


class _Mover:
    """The steps of one move, in order; each leaves what the next needs."""

    def __init__(self, context: Context, setup: MoveSetup, admin: Admin) -> None:
        self.context, self.setup, self.admin = context, setup, admin
        self.testbed, self.recorder = context.testbed, context.recorder
        topology = self.testbed.topology
        self.ids = {host.name: host.node_id for host in topology.brokers if host.node_id is not None}
        token = context.run_id[-6:]
        seed = int.from_bytes(context.run_id.encode()[-4:])
        volume = int(setup.quota_bytes_per_s * setup.preload_s)
        self.moved = self._fill(f"kip73-{token}", setup.partitions, volume, seed)
        self.control = self._fill(f"control-{token}", SIDE_PARTITIONS, CONTROL_BYTES, seed + 1)
        self.calibration = self._fill(f"calibration-{token}", SIDE_PARTITIONS, CALIBRATION_BYTES, seed + 2)
        self.control_done = False
        self.fills = (self.moved, self.control, self.calibration)

    @staticmethod
    def _fill(topic: str, partitions: int, volume: int, seed: int) -> Fill:
        per_partition = -(-volume // (partitions * RECORD_BYTES))
        return Fill(topic, range(partitions), per_partition, Recipe(RECORD_BYTES, seed))

    def prepare(self) -> None:
        """Topics on the source, filled."""
        source = self.ids[self.setup.placement.source]
        for fill in self.fills:
            self.admin.create_topic(fill.topic, {p: [source] for p in fill.partitions}, {})
        total = sum(fill.bytes for fill in self.fills)
        self.context.progress(
            f"preloading {total / 1e6:.0f} MB into {sum(len(f.partitions) for f in self.fills)} partitions"
        )
        preload(self.testbed.bootstrap, self.fills)

    def leaders(self) -> Differences:
        """Whether every partition lies on the source and is led by it, as the scenario has it."""
        source = self.ids[self.setup.placement.source]
        states = self.admin.partitions([fill.topic for fill in self.fills])
        wrong = tuple(
            f"{tp}: leader {state.leader}, replicas {list(state.replicas)}; expected {source} alone"
            for tp, state in sorted(states.items())
            if state.leader != source or state.replicas != (source,)
        )
        return Differences(not wrong, wrong[:10])

    def watch(self) -> None:
        """Start all probes."""
        self.recorder.poll("cpu", 1.0, cpu_probe())
        for host in self.testbed.topology.brokers:
            self.recorder.watch_host(
                self.testbed.hosts[host.name],
                topics=[fill.topic for fill in self.fills],
                devices=[host.nic.name],
                log_dir=DATA_DIR,
                jmx_port=AGENT_PORT,
            )

    def nics(self) -> tuple[NicMeasurement, ...]:
        """Measure every NIC; one that could not be measured has no rate, and nothing is judged with it."""
        self.context.progress("measuring the NICs, 2 s each way")
        try:
            return tuple(NicMeasurement(**asdict(rate)) for rate in self.testbed.measure_nics())
        except TestbedError as error:
            self.recorder.event("note", "NICs were not measured", {"error": str(error)})
            return ()

    @contextlib.contextmanager
    def polling_quotas(self) -> Iterator[None]:
        """Ask every broker, within the block, which quota it has in force.

        A sample's time is when it was asked for. The block ends before the configuration is put back, so that
        each answer within the move is about the throttle of the move.
        """

        def look(host: str, broker: int) -> list[Sample]:
            asked, configs = now_us(), self.admin.broker_configs(broker)
            found = []
            for side in ("leader", "follower"):
                value = configs.in_force(f"{side}.replication.throttled.rate")
                found.append(Sample(asked, host, f"quota.{side}.rate", float(value) if value is not None else -1.0))
            return found

        pollers = [
            self.recorder.poll(f"quota of {host}", QUOTA_POLL_S, partial(look, host, broker))
            for host, broker in self.ids.items()
        ]
        try:
            yield
        finally:
            for poller in pollers:
                poller.stop()

    def plan(self, *fills: Fill) -> Plan:
        """All partitions of `fills` to the target."""
        target = self.ids[self.setup.placement.target]
        return Plan({TopicPartition(f.topic, p): (target,) for f in fills for p in f.partitions})

    def flows(self) -> tuple[Flow, ...]:
        """Which partitions are copied, and whether the throttle lists them."""
        place = self.setup.placement
        return (
            Flow("throttled", self.moved.topic, tuple(self.moved.partitions), place.source, place.target),
            Flow("control", self.control.topic, tuple(self.control.partitions), place.source, place.target),
            Flow("calibration", self.calibration.topic, tuple(self.calibration.partitions), place.source, place.target),
        )

    def lag_samples(self) -> list[Sample]:
        """Σ (leader's log end offset − adding replica's) over the throttled partitions, in records."""
        place, topic, total = self.setup.placement, self.moved.topic, 0.0
        for partition in self.moved.partitions:
            leader = self.recorder.latest(place.source, "log.end_offset", topic, partition)
            adding = self.recorder.latest(place.target, "log.end_offset", topic, partition)
            # Once the old replica is gone the adding one is the leader, and lags behind nobody.
            total += max(0.0, leader - (adding or 0.0)) if leader is not None else 0.0
        return [Sample(now_us(), DRIVER, "move.lag", total)]

    def on_poll(self, poll: Poll) -> None:
        """Store how many partitions are in flight, and tell when the control has arrived."""
        self.recorder.add([Sample(poll.ts_us, DRIVER, "move.in_flight", float(poll.in_flight))])
        if not self.control_done:
            running = self.admin.reassignments([self.control.topic])
            if not running:
                self.control_done = True
                self.recorder.event("control.done", self.control.topic)

    def log_bytes(self) -> int:
        """Bytes of the throttled partitions' logs on the source."""
        found = (
            self.recorder.latest(self.setup.placement.source, "log.bytes", self.moved.topic, partition)
            for partition in self.moved.partitions
        )
        return int(sum(value for value in found if value is not None))

    def _broker_property(self, key: str, default: int) -> int:
        """A broker property that is the same on all hosts, as they were started with it."""
        properties = {**self.testbed.topology.brokers[0].properties, **self.testbed.state.overlay}
        return int(properties.get(key, default))

    def response_max_bytes(self) -> int:
        """The most one fetch response carries."""
        return self._broker_property("replica.fetch.response.max.bytes", DEFAULT_RESPONSE_BYTES)

    def fetchers(self) -> int:
        """Fetcher threads of one follower towards one leader."""
        return self._broker_property("num.replica.fetchers", 1)

    def audit(self) -> Records:
        """Read everything back and account for every record."""
        self.context.progress("reading every record back")
        found = audit(self.testbed.bootstrap, self.fills)
        if found.complaints:
            self.recorder.event("note", "records are missing or wrong", {"first": list(found.complaints)})
        return Records(found.expected, found.found, found.lost, found.duplicated, found.corrupt)


def run_move(context: Context, setup: MoveSetup) -> Outcome:
    """Prepare, measure, move, restore, read back; what did not succeed is a fact, not an exception."""
    with context.testbed.admin() as admin:
        mover = _Mover(context, setup, admin)
        moved = new_replicas([fill.topic for fill in mover.fills], [setup.placement.target])
        watch = LogWatch(context.testbed, [moved])
        watch.start()
        with context.recorder.step("prepare"):
            mover.prepare()
            leaders = mover.leaders()
        mover.watch()
        with context.recorder.step("measure NICs"):
            nics = mover.nics()
        with context.recorder.step("calibrate"):
            context.progress("calibrating: an unthrottled transfer")
            factor = calibrate(
                context,
                admin,
                mover.plan(mover.calibration),
                mover.calibration.topic,
                setup.placement.source,
                setup.placement.target,
            )
        log_bytes = mover.log_bytes()
        with context.recorder.step("move"):
            done, in_force, restored = _throttled(mover, log_bytes)
        # Twice: one host's last sample must lie after the others' samples that show the end.
        context.recorder.wait_for_all()
        context.recorder.wait_for_all()
        context.recorder.stop()
        context.measured()
        records = mover.audit()
        logs = watch.logs()
    place = setup.placement
    move = Move(
        quota_bytes_per_s=setup.quota_bytes_per_s,
        fetch=setup.fetch,
        response_max_bytes=mover.response_max_bytes(),
        f=factor,
        fetchers={place.source: Fetchers(mover.fetchers(), 0), place.target: Fetchers(0, mover.fetchers())},
        brokers=tuple(mover.ids),
        flows=mover.flows(),
        total_log_bytes=log_bytes,
        move_ratio=move_ratio(setup.partitions, setup.partitions),
        # Of the listed partitions alone: all of them move, all of them lie on one broker, nobody writes.
        kip73_seconds=kip73_move_seconds(1.0, log_bytes, 1, setup.quota_bytes_per_s, 0.0),
        window_samples=WINDOW_SAMPLES,
        sample_s=SAMPLE_S,
    )
    facts = Facts(records=records, restored=restored, leaders=leaders, done=done, in_force=in_force, logs=logs)
    return Outcome(nics, move, facts)


def _throttled(mover: _Mover, log_bytes: int) -> tuple[Done, InForce, Differences]:
    """The move itself. The control goes with it, unlisted."""
    recorder, setup = mover.recorder, mover.setup
    expected_s = log_bytes / setup.quota_bytes_per_s
    mover.context.progress(
        f"moving {log_bytes / 1e6:.0f} MB at {setup.quota_bytes_per_s / 1e6:g} MB/s, about {expected_s:.0f} s"
    )
    control = {TopicPartition(mover.control.topic, p) for p in mover.control.partitions}
    done = Done(False, "the move was not started")
    in_force = InForce(False, 0.0)
    driver = Driver(mover.admin, JournalFolder(), on_event=recorder.event, cancel_on_error=True)
    begun = time.monotonic()
    try:
        with driver, mover.polling_quotas():
            recorder.poll("lag", SAMPLE_S, mover.lag_samples)
            driver.execute(mover.plan(mover.moved, mover.control), setup.quota_bytes_per_s, unthrottled=control)
            in_force = InForce(True, time.monotonic() - begun)
            recorder.event("control.started", mover.control.topic)
            timeline = driver.follow(mover.on_poll, timeout_s=3 * expected_s + 60, interval_s=0.5)
            done = Done(True, f"seen {timeline.seconds:.1f} s after it was asked for")
    except (DriverError, ThrottleError) as error:
        # What was seen so far is judged all the same; the verdict says what is missing.
        done = Done(False, str(error))
        recorder.event("note", "the move was not done", {"error": str(error)})
    restored = driver.restored
    if restored is None:
        return done, in_force, Differences(False, ("the configuration was not put back: see the journal",))
    return done, in_force, Differences(True, tuple(str(found) for found in restored.interferences))
