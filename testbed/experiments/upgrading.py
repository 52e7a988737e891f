"""Brokers brought to another Kafka, one after the other, while data moves."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from testbed.errors import TestbedError
from testbed.experiments.during import BACK_IN_SYNC_S, Bounce, During
from testbed.faults.catalogue.broker_restart import BrokerRestart
from testbed.kafka.errors import UnreachableError
from testbed.provision.testbed import Testbed
from testbed.provision.upgrade import cannot_join, rolling_upgrade
from testbed.reassignment.driver import DriverError
from testbed.reassignment.progress import Poll
from testbed.wait import wait_for

if TYPE_CHECKING:
    from testbed.experiments.mover import Mover

SAME = "same"
"""Instead of a Kafka: what each host runs already, so that brokers are merely restarted."""
_LOOK_S = 0.2


class Upgrade(During):
    """Brings hosts to another Kafka, the next one after a pause in which everybody was back.

    A host that does not come back with it is given back what it had, so that every record can be read; the move is
    then not done, and that is what the run tells.
    """

    no_model = "brokers were upgraded: how long nothing was copied is not modelled"
    faults = frozenset({BrokerRestart.kind})

    def __init__(self, hosts: Sequence[str], to: str, pause_s: float, finalize: bool = False) -> None:
        self._left = list(hosts)
        self._to, self._pause_s, self._finalize = to, pause_s, finalize
        self._next_s = 0.0
        self._leaving = ""

    @contextmanager
    def ground(self, mover: "Mover") -> Iterator[None]:
        """See `During.ground`: what is upgraded to is made ready before anything is measured.

        Raises `TestbedError` when it could never join the cluster: then no run says anything of it.
        """
        mover.context.progress(f"preparing Kafka {self._to}")
        release = mover.testbed.software.kafka(self._to)
        if wrong := cannot_join(mover.admin.features(), release.features):
            raise TestbedError(
                f"{release.version} is no upgrade of {', '.join(sorted(set(mover.testbed.state.kafka.values())))}: "
                f"{wrong}; leave the upgrade out, or begin with an older release"
            )
        mover.recorder.event("upgrade.prepared", release.version, {"digest": release.digest})
        yield

    def started(self, _mover: "Mover") -> None:
        """See `During.started`."""
        self._next_s = time.monotonic() + self._pause_s

    def look(self, mover: "Mover", poll: Poll) -> None:
        """See `During.look`. Raises `DriverError` when a host did not come back with the other Kafka."""
        if not (self._left and poll.in_flight and time.monotonic() >= self._next_s):
            return
        host = self._left[0]
        before = mover.testbed.state.kafka[host]
        if self._leaving != host:
            self._leaving = host
            mover.recorder.event("broker.leaving", "upgrade", {"to": self._to}, host=host)
        try:
            upgrade_one(mover.testbed, self._to, host, self._finalize and len(self._left) == 1, mover.context.progress)
            wait_for(
                lambda: mover.out_of_sync(host),
                lambda missing: not missing,
                timeout_s=BACK_IN_SYNC_S,
                interval_s=_LOOK_S,
                what=f"{host} to be back in sync",
            )
        except UnreachableError:
            raise  # asked again at the next look
        except TestbedError as error:
            mover.recorder.event("upgrade.failed", self._to, {"why": str(error)}, host=host)
            mover.context.progress(f"{host} did not come back with Kafka {self._to}: it is given back Kafka {before}")
            upgrade_one(mover.testbed, before, host, False, mover.context.progress)
            raise DriverError(f"the upgrade of {host} to Kafka {self._to} failed: {error}") from error
        self._left.pop(0)
        after = mover.testbed.state.kafka[host]
        detail = {"leaders_as_planned": mover.led_as_planned(), "before": before, "after": after}
        mover.recorder.event("broker.back", "upgrade", detail, host=host)
        self._next_s = time.monotonic() + self._pause_s

    def missing(self) -> str:
        """See `During.missing`."""
        return f"not upgraded: {', '.join(self._left)}" if self._left else ""


def upgrade_one(testbed: Testbed, to: str, host: str, finalize: bool, progress: Callable[[str], None]) -> None:
    """One host, as `testbed upgrade --hosts` does it."""
    rolling_upgrade(testbed, to, [host], finalize, progress=progress)


def during(to: str, hosts: Sequence[str], pause_s: float, finalize: bool) -> During:
    """Mere restarts where nothing else is to be run, an upgrade otherwise. Pure."""
    return Bounce(hosts, pause_s) if to == SAME else Upgrade(hosts, to, pause_s, finalize)
