"""An empty broker joins and is filled: no reassignment, but replicas of its own that have nothing in them."""

import re
import time

from results.contract.manifest import Differences, Done, InForce
from results.contract.schema import Sample
from testbed.experiments.mover import SAMPLE_S, Mover, Transferred, put_back
from testbed.faults import Faults
from testbed.faults.catalogue.broker_term import BrokerTerm
from testbed.kafka.errors import KafkaError, UnreachableError
from testbed.kafka.node import DATA_DIR
from testbed.kafka.types import TopicPartition
from testbed.probes.logwatch import Allowance, during, new_replicas
from testbed.probes.recorder import now_us
from testbed.reassignment.driver import Driver, DriverError
from testbed.reassignment.plan import Plan
from testbed.reassignment.progress import Poll
from testbed.signals import TerminationGuard, deferred_signals
from testbed.software.format import CHECKPOINT, META, meta_properties, new_id
from testbed.throttle.configs import ThrottleError
from testbed.throttle.journal import JournalFolder
from testbed.throttle.recovery import RestoreError
from testbed.throttle.throttle import Throttle
from testbed.wait import WaitTimeout, wait_for

_WHY = (
    "A broker whose folder is another one tells the controller in which folder its replicas are now. The first time it "
    "does so with the epoch of the registration before; it is refused and asks again, as it says."
)
_EMPTY_FOLDER = (
    Allowance(
        logger="org.apache.kafka.server.AssignmentsManager",
        pattern=re.compile(
            r"\[AssignmentsManager id=\d+\] handleResponse: \d+ assignments failed; global error: "
            r"Response-level error: STALE_BROKER_EPOCH\. Retrying\."
        ),
        why=_WHY,
        levels=("ERROR",),
    ),
    Allowance(
        logger="kafka.server.ControllerApis",
        pattern=re.compile(
            r"\[ControllerApis nodeId=\d+\] Unexpected error handling request "
            r"RequestHeader\(apiKey=ASSIGN_REPLICAS_TO_DIRS, .+ with context RequestContext\(.+\)"
        ),
        why=_WHY,
        levels=("ERROR",),
        thrown=re.compile(r"org\.apache\.kafka\.common\.errors\.StaleBrokerEpochException:.*"),
    ),
)
IN_FORCE_S = 30.0
LOOK_S = 0.5


