"""A node's formatted folder: `meta.properties`, `bootstrap.checkpoint`, and the checkpoint's feature levels.

The release's own tool runs once. Its `bootstrap.checkpoint` (the features of a fresh cluster) is the same for every
cluster and is cached; `meta.properties` is written per node. The checkpoint is a snapshot of the metadata log:
batches of records in Kafka's format, with a FeatureLevelRecord for each feature above level 0.
"""

import base64
import secrets
import shutil
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path

from testbed.errors import SoftwareError
from testbed.paths import state_dir
from testbed.software.cache import artefact, existing
from testbed.software.commands import OLDEST_JAVA, CommandError, find_java, run_logged
from testbed.software.distribution import this_distribution
from testbed.software.release import KafkaRelease

CHECKPOINT = "bootstrap.checkpoint"
META = "meta.properties"


def bootstrap_checkpoint(release: KafkaRelease) -> Path:
    """Return the release's bootstrap.checkpoint; its own tool makes it when it is not cached."""
    return artefact("format", release.digest[:16], lambda folder: _make(release, folder)) / CHECKPOINT


def cached_checkpoint(release: KafkaRelease) -> Path | None:
    """Return the checkpoint if it is in the cache and intact; make nothing."""
    folder = existing("format", release.digest[:16])
    return None if folder is None else folder / CHECKPOINT


def levels_of(release: KafkaRelease) -> dict[str, int]:
    """Return the feature levels of a new cluster of this release, by its own tool.

    They are empty for a release that formats its folders itself: they are not known before it starts.
    """
    return {} if release.shared_storage else feature_levels(bootstrap_checkpoint(release).read_bytes())


def meta_properties(cluster_id: str, node_id: int, directory_id: str) -> str:
    """Return the meta.properties of a log directory; every directory has its own id."""
    return f"version=1\ncluster.id={cluster_id}\nnode.id={node_id}\ndirectory.id={directory_id}\n"


def new_id() -> str:
    """Return a fresh cluster or directory id: 22 characters of base64url, not starting with a dash."""
    while (text := encode_id(uuid.UUID(bytes=secrets.token_bytes(16), version=4))).startswith("-"):
        continue
    return text


def encode_id(value: uuid.UUID) -> str:
    """Return a UUID in Kafka's text form."""
    return base64.urlsafe_b64encode(value.bytes).decode().rstrip("=")


def run_format(release: KafkaRelease, node_id: int, folder: Path) -> Path:
    """Run the release's own tool for one combined node with a static quorum; return the log directory (about 1 s)."""
    java = find_java()
    if java is None:
        raise CommandError(f"no Java {OLDEST_JAVA} or newer: {this_distribution().how_to_get('java')}")
    properties, log = folder / "server.properties", folder / "log"
    properties.write_text(single_node_properties(node_id, str(log)), encoding="utf-8")
    jars = ":".join(str(release.libs / jar) for jar in release.jars)
    tool: list[str | Path] = ["kafka.tools.StorageTool", "format", "-t", new_id(), "-c", properties]
    run_logged([java.command, "-XX:TieredStopAtLevel=1", "-cp", jars, *tool], state_dir() / "logs" / "format.log")
    if not (log / CHECKPOINT).exists():
        raise SoftwareError(f"Kafka {release.version}: format wrote no {CHECKPOINT}")
    return log


def single_node_properties(node_id: int, log_dir: str) -> str:
    """Return the properties of one combined node on the loopback."""
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
    with tempfile.TemporaryDirectory(prefix="testbed-format-") as scratch:
        shutil.copyfile(run_format(release, 1, Path(scratch)) / CHECKPOINT, folder / CHECKPOINT)


class BinaryReader:
    """A reader of `bytes`, from `at` on. It raises IndexError at their end."""

    def __init__(self, content: bytes) -> None:
        self.bytes = content
        self.at = 0

    def unsigned(self) -> int:
        """Return a number of seven bits per byte, the lowest first."""
        value = shift = 0
        while True:
            byte = self.bytes[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def signed(self) -> int:
        """Return such a number with the sign in the lowest bit."""
        value = self.unsigned()
        return (value >> 1) ^ -(value & 1)

    def take(self, count: int) -> bytes:
        """Return the next bytes. Raise IndexError when they are missing."""
        taken = self.bytes[self.at : self.at + count]
        if count < 0 or len(taken) < count:
            raise IndexError(f"{count} bytes wanted at {self.at}")
        self.at += count
        return taken

    def skip(self, count: int) -> None:
        """Skip the next bytes."""
        self.at += count


METADATA = "metadata.version"
_FEATURE_LEVEL = 12
_HEADER_BYTES = 61
_CONTROL = 0x20


def feature_levels(checkpoint: bytes) -> dict[str, int]:
    """Return feature → level, sorted by name. Raise SoftwareError when the bytes are no checkpoint."""
    try:
        levels = dict(sorted(_levels(checkpoint)))
    except (IndexError, UnicodeDecodeError) as error:
        raise SoftwareError(
            f"not a bootstrap.checkpoint that can be read ({len(checkpoint)} bytes): {error}"
        ) from error
    if METADATA not in levels:
        raise SoftwareError(f"not a bootstrap.checkpoint: it sets no {METADATA}, only {', '.join(levels) or 'nothing'}")
    return levels


def lowest(levels: Mapping[str, Mapping[str, int]]) -> str:
    """Return the release whose features all other releases have; `levels` are the feature levels of each.

    A cluster of these releases starts with its checkpoint. Raise SoftwareError when there is none (two branches that
    each have a feature the other lacks).
    """
    # The lowest metadata.version is examined first, so that the answer among equals is always the same.
    for name in sorted(levels, key=lambda name: (levels[name].get(METADATA, 0), name)):
        if not any(_above(levels[name], other) for other in levels.values()):
            return name
    features = "; ".join(f"{name}: {_in_words(each)}" for name, each in sorted(levels.items()))
    raise SoftwareError(f"these cannot be nodes of one cluster: each has features that another lacks ({features})")


def _above(levels: Mapping[str, int], other: Mapping[str, int]) -> bool:
    return any(level > other.get(feature, 0) for feature, level in levels.items())


def _in_words(levels: Mapping[str, int]) -> str:
    return ", ".join(f"{feature}={level}" for feature, level in sorted(levels.items()))


def _levels(checkpoint: bytes) -> Iterator[tuple[str, int]]:
    at = 0
    while at < len(checkpoint):
        end = at + 12 + int.from_bytes(checkpoint[at + 8 : at + 12])
        if end > len(checkpoint) or end < at + _HEADER_BYTES:
            raise IndexError(f"a batch at {at} does not end where it says")
        batch = BinaryReader(checkpoint[at:end])
        if not int.from_bytes(batch.bytes[21:23]) & _CONTROL:
            yield from _batch(batch)
        at = end


def _batch(batch: BinaryReader) -> Iterator[tuple[str, int]]:
    batch.at = _HEADER_BYTES
    for _ in range(int.from_bytes(batch.bytes[57:61])):
        length = batch.signed()
        end = batch.at + length
        batch.skip(1)  # attributes
        batch.signed(), batch.signed()  # time and offset, against the batch's
        batch.skip(max(0, batch.signed()))  # the key
        batch.signed()  # the value's length: it ends with the record
        batch.unsigned()  # the frame's version
        kind, _version = batch.unsigned(), batch.unsigned()
        if kind == _FEATURE_LEVEL:
            name = batch.take(batch.unsigned() - 1).decode("utf-8")
            yield name, int.from_bytes(batch.take(2), signed=True)
        batch.at = end
