"""What every host can do, however it is reached."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from testbed.errors import TestbedError


@dataclass(frozen=True, slots=True)
class Result:
    """A finished command: its exit status, what it printed, and how long it took."""

    command: str
    exit_status: int
    stdout: str
    stderr: str
    seconds: float


class CommandFailed(TestbedError):
    """A command ended with another status than 0, or not in time."""

    def __init__(self, host: str, result: Result) -> None:
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
    ) -> Result:
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
        """Let go of the connection."""
