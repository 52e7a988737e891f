"""A time limit of our own: whoever runs tests kills what hangs, and leaves nothing that tells why."""

import faulthandler
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from testbed.errors import TestbedError

GRACE_S = 120.0
"""What putting everything back may take after the limit, before the process is ended."""
STACKS = "stacks.txt"


class TimeLimitError(TestbedError):
    """A case was not done in time, and was stopped."""


@contextmanager
def time_limit(seconds: float, what: str, evidence: Path, *, grace_s: float = GRACE_S) -> Iterator[None]:
    """Stop the block after `seconds`, as Ctrl-C would: what cleans up after Ctrl-C cleans up after this.

    At the limit the stacks of all threads are written into `evidence`. A block that does not even then come to its
    end within `grace_s` hangs for good: the stacks are written once more, and the process ends. Raises
    `TimeLimitError`. Main thread only.
    """
    assert threading.current_thread() is threading.main_thread()
    evidence.mkdir(parents=True, exist_ok=True)
    expired = False

    def expire(_number: int, _frame: FrameType | None) -> None:
        nonlocal expired
        expired = True
        faulthandler.dump_traceback(stacks, all_threads=True)
        # Not an exception of its own: this one is held back where something must not be left half done.
        signal.raise_signal(signal.SIGINT)

    path = evidence / STACKS
    with path.open("w") as stacks:
        # What a shell starts in the background ignores Ctrl-C.
        interrupts = signal.signal(signal.SIGINT, signal.default_int_handler)
        before = signal.signal(signal.SIGALRM, expire)
        # A thread of C code: it ends the process even when no Python runs any more.
        faulthandler.dump_traceback_later(seconds + grace_s, exit=True, file=stacks)
        signal.setitimer(signal.ITIMER_REAL, seconds)
        try:
            yield
        except BaseException as error:
            # Whatever the interruption became on its way out.
            if expired:
                ended = "" if isinstance(error, KeyboardInterrupt) else f"; it ended with {error!r}"
                raise TimeLimitError(_late(what, seconds, path) + ended) from error
            raise
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
            signal.signal(signal.SIGINT, interrupts)
            faulthandler.cancel_dump_traceback_later()
    if expired:
        raise TimeLimitError(_late(what, seconds, path))
    path.unlink()


def _late(what: str, seconds: float, path: Path) -> str:
    return f"{what} was not done after {seconds:g} s and was stopped; where it stood is in {path}"
