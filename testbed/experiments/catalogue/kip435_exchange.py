"""Partitions with two replicas move whole, from two brokers to two others, while clients write and read.

What KIP-435 promises is told by carrying the same plan out in each `mode`, under the same load: `testbed run
batching-compare` does that.
"""

from testbed.experiments.criteria import LOAD
from testbed.experiments.experiment import SuiteScenario
from testbed.experiments.kip73 import MODES
from testbed.experiments.kip435 import whole_scenario

EXPERIMENT = whole_scenario(
    "kip435-exchange",
    "two replicas of every partition move to two other brokers, under load, at once or in steps (KIP-435)",
    factor=2,
    rate="8MB/s",
    written="1MB/s",
    preload="30s",
    profiles={"smoke": {"preload": "20s"}, "release": {"preload": "90s"}},
    suites=(
        *SuiteScenario("kip435", ("smoke",), "exchange", 2).over("mode", "batched"),
        *SuiteScenario("kip435", ("ci",), "exchange", 3).over("mode", *MODES),
        *SuiteScenario("kip435", ("release",), "exchange", 13, limit_s=1800.0).over("mode", *MODES),
        *SuiteScenario("kip435", ("release",), "exchange-r2", 13, ("replicas=2",), limit_s=1800.0).over(
            "mode", *MODES[1:]
        ),
        *SuiteScenario("kip435", ("release",), "exchange-p1", 13, ("reassignment-batch-size=1",), limit_s=1800.0).over(
            "mode", *MODES[1:]
        ),
        *SuiteScenario("kip435", ("release",), "exchange-l1", 13, ("leaders=1",), limit_s=1800.0).over(
            "mode", *MODES[1:]
        ),
    ),
    criteria=("control-unthrottled", "no-isr-shrink", "replicas-fetching", *LOAD),
)
