"""The container engine."""

import contextlib
import os
import subprocess
import time
from pathlib import Path

from results.contract import durable
from testbed.paths import cache_dir, state_dir
from testbed.setup.check import CannotFix, Check, CheckFinding
from testbed.setup.install import run_as_root
from testbed.software.commands import CommandError, tail
from testbed.software.distribution import as_root, by_sudo, has_podman_alone, this_distribution, which
from testbed.software.engine import EngineError, EngineSocket, Trouble, facts

PID_FILE = Path("/run/docker.pid")
PODMAN_SOCKET = Path("/run/podman/podman.sock")
"""Root's. The engine of a user without root cannot link hosts to the machine."""
SYSTEMD = Path("/run/systemd/system")
START_TIMEOUT_S = 60.0
POLL_S = 0.1


class ContainerEngine(Check):
    """A container engine that answers; a running engine is used unchanged."""

    name = "container engine"
    needs = ("packages", "permissions")
    doing = "starting the container engine"
    estimate_s = 3.0

    @property
    def fixable(self) -> bool:
        """Return whether the engine can be started, or is just coming up. One that refuses stays as it is."""
        try:
            EngineSocket.from_environment().ping()
        except EngineError as error:
            return _startable(error)
        return self.probe().ok

    def probe(self) -> CheckFinding:
        """Return whether the engine answers a request."""
        engine = EngineSocket.from_environment()
        try:
            engine.ping()  # with a timeout
            found = facts(engine.get("/version"), engine.get("/info"))
        except EngineError as error:
            return self.bad(*explained(error))
        what = f"{found.kind} {found.version}"
        if found.lacks:
            return self.bad(f"{what}: {'; '.join(found.lacks)}", "use another engine")
        pools = f", networks from {', '.join(found.pools)}" if found.pools else ""
        return self.good(f"{what} answers at {engine.address}{pools}")

    def fix(self) -> None:
        """Start the engine, and wait until it answers."""
        with durable.lock(cache_dir() / ".engine.lock"):
            try:
                EngineSocket.from_environment().ping()
            except EngineError as error:
                if not _startable(error):
                    raise CannotFix(": ".join(explained(error))) from error
                _start()


def _startable(error: EngineError) -> bool:
    absent = error.trouble in (Trouble.ABSENT, Trouble.SILENT) and not os.environ.get("DOCKER_HOST")
    return absent and not has_podman_alone()


def explained(error: EngineError) -> tuple[str, str]:
    """Return the problem, and the command that fixes it."""
    host = os.environ.get("DOCKER_HOST")
    if error.trouble is Trouble.DENIED:
        # Podman's socket has no group; podman-docker links the usual socket to it.
        join = "" if has_podman_alone() else ", or: sudo usermod -aG docker $USER, and log in again"
        return f"{error}: this user may not use the engine", f"run as root{join}"
    if error.trouble is Trouble.ELSEWHERE:
        return str(error), "unset DOCKER_HOST"
    if error.trouble is Trouble.FAILED:
        return f"the engine does not work: {error}", "read the engine's log, and restart the engine"
    if not host and os.access(PODMAN_SOCKET, os.W_OK):
        return f"{error}; Podman's socket is there", f"export DOCKER_HOST=unix://{PODMAN_SOCKET}"
    if not host and has_podman_alone():
        install = "" if which("podman") else f"{this_distribution().command(['podman'])} && "
        start = f"{install}systemctl start podman.socket && export DOCKER_HOST=unix://{PODMAN_SOCKET}"
        return f"{error}: Docker is not installed; Podman works with root's socket", f"as root: {start}"
    if host:
        return f"{error} (from DOCKER_HOST)", "start that engine, or unset DOCKER_HOST"
    return f"{error}: it is not running", by_sudo("systemctl start docker" if SYSTEMD.exists() else "dockerd &")


def _start() -> None:
    log = state_dir() / "logs" / "dockerd.log"
    if SYSTEMD.exists():
        run_as_root(["systemctl", "start", "docker"], "systemctl start docker")
        _wait(None, log)
        return
    program = which("dockerd")
    if program is None:
        raise CommandError("dockerd is not installed")
    command = as_root([program])
    if command is None:
        raise CommandError(f"only root can start the engine: sudo {program}")
    _remove_stale_pid()
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        # Its own session: the engine continues when set-up ends or is interrupted.
        daemon = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
    _wait(daemon, log)


def _remove_stale_pid() -> None:
    """Remove the PID file of an engine that was killed.

    dockerd refuses to start while a process has the PID in this file: also a zombie, or another program.
    """
    with contextlib.suppress(OSError, ValueError):
        if not _is_running(int(PID_FILE.read_text())):
            PID_FILE.unlink()


def _is_running(pid: int) -> bool:
    try:
        name, _, rest = Path(f"/proc/{pid}/stat").read_text().rpartition(")")
    except OSError:
        return False
    return name.endswith("(dockerd") and rest.split()[0] != "Z"


def _wait(daemon: "subprocess.Popen[bytes] | None", log: Path) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while True:
        try:
            EngineSocket.from_environment().ping()
            return
        except EngineError as error:
            if daemon is not None and daemon.poll() is not None:
                raise CommandError(
                    f"dockerd ended with {daemon.returncode}\n{tail(log)}\n  whole log: {log}", log
                ) from error
            if time.monotonic() > deadline:
                raise CommandError(
                    f"{error} after {START_TIMEOUT_S:.0f} s\n{tail(log)}\n  whole log: {log}", log
                ) from error
        time.sleep(POLL_S)
