"""A block that ends when the testbed it works on ends.

Without it, whoever waits for a broker waits for as long as he would for one that is only slow.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from types import FrameType
from typing import NoReturn

from testbed.errors import TestbedError
from testbed.provision.containers import Engine
from testbed.provision.ended import NotWhole, why_not_whole
from testbed.provision.state import TestbedState

LOOK_S = 2.0
_SIGNAL = signal.SIGUSR2


class _EndedError(BaseException):
    """Unwinds the block as Ctrl-C would: nothing on the way takes it for an error that can be waited out."""


@contextmanager
def guarded(state: TestbedState, *, look_s: float = LOOK_S) -> Iterator[None]:
    """Within the block, look every `look_s` whether all containers of a testbed still run.

    When one does not, the block is left, what is to be put back on the way is put back as far as that is possible, and
    `NotWhole` is raised. Only the main thread can be interrupted: on another one nothing is looked at.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    watcher = _Watcher(state, look_s)
    before = signal.signal(_SIGNAL, _interrupt)
    watcher.start()
    try:
        try:
            yield
        finally:
            watcher.stop()
    except _EndedError:
        raise NotWhole(state, watcher.found) from None
    finally:
        watcher.join()
        signal.signal(_SIGNAL, before)


def _interrupt(_signal: int, _frame: FrameType | None) -> NoReturn:
    raise _EndedError


class _Watcher(threading.Thread):
    """Interrupts the thread that made it, once, unless it was stopped before."""

    def __init__(self, state: TestbedState, look_s: float) -> None:
        super().__init__(name="guard", daemon=True)
        self.found = ""
        self._state, self._look_s = state, look_s
        self._whom = threading.get_ident()
        self._stopped = threading.Event()
        self._either = threading.Lock()
        """Stopped or interrupting, not both: a signal that comes late would interrupt somebody else."""

    def stop(self) -> None:
        """From now on nothing is interrupted."""
        with self._either:
            self._stopped.set()

    def run(self) -> None:
        """Look until something has ended."""
        while not self._stopped.wait(self._look_s):
            self.found = self._look()
            if self.found:
                with self._either:
                    if not self._stopped.is_set():
                        signal.pthread_kill(self._whom, _SIGNAL)
                return

    def _look(self) -> str:
        try:
            # A connection of its own: one is not for two threads.
            with closing(Engine()) as engine:
                return why_not_whole(engine, self._state)
        except TestbedError:
            return ""  # the engine is just being restarted: what it has ended it tells when it is back
