"""One Kafka node on a host: its files, and the commands that start, watch and stop it."""

import shlex
from collections.abc import Mapping, Sequence

from testbed.errors import TestbedError
from testbed.hosts import Host
from testbed.kafka.properties import DATA_DIR, render
from testbed.wait import wait_for

CONFIG_DIR = "/etc/testbed/kafka"
PROPERTIES = f"{CONFIG_DIR}/server.properties"
LOG = "/var/log/kafka/server.log"
PID_FILE = "/run/kafka.pid"


def node_files(properties: Mapping[str, str], meta: str, checkpoint: bytes | None) -> dict[str, bytes]:
    """Path → content of everything a node needs, its formatted (empty) data directory included.

    `meta` and `checkpoint` are what `kafka-storage format` would write: `meta.properties` and the release's
    `bootstrap.checkpoint`, which finalizes the release's features. Without a checkpoint the node formats it itself.
    """
    if checkpoint is None:
        return {PROPERTIES: render(properties).encode()}
    return {
        PROPERTIES: render(properties).encode(),
        f"{DATA_DIR}/meta.properties": meta.encode(),
        f"{DATA_DIR}/bootstrap.checkpoint": checkpoint,
    }


class Node:
    """Starts and stops the Kafka process of one host."""

    def __init__(self, host: Host, command: Sequence[str]) -> None:
        self.host = host
        self._command = tuple(command)

    def start(self) -> None:
        """Start Kafka; returns as soon as the process exists. Does nothing when it runs already."""
        java = shlex.join(self._command)
        # setsid: the broker must outlive the SSH session. The pid is of the JVM itself, as `exec` replaces the shell.
        self.host.run(
            f"if [ -s {PID_FILE} ] && kill -0 $(cat {PID_FILE}) 2>/dev/null; then exit 0; fi; "
            f"mkdir -p /var/log/kafka; cd /; "
            f"setsid sh -c 'echo $$ > {PID_FILE}; exec \"$@\"' kafka {java} >> {LOG} 2>&1 < /dev/null &"
        )

    def pid(self) -> int | None:
        """The JVM's process number on its host; None when it does not run."""
        text = self.host.run(
            f"p=$(cat {PID_FILE} 2>/dev/null) && kill -0 $p 2>/dev/null && echo $p || true"
        ).stdout.strip()
        return int(text) if text else None

    def signal(self, name: str) -> None:
        """Send a signal (`TERM`, `KILL`, `STOP`, `CONT`). Raises `TestbedError` when Kafka does not run."""
        pid = self.pid()
        if pid is None:
            raise TestbedError(f"{self.host.name}: Kafka does not run, SIG{name} cannot be sent")
        self.host.run(["kill", f"-{name}", str(pid)])

    def stop(self, *, timeout_s: float = 30.0) -> None:
        """Ask Kafka to shut down (controlled), wait until it is gone; kills it after `timeout_s`."""
        if self.pid() is None:
            return
        self.signal("TERM")
        try:
            wait_for(
                self.pid,
                lambda pid: pid is None,
                timeout_s=timeout_s,
                interval_s=0.1,
                what=f"Kafka on {self.host.name} to stop",
            )
        except TestbedError:
            self.signal("KILL")
            raise

    def configure(self, properties: Mapping[str, str]) -> None:
        """Replace the properties file; in force from the next start."""
        self.host.put(render(properties).encode(), PROPERTIES)

    def log_tail(self, lines: int = 40) -> str:
        """The end of the broker's log."""
        return self.host.tail(LOG, lines=lines)
