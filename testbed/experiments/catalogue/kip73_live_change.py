"""The action raises and lowers the throttle during a move, without a restart (a goal of KIP-73).

As `kip73-two-node`. The move begins at `rate`. The action sets the throttle to `raised` after `phase`, and to `lowered`
after another `phase`. The move ends under `lowered`. Criteria judge a phase only after every broker reports its quota.

After a decrease the quota admits no bytes until enough of the earlier bytes have left the window. It then admits bytes
at the old rate, as they leave, until these are used up. After an increase it admits the difference at once. Both cause
bursts at up to the NIC's rate, one window apart. A window may have two bursts or none: measured second windows had 0.74
to 1.12 of the quota. Only the mean over one window's time of windows shows whether the quota holds. A phase therefore
lasts three windows, plus the samples at their edges.
"""

from results.criteria.catalogue.steady_mean import STEADY_LOWEST
from testbed.errors import UsageError
from testbed.experiments.criteria import BOUNDS
from testbed.experiments.experiment import Hosts, Parameter, Settings, SuiteScenario, above_zero, number
from testbed.experiments.kip73_layouts import moved, throttled_layout
from testbed.experiments.layout import Layout
from testbed.experiments.mid_move_actions import LiveChange, MidMoveAction
from testbed.experiments.throttled_move import MODES, parameters, throttled_experiment
from testbed.units import format_byte_rate, parse_byte_rate, parse_duration


def _layout(settings: Settings, hosts: Hosts) -> Layout:
    a, b = hosts
    rate, raised, lowered = (number(settings, name) for name in ("rate", "raised", "lowered"))
    whole = throttled_layout([moved(settings, (a,), (b,))], a, b)
    return whole.sized(round((rate + raised + lowered) * number(settings, "phase")))


def _action(settings: Settings, _hosts: Hosts) -> MidMoveAction:
    rate, raised, lowered = (int(number(settings, name)) for name in ("rate", "raised", "lowered"))
    if raised <= rate:
        raise UsageError(f"raised={format_byte_rate(raised)} is not above rate={format_byte_rate(rate)}; give more")
    if lowered >= raised:
        above = format_byte_rate(raised)
        raise UsageError(f"lowered={format_byte_rate(lowered)} is not below raised={above}; give less")
    least = round((1 - STEADY_LOWEST) * (rate + raised))
    if lowered < least:
        raise UsageError(
            f"lowered={format_byte_rate(lowered)} is too low: what healthy brokers leave of the first two phases would "
            f"take longer than a phase under it; give {format_byte_rate(least)} or more"
        )
    return LiveChange([raised, lowered], number(settings, "phase"))


EXPERIMENT = throttled_experiment(
    "kip73-live-change",
    "the throttle is raised and lowered while data moves, without a restart",
    brokers=2,
    parameters=parameters(
        Parameter("raised", "9MB/s", above_zero(parse_byte_rate), "the second throttle"),
        Parameter("lowered", "7MB/s", above_zero(parse_byte_rate), "the third throttle, under which the move ends"),
        Parameter("phase", "40s", above_zero(parse_duration), "how long each throttle is in force"),
        rate="5MB/s",
        without=("preload",),
    ),
    layout=_layout,
    action=_action,
    profiles={"release": {"phase": "60s"}},
    criteria=(*BOUNDS, "rate-after-throttle-change", "control-unthrottled", "duration-model", "throttle-changed"),
    suites=(
        SuiteScenario("kip73", ("smoke",), "live-change", 2),
        SuiteScenario("kip73", ("ci",), "live-change", 9),
        *SuiteScenario("kip73", ("release",), "live-change", 8).over("fetch", "tuned", "default"),
        *SuiteScenario("kip435", ("ci",), "live-change", 4).over("mode", "batched"),
        *SuiteScenario("kip435", ("release",), "live-change", 7).over("mode", *MODES),
    ),
)
