"""SIGTERM at the prompt: one that arrives just before readline waits for a key ends the wait, too."""

import os
import pty
import subprocess
import sys

import pytest

# The hook runs between the prompt's output and the wait. It is a C function: Python handles the signal afterwards.
CHILD = """
import ctypes, functools, os, readline
from testbed.signals import TerminationGuard, interruptible_input
readline.set_pre_input_hook(functools.partial(ctypes.CDLL(None).kill, os.getpid(), 15))
with TerminationGuard(), {0}:
    input("> ")
"""


def status(context, timeout_s):
    ours, theirs = pty.openpty()
    try:
        command = [sys.executable, "-c", CHILD.format(context)]
        environment = {**os.environ, "TERM": "xterm"}
        with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment) as child:
            try:
                return child.wait(timeout_s)
            finally:
                child.kill()
    finally:
        os.close(ours)
        os.close(theirs)


def test_a_signal_just_before_the_wait_ends_it():
    assert status("interruptible_input()", 30) == 143


def test_without_it_the_wait_goes_on():
    with pytest.raises(subprocess.TimeoutExpired):
        status("TerminationGuard()", 2)
