"""What the article claims: with data in S3 a partition is reassigned in seconds, whatever its size.

All partitions move from A to B under load and without a throttle, on shaped NICs: with their logs on A's disk, tiered
(KIP-405: all but the last segments are in the object store already), or in AutoMQ's streams. Beside the seconds stands
the article's formula, log size ÷ NIC. `testbed run s3-compare` makes them side by side.
"""

from testbed.experiments.experiment import SuiteScenario
from testbed.experiments.handed import HandedOver
from testbed.experiments.kept import parameters, scene, storage_experiment
from testbed.experiments.kip73 import Hosts, Settings, number
from testbed.experiments.relocate import Relocator
from testbed.experiments.scene import Group, Scene
from testbed.experiments.storage import storage_of


def stage(settings: Settings, hosts: Hosts) -> Scene:
    """(A) → (B)."""
    a, b = hosts
    partitions = range(int(number(settings, "partitions")))
    moved = Group("s3", partitions, (a,), (b,), int(number(settings, "size")), number(settings, "inbound"))
    return scene([moved], a, b)


EXPERIMENT = storage_experiment(
    "s3-reassign",
    "partitions move without a throttle, under load: logs on disk, tiered, or in S3, beside log size ÷ NIC",
    brokers=2,
    topology="s3",
    parameters=parameters(),
    stage=stage,
    make=lambda settings: HandedOver if storage_of(settings) == "automq" else Relocator,
    profiles={"smoke": {"size": "150MB", "partitions": "4"}, "release": {"size": "3GB", "partitions": "100"}},
    suites=(
        SuiteScenario(
            "brief", ("ci",), "unthrottled", 6, ("storage=disk", "size=500MB", "partitions=20"), topology="two-brokers"
        ),
    ),
    criteria=("tiered-local-fraction", "copied-bytes", "duration-formula", "store-requests"),
)
