"""What happens beside a move: the throttle changed, a stuck move noticed and raised, brokers restarted, a slow NIC."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from testbed.faults import Faults
from testbed.faults.catalogue.broker_restart import BrokerRestart
from testbed.faults.catalogue.nic_rate import NicRate
from testbed.reassignment.progress import Poll
from testbed.reassignment.stall import Stall as StuckMove
from testbed.reassignment.stall import StallDetector
from testbed.topology.model import Topology
from testbed.units import format_bit_rate, format_byte_rate
from testbed.wait import wait_for

if TYPE_CHECKING:
    from testbed.experiments.mover import Mover

BACK_IN_SYNC_S = 60.0
LAG_IS_OF_THE_MOVE_S = 1.5
"""By then the newest reading of the lag, which comes once a second, is not one from before the move."""
_LOOK_S = 0.2


class During:
    """Nothing happens. What is to happen overrides one of these; they are called in this order."""

    no_model: str = ""
    """Why no model says how long the move takes; empty: one does."""
    faults: frozenset[str] = frozenset()
    """The kinds of faults that are put in: brokers may say in their logs what belongs to them."""
    slowest_bytes_per_s: int = 0
    """The quota by which the move must come to its end at the latest; 0: the one it begins with."""

    @contextmanager
    def ground(self, _mover: "Mover") -> Iterator[None]:
        """Around everything from the NICs' measuring to the end of the sampling."""
        yield

    def measured_topology(self, topology: Topology) -> Topology:
        """What the NICs are declared to be within `ground`."""
        return topology

    def started(self, _mover: "Mover") -> None:
        """The move was accepted."""

    def look(self, _mover: "Mover", _poll: Poll) -> None:
        """At every look at the move; while it takes its time nobody looks at the move."""

    def missing(self) -> str:
        """What was to happen and did not, because the move was over before: empty when all did."""
        return ""


class LiveChange(During):
    """Gives the throttle other rates while the move goes on, each after `phase_s` of the one before."""

    def __init__(self, rates_bytes_per_s: Sequence[int], phase_s: float) -> None:
        self._rates = list(rates_bytes_per_s)
        self.slowest_bytes_per_s = min(self._rates)
        self._phase_s = phase_s
        self._next_s = 0.0

    def started(self, _mover: "Mover") -> None:
        """See `During.started`."""
        self._next_s = time.monotonic() + self._phase_s

    def look(self, mover: "Mover", poll: Poll) -> None:
        """See `During.look`."""
        if self._rates and poll.in_flight and time.monotonic() >= self._next_s:
            rate = self._rates[0]
            mover.context.progress(f"changing the throttle to {format_byte_rate(rate)}")
            mover.change_rate(rate)
            # Only now: a change that got no answer is asked for again at the next look.
            self._rates.pop(0)
            self._next_s = time.monotonic() + self._phase_s

    def missing(self) -> str:
        """See `During.missing`."""
        return f"the throttle was never {', '.join(map(format_byte_rate, self._rates))}" if self._rates else ""


class Stuck(During):
    """Notices that the summed lag has stopped falling, says so, and raises the throttle; once."""

    def __init__(self, raised_bytes_per_s: int, patience_s: float) -> None:
        self._raised = self.slowest_bytes_per_s = raised_bytes_per_s
        self._detector = StallDetector(patience_s)
        self._from_s = 0.0
        self._noticed = self._done = False

    def started(self, _mover: "Mover") -> None:
        """See `During.started`."""
        self._from_s = time.monotonic() + LAG_IS_OF_THE_MOVE_S

    def look(self, mover: "Mover", poll: Poll) -> None:
        """See `During.look`."""
        lag = mover.recorder.latest("driver", "move.lag")
        if self._done or lag is None or time.monotonic() < self._from_s:
            return
        stuck = self._detector.look(time.monotonic(), lag, done=poll.in_flight == 0)
        if stuck is not None and not self._noticed:
            self._tell(mover, stuck)
        if self._noticed:
            mover.change_rate(self._raised)
            self._done = True

    def _tell(self, mover: "Mover", stuck: StuckMove) -> None:
        self._noticed = True
        mover.recorder.event("move.stuck", "move", {"lag": stuck.lag, "seconds": round(stuck.seconds, 3)})
        mover.context.progress(
            f"stuck: the lag has not fallen for {stuck.seconds:.0f} s; raising to {format_byte_rate(self._raised)}"
        )
        mover.recorder.event("move.raised", "move", {"rate_bytes_per_s": self._raised})


class Bounce(During):
    """Restarts brokers one after the other; the next one after a pause in which everybody was back."""

    no_model = "brokers were restarted: how long nothing was copied is not modelled"
    faults = frozenset({BrokerRestart.kind})

    def __init__(self, hosts: Sequence[str], pause_s: float) -> None:
        self._left = list(hosts)
        self._pause_s = pause_s
        self._next_s = 0.0

    def started(self, _mover: "Mover") -> None:
        """See `During.started`."""
        self._next_s = time.monotonic() + self._pause_s

    def look(self, mover: "Mover", poll: Poll) -> None:
        """See `During.look`."""
        if self._left and poll.in_flight and time.monotonic() >= self._next_s:
            host = self._left.pop(0)
            mover.context.progress(f"restarting {host}")
            mover.recorder.event("broker.leaving", "restart", host=host)
            with Faults(mover.testbed).injected(BrokerRestart(host=host)):
                pass  # added: it was restarted and answers; healed: every broker serves
            wait_for(
                lambda: mover.out_of_sync(host),
                lambda missing: not missing,
                timeout_s=BACK_IN_SYNC_S,
                interval_s=_LOOK_S,
                what=f"{host} to be back in sync",
            )
            as_planned = mover.led_as_planned()
            mover.recorder.event("broker.back", "restart", {"leaders_as_planned": as_planned}, host=host)
            self._next_s = time.monotonic() + self._pause_s

    def missing(self) -> str:
        """See `During.missing`."""
        return f"not restarted: {', '.join(self._left)}" if self._left else ""


class SlowNic(During):
    """A host's NIC carries less than declared, as one that negotiated a lower rate."""

    no_model = "the NIC binds, not the quota"
    faults = frozenset({NicRate.kind})

    def __init__(self, host: str, rate_bps: int) -> None:
        self._fault = NicRate(host=host, rate=rate_bps)

    @contextmanager
    def ground(self, mover: "Mover") -> Iterator[None]:
        """See `During.ground`."""
        mover.context.progress(f"slowing the NIC of {self._fault.host} to {format_bit_rate(self._fault.rate)}")
        with Faults(mover.testbed).injected(self._fault):
            yield

    def measured_topology(self, topology: Topology) -> Topology:
        """See `During.measured_topology`."""
        return self._fault.reshaped(topology)
