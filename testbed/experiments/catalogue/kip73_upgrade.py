"""An upgrade of every broker, one after the other, during a move: the throttle holds and no record is lost.

As `kip73-bounce`, but each host starts another Kafka. `to=same` restarts the same version, as the baseline of an
upgrade. The controller's host is the last. A host whose broker does not serve again gets its old version back.
`direction=down` measures the way back: the cluster runs the other Kafka before the move begins, with its own features.
"""

from testbed.errors import UsageError
from testbed.experiments.criteria import BOUNDS
from testbed.experiments.experiment import Hosts, Parameter, Settings, Value, number, one_of
from testbed.experiments.kip73_layouts import one_of_two
from testbed.experiments.mid_move_actions import SAME, MidMoveAction, RollingRestart, Upgrade
from testbed.experiments.throttled_move import load, parameters, throttled_experiment
from testbed.software.source import parse_source
from testbed.units import parse_duration


def _target(text: str) -> Value:
    if text == SAME:
        return SAME
    try:
        return str(parse_source(text))
    except UsageError as error:
        raise ValueError(str(error)) from error


def _action(settings: Settings, hosts: Hosts) -> MidMoveAction:
    finalize, down = settings["finalize"] == "yes", settings["direction"] == "down"
    if finalize and down:
        raise UsageError(
            "finalize=yes and direction=down: no cluster goes back to a Kafka without its finalized features; leave "
            "one out"
        )
    if settings["to"] == SAME and (down or finalize):
        given = "direction=down" if down else "finalize=yes"
        raise UsageError(f"{given} needs another Kafka in `to`, not {SAME}")
    in_turn, pause_s = list(reversed(hosts)), number(settings, "pause")
    if settings["to"] == SAME:
        return RollingRestart(in_turn, pause_s)
    return Upgrade(in_turn, str(settings["to"]), pause_s, finalize, down)


EXPERIMENT = throttled_experiment(
    "kip73-upgrade",
    "brokers are brought to another Kafka one after the other while data moves, r = 2",
    brokers=3,
    parameters=parameters(
        *load("500kB/s"),
        Parameter("to", SAME, _target, "which Kafka (a version, a tarball, a built tree), or same: a mere restart"),
        Parameter("finalize", "no", one_of("no", "yes"), "yes: its features are switched on with the last broker"),
        Parameter("direction", "up", one_of("up", "down"), "down: from `to` back to the testbed's own Kafka"),
        Parameter("pause", "12s", parse_duration, "between a broker's return and the next one's upgrade"),
        rate="4MB/s",
        # This duration includes the restarts: four spans of `pause`, and three restarts with another class path.
        preload="78s",
    ),
    layout=one_of_two,
    action=_action,
    profiles={"release": {"preload": "210s", "pause": "40s"}},
    criteria=(*BOUNDS, "brokers-restarted"),
)
