"""Commands inside the namespaces of a process of this machine: how the fabric itself is reached. Needs root."""

import shlex
import subprocess
import time
from collections.abc import Sequence

from testbed.errors import TestbedError
from testbed.hosts.host import CommandFailed, Result


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
    ) -> Result:
        """See `Host.run`."""
        words = ["sh", "-c", command] if isinstance(command, str) else list(command)
        text = command if isinstance(command, str) else shlex.join(command)
        started = time.monotonic()
        enter = ["nsenter", f"--target={self._pid}", "--mount", "--net", "--pid", "--", *words]
        try:
            done = subprocess.run(enter, input=stdin, capture_output=True, timeout=timeout_s, check=False)
        except subprocess.TimeoutExpired as error:
            raise TestbedError(f"{self._name}: `{text}` was not done after {timeout_s:g} s") from error
        result = Result(
            text,
            done.returncode,
            done.stdout.decode(errors="replace"),
            done.stderr.decode(errors="replace"),
            time.monotonic() - started,
        )
        if check and result.exit_status != 0:
            raise CommandFailed(self._name, result)
        return result
