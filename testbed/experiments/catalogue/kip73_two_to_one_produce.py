"""As `kip73-two-to-one`, while clients write to the moving partitions: quota − inbound is left to the receiver."""

from testbed.experiments.criteria import LOAD, RATES_UNDER_LOAD
from testbed.experiments.experiment import SuiteScenario
from testbed.experiments.kip73_layouts import two_to_one
from testbed.experiments.throttled_move import LIGHT, MODES, RELEASE, inbound, parameters, throttled_experiment

EXPERIMENT = throttled_experiment(
    "kip73-two-to-one-produce",
    "as kip73-two-to-one, while clients write to the moving partitions: quota − inbound is left",
    brokers=3,
    parameters=parameters(inbound("2MB/s"), rate="6MB/s"),
    layout=two_to_one,
    profiles={"smoke": LIGHT, "release": RELEASE},
    suites=(
        SuiteScenario("kip73", ("smoke",), "two-to-one-produce", 1),
        SuiteScenario("kip73", ("ci",), "two-to-one-produce", 4, ("rate=3MB/s", "inbound=500kB/s")),
        *SuiteScenario("kip73", ("release",), "two-to-one-produce", 5, limit_s=1200.0).over(
            "fetch", "tuned", "default"
        ),
        *SuiteScenario("kip435", ("release",), "two-to-one-produce", 6, limit_s=1800.0).over("mode", *MODES),
    ),
    criteria=(*RATES_UNDER_LOAD, "no-isr-shrink", *LOAD),
)
