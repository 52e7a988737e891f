"""`testbed shell`, in a terminal of the test's own and with commands piped in."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from contextlib import contextmanager

import pytest

from tests.containers.conftest import ROOT, THREE

pytestmark = pytest.mark.containers
SHELL = [sys.executable, "-m", "testbed.cli.main", "shell", THREE, "b2"]


class Terminal:
    """The user's side of a pseudo-terminal."""

    def __init__(self, fd):
        self.fd, self.seen = fd, ""

    def resize(self, lines, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def press(self, keys):
        os.write(self.fd, keys.encode())

    def wait_for(self, pattern, timeout_s=15):
        """Read until `pattern` is seen; what was seen up to there is done with."""
        deadline = time.monotonic() + timeout_s
        while not (found := re.search(pattern, self.seen)):
            ready, _, _ = select.select([self.fd], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"{pattern!r} was not seen within {timeout_s} s; seen: {self.seen!r}"
            self.seen += os.read(self.fd, 65536).decode(errors="replace")
        self.seen = self.seen[found.end() :]
        return found


@contextmanager
def in_terminal(command=SHELL):
    ours, theirs = pty.openpty()
    terminal = Terminal(ours)
    terminal.resize(24, 80)
    before = termios.tcgetattr(theirs)
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, "TERM": "xterm"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        # One system call, and this process has no other threads that could hold a lock.
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509
    )
    try:
        yield terminal, process
        assert termios.tcgetattr(theirs) == before
    finally:
        process.kill()
        process.wait()
        os.close(ours)
        os.close(theirs)


def test_keys_go_to_the_host_and_its_status_is_ours(three):
    with in_terminal() as (terminal, process):
        terminal.wait_for(r"b2:~# ")
        terminal.press("stty size\r")
        terminal.wait_for(r"24 80\r\n")
        terminal.resize(40, 132)
        # The new size travels on its own; ask until it has arrived.
        terminal.press("until [ \"$(stty size)\" = '40 132' ]; do sleep 0.05; done; echo resi''zed\r")
        terminal.wait_for("resized")
        # The shell echoes a line before it runs it: what is to be interrupted says itself that it runs.
        terminal.press("sh -c \"echo slee''ping; exec sleep 60\"\r")
        terminal.wait_for(r"sleeping\r")
        terminal.press("\x03")
        terminal.wait_for(r"b2:~# ")
        terminal.press("exit 7\r")
        assert process.wait(timeout=15) == 7


def test_commands_are_read_from_a_pipe_and_streams_stay_apart(three):
    lines = "hostname; echo wrong >&2\nread word\nthe rest\nwc -c <<< $word\nexit 3\nnever\n"
    told = subprocess.run(SHELL, cwd=ROOT, input=lines, capture_output=True, text=True, timeout=60, check=False)
    assert (told.returncode, told.stdout, told.stderr) == (3, "b2\n9\n", "wrong\n")
    large = subprocess.run(
        SHELL, cwd=ROOT, input="yes | head -c 3000000\n", capture_output=True, text=True, timeout=60, check=False
    )
    assert (large.returncode, len(large.stdout)) == (0, 3_000_000)


def test_an_unknown_host_is_told(three):
    told = subprocess.run([*SHELL[:-1], "b9"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert told.returncode == 64
    assert "b9" in told.stderr
