"""Hosts: where a command runs, how a server process is kept there, and the namespaces of this machine's containers."""

import shlex
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol, TypeVar

from testbed.errors import TestbedError
from testbed.wait import wait_for

AGENT_PATH = "/opt/testbed/agent.py"
"""Where the probes' agent lies on every host."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class CommandResult:
    """A finished command: its exit status, what it printed, and how long it took."""

    command: str
    exit_status: int
    stdout: str
    stderr: str
    seconds: float


class CommandFailed(TestbedError):
    """A command ended with another status than 0, or not in time."""

    def __init__(self, host: str, result: CommandResult) -> None:
        said = (result.stderr.strip() or result.stdout.strip() or "(it printed nothing)")[-2000:]
        super().__init__(f"{host}: `{result.command}` ended with status {result.exit_status}: {said}")
        self.host = host
        self.result = result


class Process(Protocol):
    """A command that is still running on a host."""

    def lines(self) -> Iterator[str]:
        """Each line it prints, until it ends."""

    def stop(self) -> None:
        """End it, and everything it started; does nothing when it has ended."""


class Shell(Protocol):
    """A place where commands run to their end."""

    @property
    def name(self) -> str:
        """The host's name in the topology."""

    def run(
        self,
        command: str | Sequence[str],
        *,
        timeout_s: float = 60.0,
        check: bool = True,
        stdin: bytes = b"",
    ) -> CommandResult:
        """Run a command to its end; a string is given to a shell, a sequence is not interpreted.

        Raises `CommandFailed` on a status other than 0 (unless `check` is false) and on a timeout.
        """


class Host(Shell, Protocol):
    """A place where commands run, also in the background, and files lie."""

    def spawn(self, command: str | Sequence[str]) -> Process:
        """Start a command that prints lines until it is stopped; it ends with the connection."""

    def put(self, content: bytes, path: str, *, mode: int = 0o644) -> None:
        """Write a file whole: a reader sees the old content or the new, never half of it."""

    def get(self, path: str) -> bytes:
        """Read a file whole. Raises `TestbedError` when it is not there."""

    def tail(self, path: str, *, lines: int = 100) -> str:
        """The last lines of a text file; empty when there is no such file."""

    def close(self) -> None:
        """Close the connection."""


_ALIVE = "[ -n \"$p\" ] && grep -qs '^State:[[:space:]]*[A-WYa-wy]' /proc/$p/status"
"""Whether process $p runs; a zombie, which has ended and is not reaped yet, does not."""


class Daemon:
    """Starts, looks at and stops one process. `what` is its name in messages: Kafka."""

    def __init__(self, host: Host, what: str, command: Sequence[str], *, pid_file: str, log: str) -> None:
        self.host = host
        self.what = what
        self._command = tuple(command)
        self._pid_file, self.log = pid_file, log

    def start(self) -> None:
        """Start it; returns as soon as the process exists. Does nothing when it runs already."""
        folder = self.log.rpartition("/")[0]
        # setsid: it must outlive the SSH session. The pid is its own, as `exec` replaces the shell.
        self.host.run(
            f"p=$(cat {self._pid_file} 2>/dev/null); if {_ALIVE}; then exit 0; fi; "
            f"mkdir -p {folder}; cd /; "
            f"setsid sh -c 'echo $$ > {self._pid_file}; exec \"$@\"' {self.what.lower()} {shlex.join(self._command)} "
            f">> {self.log} 2>&1 < /dev/null &"
        )

    def pid(self) -> int | None:
        """Its process number on its host; None when it does not run."""
        text = self.host.run(f"p=$(cat {self._pid_file} 2>/dev/null); {_ALIVE} && echo $p || true").stdout.strip()
        return int(text) if text else None

    def signal(self, name: str) -> None:
        """Send a signal (`TERM`, `KILL`, `STOP`, `CONT`). Raises `TestbedError` when it does not run."""
        pid = self.pid()
        if pid is None:
            raise TestbedError(f"{self.host.name}: {self.what} does not run, SIG{name} cannot be sent")
        self.host.run(["kill", f"-{name}", str(pid)])

    def kill(self, *, timeout_s: float = 30.0) -> None:
        """End it at once, whatever it is doing, and wait until it is gone: for who does not need what it holds."""
        pid = self.pid()
        if pid is None:
            return
        self.host.run(["kill", "-KILL", str(pid)], check=False)  # it may have ended meanwhile
        what = f"{self.what} on {self.host.name} to be gone"
        wait_for(self.pid, lambda pid: pid is None, timeout_s=timeout_s, interval_s=0.05, what=what)

    def stop(self, *, timeout_s: float = 30.0) -> None:
        """Ask it to shut down, wait until it is gone; kills it after `timeout_s`."""
        if self.pid() is None:
            return
        self.signal("TERM")
        try:
            wait_for(
                self.pid,
                lambda pid: pid is None,
                timeout_s=timeout_s,
                interval_s=0.1,
                what=f"{self.what} on {self.host.name} to stop",
            )
        except TestbedError:
            self.signal("KILL")
            raise

    def log_tail(self, lines: int = 40) -> str:
        """The end of its log."""
        return self.host.tail(self.log, lines=lines)


class NamespaceShell:
    """Runs commands as a process of a container would, by that container's first process."""

    def __init__(self, name: str, pid: int) -> None:
        self._name = name
        self._pid = pid

    @property
    def name(self) -> str:
        """What errors call it."""
        return self._name

    def run(
        self,
        command: str | Sequence[str],
        *,
        timeout_s: float = 60.0,
        check: bool = True,
        stdin: bytes = b"",
    ) -> CommandResult:
        """See `Host.run`."""
        words = ["sh", "-c", command] if isinstance(command, str) else list(command)
        text = command if isinstance(command, str) else shlex.join(command)
        started = time.monotonic()
        enter = ["nsenter", f"--target={self._pid}", "--mount", "--net", "--pid", "--", *words]
        try:
            done = subprocess.run(enter, input=stdin, capture_output=True, timeout=timeout_s, check=False)
        except subprocess.TimeoutExpired as error:
            raise TestbedError(f"{self._name}: `{text}` was not done after {timeout_s:g} s") from error
        result = CommandResult(
            text,
            done.returncode,
            done.stdout.decode(errors="replace"),
            done.stderr.decode(errors="replace"),
            time.monotonic() - started,
        )
        if check and result.exit_status != 0:
            raise CommandFailed(self._name, result)
        return result


def in_parallel(items: Iterable[T], work: Callable[[T], object]) -> None:
    """Do `work` for all items at once; the first failure is raised after all have ended."""
    with ThreadPoolExecutor(max_workers=16) as pool:
        futures = [pool.submit(work, item) for item in items]
    for future in futures:
        future.result()
