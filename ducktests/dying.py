"""Processes that end with those they work for: one that is killed cannot end them itself."""

import ctypes
import os
import signal

from testbed.errors import TestbedError
from testbed.runner.ducktape import SUITE_VARIABLE

_PR_SET_PDEATHSIG = 1  # prctl(2)


def die_with_parent() -> None:
    """Have the kernel kill this process when its parent dies. Raises `TestbedError`."""
    parent = os.getppid()
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise TestbedError(f"prctl(PR_SET_PDEATHSIG): {os.strerror(ctypes.get_errno())}")
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)  # it died before the kernel knew


def die_with_suite() -> None:
    """As `die_with_parent`, when the parent is `testbed suite`; a shell may end before what it started.

    And end on SIGINT, which is how a suite interrupts; what a shell starts in the background ignores it.
    """
    if os.environ.get(SUITE_VARIABLE) == str(os.getppid()):
        die_with_parent()
        signal.signal(signal.SIGINT, signal.default_int_handler)
