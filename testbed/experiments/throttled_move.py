"""An experiment with a throttled move: its parameters, and what they and the topology must be.

`throttled_experiment` makes an experiment from a layout and an action.
"""

import math
import string
from collections.abc import Callable, Mapping, Sequence
from typing import get_args

from results.contract.texts import plural
from results.contract.verdict import Direction
from results.criteria.judgement import catalogue
from testbed.errors import UsageError
from testbed.experiments.batched_move import batched_run
from testbed.experiments.experiment import (
    Context,
    Experiment,
    ExperimentResult,
    Hosts,
    Parameter,
    Settings,
    SuiteScenario,
    Value,
    above_zero,
    number,
    one_of,
    or_none,
    whole,
)
from testbed.experiments.layout import RECORD_BYTES, Layout, carried, most_replicas, stored_bytes
from testbed.experiments.load import carries, check_load, client_rates
from testbed.experiments.load_shape import LoadShape, in_logs, load_shape, shape_parameters, with_shape
from testbed.experiments.mid_move_actions import MidMoveAction
from testbed.experiments.move_environment import MoveSetup
from testbed.experiments.quota_settings import declared, quota_settings
from testbed.experiments.reassignment_run import MakeRun, unbatched_run
from testbed.experiments.storage import check_storage, mostly_remote, storage_of, storage_parameter, topology_with
from testbed.experiments.throttled_run import crossing, run_throttled_move
from testbed.kafka.capabilities import Capability
from testbed.kafka.node import FETCH_TUNED
from testbed.kafka.types import PartitionMove
from testbed.probes.brokers import sampled_nic
from testbed.provision.testbed import Testbed
from testbed.reassignment.batching.batch import BatchLimits
from testbed.reassignment.batching.turn import Mode
from testbed.throttle.configs import ThrottleError, wanted_configs
from testbed.throttle.duration import seconds
from testbed.topology.host import node_ids
from testbed.topology.links import Link, NicUse
from testbed.topology.model import Topology
from testbed.units import format_byte_rate, format_size, parse_byte_rate, parse_duration, parse_size

NEEDS = frozenset({Capability.THROTTLES_REPLICATION, Capability.MOVES_DATA, Capability.LISTS_REASSIGNMENTS})
PARTITIONS = 100
TOPOLOGIES = {2: "two-brokers", 3: "three-brokers", 4: "four-brokers", 8: "eight-brokers", 10: "ten-brokers"}
MODES: tuple[Mode, ...] = get_args(Mode)
STEPS = ("replicas", "reassignment-batch-size", "leaders", "per-broker", "starts")
"""The parameters that limit steps: R, P, L, the replicas in copy to one broker, the steps that begin in one turn."""
RELEASE = {"preload": "120s"}
BRIEF = ("fetch=tuned", "rate=5MB/s", "preload=30s", "partitions=20")
"""Settings of a short scenario. Between warm-up (12 s) and tail (5 s) a window of the quota fits, and a leak of 5 % is
found: the steady mean is then known to 2 %, Kafka's byte-rate to 1.5 % (`docs/throttle-bound.md`)."""
LIGHT = {"rate": "3MB/s", "inbound": "500kB/s"}


limit = or_none(whole(1, 100_000))
"""The parser of a limit of steps."""
ADD = Parameter("add", "no", one_of("no", "yes"), "yes: replicas are added (r 1 → 2) instead of moved")
COMPARE = Parameter(
    "compare",
    "return",
    one_of("return", "none"),
    "return: afterwards the partitions move back without a throttle, under the same load",
)
STORED = storage_parameter("disk", "tiered")
"""The storage of topics without inbound traffic: old segments of a tiered log leave the disk as new ones come, so its
growth is less than the copied bytes."""
MOST_RESPONSE_BYTES = 2**31 - 1
"""A broker does not start with more: the property is a Java int."""
HEAP_BYTES, MOST_OF_HEAP = 512 << 20, 0.25
"""The testbed's own heap of a broker, and the part of a heap that one response may take."""
PARTITION_BYTES, FETCH_BYTES = 1 << 20, 55 << 20
"""Kafka's `replica.fetch.max.bytes` and `fetch.max.bytes`: a response has at most so much of one partition, and in
all."""


