"""KIP-73's third scenario: three brokers, r = 2, data moves from one broker to the other two.

All partitions are led by A; half move (A, B) → (C, B), half (A, C) → (B, C). Followers copy from the leader: A sends
all of it, B and C receive half each, and A's quota binds.
"""

from testbed.experiments.kip73 import parameters, scenario, stored
from testbed.experiments.stages import one_to_two

EXPERIMENT = scenario(
    "kip73-one-to-two",
    "data moves from one broker to the other two, r = 2: the sender's quota binds",
    brokers=3,
    parameters=parameters(stored(), rate="6MB/s", preload="62s"),
    stage=one_to_two,
)
