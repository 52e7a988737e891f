"""An empty broker joins and is filled under a wildcard throttle.

KIP-73 leaves a bootstrapping broker to `kafka-configs`, since nothing is reassigned: the broker has replicas, and
nothing in them. B is stopped, the topics (A, B) are filled through A alone, B's data folder is wiped and formatted
anew. Every replica of the topic is listed (`*`), the rates are set as the default of all brokers, and B starts.
"""

from testbed.experiments.bootstrap import Bootstrap
from testbed.experiments.criteria import RATES
from testbed.experiments.experiment import Parameter, SuiteScenario, one_of
from testbed.experiments.kip73 import (
    BRIEF,
    CONTROL_BYTES,
    STEPS,
    Hosts,
    Settings,
    lasting,
    number,
    parameters,
    scenario,
    side,
)
from testbed.experiments.scene import Group, Scene


def _stage(settings: Settings, hosts: Hosts) -> Scene:
    a, b = hosts
    partitions = range(int(number(settings, "partitions")))
    filled = Group("kip73", partitions, (a, b), (a, b), 1, empty=(b,))
    control = Group("control", range(4), (a, b), (a, b), CONTROL_BYTES, empty=(b,))
    calibration = side("calibration", a, b, 32_000_000)
    found = Scene((filled,), calibration=calibration, control=control, wildcard=True)
    return lasting(found, number(settings, "rate"), number(settings, "preload"))


EXPERIMENT = scenario(
    "kip73-bootstrap",
    "an empty broker joins and is filled under a wildcard throttle",
    brokers=2,
    parameters=parameters(
        Parameter("mode", "unbatched", one_of("unbatched"), "nothing is reassigned: there are no steps to take"),
        without=("mode", *STEPS),
    ),
    stage=_stage,
    make=Bootstrap,
    suites=(
        SuiteScenario("kip73", ("ci",), "bootstrap", 12, ("rate=4MB/s",)),
        *SuiteScenario("kip73", ("release",), "bootstrap", 11, limit_s=1200.0).over("fetch", "tuned", "default"),
        SuiteScenario("brief", ("ci",), "bootstrap", 5, BRIEF),
    ),
    criteria=(*RATES, "no-isr-shrink"),
)