def limits(settings: Settings) -> BatchLimits:
    """Return the limits of steps; no limits for an experiment without these parameters.

    Raise `UsageError` for a limit that changes nothing in the mode. Comparisons give `reassignment-batch-size` to all
    modes.
    """
    mode = mode_of(settings)
    if settings.get("starts") and mode != "incremental":
        raise UsageError(f"starts changes nothing with mode={mode}: only mode=incremental starts single steps")
    for name in ("leaders", "per-broker"):
        if settings.get(name) and mode == "unbatched":
            raise UsageError(f"{name} changes nothing with mode=unbatched: the whole plan is one request")
    return BatchLimits(*(int(number(settings, name)) or None if name in settings else None for name in STEPS))


def mode_of(settings: Settings) -> Mode:
    """Return the mode of execution."""
    return next((mode for mode in MODES if mode == settings.get("mode")), "unbatched")


def parameters(
    *more: Parameter,
    rate: str = "10MB/s",
    fetch: str = "tuned",
    preload: str = "52s",
    without: Sequence[str] = (),
) -> list[Parameter]:
    """Return the parameters of every throttled move except `without`, and `more`."""
    common = [
        Parameter("rate", rate, above_zero(parse_byte_rate), "the throttle, leader and follower"),
        Parameter(
            "fetch", fetch, one_of("tuned", "default"), "tuned: a smooth follower; default: Kafka's own settings"
        ),
        Parameter(
            "preload", preload, above_zero(parse_duration), "how long the move should take; decides how many bytes move"
        ),
        Parameter("partitions", str(PARTITIONS), whole(2, 10_000), "how many partitions move"),
        Parameter(
            "mode", "unbatched", one_of(*MODES), "unbatched: the whole plan at once; the others in steps (KIP-435)"
        ),
        Parameter("replicas", "1", limit, "in steps: replicas that one step of a partition adds (R), or none"),
        Parameter("reassignment-batch-size", "25", limit, "in steps: partitions in flight at once (P), or none"),
        Parameter("leaders", "none", limit, "in steps: of them, steps that move the preferred leader (L), or none"),
    ]
    return [*(parameter for parameter in common if parameter.name not in without), *more]


def inbound(default: str = "3MB/s") -> Parameter:
    """Return the parameter of the inbound rate of the moving partitions."""
    return Parameter(
        "inbound", default, or_none(parse_byte_rate), "what producers write to the moving partitions, or none"
    )


def load(default: str = "3MB/s") -> tuple[Parameter, ...]:
    """Return the parameters of the live load: the inbound rate of the moving partitions, and its shape."""
    return (inbound(default), *shape_parameters())


def response(default: str) -> Parameter:
    """Return the parameter of the size of a fetch response."""

    def parse(text: str) -> Value:
        size = parse_size(text)
        if not 0 < size <= MOST_RESPONSE_BYTES:
            raise ValueError(f"expected 1B to {format_size(MOST_RESPONSE_BYTES)}: a broker does not start with another")
        return size

    return Parameter("response", default, parse, "replica.fetch.response.max.bytes")


