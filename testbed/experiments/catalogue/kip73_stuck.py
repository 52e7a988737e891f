"""A throttle below the inbound rate: the move stalls, and the action raises the throttle (KIP-73's Q&A).

As `kip73-two-node-produce`, but clients write more than `rate` allows: the summed lag grows. When the lag has not
fallen for `patience`, the action reports a stall and sets the throttle to `raised`. The move then ends in `preload` or
less. The increase allows bursts, and the size is chosen so that the move ends within a burst (docs/kip73.md).
"""

from testbed.errors import UsageError
from testbed.experiments.criteria import BOUNDS, LOAD
from testbed.experiments.experiment import Hosts, Parameter, Settings, SuiteScenario, above_zero, number
from testbed.experiments.kip73_layouts import moved, sized_for, throttled_layout
from testbed.experiments.layout import Layout
from testbed.experiments.load import ALONE_S, WARM_LOOK_S
from testbed.experiments.mid_move_actions import RaiseAfterStall
from testbed.experiments.throttled_move import MODES, load, parameters, throttled_experiment
from testbed.throttle.quota_window import BURST_BYTES_PER_S, bytes_after_a_raise
from testbed.units import format_byte_rate, parse_byte_rate, parse_duration

NOTICED_S = 2.3
"""Seconds in addition to `patience`: the lag still falls at the start of a move, and has one sample a second."""


def _layout(settings: Settings, hosts: Hosts) -> Layout:
    a, b = hosts
    rate, written = number(settings, "rate"), number(settings, "inbound")
    if written <= rate:
        raise UsageError(
            f"inbound={format_byte_rate(written)} is not above rate={format_byte_rate(rate)}: nothing would be stuck; "
            "raise inbound, or lower rate"
        )
    raised, move_s = number(settings, "raised"), number(settings, "preload")
    layout = throttled_layout([moved(settings, (a,), (b,), written)], a, b)
    whole = sized_for(layout, raised, move_s)  # raises for a move that never makes progress
    raised_at_s = number(settings, "patience") + NOTICED_S
    total = bytes_after_a_raise(written, (rate, raised), raised_at_s, raised_at_s + move_s, BURST_BYTES_PER_S)
    # The load also writes to the moving partitions before the move: while brokers warm up, and while it runs alone.
    total -= round(written * (WARM_LOOK_S + ALONE_S))
    return whole.sized(total) if total > 0 else whole


EXPERIMENT = throttled_experiment(
    "kip73-stuck",
    "a throttle below the inbound rate is noticed as stuck and raised",
    brokers=2,
    parameters=parameters(
        *load(),
        Parameter("raised", "10MB/s", above_zero(parse_byte_rate), "the throttle after the stall"),
        Parameter(
            "patience", "15s", above_zero(parse_duration), "how long the lag may not fall before that is called stuck"
        ),
        rate="2MB/s",
        preload="40s",
    ),
    layout=_layout,
    action=lambda settings, _hosts: RaiseAfterStall(int(number(settings, "raised")), number(settings, "patience")),
    profiles={"release": {"preload": "120s", "patience": "60s"}},
    criteria=(*BOUNDS, "duration-model", "stall-detected", "no-isr-shrink", *LOAD),
    suites=(
        SuiteScenario("kip73", ("ci",), "stuck", 11, ("raised=8MB/s",)),
        *SuiteScenario("kip73", ("release",), "stuck", 10).over("fetch", "tuned", "default"),
        *SuiteScenario("kip435", ("release",), "stuck", 9).over("mode", *MODES),
    ),
)
