"""The run of an empty broker that joins and is filled. Nothing is reassigned: its replicas exist without data."""

import re
import time

from results.contract.manifest import Differences, Done, InForce
from results.contract.schema import Sample
from testbed.errors import TestbedError
from testbed.experiments.experiment import Context
from testbed.experiments.move_driver import (
    LOOK_S,
    TransferResult,
    not_done,
    restored_differences,
    wait_for_move,
)
from testbed.experiments.move_environment import MoveEnvironment, MoveSetup
from testbed.experiments.reassignment_run import Preparation, ReassignmentRun
from testbed.faults import Faults
from testbed.faults.catalogue.broker_term import BrokerTerm
from testbed.kafka.admin import Admin
from testbed.kafka.errors import KafkaError
from testbed.kafka.node import DATA_DIR
from testbed.kafka.types import TopicPartition
from testbed.probes.allow_list import Allowance, during, new_replicas
from testbed.probes.recorder import now_us
from testbed.reassignment.driver import IN_FORCE_S, Driver, DriverError
from testbed.reassignment.plan import Plan
from testbed.reassignment.progress import Poll
from testbed.signals import TerminationGuard, deferred_signals
from testbed.software.format import CHECKPOINT, META, meta_properties, new_id
from testbed.throttle.configs import ThrottleError
from testbed.throttle.journal import JournalFolder
from testbed.throttle.recovery import RestoreError
from testbed.throttle.throttle import Throttle
from testbed.wait import wait_for