def response_properties(settings: Settings) -> Mapping[str, str]:
    """Return the broker properties by which a response of so many partitions is as large as `response`."""
    size, partitions = int(number(settings, "response")), int(number(settings, "partitions"))
    found = {"replica.fetch.response.max.bytes": size}
    if size > partitions * PARTITION_BYTES:
        found["replica.fetch.max.bytes"] = -(-size // partitions)
    if size > FETCH_BYTES:
        found["fetch.max.bytes"] = size
    return {name: str(value) for name, value in found.items()}


def check_response(response_bytes: float, topology: Topology) -> None:
    """Raise `UsageError` when a follower cannot hold a whole response in the heap of its JVM."""
    for host in topology.brokers:
        heap_bytes = host.jvm.heap_bytes or HEAP_BYTES
        if response_bytes > MOST_OF_HEAP * heap_bytes:
            raise UsageError(
                f"a follower receives a response of {format_size(int(response_bytes))} whole, and the JVM of "
                f"{host.name} has {format_size(heap_bytes)} of heap: give "
                f"response={format_size(int(MOST_OF_HEAP * heap_bytes))} or less, or declare a larger kafka.jvm.heap "
                "in the topology"
            )


def no_action(_settings: Settings, _hosts: Hosts) -> MidMoveAction:
    """Return the action that does nothing."""
    return MidMoveAction()


def check_brokers(name: str, topology: Topology, brokers: int, ready: str) -> None:
    """Raise `UsageError` unless a topology has exactly `brokers` brokers; `ready` names such a topology."""
    if len(topology.brokers) != brokers:
        raise UsageError(
            f"{name} needs exactly {plural(brokers, 'broker')}, {topology.name} has {len(topology.brokers)}: "
            f"use the topology {ready}, or one like it"
        )


def check_records(layout: Layout) -> None:
    """Raise `UsageError` when a partition has less than half a record: the move would take at least twice as long."""
    for group in layout.throttled:
        least = len(group.partitions) * RECORD_BYTES // 2
        if group.adding and group.bytes < least:
            raise UsageError(
                f"{format_size(group.bytes)} in {plural(len(group.partitions), 'partition')} is less than half a "
                f"record of {format_size(RECORD_BYTES)} in each; give fewer partitions, or a longer or faster move"
            )


def highest_throttle(settings: Settings) -> float:
    """Return the highest throttle that the settings name, B/s."""
    return max(number(settings, name) for name in ("rate", "raised") if name in settings)


def check_progress(layout: Layout, shape: LoadShape, throttle_bytes_per_s: float) -> None:
    """Raise `UsageError` when logs grow as fast as the throttle lets them be copied: the move would not end."""
    ids = {host: number for number, host in enumerate(layout.hosts)}
    written = in_logs(layout, shape)
    if not math.isinf(seconds(carried(written, ids), throttle_bytes_per_s)):
        return
    inbound, grows = (format_byte_rate(each.inbound_bytes_per_s, 3) for each in (layout, written))
    raise UsageError(
        f"a throttle of {format_byte_rate(throttle_bytes_per_s)} never makes progress: what is written meanwhile, "
        f"{inbound}, is {grows} in logs, with the heads of records; raise it, lower inbound, or give larger records"
    )


def check_lists(layout: Layout, ids: Mapping[str, int], *, in_steps: bool) -> None:
    """Raise `UsageError` when a list of throttled replicas is longer than Kafka accepts."""
    moves = []
    for group in layout.throttled:
        for tp in group.tps() if group.moves else ():
            before, after = (tuple(ids[host] for host in hosts) for hosts in (group.current, group.target))
            move = PartitionMove.between(tp, before, after)
            moves.append(move.in_steps() if in_steps else move)
    try:
        wanted_configs(moves, 1, (), {}, wildcard=layout.throttled_topics if layout.wildcard else ())
    except ThrottleError as error:
        raise UsageError(f"too many partitions of one topic; give fewer: {error}") from error


def check_links(layout: Layout, topology: Topology, throttle_bytes_per_s: float) -> None:
    """Raise `UsageError` when a NIC or an uplink carries less than the throttle lets pass there in a healthy move.

    That link would decide how long the move takes, and criteria of rates would blame the throttle. Clients use the
    NICs for data as well.
    """
    ids = node_ids(topology.brokers)
    shares, hosts = carried(layout, ids), {broker: host for host, broker in ids.items()}
    due_s = seconds(shares, throttle_bytes_per_s)
    if not 0 < due_s < math.inf:
        return
    clients = client_rates(layout)
    needs: list[tuple[str, Link, Direction, float, float]] = []
    for share in shares:
        host = topology.host(hosts[share.broker])
        nic, client = sampled_nic(host), clients.get((host.name, share.direction), 0.0)
        needed = share.bytes / due_s + share.inbound_bytes_per_s
        used = client if nic == host.nic_for(NicUse.DATA)[1] else 0.0
        needs.append((f"the NIC of {host.name}", nic, share.direction, needed, used))
    for (rack, direction), size in crossing(layout, topology).items():
        needs.append((f"the uplink of {rack}", topology.uplinks[rack], direction, size / due_s, 0.0))
    for where, link, direction, needed, used in needs:
        most = carries(link, direction)
        if needed + used > most:
            clients_too = f", and clients need {format_byte_rate(used, 3)} of that" if used else ""
            raise UsageError(
                f"a throttle of {format_byte_rate(throttle_bytes_per_s)} lets {format_byte_rate(needed, 3)} through "
                f"{where}, {direction}, which carries {format_byte_rate(most, 3)}{clients_too}: the run could not "
                f"show whether the throttle holds; lower it{' or inbound' if used else ''}, or see kip73-nic-bound"
            )


def throttled_experiment(
    name: str,
    summary: str,
    *,
    brokers: int,
    parameters: Sequence[Parameter],
    layout: Callable[[Settings, Hosts], Layout],
    action: Callable[[Settings, Hosts], MidMoveAction] = no_action,
    properties: Callable[[Settings], Mapping[str, str]] = lambda _settings: {},
    profiles: Mapping[str, Mapping[str, str]] | None = None,
    make: MakeRun = unbatched_run,
    nic_bound: bool = False,
    criteria: Sequence[str],
    suites: Sequence[SuiteScenario] = (),
) -> Experiment:
    """Return an experiment from its layout and its action, which receive the settings and the brokers' hosts.

    `properties` are broker properties in addition to those of `fetch`. `make` builds the run of the mode unbatched.
    """
    letters = string.ascii_uppercase[:brokers]

    def planned(settings: Settings, hosts: Hosts) -> Layout:
        found = with_shape(layout(settings, hosts), load_shape(settings))
        check_records(found)
        check_progress(found, load_shape(settings), highest_throttle(settings))
        return found

    def overlay(settings: Settings) -> Mapping[str, str]:
        # These raise for contradictory settings before the provisioning.
        planned(settings, letters)
        action(settings, letters)
        limits(settings)
        return {**(FETCH_TUNED if settings["fetch"] == "tuned" else {}), **properties(settings)}

    def check(topology: Topology, settings: Settings) -> None:
        storage = storage_of(settings)
        ready = TOPOLOGIES[brokers] if storage == "disk" else topology_with(storage, brokers)
        check_brokers(name, topology, brokers, ready)
        check_storage(storage, topology)
        if "response" in settings:
            check_response(number(settings, "response"), topology)
        quota_settings(declared(topology, overlay(settings)))
        hosts = [host.name for host in topology.brokers]
        found = planned(settings, hosts)
        action(settings, hosts).measured_topology(topology)
        check_lists(found, node_ids(topology.brokers), in_steps=mode_of(settings) != "unbatched")
        check_load(found, load_shape(settings), topology.brokers, storage)
        if any(catalogue()[each].quota_binds for each in criteria):
            check_links(found, topology, highest_throttle(settings))

    def check_kafka(settings: Settings, topology: Topology, testbed: Testbed | None) -> None:
        action(settings, [host.name for host in topology.brokers]).check_kafka(topology, testbed)

    def run(context: Context) -> ExperimentResult:
        hosts = [host.name for host in context.testbed.topology.brokers]
        storage = storage_of(context.settings)
        found, local_bytes = mostly_remote(planned(context.settings, hosts), storage)
        setup = MoveSetup(
            layout=found,
            throttle_bytes_per_s=int(number(context.settings, "rate")),
            fetch="tuned" if context.settings["fetch"] == "tuned" else "default",
            action=action(context.settings, hosts),
            nic_bound=nic_bound,
            mode=mode_of(context.settings),
            limits=limits(context.settings),
            storage=storage,
            local_bytes=local_bytes,
            load=load_shape(context.settings),
            returns=context.settings.get("compare") == "return",
        )
        return run_throttled_move(context, setup, make if setup.mode == "unbatched" else batched_run)

    return Experiment(
        name=name,
        summary=summary,
        topology=TOPOLOGIES[brokers],
        parameters=tuple(parameters),
        profiles=profiles or {"smoke": {"rate": "5MB/s"}, "release": RELEASE},
        overlay=overlay,
        check=check,
        check_kafka=check_kafka,
        run=run,
        needs=NEEDS,
        replicas=lambda settings: most_replicas(planned(settings, letters)),
        stored=lambda settings: stored_bytes(mostly_remote(planned(settings, letters), storage_of(settings))[0]),
        suites=suites,
        criteria=criteria,
    )
