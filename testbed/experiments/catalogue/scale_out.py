"""A broker is added while the load rises: it is up and empty, and takes its share of the partitions.

How long until all brokers have as many, and acknowledgements are as quick as before: with data on disk the larger the
longer, with data in S3 not.
"""

from testbed.experiments.criteria import SCALED
from testbed.experiments.kept import parameters, scene, storage_experiment
from testbed.experiments.kip73 import Hosts, Settings, number
from testbed.experiments.scaled import ScaledOut
from testbed.experiments.scaling import joined, shared_out
from testbed.experiments.scene import Scene


def stage(settings: Settings, hosts: Hosts) -> Scene:
    """A and B give C a third of theirs."""
    *there, joining = hosts
    groups = joined("scale", range(int(number(settings, "partitions"))), there, [joining])
    return scene(shared_out(groups, int(number(settings, "size")), number(settings, "inbound")), there[0], joining)


EXPERIMENT = storage_experiment(
    "scale-out",
    "a broker that is up and empty takes its share while the load rises: until balanced, and p99 is back",
    brokers=3,
    topology="s3-three-brokers",
    parameters=parameters(partitions="12"),
    stage=stage,
    make=lambda _settings: ScaledOut,
    profiles={"smoke": {"size": "150MB", "partitions": "6"}, "release": {"size": "3GB", "partitions": "120"}},
    criteria=SCALED,
)
