"""KIP-73's second scenario: as `kip73-two-node`, while clients write to the moving partitions.

What is left for catching up is quota − inbound, on both brokers: with r = 1 there is no follower in sync.
"""

from testbed.experiments.criteria import LOAD, RATES_UNDER_LOAD
from testbed.experiments.experiment import SuiteScenario
from testbed.experiments.kip73_layouts import two_node
from testbed.experiments.throttled_move import (
    BRIEF,
    LIGHT,
    MODES,
    RELEASE,
    add,
    inbound,
    parameters,
    throttled_experiment,
)

EXPERIMENT = throttled_experiment(
    "kip73-two-node-produce",
    "as kip73-two-node, while clients write to the moving partitions: quota − inbound is left",
    brokers=2,
    parameters=parameters(inbound(), add()),
    layout=two_node,
    profiles={"smoke": LIGHT, "release": RELEASE},
    suites=(
        SuiteScenario("kip73", ("ci",), "two-node-produce", 8, ("rate=3MB/s", "inbound=500kB/s")),
        *SuiteScenario("kip73", ("release",), "two-node-produce", 7, limit_s=1200.0).over("fetch", "tuned", "default"),
        *SuiteScenario("kip435", ("release",), "two-node-produce", 2, limit_s=1800.0).over("mode", *MODES),
        SuiteScenario("brief", ("ci",), "under-load", 4, (*BRIEF, "inbound=500kB/s")),
    ),
    criteria=(*RATES_UNDER_LOAD, "no-isr-shrink", *LOAD),
)
