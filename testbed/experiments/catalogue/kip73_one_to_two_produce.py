"""As `kip73-one-to-two`, while clients write to the moving partitions.

A's quota also records what its followers in sync fetch: quota − 2 × inbound is left for catching up. Since A sends in
bursts (docs/kip73.md), how much is written decides in which of them the move ends: `inbound` is low for that reason.
"""

from testbed.experiments.criteria import LOAD, RATES_UNDER_LOAD
from testbed.experiments.experiment import SuiteScenario
from testbed.experiments.kip73_layouts import one_to_two
from testbed.experiments.throttled_move import LIGHT, MODES, RELEASE, inbound, parameters, throttled_experiment

EXPERIMENT = throttled_experiment(
    "kip73-one-to-two-produce",
    "as kip73-one-to-two, while clients write to the moving partitions: quota − 2 × inbound is left",
    brokers=3,
    parameters=parameters(inbound("1MB/s"), rate="6MB/s", preload="62s"),
    layout=one_to_two,
    profiles={"smoke": LIGHT, "release": RELEASE},
    suites=(
        SuiteScenario("kip73", ("ci",), "one-to-two-produce", 2, ("rate=3MB/s", "inbound=500kB/s")),
        *SuiteScenario("kip73", ("release",), "one-to-two-produce", 3, limit_s=1200.0).over(
            "fetch", "tuned", "default"
        ),
        *SuiteScenario("kip435", ("ci",), "one-to-two-produce", 2, ("rate=5MB/s", "inbound=1MB/s")).over(
            "mode", *MODES
        ),
        *SuiteScenario("kip435", ("release",), "one-to-two-produce", 4, limit_s=1800.0).over("mode", *MODES),
    ),
    criteria=(*RATES_UNDER_LOAD, "no-isr-shrink", *LOAD),
)
