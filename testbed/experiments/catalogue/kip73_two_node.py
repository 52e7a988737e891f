"""KIP-73's first scenario: all partitions move from one broker to the other, under a throttle.

The plan says two nodes and r = 2, which leaves nowhere to move: here r = 1. All 100 partitions lie on, and are led
by, the first broker; their replicas move to the second (with ``add=yes`` they are added there, r 1 → 2). Two topics
go the same way without a throttle: *calibration* before the move, to learn how many bytes a NIC carries for one byte
of log, and *control* together with it, to show that only the listed replicas are held back.
"""

from testbed.experiments.kip73 import add, parameters, scenario, stored
from testbed.experiments.stages import two_node

EXPERIMENT = scenario(
    "kip73-two-node",
    "all 100 partitions move from one broker to the other at the throttled rate (KIP-73's test plan)",
    brokers=2,
    parameters=parameters(add(), stored()),
    stage=two_node,
)
