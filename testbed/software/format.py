"""What `kafka-storage format` writes, without starting a JVM for every node.

The release's tool is run once; the `bootstrap.checkpoint` it writes (the feature levels a new cluster starts
with) depends on the release alone, so that it is kept and copied. `meta.properties` names the node and is
rendered here.
"""

import base64
import secrets
import tempfile
import uuid
from dataclasses import dataclass
from pathlib import Path

from testbed.paths import state_dir
from testbed.software.cache import artefact, existing
from testbed.software.commands import CommandError, run_logged
from testbed.software.errors import SoftwareError
from testbed.software.java import MINIMUM, find_java
from testbed.software.release import KafkaRelease

CHECKPOINT = "bootstrap.checkpoint"
META = "meta.properties"


@dataclass(frozen=True, slots=True)
class Formatted:
    """A formatted log directory: the text of its meta.properties and the bytes of its checkpoint."""

    meta: str
    checkpoint: bytes


def bootstrap_checkpoint(release: KafkaRelease) -> Path:
    """The release's bootstrap.checkpoint, made by its own tool when not cached."""
    return artefact("format", release.digest[:16], lambda folder: _make(release, folder)) / CHECKPOINT


def cached_checkpoint(release: KafkaRelease) -> Path | None:
    """The checkpoint if it is in the cache and intact; makes nothing."""
    folder = existing("format", release.digest[:16])
    return None if folder is None else folder / CHECKPOINT


def meta_properties(cluster_id: str, node_id: int, directory_id: str) -> str:
    """The meta.properties of a log directory; every directory has an id of its own."""
    return f"version=1\ncluster.id={cluster_id}\nnode.id={node_id}\ndirectory.id={directory_id}\n"


def new_id() -> str:
    """A fresh cluster or directory id: 22 characters of base64url, not starting with a dash."""
    while (text := encode_id(uuid.UUID(bytes=secrets.token_bytes(16), version=4))).startswith("-"):
        continue
    return text


def encode_id(value: uuid.UUID) -> str:
    """A UUID as Kafka writes it."""
    return base64.urlsafe_b64encode(value.bytes).decode().rstrip("=")


def run_format(release: KafkaRelease, cluster_id: str, node_id: int) -> Formatted:
    """Run the release's own tool for one combined node with a static quorum (about 1 s)."""
    java = find_java()
    if java is None:
        raise CommandError(f"no Java {MINIMUM} or newer; on Debian: apt-get install openjdk-17-jre-headless")
    with tempfile.TemporaryDirectory(prefix="testbed-format-") as name:
        folder = Path(name)
        properties = folder / "server.properties"
        properties.write_text(single_node_properties(node_id, str(folder / "log")), encoding="utf-8")
        jars = ":".join(str(release.libs / jar) for jar in release.jars)
        tool: list[str | Path] = ["kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", properties]
        run_logged([java.command, "-XX:TieredStopAtLevel=1", "-cp", jars, *tool], state_dir() / "logs" / "format.log")
        log = folder / "log"
        missing = [part for part in (META, CHECKPOINT) if not (log / part).exists()]
        if missing:
            raise SoftwareError(f"Kafka {release.version}: format wrote no {' and no '.join(missing)}")
        return Formatted((log / META).read_text(encoding="utf-8"), (log / CHECKPOINT).read_bytes())


def single_node_properties(node_id: int, log_dir: str) -> str:
    """The properties of one combined node on the loopback."""
    return (
        "process.roles=broker,controller\n"
        f"node.id={node_id}\n"
        f"controller.quorum.voters={node_id}@localhost:9093\n"
        "listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093\n"
        "controller.listener.names=CONTROLLER\n"
        "offsets.topic.replication.factor=1\n"
        f"log.dirs={log_dir}\n"
    )


def _make(release: KafkaRelease, folder: Path) -> None:
    formatted = run_format(release, new_id(), 1)
    (folder / CHECKPOINT).write_bytes(formatted.checkpoint)
