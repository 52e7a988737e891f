"""A reassignment that runs while the prompt takes further commands."""

import threading
import time
from collections.abc import Callable

from results.contract.texts import counted
from testbed.cli import reassign_report as report
from testbed.errors import TestbedError
from testbed.kafka.admin import Admin
from testbed.provision.testbed import Testbed
from testbed.reassignment.batching.execution import Execution, ExecutionResult
from testbed.reassignment.batching.job import Job, JobControl, JobFolder
from testbed.reassignment.batching.turn import Turn
from testbed.throttle.journal import JournalFolder

_LEAVE_S = 5.0
_REQUESTED_S = 15.0
_LOOK_S = 0.1


class _Left(BaseException):
    """Ends the thread between two turns; job and throttle stay for `resume`."""


class BackgroundMove:
    """The execution of a stored reassignment in a thread of its own, as `testbed reassign execute` does it."""

    def __init__(self, testbed: Testbed, job: Job, notify: Callable[[str], None]) -> None:
        self.job = job
        self._notify = notify
        self._admin: Admin = testbed.admin()
        self._execution = Execution(self._admin, job, JobFolder(), JournalFolder(), report.ExecutionNotes(notify))
        self._leaving, self._requested = threading.Event(), threading.Event()
        self._turns = 0
        self._thread = threading.Thread(target=self._follow, name=f"move {job.id}", daemon=True)
        self._begun_s = time.monotonic()
        self.line = ""
        """The latest turn in one line."""
        self.result: ExecutionResult | None = None
        self.error: Exception | None = None

    @property
    def topics(self) -> str:
        """Return the topics of the plan, for messages."""
        return ", ".join(self.job.plan.topics())

    @property
    def running(self) -> bool:
        """Return whether the reassignment has not ended."""
        return self._thread.is_alive()

    def begin(self, control: JobControl) -> None:
        """Bring the throttle into force, and begin. Raise `TestbedError`, with nothing changed, for a refused move."""
        self._start(lambda: self._execution.begin(control))

    def resume(self) -> None:
        """Continue the reassignment of a dead process. Raise `TestbedError` when its process is alive."""
        self._start(self._execution.resume)

    def _start(self, begin: Callable[[], None]) -> None:
        try:
            begin()
        except BaseException:
            self._admin.close()
            raise
        self._thread.start()

    def wait_requested(self) -> None:
        """Wait until the controller has the first request, or the move has ended."""
        self._requested.wait(_REQUESTED_S)

    def wait(self, on_line: Callable[[str], None], timeout_s: float | None = None) -> bool:
        """Wait until it has ended, and pass each new line on. Return False after `timeout_s`."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        shown = ""
        while self._thread.is_alive():
            self._thread.join(_LOOK_S)
            if self.line[10:] != shown:
                shown = self.line[10:]
                on_line(self.line)
            if deadline is not None and time.monotonic() >= deadline:
                return not self._thread.is_alive()
        return True

    def leave(self) -> bool:
        """Stop following. Return whether the reassignment continues: its throttle stays in force for `resume`."""
        self._leaving.set()
        self._thread.join(_LEAVE_S)
        return self.result is None

    def _follow(self) -> None:
        try:
            self.result = self._execution.run(self._on_turn)
            self._notify(self._outcome(self.result))
        except _Left:
            pass
        except Exception as error:  # noqa: BLE001 - kept for the thread that waits, which raises it
            self.error = error
            remedy = "; `resume` continues it" if self.job.id in JobFolder().ids() else ""
            self._notify(f"the move of {self.topics} failed: {error}{remedy}")
        finally:
            self._requested.set()
            self._admin.close()

    def _on_turn(self, turn: Turn) -> None:
        if self._leaving.is_set():
            raise _Left
        self._turns += 1
        if self._turns > 1:  # the first turn has made its requests
            self._requested.set()
        self.line = report.turn_text(turn, time.monotonic() - self._begun_s)

    def _outcome(self, result: ExecutionResult) -> str:
        changed = [f"; another client had changed {found}" for found in result.restored.interferences]
        if result.cancelled:
            left = counted(len(result.left.targets), "partition", "was")
            return f"the move of {self.topics} is cancelled: {left} not moved{''.join(changed)}"
        return f"the move of {self.topics} is done after {result.seconds:.1f} s{''.join(changed)}"

    def require_done(self) -> None:
        """Raise the error of a move that failed."""
        if isinstance(self.error, TestbedError):
            raise TestbedError(f"the move of {self.topics} failed: {self.error}") from self.error
        if self.error is not None:
            raise self.error
