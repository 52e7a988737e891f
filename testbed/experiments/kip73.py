"""What KIP-73's scenarios have in common: parameters, volumes, and how a scene becomes an experiment."""

import math
import string
from collections.abc import Callable, Mapping, Sequence
from typing import get_args

from testbed.errors import UsageError
from testbed.experiments.accounts import sent_at
from testbed.experiments.batched import Batched
from testbed.experiments.during import During
from testbed.experiments.experiment import Context, Experiment, Outcome, Parameter, SuiteScenario, Value, one_of, whole
from testbed.experiments.move import MakeMover, run_move
from testbed.experiments.mover import Mover, MoveSetup
from testbed.experiments.scene import Group, Scene, copies
from testbed.experiments.storage import check_storage, mostly_remote, storage_of, storage_parameter
from testbed.kafka.capabilities import Capability
from testbed.kafka.node import FETCH_TUNED
from testbed.reassignment.batching.step import BatchLimits
from testbed.reassignment.batching.turn import Mode
from testbed.throttle.duration import bottleneck, shares
from testbed.throttle.quota_window import bytes_ending_in_a_burst
from testbed.topology.model import Topology
from testbed.units import format_byte_rate, parse_byte_rate, parse_duration

NEEDS = frozenset({Capability.THROTTLES_REPLICATION, Capability.MOVES_DATA, Capability.LISTS_REASSIGNMENTS})
Settings = Mapping[str, Value]
Hosts = Sequence[str]
"""The brokers' hosts in the topology's order: A, B, C."""
PARTITIONS = 100
SIDE_PARTITIONS = 4
CALIBRATION_BYTES, CONTROL_BYTES = 32_000_000, 48_000_000
TOPOLOGIES = {2: "two-brokers", 3: "three-brokers", 4: "four-brokers", 8: "eight-brokers"}
MODES: tuple[Mode, ...] = get_args(Mode)
STEPS = ("replicas", "reassignment-batch-size", "leaders")
"""What says how large steps are: R, P, L."""
RELEASE = {"preload": "120s"}
BRIEF = ("fetch=default", "rate=5MB/s", "preload=26s", "partitions=20")
"""Settings of a short scenario: two bursts of Kafka's own fetch settings suffice, and its run is small to keep."""
LIGHT = {"rate": "3MB/s", "inbound": "500kB/s"}


def number(settings: Settings, name: str) -> float:
    """A setting that is a number."""
    value = settings[name]
    if isinstance(value, str):
        raise TypeError(f"setting {name} is text: {value!r}")
    return value


def side(topic: str, source: str, target: str, size_bytes: int, partitions: int = SIDE_PARTITIONS) -> Group:
    """A group that goes beside the listed ones: one replica, from a host to another."""
    return Group(topic, range(partitions), (source,), (target,), size_bytes)


def scene(listed: Sequence[Group], source: str, target: str, *, control: bool = True, wildcard: bool = False) -> Scene:
    """The listed groups, with a control and a calibration from `source` to `target`."""
    return Scene(
        tuple(listed),
        calibration=side("calibration", source, target, CALIBRATION_BYTES),
        control=side("control", source, target, CONTROL_BYTES) if control else None,
        wildcard=wildcard,
    )


def lasting(scene: Scene, quota_bytes_per_s: float, move_s: float) -> Scene:
    """The scene with as many bytes as the model says take `move_s` under this quota.

    Where a leader that sends in bursts binds it is somewhat less than that, for the move to end within a burst. Raises
    `UsageError` when more comes in than the quota leaves to catch up with.
    """
    hosts = sorted({host for group in scene.groups for host in (*group.current, *group.target)})
    ids = {host: number for number, host in enumerate(hosts)}
    unit = scene.sized(1_000_000_000)
    carried = shares(copies(unit, ids), wildcard=scene.wildcard)
    bound = bottleneck(carried, quota_bytes_per_s)
    unit_s = bound.seconds(quota_bytes_per_s)
    if not math.isfinite(unit_s):
        raise UsageError(
            f"a throttle of {format_byte_rate(quota_bytes_per_s)} never makes progress: what is written meanwhile "
            f"takes {format_byte_rate(bound.inbound_bytes_per_s)} of it; raise it, or lower inbound"
        )
    at = sent_at(scene, hosts[bound.broker], bound, quota_bytes_per_s)
    if at is None:
        return scene.sized(round(1_000_000_000 * move_s / unit_s))
    sent = bytes_ending_in_a_burst(bound.inbound_bytes_per_s, quota_bytes_per_s, at, move_s)
    return scene.sized(round(1_000_000_000 * sent / bound.bytes))


