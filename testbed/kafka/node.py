"""One Kafka node on a host: its files, and the commands that start, watch and stop it."""

from collections.abc import Mapping, Sequence

from testbed.hosts import Daemon, Host
from testbed.kafka.properties import DATA_DIR, render

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


class Node(Daemon):
    """The Kafka process of one host. It shuts down controlled."""

    def __init__(self, host: Host, command: Sequence[str]) -> None:
        super().__init__(host, "Kafka", command, pid_file=PID_FILE, log=LOG)

    def configure(self, properties: Mapping[str, str]) -> None:
        """Replace the properties file; in force from the next start."""
        self.host.put(render(properties).encode(), PROPERTIES)
