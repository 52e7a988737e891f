"""A consumer from the beginning while other partitions move: what it reads is on no broker's mind.

The topic that is read stays; A's page cache is told to forget all logs first. With its log on disk what is read comes
from A's device, tiered or in S3 from the object store, or the run is inconclusive. Beside it stands what producers saw.
"""

from testbed.experiments.cold import ColdReader
from testbed.experiments.experiment import Parameter
from testbed.experiments.kept import parameters, scene, size, storage_experiment
from testbed.experiments.kip73 import Hosts, Settings, number
from testbed.experiments.scene import Group, Scene


def stage(settings: Settings, hosts: Hosts) -> Scene:
    """`s3` moves (A) → (B), and is written to; `cold` stays on A, and is read."""
    a, b = hosts
    partitions = range(int(number(settings, "partitions")))
    moved = Group("s3", partitions, (a,), (b,), int(number(settings, "size")), number(settings, "inbound"))
    read = Group("cold", partitions, (a,), (a,), int(number(settings, "read")))
    return scene([moved, read], a, b)


EXPERIMENT = storage_experiment(
    "cold-read",
    "a consumer reads from the beginning while partitions move: from the device, or from the store, not from a cache",
    brokers=2,
    topology="s3",
    parameters=parameters(Parameter("read", "300MB", size, "what is read from the beginning, and does not move")),
    stage=stage,
    make=lambda _settings: ColdReader,
    profiles={
        "smoke": {"size": "100MB", "read": "150MB", "partitions": "4"},
        "release": {"size": "3GB", "read": "3GB", "partitions": "100"},
    },
    criteria=("tiered-local-fraction", "cold-read", "store-requests"),
)
