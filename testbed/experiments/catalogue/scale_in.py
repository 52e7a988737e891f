"""A broker is drained and taken away, as when there is less to do: what is left has its share, and nobody notices.

C gives all that it has to A and B, and is stopped once it has nothing any more.
"""

from testbed.experiments.criteria import SCALED
from testbed.experiments.kept import parameters, scene, storage_experiment
from testbed.experiments.kip73 import Hosts, Settings, number
from testbed.experiments.scaled import ScaledIn
from testbed.experiments.scaling import left, shared_out
from testbed.experiments.scene import Scene


def stage(settings: Settings, hosts: Hosts) -> Scene:
    """C gives half of its partitions to A and half to B."""
    *staying, leaving = hosts
    groups = left("scale", range(int(number(settings, "partitions"))), staying, [leaving])
    return scene(shared_out(groups, int(number(settings, "size")), number(settings, "inbound")), leaving, staying[0])


EXPERIMENT = storage_experiment(
    "scale-in",
    "a broker is drained and stopped under load: until the others have its share, and p99 is back",
    brokers=3,
    topology="s3-three-brokers",
    parameters=parameters(partitions="12"),
    stage=stage,
    make=lambda _settings: ScaledIn,
    profiles={"smoke": {"size": "150MB", "partitions": "6"}, "release": {"size": "3GB", "partitions": "120"}},
    criteria=SCALED,
)
