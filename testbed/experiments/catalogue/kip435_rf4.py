"""KIP-435's motivation: four replicas are moved whole, and eight of them fetch, or lead, at the same time.

(A, B, C, D) → (E, F, G, H), led by A, under load: A sends what is written seven times, three times of it to replicas in
sync from the beginning. Those are not held back: after `phase` the throttle is `lowered` for as long, below what they
take, and they take it all the same. In steps of one replica no more than five of them fetch or lead.

Fetch settings are Kafka's own: no rate is judged, and eight brokers' fetches that hardly wait keep two cores busy.
"""

from testbed.experiments.criteria import LOAD
from testbed.experiments.during import During, LiveChange
from testbed.experiments.experiment import Parameter, SuiteScenario
from testbed.experiments.kip73 import MODES, Hosts, Settings, number
from testbed.experiments.kip435 import led_by_one, whole_scenario
from testbed.units import parse_byte_rate, parse_duration


class Lowered(LiveChange):
    """The throttle is lowered, and raised again; it is under the higher one that the move comes to its end."""

    def __init__(self, lowered_bytes_per_s: int, rate_bytes_per_s: int, phase_s: float) -> None:
        super().__init__([lowered_bytes_per_s, rate_bytes_per_s], phase_s)
        self.slowest_bytes_per_s = rate_bytes_per_s


def _during(settings: Settings, _hosts: Hosts) -> During:
    return Lowered(int(number(settings, "lowered")), int(number(settings, "rate")), number(settings, "phase"))


EXPERIMENT = whole_scenario(
    "kip435-rf4",
    "four replicas of every partition move to four other brokers: eight fetch or lead at once (KIP-435's motivation)",
    factor=4,
    more=(
        Parameter("lowered", "1MB/s", parse_byte_rate, "the throttle in the second phase"),
        Parameter("phase", "12s", parse_duration, "how long the first and the second phase last"),
    ),
    rate="6MB/s",
    written="500kB/s",
    preload="40s",
    fetch="default",
    profiles={"release": {"preload": "90s", "phase": "30s"}},
    stage=led_by_one,
    during=_during,
    suites=(
        *SuiteScenario("kip435", ("ci",), "rf4", 6).over("mode", "unbatched", "batched"),
        *SuiteScenario("kip435", ("release",), "rf4", 14, limit_s=1800.0).over("mode", *MODES),
    ),
    # The throttle is lowered below the in-sync replication traffic on purpose: no rate is promised.
    criteria=("no-isr-shrink", "replicas-fetching", "in-sync-unbounded", *LOAD),
)
