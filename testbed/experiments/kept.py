"""What experiments about storage have in common: their parameters, and how a scene becomes one of them."""

import math
from collections.abc import Callable, Mapping, Sequence

from testbed.experiments.during import During
from testbed.experiments.experiment import Context, Experiment, Outcome, Parameter, SuiteScenario, Value, whole
from testbed.experiments.kip73 import Hosts, Settings, check_brokers, inbound, number, side
from testbed.experiments.mover import MoveSetup
from testbed.experiments.relocate import MakeRelocator, Relocator, run_relocation
from testbed.experiments.scene import Group, Scene
from testbed.experiments.storage import check_size, check_storage, storage_of, storage_parameter
from testbed.topology.model import Topology
from testbed.units import parse_size

CALIBRATION_BYTES = 16_000_000
CALIBRATION_PARTITIONS = 4


def size(text: str) -> Value:
    """A size with its unit."""
    return parse_size(text)


def parameters(*more: Parameter, size_default: str = "300MB", partitions: str = "10") -> list[Parameter]:
    """Those of every experiment about storage, and `more`."""
    return [
        storage_parameter(),
        Parameter("size", size_default, size, "what is written before the move, into all partitions that move"),
        Parameter("partitions", partitions, whole(1, 2000), "how many partitions there are"),
        inbound("500kB/s"),
        *more,
    ]


def scene(moved: Sequence[Group], source: str, target: str) -> Scene:
    """The groups, with a calibration from `source` to `target`."""
    return Scene(
        tuple(moved), calibration=side("calibration", source, target, CALIBRATION_BYTES, CALIBRATION_PARTITIONS)
    )


def storage_experiment(
    name: str,
    summary: str,
    *,
    brokers: int,
    topology: str,
    parameters: Sequence[Parameter],
    stage: Callable[[Settings, Hosts], Scene],
    make: Callable[[Settings], MakeRelocator] = lambda _settings: Relocator,
    profiles: Mapping[str, Mapping[str, str]],
    suites: Sequence[SuiteScenario] = (),
    criteria: Sequence[str],
) -> Experiment:
    """An experiment from its scene; `stage` gets the settings and the brokers' hosts."""

    def overlay(settings: Settings) -> Mapping[str, str]:
        check_size(storage_of(settings), number(settings, "size"), math.ceil(number(settings, "partitions")))
        return {}

    def check(found: Topology) -> None:
        check_brokers(name, found, brokers, topology)

    def suits(found: Topology, settings: Settings) -> None:
        check_storage(storage_of(settings), found)

    def run(context: Context) -> Outcome:
        hosts = [host.name for host in context.testbed.topology.brokers]
        setup = MoveSetup(
            scene=stage(context.settings, hosts),
            quota_bytes_per_s=0,
            fetch="default",
            during=During(),
            storage=storage_of(context.settings),
        )
        return run_relocation(context, setup, make(context.settings))

    return Experiment(
        name,
        summary,
        topology,
        tuple(parameters),
        profiles,
        overlay,
        check,
        run,
        suits=suits,
        suites=suites,
        criteria=criteria,
    )
