"""What a Kafka host is given of the software cache: jars, archive, format, and the command that starts it."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from testbed.kafka.node import PROPERTIES
from testbed.software.cds import cds_archive
from testbed.software.format import bootstrap_checkpoint
from testbed.software.image import ImageRef, node_image
from testbed.software.jvm import broker_command, mounts
from testbed.software.kafka import kafka_release


@dataclass(frozen=True, slots=True)
class KafkaSoftware:
    """One Kafka release, ready to be mounted into a host."""

    version: str
    command: tuple[str, ...]
    """Starts a node with its properties file."""
    mounts: Mapping[str, str]
    """Path on the machine → path in the container, read-only."""
    checkpoint: bytes
    """The release's `bootstrap.checkpoint`."""
    digest: str
    """Over all jars."""


class SoftwareSet:
    """The image and the releases of one testbed, each looked up (or fetched, or made) once."""

    def __init__(self) -> None:
        self._kafka: dict[str, KafkaSoftware] = {}

    @cached_property
    def image(self) -> ImageRef:
        """The node image all hosts are made from."""
        return node_image()

    def kafka(self, version: str) -> KafkaSoftware:
        """A release. Raises `SoftwareError` when it is not to be had."""
        if version not in self._kafka:
            release = kafka_release(version)
            archive = cds_archive(release, self.image)
            self._kafka[version] = KafkaSoftware(
                version=version,
                command=broker_command(release, PROPERTIES),
                mounts={str(mount.source): mount.target for mount in mounts(release, archive)},
                checkpoint=bootstrap_checkpoint(release).read_bytes(),
                digest=release.digest,
            )
        return self._kafka[version]
