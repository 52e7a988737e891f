"""KIP-73's Q&A 5: `replica.fetch.response.max.bytes` against quota × window.

As `kip73-two-node`, with responses of `response`. The broker checks the quota before a fetch and sends the first
response whole. Here the first response exceeds quota × window, and the first window alone breaks the quota. A response
well below quota × window (`response=1MiB`) keeps the quota.
"""

from dataclasses import replace

from testbed.experiments.criteria import BOUNDS
from testbed.experiments.experiment import Hosts, Settings, SuiteScenario, number
from testbed.experiments.kip73_layouts import lasting, moved, side, throttled_layout
from testbed.experiments.layout import Layout
from testbed.experiments.throttled_move import MODES, parameters, response, response_properties, throttled_experiment


def _layout(settings: Settings, hosts: Hosts) -> Layout:
    a, b = hosts
    # One partition, larger than a response: it shows that the control is not limited, and uses little of the first one.
    control = side("control", a, b, round(1.5 * number(settings, "response")), 1)
    return lasting(settings, replace(throttled_layout([moved(settings, (a,), (b,))], a, b), control=control))


EXPERIMENT = throttled_experiment(
    "kip73-fetch-size",
    "a response larger than quota × window: the first window's burst (KIP-73's Q&A 5)",
    brokers=2,
    parameters=parameters(response("32MiB"), rate="2MB/s", fetch="default"),
    layout=_layout,
    properties=response_properties,
    profiles={"release": {"preload": "120s"}},
    # One response exceeds a window's quota: any average over a window depends on the position of the window.
    criteria=("first-window", *BOUNDS, "control-unthrottled", "nic-conservation"),
    suites=(
        SuiteScenario("kip73", ("ci",), "fetch-size", 14),
        *SuiteScenario("kip73", ("release",), "fetch-size", 13).over("fetch", "tuned", "default"),
        *SuiteScenario("kip435", ("release",), "fetch-size", 12).over("mode", *MODES),
    ),
)
