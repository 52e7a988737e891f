"""A move without a throttle, under load: its parameters, the order of its run, and the record of the sent bytes."""

import math
import string
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from results.contract.handover import HandoverRecord
from results.contract.manifest import Facts, NicMeasurement
from results.contract.relocation import ColdRead, Membership, Relocation, Sent
from results.contract.texts import plural
from testbed.errors import UsageError
from testbed.experiments.experiment import (
    Context,
    Experiment,
    ExperimentResult,
    Hosts,
    Parameter,
    Settings,
    SuiteScenario,
    above_zero,
    number,
    whole,
)
from testbed.experiments.kip73_layouts import side
from testbed.experiments.layout import Layout, PartitionGroup, most_replicas, stored_bytes
from testbed.experiments.load import ALONE_S, MOST_OF_NIC, check_load, load_shares
from testbed.experiments.load_shape import LoadShape, in_logs, load_shape, shape_parameters, with_shape
from testbed.experiments.mid_move_actions import MidMoveAction
from testbed.experiments.model_inputs import instant
from testbed.experiments.move_environment import MoveEnvironment, MoveSetup
from testbed.experiments.new_leader_uploads import NewLeaderUploads
from testbed.experiments.reassignment_run import LogSizes, ReassignmentRun, unbatched_run
from testbed.experiments.storage import check_size, check_storage, log_bytes_of, storage_of, storage_parameter
from testbed.experiments.throttled_move import check_brokers, inbound, no_action
from testbed.experiments.throttled_run import PARTITION_S
from testbed.network.shape import payload_bytes_per_s
from testbed.probes.allow_list import during
from testbed.provision.membership import joining_brokers, require_can_leave, require_local
from testbed.topology.links import Link
from testbed.topology.model import Topology
from testbed.units import format_size, parse_size
from testbed.workload.outcome import ProcessResult
from testbed.workload.records import WrittenRecords

CALIBRATION_BYTES = 16_000_000


class RunActivity:
    """An activity of a run besides its move. The base does nothing. The run calls these methods in this order."""

    faults: frozenset[str] = frozenset()
    """The kinds of the injected faults: brokers may log the lines that these cause."""
    handover: HandoverRecord | None = None
    """The steps of the handover on shared storage, after the move; None without one."""
    membership: Membership | None = None
    """The broker that joined or left, after the move; None without one."""

    def load_started(self) -> None:
        """Act when the load has started, before it runs alone."""

    def before_move(self) -> None:
        """Act immediately before the move."""

    @contextmanager
    def around_move(self) -> Iterator[None]:
        """Surround the move."""
        yield

    def after_move(self) -> None:
        """Act immediately after the move, before the load runs alone again."""

    def cold_read(self) -> ColdRead | None:
        """Return the reads of a consumer from the beginning, after the load has run alone; None without one."""
        return None

    def close(self) -> None:
        """Undo the activity's remaining changes to the testbed, and stop its processes."""

    def written(self) -> Sequence[WrittenRecords]:
        """Return further records for the audit."""
        return ()

    def readers(self) -> Sequence[ProcessResult]:
        """Return the consumers besides the load's, which have ended, for the account of what they were given."""
        return ()


MakeActivity = Callable[[ReassignmentRun], RunActivity]


