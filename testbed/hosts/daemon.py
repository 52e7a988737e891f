"""A server on a host that outlives the connection it was started over: found again by its process number."""

import shlex
from collections.abc import Sequence

from testbed.errors import TestbedError
from testbed.hosts.host import Host
from testbed.wait import wait_for

_ALIVE = "[ -n \"$p\" ] && grep -qs '^State:[[:space:]]*[A-WYa-wy]' /proc/$p/status"
"""Whether process $p is there: one that has ended, and that nobody has reaped yet, is not."""


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
