"""Commands in the namespaces of this machine's containers: run by root itself, or by a root container."""

import os
import shlex
import subprocess
import time
from collections.abc import Mapping, Sequence
from typing import Protocol

from testbed.errors import TestbedError
from testbed.hosts.host import CommandFailed, CommandResult
from testbed.network.kernel import lacking_capabilities
from testbed.network.root_agent import Subscription
from testbed.network.root_container import root_container


def run_as_root(
    words: Sequence[str],
    *,
    pid: int | None = None,
    namespaces: Sequence[str] = ("net",),
    stdin: bytes = b"",
    timeout_s: float = 60.0,
) -> subprocess.CompletedProcess[bytes]:
    """Run a command as root in the namespaces of process `pid`, or in the machine's own; capture its output.

    Raise FileNotFoundError and `subprocess.TimeoutExpired` as `subprocess.run` does.
    """
    enter = () if pid is None else ("nsenter", f"--target={pid}", *(f"--{each}" for each in namespaces), "--")
    if lacking_capabilities():
        return root_container().run([*enter, *words], stdin=stdin, timeout_s=timeout_s)
    return subprocess.run([*enter, *words], input=stdin, capture_output=True, timeout=timeout_s, check=False)


def machine_pid() -> int:
    """Return a process of the machine's own network namespace, as `run_as_root` sees it."""
    return root_container().machine_pid if lacking_capabilities() else os.getpid()


class Announcements(Protocol):
    """The kernel's announcements in one network namespace; see `Subscription`."""

    @property
    def devices(self) -> Mapping[int, str]:
        """Return the namespace's devices by index."""

    def receive(self) -> bytes:
        """Return the next announcement; see `Subscription.receive`."""

    def close(self) -> None:
        """Close it."""


def subscribe(pid: int) -> Announcements:
    """Subscribe to the announcements in the network namespace of a process. Raise OSError.

    As root, the calling thread stays in that namespace: it must end.
    """
    return root_container().subscribe(pid) if lacking_capabilities() else Subscription(pid)


class NamespaceShell:
    """A shell that runs commands in the namespaces of a container, through the container's first process."""

    def __init__(self, name: str, pid: int) -> None:
        self._name = name
        self._pid = pid

    @property
    def name(self) -> str:
        """Return the name for errors."""
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
        try:
            done = run_as_root(
                words, pid=self._pid, namespaces=("mount", "net", "pid"), stdin=stdin, timeout_s=timeout_s
            )
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
