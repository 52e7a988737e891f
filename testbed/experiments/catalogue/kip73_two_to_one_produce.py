"""As `kip73-two-to-one`, while clients write to the moving partitions: quota − inbound is left to the receiver."""

from testbed.experiments.kip73 import LIGHT, RELEASE, inbound, parameters, scenario
from testbed.experiments.stages import two_to_one

EXPERIMENT = scenario(
    "kip73-two-to-one-produce",
    "as kip73-two-to-one, while clients write to the moving partitions: quota − inbound is left",
    brokers=3,
    parameters=parameters(inbound("2MB/s"), rate="6MB/s"),
    stage=two_to_one,
    profiles={"smoke": LIGHT, "release": RELEASE},
)
