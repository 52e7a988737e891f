"""A quota above the NIC's rate: the measured rate is the NIC's, not the quota's.

As `kip73-two-node`. The action slows the sender's NIC to `nic` after the topics are filled; the run measures the NICs
in that state. There is no control: its partitions would share the NIC with the throttled ones and be equally slow.
"""

from testbed.errors import UsageError
from testbed.experiments.experiment import Hosts, Parameter, Settings, SuiteScenario, above_zero, number
from testbed.experiments.kip73_layouts import moved, sized_for, throttled_layout
from testbed.experiments.layout import Layout
from testbed.experiments.mid_move_actions import SlowNic
from testbed.experiments.throttled_move import MODES, parameters, throttled_experiment
from testbed.network.shape import payload_bytes_per_s
from testbed.units import format_bit_rate, format_byte_rate, parse_bit_rate


def _layout(settings: Settings, hosts: Hosts) -> Layout:
    a, b = hosts
    nic, rate = int(number(settings, "nic")), number(settings, "rate")
    carries = payload_bytes_per_s(nic)
    if rate < 1.5 * carries:
        raise UsageError(
            f"rate={format_byte_rate(rate)} is not well above what nic={format_bit_rate(nic)} carries, "
            f"{format_byte_rate(carries, 3)}: the run could not show which of the two bound; give a higher rate, or a "
            "slower nic"
        )
    whole = throttled_layout([moved(settings, (a,), (b,))], a, b, control=False)
    return sized_for(whole, carries, number(settings, "preload"))


EXPERIMENT = throttled_experiment(
    "kip73-nic-bound",
    "a quota above the NIC's rate: the NIC binds",
    brokers=2,
    parameters=parameters(
        Parameter("nic", "80mbit", above_zero(parse_bit_rate), "the rate of the sender's NIC, both ways"), rate="40MB/s"
    ),
    layout=_layout,
    action=lambda settings, hosts: SlowNic(hosts[0], int(number(settings, "nic"))),
    nic_bound=True,
    profiles={"release": {"preload": "120s"}},
    # The quota limits nothing: control and moving partitions advance alike, and no broker uses its whole quota. The NIC
    # carries at most two thirds of it, so no time has more bytes than the throttle's bound, whatever a broker does.
    criteria=("broker-rate-agrees", "nic-bound"),
    suites=(
        SuiteScenario("kip73", ("ci",), "nic-bound", 13, ("nic=48mbit", "rate=24MB/s")),
        *SuiteScenario("kip73", ("release",), "nic-bound", 12).over("fetch", "tuned", "default"),
        *SuiteScenario("kip435", ("release",), "nic-bound", 11).over("mode", *MODES),
    ),
)
