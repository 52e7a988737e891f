"""The claim of the article: with data in S3 a reassignment takes seconds, whatever the partition's size.

All partitions move from A to B under load and without a throttle, on shaped NICs. Their logs are on A's disk, tiered
(KIP-405: the object store has all but the last segments), or in AutoMQ's streams. The report compares the measured
seconds with the article's formula, log size ÷ NIC. `testbed run s3-compare` runs it on each storage, AutoMQ
only where the user supplies it.
"""

from results.contract.relocation import STORAGES
from testbed.errors import UsageError
from testbed.experiments.experiment import Hosts, Parameter, Settings, SuiteScenario, number, one_of
from testbed.experiments.handover_timing import handover_timing
from testbed.experiments.layout import Layout, PartitionGroup
from testbed.experiments.mid_move_actions import MidMoveAction, SourceKill
from testbed.experiments.storage import storage_of
from testbed.experiments.unthrottled_move import parameters, unthrottled_experiment, unthrottled_layout

KEPT, KILLED = "kept", "killed"
SOURCE = Parameter(
    "source",
    KEPT,
    one_of(KEPT, KILLED),
    f"{KILLED}: the old broker is killed once the move is accepted; only with storage=automq",
)


def layout(settings: Settings, hosts: Hosts) -> Layout:
    """Return (A) → (B); (B) → (A) if the source is killed, as A is the controller.

    Raise `UsageError` for a killed source whose disk has the only replica.
    """
    a, b = hosts
    if settings["source"] == KILLED:
        if storage_of(settings) != "automq":
            raise UsageError(f"source={KILLED} needs storage=automq: elsewhere the killed broker has the only replica")
        a, b = b, a
    partitions = range(int(number(settings, "partitions")))
    group = PartitionGroup("s3", partitions, (a,), (b,), int(number(settings, "size")), number(settings, "inbound"))
    return unthrottled_layout([group], a, b)


UNTHROTTLED = ("storage=disk", "size=500MB", "partitions=20")
"""The settings of scenario `unthrottled`."""

EXPERIMENT = unthrottled_experiment(
    "s3-reassign",
    "partitions move without a throttle, under load: logs on disk, tiered, or in S3, compared with log size ÷ NIC",
    brokers=2,
    topology="s3",
    automq_topology="automq",
    parameters=parameters(SOURCE),
    layout=layout,
    action=lambda settings, hosts: SourceKill(hosts[1]) if settings["source"] == KILLED else MidMoveAction(),
    activities=handover_timing,
    # With less than 300 MB `uploaded-remainder` cannot find a second upload of everything.
    profiles={"smoke": {"partitions": "4"}, "release": {"size": "3GB", "partitions": "100"}},
    suites=(
        SuiteScenario("brief", ("ci",), "unthrottled", 6, UNTHROTTLED, topology="two-brokers"),
        # A qualification runs it in pairs. The NICs of `two-brokers` leave a slower broker to be seen: what each fetch
        # takes in addition is twice the share of the move that it would be with the NICs of `s3`.
        SuiteScenario("s3", ("ci", "release"), "unthrottled", 0, UNTHROTTLED, topology="two-brokers"),
        SuiteScenario("s3", ("smoke",), "reassign-tiered", 1, ("storage=tiered", "size=150MB")),
        SuiteScenario("s3", ("smoke",), "reassign-automq", 2, ("storage=automq",)),
        *SuiteScenario("s3", ("ci",), "one", 1, ("partitions=1",)).over("storage", *STORAGES),
        *SuiteScenario("s3", ("ci",), "hundred", 2, ("partitions=100", "size=1.2GB"), limit_s=900.0).over(
            "storage", *STORAGES
        ),
        SuiteScenario(
            "s3", ("ci", "release"), "source-killed-automq", 2, ("storage=automq", f"source={KILLED}"), limit_s=900.0
        ),
        *SuiteScenario("s3", ("release",), "one", 1, ("partitions=1", "size=1.2GB"), limit_s=900.0).over(
            "storage", *STORAGES
        ),
        *SuiteScenario("s3", ("release",), "hundred", 2).over("storage", *STORAGES),
    ),
    criteria=(
        "tiered-local-fraction",
        "copied-bytes",
        "duration-formula",
        "s3-seconds",
        "store-requests",
        "uploaded-remainder",
    ),
)
