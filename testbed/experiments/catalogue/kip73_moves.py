"""KIP-73's test plan: moves between two or three brokers, with and without clients that write to the partitions."""

from testbed.experiments.criteria import PROTECTED, RATES
from testbed.experiments.experiment import SuiteScenario
from testbed.experiments.kip73_layouts import one_to_two, swap, two_node, two_to_one
from testbed.experiments.throttled_move import (
    ADD,
    BRIEF,
    COMPARE,
    LIGHT,
    MODES,
    RELEASE,
    STORED,
    load,
    parameters,
    throttled_experiment,
)

TIERED = ("storage=tiered", "rate=4MB/s", "partitions=20")
STORED_LIMIT_S = 1800.0
"""A throttle of 4 MB/s for 52 s moves 208 MB on disk, so the store has 2.5 GB. They take 140 s to the store, and 160 s
to be read back by the audit (docs/measurements/tiered.md). The release profile has more than twice as many."""
BATCHED = ("mode=batched", "reassignment-batch-size=10")

EXPERIMENTS = (
    # KIP-73's first scenario: all partitions move from one broker to the other, under a throttle. KIP-73 asks for two
    # nodes and r = 2, which allows no move: here r = 1. The first broker leads all 100 partitions; their replicas move
    # to the second (with ``add=yes`` the move adds them there, r 1 → 2). Two topics move the same way without a
    # throttle. *calibration*, before the move, measures the bytes on the NIC per byte of log. *control*, together with
    # the move, shows that the throttle limits only the listed replicas.
    throttled_experiment(
        "kip73-two-node",
        "all 100 partitions move from one broker to the other at the throttled rate (KIP-73's test plan)",
        brokers=2,
        parameters=parameters(ADD, STORED),
        layout=two_node,
        suites=(
            # Partitions of more than three responses, so that one that is not held back shows.
            SuiteScenario("kip73", ("smoke",), "two-node", 3, ("partitions=50",)),
            SuiteScenario("kip73", ("ci",), "two-node", 6, ("rate=4MB/s",)),
            SuiteScenario("kip73", ("ci",), "two-node-default-fetch", 6, ("rate=4MB/s", "fetch=default")),
            *(
                SuiteScenario(
                    "kip73", ("release",), f"two-node-{rate}-{fetch}", 1, (f"rate={rate}MB/s", f"fetch={fetch}")
                )
                for rate in (2, 5, 10, 20)
                for fetch in ("tuned", "default")
            ),
            *(
                SuiteScenario("kip73", ("release",), f"two-node-add-{fetch}", 1, ("add=yes", f"fetch={fetch}"))
                for fetch in ("tuned", "default")
            ),
            *SuiteScenario("kip435", ("smoke",), "two-node", 1, (*BRIEF, "reassignment-batch-size=10")).over(
                "mode", "batched", "incremental"
            ),
            *SuiteScenario("kip435", ("ci",), "two-node", 1, ("rate=5MB/s",)).over("mode", *MODES),
            *SuiteScenario("kip435", ("release",), "two-node", 1).over("mode", *MODES),
            SuiteScenario("s3", ("ci", "release"), "throttle-tiered", 6, TIERED, topology="s3", limit_s=STORED_LIMIT_S),
            SuiteScenario(
                "s3", ("ci", "release"), "batches-tiered", 7, (*TIERED, *BATCHED), topology="s3", limit_s=STORED_LIMIT_S
            ),
            SuiteScenario("brief", ("ci",), "move", 1, BRIEF),
            SuiteScenario("brief", ("ci",), "add", 2, (*BRIEF, "add=yes")),
            SuiteScenario("brief", ("ci",), "batched", 3, (*BRIEF, *BATCHED)),
        ),
        # Each partition has one replica: no follower can leave the ISR.
        criteria=RATES,
    ),
    # KIP-73's second scenario: as `kip73-two-node`, while clients write to the moving partitions. Quota − inbound
    # remains for catching up, on both brokers: with r = 1 there is no follower in sync.
    throttled_experiment(
        "kip73-two-node-produce",
        "as kip73-two-node, while clients write to the moving partitions: quota − inbound is left",
        brokers=2,
        parameters=parameters(*load(), COMPARE, ADD),
        layout=two_node,
        profiles={"smoke": LIGHT, "release": RELEASE},
        suites=(
            SuiteScenario("kip73", ("ci",), "two-node-produce", 8, ("rate=3MB/s", "inbound=500kB/s")),
            *SuiteScenario("kip73", ("release",), "two-node-produce", 7).over("fetch", "tuned", "default"),
            *SuiteScenario("kip435", ("release",), "two-node-produce", 2).over("mode", *MODES),
            SuiteScenario("brief", ("ci",), "under-load", 4, (*BRIEF, "inbound=500kB/s")),
        ),
        criteria=(*RATES, "no-isr-shrink", *PROTECTED),
    ),
    # Two brokers give each other half of the partitions. Elsewhere a broker sends or receives. Here it does both, as in
    # most rebalances, and has a quota for each: with one quota for both the move would take twice as long. A NIC sends
    # TCP's acknowledgements of what it receives beside the data, so its bytes are not compared with the logs.
    throttled_experiment(
        "kip73-swap",
        "two brokers exchange their partitions: each has a quota for what it sends, and one for what it receives",
        brokers=2,
        parameters=parameters(rate="5MB/s"),
        layout=swap,
        suites=(
            SuiteScenario("kip73", ("ci",), "swap", 15, BRIEF),
            *SuiteScenario("kip73", ("release",), "swap", 15).over("fetch", "tuned", "default"),
            *SuiteScenario("kip435", ("release",), "swap", 16).over("mode", *MODES),
        ),
        criteria=[name for name in RATES if name != "nic-conservation"],
    ),
    # KIP-73's third scenario: three brokers, r = 2, data moves from one broker to the other two. A leads all
    # partitions; half move (A, B) → (C, B), half (A, C) → (B, C). Followers copy from the leader: A sends all bytes, B
    # and C receive half each. A's quota is the bottleneck.
    throttled_experiment(
        "kip73-one-to-two",
        "data moves from one broker to the other two, r = 2: the sender's quota binds",
        brokers=3,
        parameters=parameters(STORED, rate="6MB/s", preload="62s"),
        layout=one_to_two,
        suites=(
            SuiteScenario("kip73", ("ci",), "one-to-two", 1, ("rate=4MB/s",)),
            *SuiteScenario("kip73", ("release",), "one-to-two", 2).over("fetch", "tuned", "default"),
            *SuiteScenario("kip435", ("release",), "one-to-two", 3).over("mode", *MODES),
        ),
        criteria=(*RATES, "no-isr-shrink"),
    ),
    # As `kip73-one-to-two`, while clients write to the moving partitions. A's quota also records in-sync traffic: quota
    # − 2 × inbound remains for catching up. A sends in bursts (docs/kip73.md), and `inbound` decides in which burst the
    # move ends. `inbound` is low for that reason.
    throttled_experiment(
        "kip73-one-to-two-produce",
        "as kip73-one-to-two, while clients write to the moving partitions: quota − 2 × inbound is left",
        brokers=3,
        parameters=parameters(*load("1MB/s"), COMPARE, rate="6MB/s", preload="62s"),
        layout=one_to_two,
        profiles={"smoke": LIGHT, "release": RELEASE},
        suites=(
            SuiteScenario("kip73", ("ci",), "one-to-two-produce", 2, ("rate=3MB/s", "inbound=500kB/s")),
            *SuiteScenario("kip73", ("release",), "one-to-two-produce", 3).over("fetch", "tuned", "default"),
            *SuiteScenario("kip435", ("ci",), "one-to-two-produce", 2, ("rate=5MB/s", "inbound=1MB/s")).over(
                "mode", *MODES
            ),
            *SuiteScenario("kip435", ("release",), "one-to-two-produce", 4).over("mode", *MODES),
        ),
        criteria=(*RATES, "no-isr-shrink", *PROTECTED),
    ),
    # KIP-73's fourth scenario: three brokers, r = 2, data moves from two brokers to the third. Half of the partitions
    # move (A, B) → (C, B), led by A, half (B, A) → (C, A), led by B. C receives half of its bytes from each leader:
    # the receiver's quota is the bottleneck.
    throttled_experiment(
        "kip73-two-to-one",
        "data moves from two brokers to the third, r = 2: the receiver's quota binds",
        brokers=3,
        parameters=parameters(STORED, rate="6MB/s"),
        layout=two_to_one,
        suites=(
            SuiteScenario("kip73", ("ci",), "two-to-one", 3, ("rate=4MB/s",)),
            *SuiteScenario("kip73", ("release",), "two-to-one", 4).over("fetch", "tuned", "default"),
            *SuiteScenario("kip435", ("release",), "two-to-one", 5).over("mode", *MODES),
        ),
        criteria=(*RATES, "no-isr-shrink"),
    ),
    # As `kip73-two-to-one`, while clients write to the moving partitions: the receiver has quota − inbound for copying.
    throttled_experiment(
        "kip73-two-to-one-produce",
        "as kip73-two-to-one, while clients write to the moving partitions: quota − inbound is left",
        brokers=3,
        parameters=parameters(*load("2MB/s"), COMPARE, rate="6MB/s"),
        layout=two_to_one,
        profiles={"smoke": LIGHT, "release": RELEASE},
        suites=(
            SuiteScenario("kip73", ("smoke",), "two-to-one-produce", 1),
            SuiteScenario("kip73", ("ci",), "two-to-one-produce", 4, ("rate=3MB/s", "inbound=500kB/s")),
            *SuiteScenario("kip73", ("release",), "two-to-one-produce", 5).over("fetch", "tuned", "default"),
            *SuiteScenario("kip435", ("release",), "two-to-one-produce", 6).over("mode", *MODES),
        ),
        criteria=(*RATES, "no-isr-shrink", *PROTECTED),
    ),
)
