"""KIP-435: all replicas move from one half of the brokers to the other, under load, in each mode.

`kip435-exchange` moves (A, B) → (C, D) and (B, A) → (D, C) while clients write and read. `testbed run batching-compare`
executes the same plan in every `mode` under the same load.

`kip435-rf4` is KIP-435's motivation: (A, B, C, D) → (E, F, G, H), led by A. A sends inbound traffic seven times, three
times of it to replicas in sync. The throttle does not limit in-sync traffic. After `phase` the action sets the throttle
to `lowered`, below the rate of in-sync traffic, for another `phase`. The replicas stay in sync. In steps of one replica
at most five replicas fetch or lead. It uses Kafka's default fetch settings, as shorter waits would keep two cores busy.
No criterion judges its rate.

`kip435-example` is the KIP's example, (0,1,2,3,4) → (5,6,7,8,9) with R = 2, on ten brokers. Every partition has its
replicas in another order. The metadata log shows the steps. It judges no rate, as ten brokers keep two cores busy.
"""

from dataclasses import replace

from testbed.errors import UsageError
from testbed.experiments.criteria import BOUNDS, LOAD
from testbed.experiments.experiment import Hosts, Parameter, Settings, SuiteScenario, above_zero, number, whole
from testbed.experiments.kip73_layouts import led_by_one, whole_move
from testbed.experiments.load_shape import load_shape
from testbed.experiments.mid_move_actions import LiveChange, MidMoveAction
from testbed.experiments.reassignment_run import monitored_run
from testbed.experiments.throttled_move import (
    MODES,
    RELEASE,
    limit,
    load,
    mode_of,
    parameters,
    throttled_experiment,
)
from testbed.units import format_byte_rate, parse_byte_rate, parse_duration

ABOVE = 1.1
"""How many times the lowered throttle replicas in sync take at least: they fetch in bursts, and a phase lasts 12 s."""


def _action(settings: Settings, hosts: Hosts) -> MidMoveAction:
    lowered, rate = int(number(settings, "lowered")), int(number(settings, "rate"))
    if lowered >= rate:
        raise UsageError(f"lowered={format_byte_rate(lowered)} is not below rate={format_byte_rate(rate)}; give less")
    followers, inbound = len(hosts) // 2 - 1, number(settings, "inbound")
    taken = followers * inbound * load_shape(settings).log_bytes_per_byte
    if mode_of(settings) == "unbatched" and taken < ABOVE * lowered:
        raise UsageError(
            f"lowered={format_byte_rate(lowered)} is not below what {followers} replicas in sync take of "
            f"inbound={format_byte_rate(inbound)}, {format_byte_rate(taken, 3)}: the run could not show whether it "
            "holds them back; lower it, or raise inbound"
        )
    return LiveChange([lowered, rate], number(settings, "phase"))


def _parameters(
    factor: int, written: str, *more: Parameter, rate: str, preload: str, fetch: str = "tuned", **defaults: str
) -> list[Parameter]:
    """Return the parameters of the move of partitions with `factor` replicas each; `defaults` replace theirs."""
    common = parameters(
        *load(written),
        Parameter("per-broker", "none", limit, "in steps: replicas that are copied to one broker at once, or none"),
        Parameter("starts", "none", limit, "mode=incremental: copies that begin in one turn of 0.5 s, or none"),
        Parameter("min-insync", "2", whole(1, factor), "min.insync.replicas of the moving partitions"),
        *more,
        rate=rate,
        fetch=fetch,
        preload=preload,
    )
    values = {"partitions": "20", "reassignment-batch-size": "5", **defaults}
    return [replace(each, default=values.get(each.name, each.default)) for each in common]


EXPERIMENTS = (
    throttled_experiment(
        "kip435-example",
        "KIP-435's own example: (0,1,2,3,4) → (5,6,7,8,9) on ten brokers, step by step",
        brokers=10,
        parameters=_parameters(
            5, "200kB/s", rate="4MB/s", preload="20s", fetch="default", partitions="5", mode="batched", replicas="2"
        ),
        layout=whole_move,
        make=monitored_run,
        profiles={"smoke": {"preload": "10s"}, "release": RELEASE},
        criteria=("no-isr-shrink", "replicas-fetching", "live-records"),
        suites=SuiteScenario("kip435", ("release",), "example-r", 15).over("replicas", "1", "2", "none"),
    ),
    throttled_experiment(
        "kip435-exchange",
        "two replicas of every partition move to two other brokers, under load, at once or in steps (KIP-435)",
        brokers=4,
        parameters=_parameters(2, "1MB/s", rate="8MB/s", preload="30s"),
        layout=whole_move,
        make=monitored_run,
        profiles={"smoke": {"preload": "20s"}, "release": {"preload": "90s"}},
        criteria=(*BOUNDS, "control-unthrottled", "no-isr-shrink", "replicas-fetching", *LOAD),
        suites=(
            *SuiteScenario("kip435", ("smoke",), "exchange", 2).over("mode", "batched"),
            *SuiteScenario("kip435", ("ci",), "exchange", 3).over("mode", *MODES),
            *SuiteScenario("kip435", ("release",), "exchange", 13).over("mode", *MODES),
            *SuiteScenario("kip435", ("release",), "exchange-r2", 13, ("replicas=2",)).over("mode", *MODES[1:]),
            *SuiteScenario("kip435", ("release",), "exchange-p1", 13, ("reassignment-batch-size=1",)).over(
                "mode", *MODES[1:]
            ),
            *SuiteScenario("kip435", ("release",), "exchange-l1", 13, ("leaders=1",)).over("mode", *MODES[1:]),
            SuiteScenario(
                "kip435", ("release",), "exchange-paced", 13, ("mode=incremental", "per-broker=3", "starts=1")
            ),
        ),
    ),
    throttled_experiment(
        "kip435-rf4",
        "four replicas of every partition move to four other brokers: "
        "eight fetch or lead at once (KIP-435's motivation)",
        brokers=8,
        parameters=_parameters(
            4,
            "500kB/s",
            Parameter("lowered", "1MB/s", above_zero(parse_byte_rate), "the throttle in the second phase"),
            Parameter("phase", "12s", above_zero(parse_duration), "how long the first and the second phase last"),
            rate="6MB/s",
            preload="40s",
            fetch="default",
        ),
        make=monitored_run,
        profiles={"release": {"preload": "90s", "phase": "30s"}},
        layout=led_by_one,
        action=_action,
        # The action sets the throttle below the in-sync replication traffic on purpose: no criterion judges the rate.
        criteria=("no-isr-shrink", "replicas-fetching", "in-sync-unbounded", *LOAD),
        suites=(
            *SuiteScenario("kip435", ("ci",), "rf4", 6).over("mode", "unbatched", "batched"),
            *SuiteScenario("kip435", ("release",), "rf4", 14).over("mode", *MODES),
        ),
    ),
)
