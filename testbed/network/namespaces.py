"""Commands on this machine and in the namespaces of its containers: run by root itself, or by a root container."""

import os
import shlex
import subprocess
import time
from collections.abc import Sequence
from dataclasses import replace

from testbed.errors import TestbedError
from testbed.hosts.host import CommandFailed, CommandResult, Shell, as_text
from testbed.network.kernel import lacking_capabilities
from testbed.network.root_agent import Subscription
from testbed.network.root_container import RemoteSubscription, root_container
from testbed.software.distribution import SYSTEM_FOLDERS


def machine_pid() -> int:
    """Return a process of the machine's own network namespace, as a `MachineShell` sees it."""
    return root_container().machine_pid if lacking_capabilities() else os.getpid()


def subscribe(pid: int) -> Subscription | RemoteSubscription:
    """Subscribe to the announcements in the network namespace of a process. Raise OSError.

    As root, the calling thread stays in that namespace: it must end.
    """
    return root_container().subscribe(pid) if lacking_capabilities() else Subscription(pid)


def network_of(pid: int) -> tuple[str, ...]:
    """Return the words that run a command of this machine in the network namespace of a process; they need root."""
    return ("nsenter", f"--net=/proc/{pid}/ns/net", "--")


class MachineShell:
    """A shell as root on the machine on which the testbed runs; a root container runs it for other users."""

    name = "this machine"

    def run(
        self, command: str | Sequence[str], *, timeout_s: float = 60.0, check: bool = True, stdin: bytes = b""
    ) -> CommandResult:
        """See `Host.run`."""
        text, words, started = as_text(command), _words(command), time.monotonic()
        try:
            if lacking_capabilities():
                done = root_container().run(words, stdin=stdin, timeout_s=timeout_s)
            else:
                env = {**os.environ, "PATH": _program_path()}
                done = subprocess.run(words, input=stdin, capture_output=True, timeout=timeout_s, check=False, env=env)
        except FileNotFoundError as error:
            raise _not_installed(str(error.filename)) from error
        except subprocess.TimeoutExpired as error:
            raise TestbedError(f"{self.name}: `{text}` was not done after {timeout_s:g} s") from error
        out, err = (part.decode(errors="replace") for part in (done.stdout, done.stderr))
        return _checked(self.name, CommandResult(text, done.returncode, out, err, time.monotonic() - started), check)


class NamespaceShell:
    """A shell that runs commands in the namespaces of a container, through the container's first process.

    The container is on this machine, or on the machine of `machine`, a shell as root. `pid` is the number of that
    process, as its machine counts. `namespaces` are those that a command enters; in all others it is on the machine.
    """

    def __init__(
        self, name: str, pid: int, machine: Shell | None = None, *, namespaces: Sequence[str] = ("mount", "net", "pid")
    ) -> None:
        self.name = name
        self.pid = pid
        self._machine = machine or MachineShell()
        self.namespaces = namespaces

    def network_only(self) -> "NamespaceShell":
        """Return a shell with the machine's files and processes in the container's network."""
        return NamespaceShell(self.name, self.pid, self._machine, namespaces=("net",))

    def run(
        self, command: str | Sequence[str], *, timeout_s: float = 60.0, check: bool = True, stdin: bytes = b""
    ) -> CommandResult:
        """See `Host.run`."""
        enter = ["nsenter", f"--target={self.pid}", *(f"--{each}" for each in self.namespaces), "--"]
        done = self._machine.run([*enter, *_words(command)], timeout_s=timeout_s, check=False, stdin=stdin)
        return _checked(self.name, replace(done, command=as_text(command)), check)


def _program_path() -> str:
    """Return this user's PATH with the system folders: that of a root who came by `su` lacks them on Debian."""
    return os.pathsep.join((os.environ.get("PATH", os.defpath), *SYSTEM_FOLDERS))


def _words(command: str | Sequence[str]) -> list[str]:
    return ["sh", "-c", command] if isinstance(command, str) else list(command)


def _checked(name: str, result: CommandResult, check: bool) -> CommandResult:
    if check and result.exit_status != 0:
        raise CommandFailed(name, result)
    return result


PROGRAM_S = 60.0


def run_program_as_root(command: Sequence[str]) -> str:
    """Run a program of the machine that needs root and return its output; a root container does it for other users.

    Raise as `run_program`.
    """
    if not lacking_capabilities():
        return run_program(command)
    # A new loop device appears in the machine's own /dev only.
    shell = NamespaceShell("this machine", os.getpid(), namespaces=("mount",))
    return shell.run(command, timeout_s=PROGRAM_S).stdout


def run_program(command: Sequence[str], *, timeout_s: float = PROGRAM_S) -> str:
    """Run a program of the machine as this user and return its output.

    Raise `TestbedError` when it is missing, fails, or is not done in time.
    """
    env = {"PATH": _program_path(), "LC_ALL": "C"}
    words = shlex.join(command)
    try:
        done = subprocess.run(command, capture_output=True, timeout=timeout_s, check=False, env=env)
    except FileNotFoundError as error:
        raise _not_installed(command[0]) from error
    except subprocess.TimeoutExpired as error:
        raise TestbedError(f"`{words}` was not done after {timeout_s:g} s") from error
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip()).decode(errors="replace")[-500:]
        raise TestbedError(f"`{words}` ended with status {done.returncode}: {said}")
    return done.stdout.decode()


def _not_installed(program: str) -> TestbedError:
    return TestbedError(f"{program} is not installed: run `testbed doctor --fix`")
