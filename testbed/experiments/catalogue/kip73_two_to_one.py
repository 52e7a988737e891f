"""KIP-73's fourth scenario: three brokers, r = 2, data moves from two brokers to the third.

Half of the partitions move (A, B) → (C, B), led by A, half (B, A) → (C, A), led by B. C receives what A and B send
half each: the receiver's quota binds, not the senders'.
"""

from testbed.experiments.criteria import RATES
from testbed.experiments.experiment import SuiteScenario
from testbed.experiments.kip73_layouts import two_to_one
from testbed.experiments.throttled_move import MODES, parameters, stored, throttled_experiment

EXPERIMENT = throttled_experiment(
    "kip73-two-to-one",
    "data moves from two brokers to the third, r = 2: the receiver's quota binds",
    brokers=3,
    parameters=parameters(stored(), rate="6MB/s"),
    layout=two_to_one,
    suites=(
        SuiteScenario("kip73", ("ci",), "two-to-one", 3, ("rate=4MB/s",)),
        *SuiteScenario("kip73", ("release",), "two-to-one", 4, limit_s=1200.0).over("fetch", "tuned", "default"),
        *SuiteScenario("kip435", ("release",), "two-to-one", 5, limit_s=1800.0).over("mode", *MODES),
    ),
    criteria=(*RATES, "no-isr-shrink"),
)
