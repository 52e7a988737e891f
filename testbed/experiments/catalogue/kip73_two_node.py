"""KIP-73's first scenario: all partitions move from one broker to the other, under a throttle.

The plan says two nodes and r = 2, which leaves nowhere to move: here r = 1. All 100 partitions lie on, and are led
by, the first broker; their replicas move to the second. Two topics go the same way without a throttle: *calibration*
before the move, to learn how many bytes a NIC carries for one byte of log, and *control* together with it, to
show that only the listed replicas are held back.
"""

from collections.abc import Mapping

from testbed.errors import UsageError
from testbed.experiments.experiment import Context, Experiment, Outcome, Parameter, Value, one_of, whole
from testbed.experiments.move import MoveSetup, Placement, run_move
from testbed.kafka.properties import FETCH_TUNED
from testbed.topology.model import Topology
from testbed.units import parse_byte_rate, parse_duration


def _overlay(settings: Mapping[str, Value]) -> Mapping[str, str]:
    return FETCH_TUNED if settings["fetch"] == "tuned" else {}


def _check(topology: Topology) -> None:
    if len(topology.brokers) != 2:
        raise UsageError(
            f"kip73-two-node needs exactly 2 brokers, {topology.name} has {len(topology.brokers)}: "
            "use the topology two-brokers, or one like it"
        )


def _run(context: Context) -> Outcome:
    source, target = context.testbed.topology.brokers
    return run_move(
        context,
        MoveSetup(
            quota_bytes_per_s=int(context.number("rate")),
            fetch="tuned" if context.settings["fetch"] == "tuned" else "default",
            preload_s=context.number("preload"),
            partitions=int(context.number("partitions")),
            placement=Placement(source=source.name, target=target.name),
        ),
    )


EXPERIMENT = Experiment(
    name="kip73-two-node",
    summary="all 100 partitions move from one broker to the other at the throttled rate (KIP-73's test plan)",
    topology="two-brokers",
    parameters=(
        Parameter("rate", "10MB/s", parse_byte_rate, "the throttle, leader and follower"),
        Parameter(
            "fetch", "tuned", one_of("tuned", "default"), "tuned: a smooth follower; default: Kafka's own settings"
        ),
        Parameter("preload", "52s", parse_duration, "how long the move should take: as many bytes are moved"),
        Parameter("partitions", "100", whole(1, 2000), "how many partitions move"),
    ),
    profiles={"smoke": {"rate": "5MB/s"}, "release": {"preload": "120s"}},
    overlay=_overlay,
    check=_check,
    run=_run,
)