def run_unthrottled_move(
    context: Context,
    setup: MoveSetup,
    activities: Sequence[MakeActivity] = (),
    *,
    after_s: float = ALONE_S,
) -> ExperimentResult:
    """Prepare, measure, move, audit; return the result. A failure is part of the result, not an exception.

    The load runs alone for `after_s`, also before.
    """
    recorder = context.recorder
    brokers = (*context.testbed.topology.brokers, *setup.joining)
    with context.testbed.admin() as admin, ExitStack() as stack:
        run = stack.enter_context(unbatched_run(context, setup, admin))
        environment, load = run.environment, run.environment.load
        watch = run.watch_logs()
        active = [make(run) for make in activities]
        for each in active:
            stack.callback(each.close)
            watch.allow(*during(each.faults))
        with recorder.step("prepare"):
            leaders = run.preparation.prepare()
        environment.start_sampling()
        environment.watch_store_clients()
        with recorder.step("measure NICs"):
            nics = environment.nics()
        with recorder.step("calibrate"):
            factor = run.preparation.calibrate()
        recorder.wait_for_all()  # the sizes of the calibration's logs at their source
        with setup.action.around(run), load:
            for each in active:
                each.load_started()
            load.warm()
            run_alone(environment, "before", after_s)
            for each in active:
                each.before_move()
            # A broker joins before the move, for up to a minute in which clients write: the logs are larger afterwards.
            sent = sent_logs(environment, environment.sizes())
            taken = max(load_shares(environment.layout, brokers, setup.storage).values(), default=0.0)
            total, local = sum(each.total_bytes for each in sent), sum(each.local_bytes or 0 for each in sent)
            context.progress(
                f"moving {plural(sum(each.partitions for each in sent), 'partition')}, {format_size(total, 3)}, "
                f"of which {format_size(local, 3)} on disks"
            )
            uploads = NewLeaderUploads(environment) if setup.storage == "tiered" and not load.idle else None
            with recorder.step("move"), ExitStack() as around:
                for each in active:
                    around.enter_context(each.around_move())
                moved = run.transfer(_timeout_s(sent, nics, context.testbed.topology.uplinks.values(), taken))
            events = recorder.events()
            started_us, done_us = instant(events, "move.started"), instant(events, "move.done")
            if started_us is not None and done_us is not None:
                context.progress(f"moved in {(done_us - started_us) / 1e6:.1f} s")
            if uploads is not None:
                uploads.move_ended()
            for each in active:
                each.after_move()
            run_alone(environment, "after", after_s)
            cold = next(filter(None, [each.cold_read() for each in active]), None)
            if uploads is not None:
                uploads.close_segments()
        environment.end_sampling()
        nics = (*nics, *environment.joined_nics())
        records, live = environment.audit(
            [written for each in active for written in each.written()],
            [reader for each in active for reader in each.readers()],
        )
        logs = watch.logs()
    handover = next(filter(None, [each.handover for each in active]), None)
    membership = next(filter(None, [each.membership for each in active]), None)
    return ExperimentResult(
        nics=nics,
        facts=Facts(records=records, leaders=leaders, done=moved.done, logs=logs, live=live, handover=handover),
        relocation=Relocation(
            storage=setup.storage,
            brokers=tuple(environment.ids),
            stores=tuple(host.name for host in context.testbed.topology.objectstores),
            sent=sent,
            nic_bytes_per_log_byte=factor,
            written_bytes_per_s=0.0 if live is None else log_growth(environment.layout, setup.load),
            balanced=bool(setup.joining or setup.leaving),
            cold=cold,
            membership=membership,
            uploads=None if uploads is None else uploads.compare(),
        ),
    )


def run_alone(environment: MoveEnvironment, name: str, seconds: float = ALONE_S) -> None:
    """Mark an instant, and let the load run without a move, so that its latencies and costs can be compared."""
    environment.load.mark(name)
    if environment.load.idle:
        environment.recorder.event(f"load.{name}", "load")
    threading.Event().wait(seconds)  # the load is measured for this time: there is no condition to wait for


def sent_logs(environment: MoveEnvironment, sizes: LogSizes) -> tuple[Sent, ...]:
    """Return the bytes that each leader has to send to each host, from the leaders' log sizes before the move."""
    storage, calibration = environment.setup.storage, environment.layout.calibration
    logs = [
        environment.recorder.latest(calibration.leader, "log.bytes", tp.topic, tp.partition) for tp in calibration.tps()
    ]
    like = sum(log for log in logs if log is not None) if None not in logs else None
    found = []
    for group in environment.layout.throttled:
        local: int | None = sum(sizes.get(tp, 0) for tp in group.tps())
        if storage == "automq":
            local = 0  # AutoMQ keeps no log on a disk
        elif any(tp not in sizes for tp in group.tps()):
            local = None
        total = log_bytes_of(group.bytes, calibration.bytes, like)
        if storage == "disk" and local is not None:
            total = local
        found += [Sent(group.leader, each, len(group.partitions), total, local) for each in group.adding]
    return tuple(found)


def log_growth(layout: Layout, shape: LoadShape) -> float:
    """Return the most bytes per second by which logs grow under the load: a codec need not save what it can."""
    return in_logs(layout, replace(shape, redundancy=0.0)).inbound_bytes_per_s