def halves(partitions: int) -> tuple[range, range]:
    """Two ranges that are as alike as can be."""
    return range(partitions // 2), range(partitions // 2, partitions)


def limit(text: str) -> Value:
    """A limit of at least 1; 0, which is `none`, is no limit."""
    return 0 if text == "none" else whole(1, 100_000)(text)


def limits(settings: Settings) -> BatchLimits:
    """How large steps may be; of an experiment that knows no steps, no limits."""
    replicas, partitions, leaders = (
        int(number(settings, name)) or None if name in settings else None for name in STEPS
    )
    return BatchLimits(replicas, partitions, leaders)


def mode_of(settings: Settings) -> Mode:
    """How the plan is carried out."""
    return next((mode for mode in MODES if mode == settings.get("mode")), "unbatched")


def parameters(
    *more: Parameter,
    rate: str = "10MB/s",
    fetch: str = "tuned",
    preload: str = "52s",
    without: Sequence[str] = (),
) -> list[Parameter]:
    """Those of every scenario but `without`, and `more`."""
    common = [
        Parameter("rate", rate, parse_byte_rate, "the throttle, leader and follower"),
        Parameter(
            "fetch", fetch, one_of("tuned", "default"), "tuned: a smooth follower; default: Kafka's own settings"
        ),
        Parameter("preload", preload, parse_duration, "how long the move should take: as many bytes are moved"),
        Parameter("partitions", str(PARTITIONS), whole(2, 2000), "how many partitions move"),
        Parameter(
            "mode", "unbatched", one_of(*MODES), "unbatched: the whole plan at once; the others in steps (KIP-435)"
        ),
        Parameter("replicas", "1", limit, "in steps: replicas that one step of a partition adds (R), or none"),
        Parameter("reassignment-batch-size", "25", limit, "in steps: partitions in flight at once (P), or none"),
        Parameter("leaders", "none", limit, "in steps: of them, steps that move the preferred leader (L), or none"),
    ]
    return [*(parameter for parameter in common if parameter.name not in without), *more]


def add() -> Parameter:
    """Whether replicas are added instead of moved."""
    return Parameter("add", "no", one_of("no", "yes"), "yes: replicas are added (r 1 → 2) instead of moved")


def inbound(default: str = "3MB/s") -> Parameter:
    """How fast clients write to the moving partitions."""

    def parse(text: str) -> Value:
        return 0 if text == "none" else parse_byte_rate(text)

    return Parameter("inbound", default, parse, "what is written to the moving partitions meanwhile, or none")


def stored() -> Parameter:
    """Where the logs lie. Not for topics that are written to: old segments go while new ones come, and what a log grows
    by is then less than what was copied."""
    return storage_parameter("disk", "tiered")


def nothing_else(_settings: Settings, _hosts: Hosts) -> During:
    """A move that is left alone."""
    return During()


def check_brokers(name: str, topology: Topology, brokers: int, ready: str) -> None:
    """Raise `UsageError` unless a topology has exactly so many brokers; `ready` names one that has."""
    if len(topology.brokers) != brokers:
        raise UsageError(
            f"{name} needs exactly {brokers} brokers, {topology.name} has {len(topology.brokers)}: "
            f"use the topology {ready}, or one like it"
        )


def scenario(
    name: str,
    summary: str,
    *,
    brokers: int,
    parameters: Sequence[Parameter],
    stage: Callable[[Settings, Hosts], Scene],
    during: Callable[[Settings, Hosts], During] = nothing_else,
    properties: Callable[[Settings], Mapping[str, str]] = lambda _settings: {},
    profiles: Mapping[str, Mapping[str, str]] | None = None,
    make: MakeMover = Mover,
    nic_bound: bool = False,
    suites: Sequence[SuiteScenario] = (),
    criteria: Sequence[str],
) -> Experiment:
    """An experiment from its scene.

    `stage` gets the settings and the brokers' hosts; `properties` are broker properties beside those of `fetch`.
    """
    letters = string.ascii_uppercase[:brokers]

    def overlay(settings: Settings) -> Mapping[str, str]:
        stage(settings, letters)  # settings that contradict each other are refused before anything is made
        return {**(FETCH_TUNED if settings["fetch"] == "tuned" else {}), **properties(settings)}

    def check(topology: Topology) -> None:
        check_brokers(name, topology, brokers, TOPOLOGIES[brokers])

    def suits(topology: Topology, settings: Settings) -> None:
        check_storage(storage_of(settings), topology)

    def run(context: Context) -> Outcome:
        hosts = [host.name for host in context.testbed.topology.brokers]
        storage = storage_of(context.settings)
        found, local_bytes = mostly_remote(stage(context.settings, hosts), storage)
        setup = MoveSetup(
            scene=found,
            quota_bytes_per_s=int(context.number("rate")),
            fetch="tuned" if context.settings["fetch"] == "tuned" else "default",
            during=during(context.settings, hosts),
            nic_bound=nic_bound,
            mode=mode_of(context.settings),
            limits=limits(context.settings),
            storage=storage,
            local_bytes=local_bytes,
        )
        return run_move(context, setup, make if setup.mode == "unbatched" else Batched)

    return Experiment(
        name=name,
        summary=summary,
        topology=TOPOLOGIES[brokers],
        parameters=tuple(parameters),
        profiles=profiles or {"smoke": {"rate": "5MB/s"}, "release": RELEASE},
        overlay=overlay,
        check=check,
        run=run,
        needs=NEEDS,
        suits=suits,
        suites=suites,
        criteria=criteria,
    )
