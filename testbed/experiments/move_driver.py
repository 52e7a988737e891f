"""Drivers of a move: the whole plan at once, with or without a throttle. See `batched_move.py` for batches."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from results.contract.manifest import Differences, Done, InForce
from results.contract.move import BatchingPolls
from testbed.errors import TestbedError
from testbed.experiments.layout import plan
from testbed.experiments.move_environment import SHOWN, MoveEnvironment
from testbed.kafka.capabilities import of_software
from testbed.kafka.errors import KafkaError
from testbed.reassignment.driver import Driver, DriverError, MoveTimeout
from testbed.throttle.configs import ThrottleError
from testbed.throttle.journal import JournalFolder
from testbed.throttle.recovery import RestoreError, RestoreResult
from testbed.wait import WaitTimeout

if TYPE_CHECKING:
    from testbed.experiments.reassignment_run import ReassignmentRun

LOOK_S = 0.5
UNTHROTTLED_LOOK_S = 0.1
"""Seconds between polls. A move in S3 takes seconds: its polls are more frequent than those of a move of minutes."""


@dataclass(frozen=True, slots=True)
class TransferResult:
    """The result of a move: whether it ended, when its throttle was in force, and what was restored."""

    done: Done
    in_force: InForce
    restored: Differences
    batching: BatchingPolls | None = None


class MoveDriver(Protocol):
    """A method of executing a move."""

    def transfer(self, run: "ReassignmentRun", timeout_s: float) -> TransferResult:
        """Execute the move. A failure of the move is part of the result; one of the testbed is raised."""

    def change_rate(self, rate_bytes_per_s: int) -> None:
        """Change the throttle during the move."""

    def control_left(self) -> int:
        """Return the number of partitions of the control transfer that have not arrived."""


class UnbatchedDriver:
    """The driver of a whole plan in one request, with or without a throttle. The control moves with it, unthrottled."""

    def __init__(self, environment: MoveEnvironment) -> None:
        self._environment = environment
        self._driver: Driver | None = None

    def transfer(self, run: "ReassignmentRun", timeout_s: float) -> TransferResult:
        """Execute the move. A failure of the move is part of the result; one of the testbed is raised."""
        environment, layout, recorder = self._environment, self._environment.layout, self._environment.recorder
        done = Done(False, "the move was not started")
        in_force = InForce(False, 0.0)
        rate = environment.setup.throttle_bytes_per_s or None
        control = [] if layout.control is None else layout.control.tps()
        wildcard = layout.throttled_topics if layout.wildcard else ()
        able = of_software(environment.testbed.topology)
        driver = Driver(environment.admin, JournalFolder(), on_event=recorder.event, cancel_on_error=True, able=able)
        self._driver = driver
        begun = time.monotonic()
        try:
            with driver, nullcontext() if rate is None else environment.throttle_polls(lambda: driver.throttle):
                driver.execute(plan(layout.moving, environment.ids), rate, unthrottled=control, wildcard=wildcard)
                in_force = InForce(True, 0.0 if rate is None else time.monotonic() - begun)
                run.begun()
                interval_s = UNTHROTTLED_LOOK_S if rate is None else LOOK_S
                seconds = driver.follow(run.on_poll, timeout_s=timeout_s, interval_s=interval_s)
                done = Done(True, f"seen {seconds:.1f} s after it was asked for")
        except (DriverError, ThrottleError, KafkaError, RestoreError, WaitTimeout) as error:
            # The run still judges the samples so far; the verdict names the missing data.
            if error is not driver.not_restored:
                done = not_done(error, timeout_s)
                recorder.event("note", "the move was not done", {"error": str(error)})
        return TransferResult(done, in_force, restored_differences(driver.restored, driver.not_restored))

    def change_rate(self, rate_bytes_per_s: int) -> None:
        """Change the throttle during the move. Raise `ThrottleError` before the move, and without a throttle."""
        if self._driver is None:
            raise ThrottleError("the throttle's rate cannot be changed: no move has been started")
        self._driver.change_rate(rate_bytes_per_s)

    def control_left(self) -> int:
        """Return the number of partitions of the control transfer that have not arrived."""
        return self._environment.control_left()


def not_done(error: TestbedError, timeout_s: float) -> Done:
    """Return why a move was not done, and how long the runner waited for it where only its time was over."""
    return Done(False, str(error), timeout_s if isinstance(error, MoveTimeout) else None)


@contextmanager
def wait_for_move(timeout_s: float) -> Iterator[None]:
    """Raise `MoveTimeout` for a wait in the block that lasted as long as this. A shorter wait is not for the move."""
    begun = time.monotonic()
    try:
        yield
    except WaitTimeout as error:
        if time.monotonic() - begun < timeout_s:
            raise
        raise MoveTimeout(str(error)) from error


def restored_differences(restored: RestoreResult | None, failed: TestbedError | None = None) -> Differences:
    """Return whether the configuration is as before the throttle, and other clients' changes to it meanwhile.

    `failed` is the error of the restoration, if any.
    """
    if restored is None:
        problems = failed.problems if isinstance(failed, RestoreError) else () if failed is None else (str(failed),)
        return Differences(False, (*problems[:SHOWN], "the configuration was not put back: see the journal"))
    return Differences(True, tuple(str(found) for found in restored.interferences))