def _timeout_s(
    sent: Sequence[Sent], nics: Sequence[NicMeasurement], uplinks: Iterable[Link] = (), taken: float = 0.0
) -> float:
    """Return the timeout in seconds: 90 s, five times that of the logs over the slowest link, and some a partition.

    The load takes the part `taken` of it, and leaves the rest.
    """
    rates = [nic.payload_bytes_per_s for nic in nics if nic.payload_bytes_per_s]
    rates += [payload_bytes_per_s(min(link.tx_bps, link.rx_bps)) for link in uplinks]
    left_bytes_per_s = min(rates, default=10e6) * (1 - min(taken, MOST_OF_NIC))
    partitions_s = PARTITION_S * sum(each.partitions for each in sent)
    return 90.0 + 5 * sum(each.total_bytes for each in sent) / left_bytes_per_s + partitions_s


# ---- experiments


RECORD_SIZE = "record-size"
"""The name of the load's parameter `size` where `size` is that of the data."""


def parameters(*more: Parameter, partitions: str = "10") -> list[Parameter]:
    """Return the parameters of every move without a throttle, and `more`."""
    return [
        storage_parameter(),
        Parameter(
            "size", "300MB", above_zero(parse_size), "bytes of all partitions that move, written before the move"
        ),
        Parameter("partitions", partitions, whole(1, 2000), "how many partitions there are"),
        inbound("500kB/s"),
        *shape_parameters(RECORD_SIZE),
        *more,
    ]


def unthrottled_layout(groups: Sequence[PartitionGroup], source: str, target: str) -> Layout:
    """Return the layout of these groups, with a calibration from `source` to `target`."""
    return Layout(tuple(groups), calibration=side("calibration", source, target, CALIBRATION_BYTES))


def unthrottled_experiment(
    name: str,
    summary: str,
    *,
    brokers: int,
    topology: str,
    automq_topology: str,
    parameters: Sequence[Parameter],
    layout: Callable[[Settings, Hosts], Layout],
    profiles: Mapping[str, Mapping[str, str]],
    criteria: Sequence[str],
    activities: Callable[[Settings], Sequence[MakeActivity]],
    after_s: float = ALONE_S,
    suites: Sequence[SuiteScenario],
    action: Callable[[Settings, Hosts], MidMoveAction] = no_action,
    joining: int = 0,
    leaves: bool = False,
) -> Experiment:
    """Return an experiment from its activities and its layout, which receives the settings and the brokers' hosts.

    The last `joining` of these hosts are no part of the topology: they join during the run. `brokers` does not count
    them. With `leaves` the last host leaves.
    """

    def planned(settings: Settings, hosts: Hosts) -> Layout:
        found = with_shape(layout(settings, hosts), load_shape(settings, RECORD_SIZE))
        if not found.moving:
            raise UsageError(f"with partitions={number(settings, 'partitions'):g} no partition moves; give more")
        return found

    letters = string.ascii_uppercase[: brokers + joining]

    def overlay(settings: Settings) -> Mapping[str, str]:
        # These raise for contradictory settings before the provisioning.
        planned(settings, letters)
        action(settings, letters[:brokers])
        check_size(storage_of(settings), number(settings, "size"), math.ceil(number(settings, "partitions")))
        return {}

    def check(found: Topology, settings: Settings) -> None:
        check_brokers(name, found, brokers, automq_topology if storage_of(settings) == "automq" else topology)
        check_storage(storage_of(settings), found)
        action(settings, [host.name for host in found.brokers]).check(found)
        if joining:
            require_local(found, found.name)
        if leaves:
            require_can_leave(found, found.brokers[-1].name, found.name)
        present = (*found.brokers, *joining_brokers(found, joining))
        placed = planned(settings, [host.name for host in present])
        check_load(placed, load_shape(settings, RECORD_SIZE), present, storage_of(settings))

    def run(context: Context) -> ExperimentResult:
        topology = context.testbed.topology
        more = joining_brokers(topology, joining)
        hosts = [host.name for host in (*topology.brokers, *more)]
        setup = MoveSetup(
            layout=planned(context.settings, hosts),
            throttle_bytes_per_s=0,
            fetch="default",
            action=action(context.settings, hosts[:brokers]),
            storage=storage_of(context.settings),
            load=load_shape(context.settings, RECORD_SIZE),
            joining=more,
            leaving=hosts[-1] if leaves else "",
        )
        return run_unthrottled_move(context, setup, activities(context.settings), after_s=after_s)

    return Experiment(
        name=name,
        summary=summary,
        topology=topology,
        parameters=tuple(parameters),
        profiles=profiles,
        overlay=overlay,
        run=run,
        check=check,
        suites=suites,
        criteria=criteria,
        replicas=lambda settings: most_replicas(planned(settings, letters)),
        stored=lambda settings: stored_bytes(planned(settings, letters)),
        automq_topology=automq_topology,
    )
