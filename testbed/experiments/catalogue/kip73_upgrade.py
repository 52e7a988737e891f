"""Every broker is brought to another Kafka, one after the other, while data moves: the throttle holds, nothing is lost.

As `kip73-bounce`, from which it differs in what is started again; `to=same` is a restart with what ran before, beside
which an upgrade is held. The controller comes last. A broker that does not come back is given back what it had.
"""

from testbed.errors import SoftwareError
from testbed.experiments.criteria import BOUNDS
from testbed.experiments.experiment import Hosts, Parameter, Settings, Value, number, one_of
from testbed.experiments.kip73_layouts import one_of_two
from testbed.experiments.mid_move_actions import SAME, MidMoveAction, restart_or_upgrade
from testbed.experiments.throttled_move import inbound, parameters, throttled_experiment
from testbed.software.source import parse_source
from testbed.units import parse_duration


def _target(text: str) -> Value:
    if text == SAME:
        return SAME
    try:
        return str(parse_source(text))
    except SoftwareError as error:
        raise ValueError(str(error)) from error


def _action(settings: Settings, hosts: Hosts) -> MidMoveAction:
    finalize = settings["finalize"] == "yes"
    return restart_or_upgrade(str(settings["to"]), list(reversed(hosts)), number(settings, "pause"), finalize)


EXPERIMENT = throttled_experiment(
    "kip73-upgrade",
    "brokers are brought to another Kafka one after the other while data moves, r = 2",
    brokers=3,
    parameters=parameters(
        inbound("500kB/s"),
        Parameter("to", SAME, _target, "which Kafka (a version, a tarball, a built tree), or same: a mere restart"),
        Parameter("finalize", "no", one_of("no", "yes"), "yes: its features are switched on with the last broker"),
        Parameter("pause", "12s", parse_duration, "between a broker's return and the next one's upgrade"),
        rate="4MB/s",
        # Restarts included: four spans of `pause`, and three restarts with another class path.
        preload="78s",
    ),
    layout=one_of_two,
    action=_action,
    profiles={"release": {"preload": "210s", "pause": "40s"}},
    criteria=(*BOUNDS, "brokers-restarted"),
)
