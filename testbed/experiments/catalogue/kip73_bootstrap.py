"""An empty broker joins and is filled under a wildcard throttle.

KIP-73 leaves the throttle of a bootstrapping broker to `kafka-configs`, because nothing is reassigned. The broker's
replicas exist but have no data. The experiment stops B, fills the topics (A, B) through A alone, and wipes and formats
B's data folder. It lists every replica of the topic (`*`), sets the rates as the default of all brokers, and starts B.
"""

from dataclasses import replace

from testbed.experiments.criteria import RATES
from testbed.experiments.empty_broker import empty_broker_run
from testbed.experiments.experiment import Hosts, Parameter, Settings, SuiteScenario, one_of
from testbed.experiments.kip73_layouts import CONTROL_BYTES, lasting, moved, throttled_layout
from testbed.experiments.layout import Layout, PartitionGroup
from testbed.experiments.throttled_move import BRIEF, STEPS, parameters, throttled_experiment


def _layout(settings: Settings, hosts: Hosts) -> Layout:
    a, b = hosts
    filled = replace(moved(settings, (a, b), (a, b)), empty=(b,))
    control = PartitionGroup("control", range(4), (a, b), (a, b), CONTROL_BYTES, empty=(b,))
    return lasting(settings, replace(throttled_layout([filled], a, b, wildcard=True), control=control))


EXPERIMENT = throttled_experiment(
    "kip73-bootstrap",
    "an empty broker joins and is filled under a wildcard throttle",
    brokers=2,
    parameters=parameters(
        Parameter("mode", "unbatched", one_of("unbatched"), "nothing is reassigned: there are no steps to take"),
        without=("mode", *STEPS),
    ),
    layout=_layout,
    make=empty_broker_run,
    criteria=(*RATES, "no-isr-shrink"),
    suites=(
        SuiteScenario("kip73", ("ci",), "bootstrap", 12, ("rate=4MB/s",)),
        *SuiteScenario("kip73", ("release",), "bootstrap", 11).over("fetch", "tuned", "default"),
        SuiteScenario("brief", ("ci",), "bootstrap", 5, BRIEF),
    ),
)
