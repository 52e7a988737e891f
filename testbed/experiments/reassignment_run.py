"""One measured reassignment, composed of parts: environment, preparation, driver, model, monitor and action."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace

from results.contract.manifest import Differences, Done, Flow
from results.contract.schema import Sample
from results.contract.texts import shortened
from results.criteria.quantities import DRIVER
from testbed.experiments.batch_monitor import BatchMonitor
from testbed.experiments.experiment import Context
from testbed.experiments.layout import carried, flows, moved_besides, plan
from testbed.experiments.move_driver import MoveDriver, TransferResult, UnbatchedDriver
from testbed.experiments.move_environment import MoveEnvironment, MoveSetup
from testbed.kafka.admin import Admin
from testbed.kafka.errors import UnreachableError
from testbed.kafka.types import TopicPartition
from testbed.probes.allow_list import Allowance
from testbed.probes.logwatch import LogWatch
from testbed.reassignment.progress import Poll
from testbed.throttle.duration import Share

LogSizes = Mapping[TopicPartition, int]
InboundRates = Mapping[TopicPartition, float]
NAMED = 3
"""The number of partitions that the reason of a wrong move names."""


class Preparation:
    """The preparation of the cluster for a move. This base writes all records to the topics before the move."""

    def __init__(self, environment: MoveEnvironment) -> None:
        self._environment = environment

    def prepare(self) -> Differences:
        """Create and fill the topics, and wait for tiered logs; return whether they are placed as in the layout."""
        self._environment.create()
        self._environment.preload(self._environment.fills)
        self._environment.settle()
        return self._environment.placed(self._environment.layout.groups)

    def calibrate(self) -> float | None:
        """Run the calibration transfer; return NIC bytes per byte of log, None on failure."""
        return self._environment.calibrate()

    def complete(self) -> Differences | None:
        """Finish the preparation after the calibration; return the resulting placement, None without a change."""
        return None

    def allowances(self) -> list[Allowance]:
        """Return the broker log lines that the preparation causes."""
        return []

    def close(self) -> None:
        """Undo the preparation's remaining changes to the testbed."""


class MoveModel:
    """The flows and the expected duration of a move. This base is the model of a move at once."""

    def __init__(self, environment: MoveEnvironment) -> None:
        self._environment = environment

    @property
    def no_model(self) -> str:
        """Return the reason why no model predicts the duration of the move; empty: a model does."""
        return self._environment.setup.action.no_model

    @property
    def idle_s(self) -> float:
        """Return the longest time that the move may rest, in seconds, in addition to copying."""
        return 0.0

    def flows(self) -> tuple[Flow, ...]:
        """Return the flows from leader to follower, with the kind that says whether a quota records them."""
        return flows(self._environment.layout)

    def carried(self, sizes: LogSizes, inbound: InboundRates) -> Sequence[Share]:
        """Return the bytes that each broker has to carry in each direction."""
        return carried(self._environment.layout, self._environment.ids, sizes, inbound)

    def batches_s(self, _sizes: LogSizes, _throttles: Sequence[tuple[float, float]]) -> tuple[float, ...]:
        """Return the seconds until the bytes up to each batch are copied; empty for a move at once."""
        return ()


class ReassignmentRun(AbstractContextManager["ReassignmentRun"]):
    """One measured move. At the end of its block it undoes its preparation's remaining changes to the testbed."""

    log_watch: LogWatch
    """The watch of the brokers' logs, from `watch_logs` on."""

    def __init__(
        self,
        environment: MoveEnvironment,
        *,
        driver: MoveDriver,
        preparation: Preparation | None = None,
        model: MoveModel | None = None,
        monitor: BatchMonitor | None = None,
    ) -> None:
        self.environment, self.driver, self._monitor = environment, driver, monitor
        self.preparation = preparation or Preparation(environment)
        self.model = model or MoveModel(environment)
        self.action = environment.setup.action
        self.context, self.admin = environment.context, environment.admin
        self.testbed, self.recorder = environment.testbed, environment.recorder
        self._control_done = environment.layout.control is None
        self._control_begun = False

    def __exit__(self, *_error: object) -> None:
        self.preparation.close()

    def allowances(self) -> list[Allowance]:
        """Return the broker log lines that the move, its action and its preparation cause."""
        return [*self.environment.allowances(), *self.preparation.allowances()]

    def watch_logs(self) -> LogWatch:
        """Begin to watch the brokers' logs."""
        self.log_watch = LogWatch(self.testbed, self.allowances())
        self.log_watch.start()
        return self.log_watch

    def transfer(self, timeout_s: float) -> TransferResult:
        """Execute the move. A failure is part of the result, not an exception.

        A move is not done right if a partition that its plan does not name has other replicas at the end.
        """
        environment, before = self.environment, self.environment.placements()
        result = self.driver.transfer(self, timeout_s)
        result = result if self._monitor is None else self._monitor.complete(result)
        if not result.done.ok:
            return result
        planned = plan(environment.layout.moving, environment.ids).targets
        moved = moved_besides(before, environment.placements(), planned)
        if not moved:
            return result
        return replace(result, done=Done(False, f"outside of the plan, {'; '.join(shortened(moved, NAMED))}"))

    def read_log(self) -> None:
        """Record the steps from the metadata log, when a monitor observes them. Call it after the load."""
        if self._monitor is not None:
            self._monitor.read_log()

    # ---- called by the driver

    def begun(self) -> None:
        """Note that the controller accepted the move. Monitor, control and action begin."""
        if self._monitor is not None:
            self._monitor.start()
        self.environment.load.mark("during")
        self.control_begins()
        self.action.started(self)

    def control_begins(self) -> None:
        """Note, once, that the control transfer may start."""
        control = self.environment.layout.control
        if control is not None and not self._control_begun:
            self._control_begun = True
            self.recorder.event("control.started", control.topic)

    def on_poll(self, poll: Poll) -> None:
        """Record the partitions in flight and the end of the control, then call the action.

        A request without an answer is recorded; the next poll repeats it.
        """
        self.recorder.add([Sample(poll.ts_us, DRIVER, "move.in_flight", float(poll.in_flight))])
        control = self.environment.layout.control
        try:
            if not self._control_done and control is not None and not self.driver.control_left():
                self._control_done = True
                self.recorder.event("control.done", control.topic)
            self.action.on_poll(self, poll)
        except UnreachableError as error:
            self.recorder.event("note", "no answer", {"error": str(error)})

    # ---- called by actions

    def change_rate(self, rate_bytes_per_s: int) -> None:
        """Change the throttle during the move."""
        self.driver.change_rate(rate_bytes_per_s)


MakeRun = Callable[[Context, MoveSetup, Admin], ReassignmentRun]


def unbatched_run(context: Context, setup: MoveSetup, admin: Admin) -> ReassignmentRun:
    """Return a run that executes the whole plan at once."""
    environment = MoveEnvironment(context, setup, admin)
    return ReassignmentRun(environment, driver=UnbatchedDriver(environment))


def monitored_run(context: Context, setup: MoveSetup, admin: Admin) -> ReassignmentRun:
    """Return a run that executes the whole plan at once while a monitor polls the controller's list."""
    environment = MoveEnvironment(context, setup, admin)
    return ReassignmentRun(environment, driver=UnbatchedDriver(environment), monitor=BatchMonitor(environment))
