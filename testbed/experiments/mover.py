"""The steps of one throttled move on a running testbed, each by itself; `move.py` has their order."""

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from results.contract.batching import BatchingSeen
from results.contract.manifest import Differences, Done, Fetch, Flow, InForce, LiveLoad, NicMeasurement, Records
from results.contract.relocation import Storage
from results.contract.schema import Sample
from testbed.errors import TestbedError
from testbed.experiments.conversion import calibrate
from testbed.experiments.during import During
from testbed.experiments.experiment import Context
from testbed.experiments.load import Load
from testbed.experiments.looks import DRIVER, isr_samples, lag_samples
from testbed.experiments.scene import Group, Scene, assignment, copies, fills, flows, misplaced, plan
from testbed.experiments.storage import SETTLED_S, topic_settings
from testbed.kafka.admin import Admin
from testbed.kafka.capabilities import of_software
from testbed.kafka.errors import KafkaError, UnreachableError
from testbed.kafka.types import TopicPartition
from testbed.network.measure import settled
from testbed.probes.brokers import nic_measurements, quota_samples, watch_brokers, watch_stores
from testbed.probes.logwatch import Allowance, during, new_replicas
from testbed.probes.machine import cpu_probe
from testbed.reassignment.batching.step import BatchLimits
from testbed.reassignment.batching.turn import Mode
from testbed.reassignment.driver import Driver, DriverError
from testbed.reassignment.progress import Poll
from testbed.throttle.configs import ThrottleError
from testbed.throttle.duration import Share, shares
from testbed.throttle.journal import JournalFolder
from testbed.throttle.recovery import Restored, RestoreError
from testbed.throttle.throttle import Throttle
from testbed.tiered.remote import RemoteLog
from testbed.tiered.topics import wait_local
from testbed.wait import WaitTimeout, wait_for
from testbed.workload.audit import Audit
from testbed.workload.preload import audit, preload
from testbed.workload.records import Fill

SAMPLE_S = 1.0
QUOTA_POLL_S = 0.3
ISR_POLL_S = 0.5
LOOK_S = 0.5
REPLICATED_S = 120.0
DEFAULT_RESPONSE_BYTES = 10_485_760
"""Kafka's own `replica.fetch.response.max.bytes`."""
PRELOAD_NAME = "preload"
"""What the audit calls the producer of what is written before a move."""
_SHOWN = 10
Carried = tuple[Share, ...]
Batches = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class MoveSetup:
    """What is moved, how fast it may go (0: as fast as it can), and what happens meanwhile."""

    scene: Scene
    quota_bytes_per_s: int
    fetch: Fetch
    during: During
    nic_bound: bool = False
    mode: Mode = "unbatched"
    limits: BatchLimits = field(default_factory=BatchLimits)
    storage: Storage = "disk"
    local_bytes: int = 0
    """Of tiered logs: how much of all that moves stays on disk, beside the segments that are written to."""


@dataclass(frozen=True, slots=True)
class Transferred:
    """What is known of the move once it has ended, or did not."""

    done: Done
    in_force: InForce
    restored: Differences
    batching: BatchingSeen | None = None


