"""KIP-73's second scenario: as `kip73-two-node`, while clients write to the moving partitions.

What is left for catching up is quota − inbound, on both brokers: with r = 1 there is no follower in sync.
"""

from testbed.experiments.kip73 import LIGHT, RELEASE, add, inbound, parameters, scenario
from testbed.experiments.stages import two_node

EXPERIMENT = scenario(
    "kip73-two-node-produce",
    "as kip73-two-node, while clients write to the moving partitions: quota − inbound is left",
    brokers=2,
    parameters=parameters(inbound(), add()),
    stage=two_node,
    profiles={"smoke": LIGHT, "release": RELEASE},
)
