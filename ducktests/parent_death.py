"""The death of a parent process, with which its children end: a killed parent cannot end them itself."""

import ctypes
import os
import signal

from testbed.errors import TestbedError
from testbed.runner.ducktape import SUITE_VARIABLE

_PR_SET_PDEATHSIG = 1  # prctl(2)


def die_with_parent() -> None:
    """Request that the kernel kills this process when its parent dies. Raise `TestbedError` when it refuses."""
    parent = os.getppid()
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise TestbedError(f"prctl(PR_SET_PDEATHSIG): {os.strerror(ctypes.get_errno())}")
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)  # the parent died before the request


def die_with_suite() -> None:
    """Call `die_with_parent` when the parent is `testbed suite`; a shell may end before its background processes.

    Also end on SIGINT, with which a suite interrupts. A shell's background processes ignore SIGINT by default.
    """
    if os.environ.get(SUITE_VARIABLE) == str(os.getppid()):
        die_with_parent()
        signal.signal(signal.SIGINT, signal.default_int_handler)
