"""The run of a throttled move: the order of its steps, the return without a throttle, and the record of the move."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from results.contract.manifest import Facts, Move
from results.contract.schema import Sample
from results.contract.verdict import DIRECTIONS, Direction
from results.criteria.quantities import DRIVER
from testbed.experiments.experiment import Context, ExperimentResult
from testbed.experiments.layout import Layout, carried, expected, fetchers, kip73_estimate
from testbed.experiments.load import MOST_OF_NIC, carries, load_shares
from testbed.experiments.load_shape import in_logs
from testbed.experiments.model_inputs import inbound_rates, instant, predicted_seconds, round_trips, throttles
from testbed.experiments.move_driver import UNTHROTTLED_LOOK_S
from testbed.experiments.move_environment import MoveEnvironment, MoveSetup
from testbed.experiments.quota_settings import QuotaSettings, in_force, quota_settings
from testbed.experiments.reassignment_run import LogSizes, MakeRun, ReassignmentRun, unbatched_run
from testbed.kafka.capabilities import of_software
from testbed.kafka.errors import KafkaError
from testbed.kafka.types import TopicPartition
from testbed.network.shape import payload_bytes_per_s
from testbed.probes.brokers import sampled_bps, sampled_nic
from testbed.reassignment.driver import Driver, DriverError
from testbed.reassignment.plan import Plan
from testbed.reassignment.progress import Poll
from testbed.throttle.duration import Share, seconds, seconds_over
from testbed.throttle.journal import JournalFolder
from testbed.throttle.quota_window import BURST_BYTES_PER_S
from testbed.throttle.recovery import RestoreError
from testbed.topology.model import Topology
from testbed.units import format_byte_rate, format_size
from testbed.wait import WaitTimeout

EVENTS = {"move.started": "return.started", "move.done": "return.done"}
"""The driver's event → the return's: the events of the measured move stay the only ones of their kinds."""
PARTITION_S = 0.05
"""Seconds of the timeout for each partition: on two cores 2,000 partitions took 0.026 s each beyond the quota's time
(docs/measurements/scale.md)."""
RETURN_S, RETURN_TIMES = 90.0, 3
"""The longest wait for the end: seconds, and how many times the bytes ÷ NIC come on top."""


def return_plan(environment: MoveEnvironment) -> Plan:
    """Return the plan that gives every throttled partition that has moved its replicas of before the move."""
    groups, ids = environment.throttled_groups(), environment.ids
    return Plan({tp: tuple(ids[host] for host in group.current) for group in groups for tp in group.tps()})


def move_back(environment: MoveEnvironment) -> None:
    """Move the throttled partitions back, and wait until they have arrived. A failure is an event, not an exception."""
    recorder, able = environment.recorder, of_software(environment.testbed.topology)

    def record(kind: str, name: str, detail: Mapping[str, Any]) -> None:
        recorder.event(EVENTS.get(kind, kind), name, detail)

    def on_poll(poll: Poll) -> None:
        recorder.add([Sample(poll.ts_us, DRIVER, "return.in_flight", float(poll.in_flight))])

    environment.context.progress("moving the partitions back without a throttle, to compare")
    try:
        with Driver(environment.admin, JournalFolder(), on_event=record, cancel_on_error=True, able=able) as driver:
            driver.execute(return_plan(environment), None)
            driver.follow(on_poll, timeout_s=return_s(environment), interval_s=UNTHROTTLED_LOOK_S)
    except (DriverError, KafkaError, RestoreError, WaitTimeout) as error:
        # Only the comparison is lost: the measured move is over.
        recorder.event("note", "not moved back", {"error": str(error)})


def return_s(environment: MoveEnvironment) -> float:
    """Return the longest wait for the end of the return, in seconds."""
    return RETURN_S + RETURN_TIMES * _links_s(environment, carried(environment.layout, environment.ids))


def run_throttled_move(context: Context, setup: MoveSetup, make: MakeRun = unbatched_run) -> ExperimentResult:
    """Prepare, measure, move, restore, audit; return the result. A failure is part of the result, not an exception."""
    recorder = context.recorder
    with context.testbed.admin() as admin, make(context, setup, admin) as run:
        environment, load = run.environment, run.environment.load
        quota = quota_settings(in_force(admin, environment.ids))
        watch = run.watch_logs()
        with recorder.step("prepare"):
            leaders = run.preparation.prepare()
        environment.start_sampling()
        with setup.action.around(run):
            with recorder.step("measure NICs"):
                nics = environment.nics()
            with recorder.step("calibrate"):
                factor = run.preparation.calibrate()
            with recorder.step("stage"):
                leaders = run.preparation.complete() or leaders
            with load:
                load.warm()
                load.alone("before")
                sizes = environment.sizes()
                _announce(environment, sizes)
                with recorder.step("move"):
                    moved = run.transfer(_timeout_s(run, sizes))
                load.alone("after")
                if setup.returns and moved.done.ok and not load.idle:
                    move_back(environment)
                    load.mark("returned")
                    load.catch_up()
            environment.end_sampling()
        run.read_log()
        records, live = environment.audit()
        logs = watch.logs()
    missing = setup.action.missing()
    if missing and moved.done.ok:
        recorder.event("note", "not what the scenario is about", {"why": f"the move was over before: {missing}"})
    facts = Facts(
        records=records,
        restored=moved.restored,
        leaders=leaders,
        # A move that ended before its action proves nothing.
        done=None if missing and moved.done.ok else moved.done,
        in_force=moved.in_force,
        logs=logs,
        live=live,
        batching=moved.batching,
    )
    return ExperimentResult(nics, _move_record(run, sizes, factor, quota), facts)


def _announce(environment: MoveEnvironment, sizes: LogSizes) -> None:
    layout, throttle = environment.layout, environment.setup.throttle_bytes_per_s
    total = sum(sizes.get(tp, 0) * len(group.adding) for group in layout.throttled for tp in group.tps())
    due_s = seconds(carried(layout, environment.ids, sizes), throttle)
    about = f"about {due_s:.0f} s" if math.isfinite(due_s) else "which never ends: more comes in than that"
    environment.context.progress(f"moving {format_size(total, 3)} at {format_byte_rate(throttle, 3)}, {about}")


def _timeout_s(run: ReassignmentRun, sizes: LogSizes) -> float:
    """Return the timeout: three times that of throttle or link, a minute, the rests, and time for each partition."""
    environment, layout = run.environment, run.environment.layout
    slowest = run.action.slowest_bytes_per_s or environment.setup.throttle_bytes_per_s
    phases = [(run.action.waits_s, environment.setup.throttle_bytes_per_s), (math.inf, slowest)]
    shares = carried(in_logs(layout, environment.setup.load), environment.ids, sizes)
    moved_s = max(seconds_over(shares, phases), _links_s(environment, shares))
    return 3 * moved_s + 60 + run.model.idle_s + PARTITION_S * layout.partitions


def _links_s(environment: MoveEnvironment, shares: Sequence[Share]) -> float:
    """Return the seconds for which the busiest NIC or uplink carries the bytes; the load takes its part of a NIC."""
    layout, topology = environment.layout, environment.testbed.topology
    hosts = {broker: topology.host(host) for host, broker in environment.ids.items()}
    taken = load_shares(layout, topology.brokers, environment.setup.storage)
    found = [0.0]
    for share in shares:
        host = hosts[share.broker]
        nic = sampled_nic(host)
        left = 1 - min(taken.get((host.name, nic.name, share.direction), 0.0), MOST_OF_NIC)
        found.append(share.bytes / (left * carries(nic, share.direction)))
    found += [size / carries(topology.uplinks[rack], way) for (rack, way), size in crossing(layout, topology).items()]
    return max(found)


def crossing(layout: Layout, topology: Topology) -> Mapping[tuple[str, Direction], int]:
    """Return the throttled bytes through each shaped uplink: rack and direction → bytes. Pure."""
    found: Counter[tuple[str, Direction]] = Counter()
    for group in layout.throttled:
        for follower in group.adding:
            racks = topology.host(group.leader).rack, topology.host(follower).rack
            for rack, direction in zip(racks, DIRECTIONS, strict=True):
                if racks[0] != racks[1] and rack in topology.uplinks:
                    found[rack, direction] += group.bytes
    return found


def _move_record(run: ReassignmentRun, sizes: LogSizes, factor: float | None, quota: QuotaSettings) -> Move:
    """Return the manifest's record of the move: its request, and the estimates of the model and of KIP-73."""
    environment, model = run.environment, run.model
    layout, setup, events = environment.layout, environment.setup, run.recorder.events()
    leaders = {tp: group.leader for group in layout.throttled for tp in group.tps()}
    inbound: dict[TopicPartition, float] = {}
    begun, ended = instant(events, "load.before"), instant(events, "move.done")
    if begun is not None and ended is not None:
        inbound = inbound_rates(run.recorder.samples(), leaders, begun, ended)
    shares = model.carried(sizes, inbound)
    in_turn = throttles(events, setup.throttle_bytes_per_s)
    slowest_bps = min(rate for host in run.testbed.topology.brokers for rate in sampled_bps(host))
    line = min(float(BURST_BYTES_PER_S), payload_bytes_per_s(slowest_bps))
    model_s, why = predicted_seconds(layout, environment.ids, shares, in_turn, line, quota.window), model.no_model
    if not math.isfinite(model_s):
        why = why or f"under {format_byte_rate(in_turn[-1][1], 3)} it never ends: more comes in than that"
    estimates = [kip73_estimate(layout, throttle, sizes, inbound) for _seconds, throttle in in_turn]
    estimate = next((each for each in estimates if math.isfinite(each.seconds)), estimates[-1])
    return Move(
        quota_bytes_per_s=setup.throttle_bytes_per_s,
        fetch=setup.fetch,
        response_max_bytes=quota.response_max_bytes,
        nic_bytes_per_log_byte=factor,
        fetchers=fetchers(layout, quota.fetchers),
        brokers=tuple(environment.ids),
        flows=model.flows(),
        total_log_bytes=estimate.total_log_bytes,
        move_ratio=estimate.move_ratio,
        # The estimate of the first throttle above the inbound rate; 0 means no estimate.
        kip73_seconds=estimate.seconds if math.isfinite(estimate.seconds) else 0.0,
        window_samples=quota.window.samples,
        sample_s=quota.window.sample_s,
        # From then on the window is full.
        warmup_s=quota.window.seconds + quota.window.sample_s,
        expected=expected(shares, environment.ids),
        model_seconds=None if why else model_s,
        model_why=why,
        inbound_bytes_per_s=estimate.max_bytes_in_per_s,
        nic_bound=setup.nic_bound,
        wildcard=layout.wildcard,
        min_insync=layout.min_insync,
        batches_s=() if why else model.batches_s(sizes, in_turn),
        round_trips=round_trips(run.testbed.topology, layout, quota.response_max_bytes, quota.buffers),
    )
