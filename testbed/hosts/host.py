"""Hosts: commands and server processes."""

import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Protocol, TypeVar

from testbed.errors import TestbedError
from testbed.signals import deferred_signals
from testbed.wait import wait_for

AGENT_PATH = "/opt/testbed/agent.py"
"""The path of the probes' agent on every host."""
T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class CommandResult:
    """A finished command: its exit status, its output, and its duration."""

    command: str
    exit_status: int
    stdout: str
    stderr: str
    seconds: float


def as_text(command: str | Sequence[str]) -> str:
    """Return a command as the text that a shell takes; a list is quoted, so that it is not interpreted."""
    return command if isinstance(command, str) else shlex.join(command)


class CommandFailed(TestbedError):
    """A command ended with a status other than 0, or did not end in time."""

    def __init__(self, host: str, result: CommandResult) -> None:
        said = (result.stderr.strip() or result.stdout.strip() or "(it printed nothing)")[-2000:]
        super().__init__(f"{host}: `{result.command}` ended with status {result.exit_status}: {said}")
        self.host = host
        self.result = result


class Process(Protocol):
    """A command that still runs on a host."""

    def lines(self) -> Iterator[str]:
        """Yield each line of the command's output, until the command ends."""

    def stop(self) -> None:
        """End the command and every process it started; do nothing when it has ended."""


class Shell(Protocol):
    """A place in which commands run to their end."""

    @property
    def name(self) -> str:
        """Return the host's name in the topology."""

    def run(
        self, command: str | Sequence[str], *, timeout_s: float = 60.0, check: bool = True, stdin: bytes = b""
    ) -> CommandResult:
        """Run a command to its end and return its result. A shell interprets a string; nothing interprets a sequence.

        Raise `CommandFailed` on a status other than 0 (unless `check` is false) and on a timeout.
        """


class Host(Shell, Protocol):
    """A shell that also runs commands in the background and stores files."""

    def spawn(self, command: str | Sequence[str]) -> Process:
        """Start a command that prints lines and return its process; the command ends with the connection."""

    def put(self, content: bytes, path: str, *, mode: int = 0o644) -> None:
        """Write a file atomically: a reader sees the old content or the new content."""

    def get(self, path: str) -> bytes:
        """Return the content of a file. Raise `TestbedError` when the file does not exist."""

    def tail(self, path: str, *, lines: int = 100) -> str:
        """Return the last lines of a text file; empty when the file does not exist."""

    def close(self) -> None:
        """Close the connection."""


_ALIVE = "[ -n \"$p\" ] && grep -qs '^State:[[:space:]]*[A-WYa-wy]' /proc/$p/status"
"""Whether process $p runs; a zombie, which has ended and is not reaped yet, does not."""


class Daemon:
    """One server process: start, state and end. `what` is its name in messages, for instance Kafka.

    `at_end` is a command of the shell that runs whenever the process has ended; `$status` is its exit status, or 128
    plus the signal's number if a signal ended it.
    """

    def __init__(
        self, host: Host, what: str, command: Sequence[str], *, pid_file: str, log: str, at_end: str = ""
    ) -> None:
        self.host = host
        self.what = what
        self._command = tuple(command)
        self._pid_file, self.log, self._at_end = pid_file, log, at_end

    def prefixed(self, words: Sequence[str]) -> "Daemon":
        """Return the same server with words before its command, for instance `env NAME=VALUE`; it starts with those."""
        command = (*words, *self._command)
        return Daemon(self.host, self.what, command, pid_file=self._pid_file, log=self.log, at_end=self._at_end)

    def start(self) -> None:
        """Start the process and return as soon as it exists. Do nothing when it runs already."""
        folder = self.log.rpartition("/")[0]
        # setsid: the process must outlive the SSH session. It leads no group here, so it does not fork: $! is the
        # number of the process, on file before this command ends.
        start = f"setsid {shlex.join(self._command)} >> {self.log} 2>&1 < /dev/null & echo $!"
        if self._at_end:
            # A shell in a session of its own is the parent. It closes its output once it has printed the number: $(…)
            # ends then. Its script is its input, not a part of its command line: `pkill -f kafka` does not match it.
            script = f"{start}; exec > /dev/null 2>&1; wait $!; status=$?; {self._at_end}"
            start = f"echo $(printf %s {shlex.quote(script)} | setsid sh &)"
        self.host.run(
            f"p=$(cat {self._pid_file} 2>/dev/null); if {_ALIVE}; then exit 0; fi; mkdir -p {folder}; cd /; "
            f"{start} > {self._pid_file}"
        )

    def pid(self) -> int | None:
        """Return its process number on its host; None when it does not run."""
        text = self.host.run(f"p=$(cat {self._pid_file} 2>/dev/null); {_ALIVE} && echo $p || true").stdout.strip()
        return int(text) if text else None

    def signal(self, name: str) -> None:
        """Send a signal (`TERM`, `KILL`, `STOP`, `CONT`). Raise `TestbedError` when the process does not run."""
        pid = self.pid()
        if pid is None:
            raise TestbedError(f"{self.host.name}: {self.what} does not run, SIG{name} cannot be sent")
        self._send(pid, name, check=True)

    def kill(self, *, timeout_s: float = 30.0) -> None:
        """Kill the process at once and wait until it is gone, for a caller that does not need its data."""
        if (pid := self.pid()) is not None:
            self._end(pid, "KILL", timeout_s)

    def stop(self, *, timeout_s: float = 30.0) -> None:
        """Send SIGTERM and wait until the process is gone. After `timeout_s` kill it, and raise `TestbedError`."""
        if (pid := self.pid()) is None:
            return
        try:
            self._end(pid, "TERM", timeout_s)
        except TestbedError:
            self._send(pid, "KILL")
            raise

    def _end(self, pid: int, signal: str, timeout_s: float) -> None:
        self._send(pid, signal)
        what = f"{self.what} on {self.host.name} to end after SIG{signal}"
        wait_for(self.pid, lambda pid: pid is None, timeout_s, 0.05, what)

    def _send(self, pid: int, signal: str, *, check: bool = False) -> None:
        """Send a signal to the process, which may have ended meanwhile; with `check` raise `CommandFailed` then."""
        self.host.run(["kill", f"-{signal}", str(pid)], check=check)

    def log_tail(self, lines: int = 40) -> str:
        """Return the end of its log."""
        return self.host.tail(self.log, lines=lines)


def in_parallel(items: Iterable[T], work: Callable[[T], R]) -> list[R]:
    """Return the results of `work` for all items, called in parallel. Raise the first failure after all have ended.

    After an interrupt no further call begins, and those that have begun end first: the caller's clean-up follows them.
    """
    with ThreadPoolExecutor(max_workers=16) as pool:
        try:
            with deferred_signals():  # the pool waits for no thread whose start was interrupted
                calls = [pool.submit(work, item) for item in items]
            wait(calls)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [call.result() for call in calls]
