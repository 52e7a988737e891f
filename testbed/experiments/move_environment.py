"""The environment of one measured move: testbed, layout and load, and the operations that every move needs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from operator import not_

from results.contract.manifest import Differences, Fetch, LiveLoad, NicMeasurement, Records
from results.contract.network import FRAME_BYTES, FRAME_PAYLOAD_BYTES
from results.contract.relocation import Storage
from results.contract.schema import Sample
from results.contract.texts import plural
from results.contract.verdict import Direction
from testbed.errors import TestbedError
from testbed.experiments.experiment import Context
from testbed.experiments.layout import Layout, PartitionGroup, Placements, assignment, fills, misplaced, plan
from testbed.experiments.load import SHARED_ANSWER_S, ClientLoad
from testbed.experiments.load_shape import LoadShape
from testbed.experiments.mid_move_actions import MidMoveAction
from testbed.experiments.model_inputs import conversion_factor
from testbed.experiments.samplers import ISR_POLL_S, QUOTA_POLL_S, SAMPLE_S, isr_samples, lag_samples
from testbed.experiments.storage import SETTLED_S, SETTLED_TIMES, replication_s, topic_settings, upload_s
from testbed.kafka.admin import Admin
from testbed.kafka.capabilities import Capability, of_software
from testbed.kafka.errors import KafkaError, UnreachableError
from testbed.kafka.partitions import existing_partitions
from testbed.kafka.types import TopicPartition
from testbed.network.measure import LinkRate, settled
from testbed.probes.allow_list import Allowance, during, new_replicas, overtaken_batches
from testbed.probes.brokers import nic_measurements, quota_samples, watch_nodes, watch_other_clients, watch_stores
from testbed.probes.machine import machine_probe
from testbed.probes.recorder import now_us, stop_all
from testbed.reassignment.batching.batch import BatchLimits
from testbed.reassignment.batching.turn import Mode
from testbed.reassignment.driver import Driver, DriverError
from testbed.reassignment.plan import Plan
from testbed.throttle.journal import JournalFolder
from testbed.throttle.throttle import Throttle
from testbed.tiered.remote_log import RemoteLog
from testbed.tiered.topics import wait_local
from testbed.topology.host import DeclaredHost, node_ids
from testbed.topology.model import Topology
from testbed.units import format_size
from testbed.wait import WaitTimeout, wait_for
from testbed.workload.audit import Audit
from testbed.workload.connections import BATCH_BYTES
from testbed.workload.outcome import ProcessResult, WorkloadResult
from testbed.workload.preload import SHARED_BATCH_BYTES, audit, preload
from testbed.workload.producer_epochs import reader
from testbed.workload.records import Fill, WrittenRecords
from testbed.workload.replica_logs import with_replicas

PRELOAD_S, PRELOAD_BYTES_PER_S = 300.0, 10e6
"""The seconds in which the records of a preload are acknowledged, and the rate of the time that comes on top."""
REPLICATED_S, REPLICATED_TIMES = 120.0, 3
"""The seconds until the replicas in sync have a preload, and how many times its bytes ÷ NIC come on top."""
CALIBRATION_S = 60.0
ANSWERED_S = 30.0
"""The longest wait for a description of all partitions: three timeouts of the Admin client."""
PRELOAD_NAME = "preload"
"""The producer's name, in the audit, of the records written before a move."""
FULL_FRAMES = FRAME_BYTES / FRAME_PAYLOAD_BYTES
"""NIC bytes per payload byte in full frames: the factor for software without a calibration transfer."""
SHOWN = 10


