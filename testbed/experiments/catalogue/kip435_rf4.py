"""KIP-435's motivation: four replicas are moved whole, and eight of them fetch, or lead, at the same time.

(A, B, C, D) → (E, F, G, H), led by A, under load. The NIC of H is slow, so that it is the last to catch up: by then the
other seven are in sync, and A sends what is written six times, and H's share. Replicas in sync are not held back:
after `phase` the throttle is `lowered` for as long, below what they take, and they take it all the same. In steps of
one replica no more than five of them fetch or lead.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from testbed.experiments.during import During, LiveChange, SlowNic
from testbed.experiments.experiment import Parameter
from testbed.experiments.kip73 import Hosts, Settings, number
from testbed.experiments.kip435 import led_by_one, whole_scenario
from testbed.experiments.mover import Mover
from testbed.topology.model import Topology
from testbed.units import parse_bit_rate, parse_byte_rate, parse_duration


class SlowLast(LiveChange):
    """The throttle is lowered and raised again, while one host's NIC is slow."""

    def __init__(self, slow: SlowNic, rates_bytes_per_s: list[int], phase_s: float) -> None:
        super().__init__(rates_bytes_per_s, phase_s)
        self.slowest_bytes_per_s = rates_bytes_per_s[-1]
        self._slow = slow
        self.no_model, self.faults = slow.no_model, slow.faults

    @contextmanager
    def ground(self, mover: Mover) -> Iterator[None]:
        """See `During.ground`."""
        with self._slow.ground(mover):
            yield

    def measured_topology(self, topology: Topology) -> Topology:
        """See `During.measured_topology`."""
        return self._slow.measured_topology(topology)


def _during(settings: Settings, hosts: Hosts) -> During:
    slow = SlowNic(hosts[-1], int(number(settings, "nic")))
    return SlowLast(slow, [int(number(settings, "lowered")), int(number(settings, "rate"))], number(settings, "phase"))


EXPERIMENT = whole_scenario(
    "kip435-rf4",
    "four replicas of every partition move to four other brokers: eight fetch or lead at once (KIP-435's motivation)",
    factor=4,
    more=(
        Parameter("nic", "16mbit", parse_bit_rate, "what the NIC of the last new broker carries"),
        Parameter("lowered", "1MB/s", parse_byte_rate, "the throttle in the second phase"),
        Parameter("phase", "12s", parse_duration, "how long the first and the second phase last"),
    ),
    rate="6MB/s",
    written="500kB/s",
    preload="40s",
    profiles={"release": {"preload": "90s", "phase": "30s"}},
    stage=led_by_one,
    during=_during,
)
