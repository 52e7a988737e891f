"""A restart of every broker, one after the other, during a move: the throttle holds and no record is lost.

r = 2: (A, B) → (C, B), led by A, while clients write. The action restarts C, the receiver, then B, which is in sync,
then A, the leader. After that B leads; the throttle lists B because it lists every existing replica. The next restart
follows when the restarted broker serves and is in sync, and `pause` has passed. No criterion judges windows across a
restart.
"""

from testbed.experiments.criteria import BOUNDS
from testbed.experiments.experiment import Parameter, SuiteScenario, number
from testbed.experiments.kip73_layouts import one_of_two
from testbed.experiments.mid_move_actions import RollingRestart
from testbed.experiments.throttled_move import MODES, load, parameters, throttled_experiment
from testbed.units import parse_duration

EXPERIMENT = throttled_experiment(
    "kip73-bounce",
    "brokers are restarted one after the other while data moves, r = 2",
    brokers=3,
    parameters=parameters(
        *load("500kB/s"),
        Parameter("pause", "12s", parse_duration, "between a broker's return and the next one's restart"),
        rate="4MB/s",
        # This duration includes the restarts: four spans of `pause` and three restarts.
        preload="66s",
    ),
    layout=one_of_two,
    action=lambda settings, hosts: RollingRestart(list(reversed(hosts)), number(settings, "pause")),
    profiles={"release": {"preload": "210s", "pause": "40s"}},
    # A restarted broker leaves its ISRs and sends no metrics while it is down: neither is judged here.
    criteria=(*BOUNDS, "brokers-restarted"),
    suites=(
        SuiteScenario("kip73", ("ci",), "bounce", 5),
        *SuiteScenario("kip73", ("release",), "bounce", 6).over("fetch", "tuned", "default"),
        *SuiteScenario("kip435", ("ci",), "bounce", 5).over("mode", "incremental"),
        *SuiteScenario("kip435", ("release",), "bounce", 10).over("mode", *MODES),
    ),
)