class Mover(contextlib.AbstractContextManager["Mover"]):
    """The steps of one move, in order; each leaves what the next needs. At the block's end nothing it did to the
    testbed is left."""

    def __init__(self, context: Context, setup: MoveSetup, admin: Admin) -> None:
        self.context, self.setup, self.admin = context, setup, admin
        self.testbed, self.recorder, self.during = context.testbed, context.recorder, setup.during
        topology = self.testbed.topology
        self.ids = {host.name: host.node_id for host in topology.brokers if host.node_id is not None}
        token, seed = context.run_id[-6:], int.from_bytes(context.run_id.encode()[-4:])
        self.scene = setup.scene.named(token)
        self.fills = fills(self.scene.groups, seed)
        self.load = Load(self.testbed.bootstrap, self.scene, token, seed + len(self.fills), self.recorder)
        self.driver: Driver | None = None
        self._control_done = self.scene.control is None
        self._control_begun = False

    def __exit__(self, *_error: object) -> None:
        """Nothing: the driver has put back what it changed."""

    @property
    def no_model(self) -> str:
        """Why no model says how long the move takes; empty: one does."""
        return self.during.no_model

    @property
    def idle_s(self) -> float:
        """How long the move may rest at most, beside what it takes to copy everything."""
        return 0.0

    def flows(self) -> tuple[Flow, ...]:
        """Who copies what from whom, and whether a quota records it."""
        return flows(self.scene)

    def carried(self, sizes: Mapping[TopicPartition, int], inbound: Mapping[TopicPartition, float]) -> Carried:
        """What each broker has to carry each way; `sizes` of the leaders' logs, `inbound` what is written meanwhile."""
        return shares(copies(self.scene, self.ids, sizes, inbound), wildcard=self.scene.wildcard)

    def batches_s(self, _sizes: Mapping[TopicPartition, int], _quotas: Sequence[tuple[float, float]]) -> Batches:
        """When everything up to each batch has been copied, by the model; empty of a move at once."""
        return ()

    # ---- before the move

    def prepare(self) -> Differences:
        """Topics where the scene has them, filled, their logs where they belong; returns whether they are."""
        self.create()
        self.preload(self.fills)
        self.settle()
        return self.placed(self.scene.groups)

    def settle(self) -> None:
        """Wait until hardly anything of tiered logs lies on disk. Raises `WaitTimeout`."""
        if self.setup.storage != "tiered":
            return
        self.context.progress("waiting until the object store has the logs, and the disks hardly anything of them")
        with RemoteLog(self.testbed.bootstrap) as remote:
            for topic in self.scene.listed_topics:
                wait_local(self.admin, remote, topic, timeout_s=SETTLED_S)

    def create(self) -> None:
        """Make all topics."""
        least = {"min.insync.replicas": str(self.scene.min_insync)} if self.scene.min_insync > 1 else {}
        least |= topic_settings(self.setup.storage, self.setup.local_bytes // max(1, self.scene.partitions))
        for topic, partitions in assignment(self.scene.groups, self.ids).items():
            self.admin.create_topic(topic, partitions, least if topic in self.scene.listed_topics else {})

    def preload(self, fills: Sequence[Fill]) -> None:
        """Write what is there before the move."""
        total = sum(fill.bytes for fill in fills)
        self.context.progress(
            f"preloading {total / 1e6:.0f} MB into {sum(len(f.partitions) for f in fills)} partitions"
        )
        followed = any(group.in_sync for group in self.scene.groups)
        preload(self.testbed.bootstrap, fills, acks="1" if followed else "all")
        if followed:
            written = {
                TopicPartition(fill.topic, p): fill.records_per_partition for fill in fills for p in fill.partitions
            }
            wait_for(
                lambda: self._not_at(written),
                lambda missing: not missing,
                timeout_s=REPLICATED_S,
                interval_s=0.2,
                what="everything to be on all replicas in sync",
            )

    def _not_at(self, written: Mapping[TopicPartition, int]) -> list[str]:
        """The first partitions whose high watermark is not at what was written."""
        ends = self.admin.end_offsets(written)
        return [f"{tp}: {ends.get(tp)} of {count}" for tp, count in written.items() if ends.get(tp) != count][:_SHOWN]

    def placed(self, groups: Sequence[Group]) -> Differences:
        """Whether every partition lies, is led and is in sync as the scenario has it."""
        states = self.admin.partitions(sorted({group.topic for group in groups}))
        wrong = misplaced(groups, states, self.ids)
        return Differences(not wrong, tuple(wrong[:_SHOWN]))

    def stage(self) -> Differences | None:
        """What is to be made ready after the calibration; returns where things lie then, None when nothing was."""
        return None

    def allowances(self) -> list[Allowance]:
        """What brokers may say in their logs because of what is done to them."""
        receiving = {host for group in self.scene.groups for host in group.adding}
        return [new_replicas(self.scene.topics, receiving), *during(self.setup.during.faults)]

    def watch(self) -> None:
        """Start all probes."""
        self.recorder.poll("cpu", 1.0, cpu_probe())
        watch_brokers(self.recorder, self.testbed.topology, self.testbed.hosts, self.scene.topics)
        watch_stores(self.recorder, self.testbed.topology, self.testbed.hosts)
        # Where all replicas are alone and nobody writes no ISR can shrink.
        if any(group.in_sync or group.inbound_bytes_per_s for group in self.scene.listed):
            self.recorder.poll(
                "in-sync replicas", ISR_POLL_S, partial(isr_samples, self.admin, self.scene.listed_topics)
            )

    def nics(self) -> tuple[NicMeasurement, ...]:
        """Measure every NIC, again if one is off; one that was not measured has no rate: nothing is judged with it."""
        self.context.progress("measuring the NICs, 2 s each way")
        topology = self.during.measured_topology(self.testbed.topology)
        try:
            return nic_measurements(topology, settled(partial(self.testbed.nics, topology=topology)))
        except TestbedError as error:
            self.recorder.event("note", "NICs were not measured", {"error": str(error)})
            return ()

    def calibrate(self) -> float | None:
        """Copy the calibration topic without a throttle; returns NIC bytes per byte of log, None when it failed."""
        self.context.progress("calibrating: an unthrottled transfer")
        group = self.scene.calibration
        target = group.adding[0]
        try:
            return calibrate(self.context, self.admin, plan([group], self.ids), group.topic, group.leader, target)
        except (DriverError, KafkaError) as error:
            # Without a factor NICs are not compared with logs: inconclusive, and that alone.
            self.recorder.event("note", "not calibrated", {"error": str(error)})
            return None

    def sizes(self) -> dict[TopicPartition, int]:
        """Bytes of the leaders' logs of the listed partitions, as they were sampled last."""
        found = {
            tp: self.recorder.latest(group.leader, "log.bytes", tp.topic, tp.partition)
            for group in self.scene.listed
            for tp in group.tps()
        }
        return {tp: int(value) for tp, value in found.items() if value is not None}

    # ---- the move

    def transfer(self, timeout_s: float) -> Transferred:
        """The move itself, the control with it, unlisted; what did not succeed is a fact, not an exception."""
        done = Done(False, "the move was not started")
        in_force = InForce(False, 0.0)
        control = [] if self.scene.control is None else self.scene.control.tps()
        listed = self.scene.listed_topics if self.scene.wildcard else ()
        able = of_software(self.testbed.topology)
        driver = Driver(self.admin, JournalFolder(), on_event=self.recorder.event, cancel_on_error=True, able=able)
        self.driver = driver
        begun = time.monotonic()
        try:
            with driver, self.polling_quotas():
                self.recorder.poll("lag", SAMPLE_S, self.lag_samples)
                groups = plan(self.scene.moving, self.ids)
                driver.execute(groups, self.setup.quota_bytes_per_s, unthrottled=control, wildcard=listed)
                in_force = InForce(True, time.monotonic() - begun)
                self.begun()
                timeline = driver.follow(self.on_poll, timeout_s=timeout_s, interval_s=LOOK_S)
                done = Done(True, f"seen {timeline.seconds:.1f} s after it was asked for")
        except (DriverError, ThrottleError, KafkaError, RestoreError, WaitTimeout) as error:
            # What was seen so far is judged all the same; the verdict says what is missing.
            if error is not driver.not_restored:
                done = Done(False, str(error))
                self.recorder.event("note", "the move was not done", {"error": str(error)})
        return Transferred(done, in_force, put_back(driver.restored, driver.not_restored))

    def begun(self) -> None:
        """The move was accepted: the control goes with it."""
        self.load.mark("during")
        self.control_begins()
        self.during.started(self)

    def control_begins(self) -> None:
        """From now on the control may be copied. Told once."""
        if self.scene.control is not None and not self._control_begun:
            self._control_begun = True
            self.recorder.event("control.started", self.scene.control.topic)

    def on_poll(self, poll: Poll) -> None:
        """Store how many partitions are in flight, tell when the control has arrived; then what is to happen.

        What gets no answer is told, and done at the next look.
        """
        self.recorder.add([Sample(poll.ts_us, DRIVER, "move.in_flight", float(poll.in_flight))])
        try:
            if not self._control_done and self.scene.control is not None and not self.control_left():
                self._control_done = True
                self.recorder.event("control.done", self.scene.control.topic)
            self.during.look(self, poll)
        except UnreachableError as error:
            self.recorder.event("note", "no answer", {"error": str(error)})

    def control_left(self) -> int:
        """How many partitions of the control have not arrived."""
        return 0 if self.scene.control is None else len(self.admin.reassignments([self.scene.control.topic]))

    def change_rate(self, rate_bytes_per_s: int) -> None:
        """Give the throttle another rate while the move goes on."""
        if self.driver is None:
            raise ThrottleError("the throttle's rate cannot be changed: no move has been started")
        self.driver.change_rate(rate_bytes_per_s)

    @contextlib.contextmanager
    def polling_quotas(self) -> Iterator[None]:
        """Ask every broker, within the block, which quota it has in force, and for which replicas.

        A sample's time is when it was asked for. The block ends before the configuration is put back, so that
        each answer within the move is about the throttle of the move.
        """

        pollers = [
            self.recorder.poll(f"quota of {host}", QUOTA_POLL_S, partial(self.quota_samples, host, broker))
            for host, broker in self.ids.items()
        ]
        try:
            yield
        finally:
            for poller in pollers:
                poller.stop()

    def quota_samples(self, host: str, broker: int) -> list[Sample]:
        """See `probes.quotas`."""
        throttle = self.throttle
        return quota_samples(self.admin, host, broker, {} if throttle is None else throttle.lists)

    @property
    def throttle(self) -> Throttle | None:
        """The throttle of the move; None before there is one."""
        return None if self.driver is None else self.driver.throttle

    def lag_samples(self) -> list[Sample]:
        """See `looks.lag_samples`."""
        return lag_samples(self.recorder, self.scene)

    def out_of_sync(self, host: str) -> list[TopicPartition]:
        """The listed partitions that `host` has a replica of, besides those it is being sent, and is not in sync with.

        What has moved away from it meanwhile does not count.
        """
        groups = [group for group in self.scene.listed if host in (group.leader, *group.in_sync)]
        wanted = [tp for group in groups for tp in group.tps()]
        try:
            states = self.admin.partitions(sorted({tp.topic for tp in wanted}))
        except UnreachableError:
            return wanted
        broker = self.ids[host]
        return [tp for tp in wanted if broker in states[tp].replicas and broker not in states[tp].isr]

    def led_as_planned(self) -> bool:
        """Whether every listed partition that has not moved away from its leader is led by it."""
        try:
            states = self.admin.partitions(list(self.scene.listed_topics))
        except UnreachableError:
            return False
        found = [(states[tp], self.ids[group.leader]) for group in self.scene.listed for tp in group.tps()]
        return all(state.leader == leader for state, leader in found if leader in state.replicas)

    # ---- after the move

    def broker_property(self, key: str, default: int) -> int:
        """A broker property that is the same on all hosts, as they were started with it."""
        properties: Mapping[str, str] = {
            **self.testbed.topology.brokers[0].properties,
            **self.testbed.state.overlay,
        }
        return int(properties.get(key, default))

    def audit(self) -> tuple[Records, LiveLoad | None]:
        """Read everything back and account for every record: of those written before the move, and of the load's."""
        self.context.progress("reading every record back")
        load = self.load.result
        found = audit(self.testbed.bootstrap, self.fills, () if load is None else load.written)
        if found.complaints:
            self.recorder.event("note", "what the audit found", {"first": list(found.complaints)})
        return preloaded(found), None if load is None else load.live(found)


def preloaded(found: Audit) -> Records:
    """The account of what was written before the move; what nobody wrote is counted as corrupt there."""
    before = [each for each in found.producers if each.name == PRELOAD_NAME]
    nobodys = found.corrupt - sum(each.corrupt for each in found.producers)
    return Records(
        expected=sum(each.acked for each in before),
        found=sum(each.found for each in before),
        lost=sum(each.lost for each in before),
        duplicated=sum(each.duplicated for each in before),
        corrupt=sum(each.corrupt for each in before) + nobodys,
    )


def put_back(restored: Restored | None, failed: TestbedError | None = None) -> Differences:
    """Whether the configuration is as it was before the throttle, and what somebody else had made of it.

    `failed` is why it is not.
    """
    if restored is None:
        problems = failed.problems if isinstance(failed, RestoreError) else () if failed is None else (str(failed),)
        return Differences(False, (*problems[:_SHOWN], "the configuration was not put back: see the journal"))
    return Differences(True, tuple(str(found) for found in restored.interferences))