class Bootstrap(Mover):
    """The broker is stopped, the topics are filled without it, its data folder is wiped and formatted anew; with the
    throttle in force everywhere else, as every broker's default, it is started and fetches what it lacks."""

    _stopped: int | None = None
    _filling: Throttle
    _done: Done
    _in_force: InForce
    _control_missing = 0
    _left_there: tuple[str, ...] = ()

    def __exit__(self, *error: object) -> None:
        self._start()
        super().__exit__(*error)

    def allowances(self) -> list[Allowance]:
        """See `Mover.allowances`."""
        # When the calibration's copies are taken back their leader's broker makes its replicas known anew, too.
        again = new_replicas([self.scene.calibration.topic], [self.scene.calibration.leader])
        return [*super().allowances(), again, *during([BrokerTerm.kind]), *_EMPTY_FOLDER]

    def prepare(self) -> Differences:
        """The topics, with the calibration's records alone: the others are written without the broker."""
        self.create()
        self.preload([fill for fill in self.fills if fill.topic == self.scene.calibration.topic])
        return Differences(False, ("the broker was never stopped",))

    def calibrate(self) -> float | None:
        """As `Mover.calibrate`; afterwards the broker has none of it, so that wiping it loses nothing."""
        factor = super().calibrate()
        group = self.scene.calibration
        leader = self.ids[group.leader]
        try:
            with Driver(self.admin, JournalFolder(), cancel_on_error=True) as driver:
                driver.execute(Plan(dict.fromkeys(group.tps(), (leader,))), None)
                driver.follow(timeout_s=IN_FORCE_S, interval_s=0.2)
        except (DriverError, KafkaError) as error:
            self._left_there = (f"the calibration's copies were not taken back from {self.joining}: {error}",)
            self.recorder.event("note", "the calibration was not taken back", {"error": str(error)})
        return factor

    def stage(self) -> Differences:
        """Stop the broker, fill the topics without it, and give it an empty data folder."""
        host = self.joining
        self.context.progress(f"stopping {host}")
        self._stopped = Faults(self.testbed).add(BrokerTerm(host=host))
        self.preload([fill for fill in self.fills if fill.topic != self.scene.calibration.topic])
        self._format(host)
        groups = [group for group in self.scene.groups if group is not self.scene.calibration]
        found = self.placed(groups)
        self.recorder.wait_for_all()  # the sizes that were sampled last are those of the filled topics
        return Differences(found.ok and not self._left_there, (*self._left_there, *found.differences))

    @property
    def joining(self) -> str:
        """The host of the broker that joins."""
        (host,) = {host for group in self.scene.listed for host in group.empty}
        return host

    def _format(self, host: str) -> None:
        """What `kafka-storage format` leaves of a folder: another directory id, the same node and cluster."""
        shell = self.testbed.hosts[host]
        keep = ["!", "-name", CHECKPOINT]
        shell.run(["find", DATA_DIR, "-mindepth", "1", "-maxdepth", "1", *keep, "-exec", "rm", "-rf", "{}", "+"])
        meta = meta_properties(self.testbed.state.cluster_id, self.ids[host], new_id())
        shell.put(meta.encode(), f"{DATA_DIR}/{META}")

    def _start(self) -> None:
        """Start the broker, if it was stopped, and wait until it serves."""
        if self._stopped is not None:
            Faults(self.testbed).clear(self._stopped)
            self._stopped = None

    def transfer(self, timeout_s: float) -> Transferred:
        """Throttle, start the broker, wait until it is in sync everywhere; see `Mover.transfer`."""
        self._filling = Throttle(self.admin, JournalFolder(), self.recorder.event)
        self._done, self._in_force = Done(False, "the broker was not started"), InForce(False, 0.0)
        with TerminationGuard():
            try:
                self._fill(timeout_s)
            except (WaitTimeout, ThrottleError, KafkaError) as error:
                self._done = Done(False, str(error))
                self.recorder.event("note", "the broker was not filled", {"error": str(error)})
            finally:
                with deferred_signals():
                    restored = self._put_back()
        return Transferred(self._done, self._in_force, restored)

    def _put_back(self) -> Differences:
        try:
            return put_back(self._filling.restore())
        except RestoreError as error:
            self.recorder.event("note", "restore failed", {"why": str(error)})
            return put_back(None, error)

    def _fill(self, timeout_s: float) -> None:
        begun = time.monotonic()
        throttle, brokers = self._filling, list(self.ids.values())
        # A broker that is not there takes no configuration of its own: the rates are the default of all brokers.
        listed = self.scene.listed_topics
        throttle.set((), self.setup.quota_bytes_per_s, brokers, wildcard=listed, everywhere=True)
        throttle.wait_in_force(IN_FORCE_S, brokers=[b for b in brokers if b != self.ids[self.joining]])
        self.context.progress(f"starting {self.joining}")
        # It fetches as soon as it is up, before anybody can say that it serves.
        self.recorder.add(self._nothing())
        self.control_begins()
        self._start()
        throttle.wait_in_force(IN_FORCE_S, otherwise="the broker is being filled all the same")
        self._in_force = InForce(True, time.monotonic() - begun)
        with self.polling_quotas():
            self.recorder.poll("lag", SAMPLE_S, self.lag_samples)
            started = time.monotonic()
            self.recorder.event("move.started", "filling", {"partitions": len(self._lacking())})
            self.begun()
            self._follow(timeout_s)
            seconds = time.monotonic() - started
            self.recorder.event("move.done", "filling", {"seconds": round(seconds, 3)})
            self._done = Done(True, f"in sync everywhere {seconds:.1f} s after it was seen to serve")

    def _nothing(self) -> list[Sample]:
        """What lies in the empty folder: without these readings its logs would begin with what was fetched first."""
        at, host = now_us(), self.joining
        lacking = [tp for group in self.scene.groups if host in group.empty for tp in group.tps()]
        return [Sample(at, host, "log.bytes", 0.0, tp.topic, tp.partition) for tp in lacking]

    def _follow(self, timeout_s: float) -> None:
        total = self.scene.partitions

        def look() -> list[TopicPartition]:
            missing = self._lacking()
            listed = [tp for tp in missing if tp.topic in self.scene.listed_topics]
            self._control_missing = len(missing) - len(listed)
            self.on_poll(Poll(now_us(), len(listed), total))
            return missing

        what = f"{self.joining} to be in sync everywhere"
        wait_for(look, lambda missing: not missing, timeout_s=timeout_s, interval_s=LOOK_S, what=what)

    def control_left(self) -> int:
        """See `Mover.control_left`."""
        return self._control_missing

    @property
    def throttle(self) -> Throttle:
        """See `Mover.throttle`."""
        return self._filling

    def change_rate(self, rate_bytes_per_s: int) -> None:
        """See `Mover.change_rate`."""
        self._filling.change_rate(rate_bytes_per_s, IN_FORCE_S)

    def _lacking(self) -> list[TopicPartition]:
        """Of which partitions the broker is not in sync."""
        broker = self.ids[self.joining]
        wanted = [tp for group in self.scene.groups if group.empty for tp in group.tps()]
        try:
            states = self.admin.partitions(sorted({tp.topic for tp in wanted}))
        except UnreachableError:
            return wanted
        return [tp for tp in wanted if tp not in states or broker not in states[tp].isr]