@dataclass(frozen=True, slots=True)
class MoveSetup:
    """The layout of a move, its throttle (0: no throttle), its mode of execution, and the action during it."""

    layout: Layout
    throttle_bytes_per_s: int
    fetch: Fetch
    action: MidMoveAction
    nic_bound: bool = False
    mode: Mode = "unbatched"
    limits: BatchLimits = field(default_factory=BatchLimits)
    storage: Storage = "disk"
    local_bytes: int = 0
    """Bytes of all moving tiered partitions that stay on disk, in addition to the active segments."""
    returns: bool = False
    """Whether the partitions move back afterwards, without a throttle and under the same load."""
    load: LoadShape = field(default_factory=LoadShape)
    joining: tuple[DeclaredHost, ...] = ()
    """The brokers of the layout that join during the run. The load has half of its rate until `ClientLoad.rise`."""
    leaving: str = ""
    """The broker of the layout that leaves during the run; empty: none."""


class MoveEnvironment:
    """One move's testbed, recorder, Admin client, layout with this run's topic names, records and load."""

    def __init__(self, context: Context, setup: MoveSetup, admin: Admin) -> None:
        self.context, self.setup, self.admin = context, setup, admin
        self.testbed, self.recorder = context.testbed, context.recorder
        topology = self.testbed.topology
        brokers = (*topology.brokers, *setup.joining)
        self.ids = node_ids(brokers)
        token, seed = context.run_id[-6:], int.from_bytes(context.run_id.encode()[-4:])
        self.layout = setup.layout.named(token)
        self.fills = fills(self.layout.groups, seed)
        self.load = ClientLoad(
            self.testbed.bootstrap,
            self.layout,
            token,
            seed + len(self.fills),
            self.recorder,
            shape=setup.load,
            rises=bool(setup.joining),
            networks=self.testbed.client_networks(),
            answer_s=SHARED_ANSWER_S if setup.storage == "automq" else 0.0,
        )

    # ---- before the move

    def create(self) -> None:
        """Create all topics."""
        least = {"min.insync.replicas": str(self.layout.min_insync)} if self.layout.min_insync > 1 else {}
        least |= topic_settings(self.setup.storage, self.setup.local_bytes // max(1, self.layout.partitions))
        for topic, partitions in assignment(self.layout.groups, self.ids).items():
            self.admin.create_topic(topic, partitions, least if topic in self.layout.throttled_topics else {})

    def preload(self, fills: Sequence[Fill]) -> None:
        """Write the records of `fills` and wait until all replicas in sync have them. Raise `WaitTimeout` otherwise."""
        total, partitions = sum(fill.bytes for fill in fills), sum(len(fill.partitions) for fill in fills)
        self.context.progress(f"preloading {format_size(total, 3)} into {plural(partitions, 'partition')}")
        followed = any(group.in_sync for group in self.layout.groups)
        size = SHARED_BATCH_BYTES if self.setup.storage == "automq" else BATCH_BYTES
        preload(
            self.testbed.driver_bootstrap,
            fills,
            acks="1" if followed else "all",
            timeout_s=PRELOAD_S + total / PRELOAD_BYTES_PER_S,
            batch_bytes=size,
        )
        if followed:
            written = {
                TopicPartition(fill.topic, p): fill.records_per_partition for fill in fills for p in fill.partitions
            }
            what = "everything to be on all replicas in sync"
            timeout_s = REPLICATED_S + REPLICATED_TIMES * replication_s(self.layout, self.testbed.topology)
            wait_for(lambda: self._behind(written), not_, timeout_s, 0.2, what)

    def _behind(self, written: Mapping[TopicPartition, int]) -> list[str]:
        """Return the first partitions whose high watermark is not the number of written records."""
        ends = self.admin.end_offsets(written)
        return [f"{tp}: {ends.get(tp)} of {count}" for tp, count in written.items() if ends.get(tp) != count][:SHOWN]

    def settle(self) -> None:
        """Wait until the object store has all but a small part of tiered logs. Raise `WaitTimeout` otherwise."""
        if self.setup.storage != "tiered":
            return
        self.context.progress("waiting until the object store has the logs, and the disks less than a tenth of them")
        timeout_s = SETTLED_S + SETTLED_TIMES * upload_s(self.layout, self.testbed.topology)
        with RemoteLog(self.testbed.bootstrap) as remote:
            for topic in self.layout.throttled_topics:
                wait_local(self.admin, remote, topic, timeout_s=timeout_s)

    def start_sampling(self) -> None:
        """Start the probes of the machine, the brokers and the object stores, and the poll of in-sync replicas."""
        recorder, testbed, layout = self.recorder, self.testbed, self.layout
        recorder.poll("machine", 1.0, machine_probe(testbed.machine_shells))
        watch_nodes(recorder, testbed.topology, testbed.hosts, layout.topics)
        watch_stores(recorder, testbed.topology, testbed.hosts)
        # Without producers an ISR of one replica cannot shrink.
        if any(group.in_sync or group.inbound_bytes_per_s for group in layout.throttled):
            groups = [([self.ids[host] for host in group.current], group.tps()) for group in layout.throttled]
            placed = {tp: ids for ids, tps in groups for tp in tps}
            look = partial(isr_samples, self.admin, layout.throttled_topics, placed)
            recorder.poll("in-sync replicas", ISR_POLL_S, look)

    def watch_store_clients(self) -> None:
        """Poll the object stores' other clients. Brokers that join later are none."""
        testbed, grown = self.testbed, self.testbed.topology
        for host in self.setup.joining:
            grown = grown.with_host(host)
        watch_other_clients(self.recorder, grown, testbed.hosts, replace(testbed.plan, hosts=grown.by_number))

    def placed(self, groups: Sequence[PartitionGroup]) -> Differences:
        """Return whether replicas, leaders and ISRs match the layout, and the first differences."""
        states = self.admin.partitions(sorted({group.topic for group in groups}))
        wrong = misplaced(groups, states, self.ids)
        return Differences(not wrong, tuple(wrong[:SHOWN]))

    def placements(self) -> Placements:
        """Return the brokers of every partition of the cluster; nothing on shared storage.

        There a broker that leaves gives its partitions to others, also those that no plan names. A request without an
        answer is repeated, and so is one to a broker that does not know every partition yet. Return nothing, too, where
        none answers for `ANSWERED_S`: what is asked next says so.
        """
        if Capability.MOVES_DATA not in of_software(self.testbed.topology):
            return {}

        def described() -> Placements | None:
            try:
                states = existing_partitions(self.admin, self.admin.topics())
            except KafkaError:
                return None
            return {(tp, state.topic_id): frozenset(state.replicas) for tp, state in states.items()}

        with suppress(WaitTimeout):
            return wait_for(described, lambda found: found is not None, ANSWERED_S, SAMPLE_S, "all partitions") or {}
        return {}

    def allowances(self) -> list[Allowance]:
        """Return the broker log lines that the move and its action cause."""
        receiving = {host for group in self.layout.groups for host in group.adding}
        if self.setup.returns:
            receiving |= {host for group in self.layout.moving for host in group.current}
        allowed = [new_replicas(self.layout.topics, receiving), *during(self.setup.action.faults)]
        written = {group.topic for group in self.layout.groups if group.inbound_bytes_per_s}
        return [*allowed, overtaken_batches(written, self.ids)] if written else allowed

    def nics(self) -> tuple[NicMeasurement, ...]:
        """Measure every NIC, twice if one deviates. A NIC without measurement has no rate: its criteria are skipped."""
        self.context.progress("measuring the NICs, 2 s each way")
        topology = self.setup.action.measured_topology(self.testbed.topology)
        return self._measured(topology, lambda: settled(partial(self.testbed.nics, topology=topology)))

    def joined_nics(self) -> tuple[NicMeasurement, ...]:
        """Measure the NICs of the brokers that have joined; see `nics`."""
        ways: tuple[Direction, ...] = ("transmit", "receive")
        own = {(host.name, nic.name, way) for host in self.setup.joining for nic in host.nics for way in ways}
        if not own:
            return ()
        return self._measured(
            self.testbed.topology,
            lambda: [rate for rate in settled(lambda only: self.testbed.nics(only or own)) if rate.end in own],
        )

    def _measured(self, topology: Topology, measure: Callable[[], Sequence[LinkRate]]) -> tuple[NicMeasurement, ...]:
        try:
            return nic_measurements(topology, measure())
        except TestbedError as error:
            self.recorder.event("note", "NICs were not measured", {"error": str(error)})
            return ()

    def calibrate(self) -> float | None:
        """Copy the calibration topic without a throttle; return NIC bytes per byte of log, None on failure."""
        if self.setup.storage == "automq":
            self.recorder.event("calibration.done", "nothing is copied between brokers")
            return FULL_FRAMES
        self.context.progress("calibrating: an unthrottled transfer")
        group, recorder = self.layout.calibration, self.recorder
        recorder.wait_for_all()
        begun = now_us()
        recorder.event("calibration.started", group.topic)
        try:
            with Driver(self.admin, JournalFolder(), cancel_on_error=True) as driver:
                driver.execute(plan([group], self.ids), None)
                driver.follow(timeout_s=CALIBRATION_S, interval_s=0.2)
        except (DriverError, KafkaError) as error:
            # Without a factor only the criteria that compare NICs with logs are inconclusive.
            recorder.event("note", "not calibrated", {"error": str(error)})
            return None
        ended = now_us()
        recorder.event("calibration.done", group.topic)
        recorder.wait_for_all()
        return conversion_factor(
            recorder.samples(),
            source=group.leader,
            target=group.adding[0],
            topic=group.topic,
            begun_us=begun,
            ended_us=ended,
        )

    def sizes(self) -> dict[TopicPartition, int]:
        """Return the bytes of the leaders' logs of the throttled partitions, from the latest samples."""
        found = {
            tp: self.recorder.latest(group.leader, "log.bytes", tp.topic, tp.partition)
            for group in self.layout.throttled
            for tp in group.tps()
        }
        return {tp: int(value) for tp, value in found.items() if value is not None}

    # ---- during the move

    def throttled_plan(self) -> Plan:
        """Return the plan of the throttled groups, without the control."""
        return plan(self.throttled_groups(), self.ids)

    def throttled_groups(self) -> list[PartitionGroup]:
        """Return the throttled groups that move."""
        return [group for group in self.layout.moving if group is not self.layout.control]

    def control_left(self) -> int:
        """Return the number of partitions of the control transfer that are still being reassigned."""
        return 0 if self.layout.control is None else len(self.admin.reassignments([self.layout.control.topic]))

    @contextmanager
    def throttle_polls(self, throttle: Callable[[], Throttle | None]) -> Iterator[None]:
        """Poll, within the block, the quota in force on every broker and the replicas that its lists lack.

        The block ends before the driver restores the configuration: every answer within the move describes its
        throttle. The lag is polled until the recorder stops.
        """

        def quota(host: str, broker: int) -> list[Sample]:
            current = throttle()
            return quota_samples(self.admin, host, broker, {} if current is None else current.lists)

        pollers = [
            self.recorder.poll(f"quota of {host}", QUOTA_POLL_S, partial(quota, host, broker))
            for host, broker in self.ids.items()
        ]
        self.recorder.poll("lag", SAMPLE_S, partial(lag_samples, self.recorder, self.layout))
        try:
            yield
        finally:
            stop_all(pollers)

    def out_of_sync(self, host: str) -> list[TopicPartition]:
        """Return the throttled partitions with an existing replica on `host` that is out of sync.

        Partitions that have moved away from the host do not count. Those that the broker which answers does not know
        count: the state of their replicas is unknown.
        """
        return self.not_in_sync(
            host, [group for group in self.layout.throttled if host in (group.leader, *group.in_sync)]
        )

    def not_in_sync(self, host: str, groups: Sequence[PartitionGroup]) -> list[TopicPartition]:
        """Return the partitions of `groups` whose replica on `host` is out of sync, or in an unknown state."""
        wanted = [tp for group in groups for tp in group.tps()]
        try:
            states = existing_partitions(self.admin, sorted({tp.topic for tp in wanted}))
        except UnreachableError:
            return wanted
        broker = self.ids[host]
        # A broker that has just started may answer before it knows every partition.
        return [
            tp
            for tp in wanted
            if (state := states.get(tp)) is None or (broker in state.replicas and broker not in state.isr)
        ]

    def led_as_planned(self) -> bool:
        """Return whether the layout's leader leads every throttled partition of which it still has a replica."""
        try:
            states = existing_partitions(self.admin, self.layout.throttled_topics)
        except UnreachableError:
            return False
        found = [(states.get(tp), self.ids[group.leader]) for group in self.layout.throttled for tp in group.tps()]
        return all(
            state is not None and (state.leader == leader or leader not in state.replicas) for state, leader in found
        )

    # ---- after the move

    def end_sampling(self) -> None:
        """Stop the recorder once the last sample of each host is later than those of the others that show the end."""
        self.recorder.wait_for_all()
        self.recorder.wait_for_all()
        self.recorder.stop()

    def audit(
        self, more: Sequence[WrittenRecords] = (), readers: Sequence[ProcessResult] = ()
    ) -> tuple[Records | None, LiveLoad | None]:
        """Read all records back; return the account of the preloaded records and of the load with `more` producers.

        The load's account has what its consumers and further `readers` were given. Without a load it has `more` and
        `readers` alone. Where leaders do not answer there is no account, and an event says why.
        """
        self.context.progress("reading every record back")
        load = self.load.result
        if load is None and (more or readers):
            load = WorkloadResult(())
        written = (*(() if load is None else load.written), *more)
        try:
            found = audit(
                self.testbed.driver_bootstrap,
                self.fills,
                written,
                batches=reader(self.testbed, self.admin),
                by_time=self.setup.storage == "disk",
                remote=self.setup.storage != "disk",
            )
        except TestbedError as error:
            # Everything else that was found of the move stands.
            self.recorder.event("note", "the records were not read back", {"why": str(error)})
            self.context.progress(f"the records were not read back: {error}")
            return None, None if load is None else load.live(None)
        if found.complaints:
            self.recorder.event("note", "what the audit found", {"first": list(found.complaints)})
        filled, shared = [each for fill in self.fills for each in fill.written()], self.setup.storage == "automq"
        live = None if load is None else load.live(found, more=more, others=filled, readers=readers, shared=shared)
        return self._with_replicas(preloaded(found)), live

    def _with_replicas(self, records: Records) -> Records:
        """Return the account with the replicas whose logs differ; unchanged where brokers' disks have no whole logs."""
        if self.setup.storage != "disk":
            return records
        self.context.progress("comparing the logs of all replicas")
        return with_replicas(records, self.testbed, self.admin, self.layout.topics, in_sync=True)


def preloaded(found: Audit) -> Records:
    """Return the account of the preloaded records. Records of an unknown producer count as corrupt.

    The preload's client never repeats a request, and a broker appends the requests of one connection in their order.
    So none may be doubled or out of order.
    """
    before = [each for each in found.producers if each.name == PRELOAD_NAME]
    unknown = found.corrupt - sum(each.corrupt for each in found.producers)
    return Records(
        expected=sum(each.acked for each in before),
        found=sum(each.found for each in before),
        lost=sum(each.lost for each in before),
        duplicated=sum(each.duplicated for each in before),
        corrupt=sum(each.corrupt for each in before) + unknown,
        reordered=sum(each.reordered for each in before),
        first=(*(line for each in before for line in each.first), *found.of_none)[:SHOWN],
        foreign=found.foreign,
    )
