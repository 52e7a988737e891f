"""KIP-73's third scenario: three brokers, r = 2, data moves from one broker to the other two.

All partitions are led by A; half move (A, B) → (C, B), half (A, C) → (B, C). Followers copy from the leader: A sends
all of it, B and C receive half each, and A's quota binds.
"""

from testbed.experiments.criteria import RATES
from testbed.experiments.experiment import SuiteScenario
from testbed.experiments.kip73_layouts import one_to_two
from testbed.experiments.throttled_move import MODES, parameters, stored, throttled_experiment

EXPERIMENT = throttled_experiment(
    "kip73-one-to-two",
    "data moves from one broker to the other two, r = 2: the sender's quota binds",
    brokers=3,
    parameters=parameters(stored(), rate="6MB/s", preload="62s"),
    layout=one_to_two,
    suites=(
        SuiteScenario("kip73", ("ci",), "one-to-two", 1, ("rate=4MB/s",)),
        *SuiteScenario("kip73", ("release",), "one-to-two", 2, limit_s=1200.0).over("fetch", "tuned", "default"),
        *SuiteScenario("kip435", ("release",), "one-to-two", 3, limit_s=1800.0).over("mode", *MODES),
    ),
    criteria=(*RATES, "no-isr-shrink"),
)
