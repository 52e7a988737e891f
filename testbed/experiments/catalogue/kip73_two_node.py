"""KIP-73's first scenario: all partitions move from one broker to the other, under a throttle.

The plan says two nodes and r = 2, which leaves nowhere to move: here r = 1. All 100 partitions lie on, and are led
by, the first broker; their replicas move to the second (with ``add=yes`` they are added there, r 1 → 2). Two topics
go the same way without a throttle: *calibration* before the move, to learn how many bytes a NIC carries for one byte
of log, and *control* together with it, to show that only the listed replicas are held back.
"""

from testbed.experiments.criteria import RATES
from testbed.experiments.experiment import SuiteScenario
from testbed.experiments.kip73_layouts import two_node
from testbed.experiments.throttled_move import BRIEF, MODES, add, parameters, stored, throttled_experiment

EXPERIMENT = throttled_experiment(
    "kip73-two-node",
    "all 100 partitions move from one broker to the other at the throttled rate (KIP-73's test plan)",
    brokers=2,
    parameters=parameters(add(), stored()),
    layout=two_node,
    suites=(
        SuiteScenario("kip73", ("smoke",), "two-node", 3),
        SuiteScenario("kip73", ("ci",), "two-node", 6, ("rate=4MB/s",)),
        SuiteScenario("kip73", ("ci",), "two-node-default-fetch", 6, ("rate=4MB/s", "fetch=default")),
        *(
            SuiteScenario(
                "kip73",
                ("release",),
                f"two-node-{rate}-{fetch}",
                1,
                (f"rate={rate}MB/s", f"fetch={fetch}"),
                limit_s=1200.0,
            )
            for rate in (2, 5, 10, 20)
            for fetch in ("tuned", "default")
        ),
        *(
            SuiteScenario(
                "kip73", ("release",), f"two-node-add-{fetch}", 1, ("add=yes", f"fetch={fetch}"), limit_s=1200.0
            )
            for fetch in ("tuned", "default")
        ),
        *SuiteScenario("kip435", ("smoke",), "two-node", 1, ("rate=5MB/s", "preload=20s")).over(
            "mode", "batched", "incremental"
        ),
        *SuiteScenario("kip435", ("ci",), "two-node", 1, ("rate=5MB/s",)).over("mode", *MODES),
        *SuiteScenario("kip435", ("release",), "two-node", 1, limit_s=1800.0).over("mode", *MODES),
        SuiteScenario("brief", ("ci",), "move", 1, BRIEF),
        SuiteScenario("brief", ("ci",), "add", 2, (*BRIEF, "add=yes")),
        SuiteScenario("brief", ("ci",), "batched", 3, (*BRIEF, "mode=batched", "reassignment-batch-size=10")),
    ),
    # One replica of each partition: there is no ISR to leave.
    criteria=RATES,
)
