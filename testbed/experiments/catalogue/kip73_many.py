"""Many partitions on many brokers: five brokers give all their partitions to five others, under one throttle.

The controller, the throttle's lists, the polls and the reading back all grow with the partitions. The rate is the same
for every pair, so that the move takes as long as that of one pair. Kafka's default fetch settings: ten brokers with
shorter waits would keep two cores busy. No suite has it: a suite should be judged whole on a small machine.
"""

from testbed.experiments.criteria import RATES
from testbed.experiments.kip73_layouts import half_to_half
from testbed.experiments.throttled_move import parameters, throttled_experiment

EXPERIMENT = throttled_experiment(
    "kip73-many",
    "all partitions of five brokers move to five others at the throttled rate, up to 10,000 at once",
    brokers=10,
    # 20 s of a move are not steady with these fetch settings, and three windows of 11 s have to be.
    parameters=parameters(rate="2MB/s", fetch="default", preload="60s"),
    layout=half_to_half,
    profiles={"release": {"preload": "120s"}},
    criteria=RATES,
)
