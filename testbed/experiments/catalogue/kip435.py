"""KIP-435: all replicas move from one half of the brokers to the other, under load, in each mode.

`kip435-exchange` moves (A, B) → (C, D) and (B, A) → (D, C) while clients write and read. `testbed run batching-compare`
executes the same plan in every `mode` under the same load.

`kip435-rf4` is KIP-435's motivation: (A, B, C, D) → (E, F, G, H), led by A. A sends inbound traffic seven times, three
times of it to replicas in sync. The throttle does not limit in-sync traffic. After `phase` the action sets the throttle
to `lowered`, below the rate of in-sync traffic, for another `phase`. The replicas stay in sync. In steps of one replica
at most five replicas fetch or lead.

`kip435-example` is the KIP's example, (0,1,2,3,4) → (5,6,7,8,9) with R = 2, on ten brokers. Every partition has its
replicas in another order. The metadata log shows the steps. It judges no rate, as ten brokers keep two cores busy.

`kip435-rf4` uses Kafka's default fetch settings. No criterion judges its rate, and shorter waits would keep two cores
busy.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from testbed.errors import UsageError
from testbed.experiments.criteria import BOUNDS, LOAD
from testbed.experiments.experiment import (
    Experiment,
    Hosts,
    Parameter,
    Settings,
    SuiteScenario,
    above_zero,
    number,
    whole,
)
from testbed.experiments.kip73_layouts import led_by_one, whole_move
from testbed.experiments.layout import Layout
from testbed.experiments.mid_move_actions import LiveChange, MidMoveAction
from testbed.experiments.reassignment_run import monitored_run
from testbed.experiments.throttled_move import MODES, limit, load, no_action, parameters, throttled_experiment
from testbed.units import format_byte_rate, parse_byte_rate, parse_duration

PARTITIONS = 20


class ThrottleDip(LiveChange):
    """An action that lowers the throttle and raises it again. The move ends under the higher throttle."""

    def __init__(self, lowered_bytes_per_s: int, rate_bytes_per_s: int, phase_s: float) -> None:
        super().__init__([lowered_bytes_per_s, rate_bytes_per_s], phase_s)
        self.slowest_bytes_per_s = rate_bytes_per_s


def _action(settings: Settings, _hosts: Hosts) -> MidMoveAction:
    lowered, rate = int(number(settings, "lowered")), int(number(settings, "rate"))
    if lowered >= rate:
        raise UsageError(f"lowered={format_byte_rate(lowered)} is not below rate={format_byte_rate(rate)}")
    return ThrottleDip(lowered, rate, number(settings, "phase"))


def whole_experiment(
    name: str,
    summary: str,
    *,
    factor: int,
    more: Sequence[Parameter] = (),
    defaults: Mapping[str, str] | None = None,
    rate: str,
    written: str,
    preload: str,
    fetch: str = "tuned",
    profiles: Mapping[str, Mapping[str, str]],
    criteria: Sequence[str],
    layout: Callable[[Settings, Hosts], Layout] = whole_move,
    action: Callable[[Settings, Hosts], MidMoveAction] = no_action,
    suites: Sequence[SuiteScenario] = (),
) -> Experiment:
    """Return an experiment on twice as many brokers as a partition has replicas; a monitor runs in every mode."""
    values = {"partitions": str(PARTITIONS), "reassignment-batch-size": "5", **(defaults or {})}
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
    return throttled_experiment(
        name,
        summary,
        brokers=2 * factor,
        parameters=[replace(each, default=values.get(each.name, each.default)) for each in common],
        layout=layout,
        action=action,
        profiles=profiles,
        make=monitored_run,
        suites=suites,
        criteria=criteria,
    )


EXPERIMENTS = (
    whole_experiment(
        "kip435-example",
        "KIP-435's own example: (0,1,2,3,4) → (5,6,7,8,9) on ten brokers, step by step",
        factor=5,
        defaults={"partitions": "5", "mode": "batched", "replicas": "2"},
        rate="4MB/s",
        written="200kB/s",
        preload="20s",
        fetch="default",
        profiles={},
        criteria=("no-isr-shrink", "replicas-fetching", "live-records"),
        suites=SuiteScenario("kip435", ("release",), "example-r", 15).over("replicas", "1", "2", "none"),
    ),
    whole_experiment(
        "kip435-exchange",
        "two replicas of every partition move to two other brokers, under load, at once or in steps (KIP-435)",
        factor=2,
        rate="8MB/s",
        written="1MB/s",
        preload="30s",
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
    whole_experiment(
        "kip435-rf4",
        "four replicas of every partition move to four other brokers: "
        "eight fetch or lead at once (KIP-435's motivation)",
        factor=4,
        more=(
            Parameter("lowered", "1MB/s", above_zero(parse_byte_rate), "the throttle in the second phase"),
            Parameter("phase", "12s", above_zero(parse_duration), "how long the first and the second phase last"),
        ),
        rate="6MB/s",
        written="500kB/s",
        preload="40s",
        fetch="default",
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