_WHY = (
    "A broker with a new folder reports to the controller in which folder its replicas are. Its first report has the "
    "epoch of the registration before; the controller refuses it, and the broker repeats it, as it logs."
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


class EmptyBroker(Preparation):
    """The preparation and driver of a run in which one broker starts with an empty data folder.

    The preparation stops the broker, fills the topics without it, and formats its data folder. The transfer sets the
    throttle as the default of all brokers, starts the broker, and waits until its replicas are in sync.
    """

    def __init__(self, environment: MoveEnvironment) -> None:
        super().__init__(environment)
        self._stopped: int | None = None
        self._throttle: Throttle | None = None
        self._done = Done(False, "the broker was not started")
        self._in_force = InForce(False, 0.0)
        self._control_missing = 0
        self._calibration_left: tuple[str, ...] = ()

    @property
    def joining(self) -> str:
        """Return the host of the broker that joins."""
        (host,) = {host for group in self._environment.layout.throttled for host in group.empty}
        return host

    # ---- preparation

    def prepare(self) -> Differences:
        """Create the topics and write the calibration's records only. `complete` writes the rest without the broker."""
        environment = self._environment
        environment.create()
        environment.preload([fill for fill in environment.fills if fill.topic == environment.layout.calibration.topic])
        return Differences(False, ("the broker was never stopped",))

    def calibrate(self) -> float | None:
        """Run the calibration transfer, then remove its copies from the broker, so that formatting loses nothing.

        Return NIC bytes per byte of log, None on failure.
        """
        environment = self._environment
        factor = environment.calibrate()
        group = environment.layout.calibration
        leader = environment.ids[group.leader]
        try:
            with Driver(environment.admin, JournalFolder(), cancel_on_error=True) as driver:
                driver.execute(Plan(dict.fromkeys(group.tps(), (leader,))), None)
                driver.follow(timeout_s=IN_FORCE_S, interval_s=0.2)
        except (DriverError, KafkaError) as error:
            self._calibration_left = (f"the calibration's copies were not taken back from {self.joining}: {error}",)
            environment.recorder.event("note", "the calibration was not taken back", {"error": str(error)})
        return factor

    def complete(self) -> Differences:
        """Stop the broker, fill the topics without it, and format its data folder. Return the resulting placement."""
        environment, host = self._environment, self.joining
        calibration = environment.layout.calibration
        environment.context.progress(f"stopping {host}")
        self._stopped = Faults(environment.testbed).add(BrokerTerm(host=host))
        environment.preload([fill for fill in environment.fills if fill.topic != calibration.topic])
        self._format(host)
        found = environment.placed([group for group in environment.layout.groups if group is not calibration])
        environment.recorder.wait_for_all()  # the latest samples then include the filled topics
        return Differences(found.ok and not self._calibration_left, (*self._calibration_left, *found.differences))

    def allowances(self) -> list[Allowance]:
        """Return the broker log lines that the preparation and the start of the empty broker cause."""
        calibration = self._environment.layout.calibration
        # The leader's broker creates its replicas again when the calibration's copies are removed.
        again = new_replicas([calibration.topic], [calibration.leader])
        return [again, *during([BrokerTerm.kind]), *_EMPTY_FOLDER]

    def close(self) -> None:
        """Start the broker if it is stopped, and wait until it serves. A broker that does not is an event."""
        try:
            self._start()
        except TestbedError as error:
            # The journal has the fault: `testbed gc`, or the next run, starts the broker.
            self._environment.recorder.event("note", "the broker does not serve", {"error": str(error)})

    def _format(self, host: str) -> None:
        """Change the folder as `kafka-storage format` does: another directory id, the same node and cluster."""
        testbed = self._environment.testbed
        shell = testbed.hosts[host]
        keep = ["!", "-name", CHECKPOINT]
        shell.run(["find", DATA_DIR, "-mindepth", "1", "-maxdepth", "1", *keep, "-exec", "rm", "-rf", "{}", "+"])
        meta = meta_properties(testbed.state.cluster_id, self._environment.ids[host], new_id())
        shell.put(meta.encode(), f"{DATA_DIR}/{META}")

    def _start(self) -> None:
        if self._stopped is not None:
            Faults(self._environment.testbed).clear(self._stopped)
            self._stopped = None

    # ---- driver

    def transfer(self, run: ReassignmentRun, timeout_s: float) -> TransferResult:
        """Set the throttle, start the broker, and wait until it is in sync everywhere.

        A failure is part of the result, not an exception.
        """
        environment = self._environment
        throttle = self._throttle = Throttle(environment.admin, JournalFolder(), environment.recorder.event)
        with TerminationGuard():
            try:
                self._fill(throttle, run, timeout_s)
            except TestbedError as error:
                self._done = not_done(error, timeout_s)
                environment.recorder.event("note", "the broker was not filled", {"error": str(error)})
            finally:
                with deferred_signals():
                    restored = self._restore(throttle)
        return TransferResult(self._done, self._in_force, restored)

    def change_rate(self, rate_bytes_per_s: int) -> None:
        """Change the throttle during the move. Raise `ThrottleError` before the move."""
        if self._throttle is None:
            raise ThrottleError("the throttle's rate cannot be changed: no move has been started")
        self._throttle.change_rate(rate_bytes_per_s, IN_FORCE_S)

    def control_left(self) -> int:
        """Return the number of the control's replicas on the broker that are not in sync."""
        return self._control_missing

    def _restore(self, throttle: Throttle) -> Differences:
        try:
            return restored_differences(throttle.restore())
        except RestoreError as error:
            self._environment.recorder.event("note", "restore failed", {"why": str(error)})
            return restored_differences(None, error)

    def _fill(self, throttle: Throttle, run: ReassignmentRun, timeout_s: float) -> None:
        environment, recorder = self._environment, self._environment.recorder
        begun = time.monotonic()
        brokers, topics = list(environment.ids.values()), environment.layout.throttled_topics
        # A stopped broker accepts no configuration of its own: the rates are the default of all brokers.
        throttle.set((), environment.setup.throttle_bytes_per_s, brokers, wildcard=topics, everywhere=True)
        throttle.wait_in_force(IN_FORCE_S, brokers=[b for b in brokers if b != environment.ids[self.joining]])
        environment.context.progress(f"starting {self.joining}")
        # The broker fetches as soon as it runs, before any client can see that it serves.
        recorder.add(self._empty_logs())
        run.control_begins()
        self._start()
        throttle.wait_in_force(IN_FORCE_S, otherwise="the broker is being filled all the same")
        self._in_force = InForce(True, time.monotonic() - begun)
        with environment.throttle_polls(lambda: throttle):
            started = time.monotonic()
            recorder.event("move.started", "filling", {"partitions": len(self._out_of_sync())})
            run.begun()
            self._follow(run, timeout_s)
            seconds = time.monotonic() - started
            recorder.event("move.done", "filling", {"seconds": round(seconds, 3)})
            self._done = Done(True, f"in sync everywhere {seconds:.1f} s after it was seen to serve")

    def _empty_logs(self) -> list[Sample]:
        """Return samples of the empty logs. Without them the first samples would contain fetched records."""
        at, host = now_us(), self.joining
        empty = [tp for group in self._environment.layout.groups if host in group.empty for tp in group.tps()]
        return [Sample(at, host, "log.bytes", 0.0, tp.topic, tp.partition) for tp in empty]

    def _follow(self, run: ReassignmentRun, timeout_s: float) -> None:
        layout = self._environment.layout

        def poll() -> list[TopicPartition]:
            missing = self._out_of_sync()
            throttled = [tp for tp in missing if tp.topic in layout.throttled_topics]
            self._control_missing = len(missing) - len(throttled)
            run.on_poll(Poll(now_us(), len(throttled)))
            return missing

        what = f"{self.joining} to be in sync everywhere"
        with wait_for_move(timeout_s):
            wait_for(poll, lambda missing: not missing, timeout_s=timeout_s, interval_s=LOOK_S, what=what)

    def _out_of_sync(self) -> list[TopicPartition]:
        """Return the partitions whose replica on the broker is not in sync."""
        environment = self._environment
        return environment.not_in_sync(self.joining, [group for group in environment.layout.groups if group.empty])


def empty_broker_run(context: Context, setup: MoveSetup, admin: Admin) -> ReassignmentRun:
    """Return a run in which an empty broker joins and is filled."""
    environment = MoveEnvironment(context, setup, admin)
    broker = EmptyBroker(environment)
    return ReassignmentRun(environment, preparation=broker, driver=broker)
