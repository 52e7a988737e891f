"""Signals during a cluster change: SIGTERM unwinds like Ctrl-C, and neither interrupts the clean-up."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
INTERRUPT_S = 0.2


class Terminated(SystemExit):
    """A request to end the process (SIGTERM); unwinds like Ctrl-C, exit code 143 as a shell reports it."""


class TerminationGuard:
    """A context in which SIGTERM raises `Terminated` in the main thread; entering on another thread does nothing."""

    def __enter__(self) -> None:
        main = threading.current_thread() is threading.main_thread()
        self._before = signal.signal(signal.SIGTERM, _raise_terminated) if main else None

    def __exit__(self, *_error: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGTERM, self._before)


@contextmanager
def deferred_signals() -> Iterator[None]:
    """Delay SIGINT and SIGTERM until the end of the block, then deliver the first that arrived.

    The block must be short and must not be interrupted halfway. On any thread but the main one this does nothing,
    since Python runs no handler there.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = {each: signal.signal(each, lambda number, _frame: came.append(number)) for each in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if came:
            signal.raise_signal(came[0])


@contextmanager
def interruptible_input() -> Iterator[None]:
    """Let SIGTERM end a wait of `input` with readline, also a signal that comes just before this wait.

    readline runs Python's handlers only when a signal interrupts its wait. So a thread interrupts the wait after the
    SIGTERM, with SIGWINCH, which readline handles by itself, until the block ends.
    """
    arrivals, wakeup = os.pipe()
    os.set_blocking(wakeup, False)
    main, over = threading.main_thread().ident, threading.Event()

    def interrupt() -> None:
        while number := os.read(arrivals, 1):
            while number[0] == signal.SIGTERM and main is not None and not over.wait(INTERRUPT_S):
                signal.pthread_kill(main, signal.SIGWINCH)

    thread = threading.Thread(target=interrupt, name="interruptible input", daemon=True)
    before = signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
    thread.start()
    try:
        yield
    finally:
        over.set()
        signal.set_wakeup_fd(before)
        os.close(wakeup)
        thread.join()
        os.close(arrivals)


def _raise_terminated(_number: int, _frame: FrameType | None) -> None:
    raise Terminated(128 + signal.SIGTERM)
