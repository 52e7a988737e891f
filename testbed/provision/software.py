"""The files of the software cache that a Kafka host uses: jars, archive, format, and the start command."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from testbed.errors import SoftwareError
from testbed.kafka.capabilities import Capability, of_release
from testbed.kafka.node import FLAGS, PROPERTIES, with_credentials
from testbed.software.automq import VARIABLE, automq_release, supplied
from testbed.software.engine import EngineError, Trouble
from testbed.software.format import bootstrap_checkpoint, feature_levels, lowest
from testbed.software.image import ImageRef, node_image
from testbed.software.jvm import broker_command, cds_archive, mounts
from testbed.software.kafka import kafka_release
from testbed.software.minio import Minio, minio
from testbed.software.release import KafkaRelease
from testbed.software.rsm import TARGET, RemoteStorageManager, cached_manager, remote_storage_manager
from testbed.software.source import parse_source
from testbed.topology.host import AutomqSource, RemoteStorage
from testbed.topology.model import Topology

START_S, START_SHARED_S = 90.0, 240.0
"""The timeout in seconds from a broker's start until it is unfenced; the second one with storage that brokers share."""


@dataclass(frozen=True, slots=True)
class KafkaSoftware:
    """One Kafka, ready to be mounted into a host and started in it."""

    release: KafkaRelease
    command: tuple[str, ...]
    """The command that starts a node with its properties file."""
    mounts: Mapping[str, str]
    """Path on the machine → path in the container, read-only; the same for every release."""
    checkpoint: bytes | None
    """The `bootstrap.checkpoint` that a host is formatted with; None: the node formats itself at its first start."""
    artefacts: tuple[Path, ...] = ()
    """The folders within the mounts that it uses; the others are of other releases."""
    manager: RemoteStorageManager | None = None
    """The manager of the brokers' remote logs, if any; mounted with the release."""

    @property
    def version(self) -> str:
        """Return the permanent name of this Kafka: `4.3.1`, or `4.3.1+0123456789ab` for a build."""
        return self.release.version

    @property
    def digest(self) -> str:
        """Return the digest over all jars."""
        return self.release.digest

    @property
    def capabilities(self) -> frozenset[Capability]:
        """Return the feature levels that the release supports, in any cluster."""
        return of_release(self.release)

    @property
    def features(self) -> dict[str, int]:
        """Return feature → level of a cluster formatted with `checkpoint`; empty when the node formats itself."""
        return {} if self.checkpoint is None else feature_levels(self.checkpoint)

    @property
    def start_s(self) -> float:
        """Return the longest time that a cluster of this release may take to start, in seconds."""
        return START_SHARED_S if self.release.shared_storage else START_S


def builds_of(topologies: Iterable[Topology]) -> dict[str, str]:
    """Return what each path by which topologies name software has now: a Kafka's version, or a manager's digest.

    The key is the path, or TESTBED_AUTOMQ where the environment has it. Each path is read once, and its build is in the
    cache then. A manager or AutoMQ that is not there has no build: the runs that need it say so, and others are run.
    Raise `SoftwareError` or `UsageError` for a Kafka that is not there.
    """
    found: dict[str, str] = {}
    for topology in topologies:
        for source in {host.kafka_version for host in topology.hosts if host.kafka_version} - found.keys():
            if not parse_source(source).is_permanent:
                found[source] = kafka_release(source).version
        if topology.automq is not None and (name := _named_by(topology.automq)) not in found:
            where = supplied(topology.automq.path, topology.automq.image)
            if where.path is not None:
                with suppress(SoftwareError):
                    found[name] = automq_release(where).version
        folder = None if topology.remote_storage is None else topology.remote_storage.manager
        if folder is not None and folder not in found:
            with suppress(SoftwareError):
                found[folder] = remote_storage_manager(folder).digest
    return found


def _named_by(source: AutomqSource) -> str:
    return source.path or source.image or VARIABLE


class SoftwareSet:
    """The image and the Kafkas of one testbed, each looked up (or fetched, imported, made) once.

    Without an `image` (on machines that exist) there are no class-data archives, which are made in it. `manager` is the
    digest of the remote storage manager that the testbed's brokers have; empty: none has one yet. `builds` are those
    of `builds_of`: they count, whatever their paths have by now.
    """

    def __init__(self, *, image: bool = True, manager: str = "", builds: Mapping[str, str] | None = None) -> None:
        self._has_image, self._manager_digest, self._builds = image, manager, builds or {}
        self._kafka: dict[str, KafkaSoftware] = {}
        self._minio: Minio | None = None
        self._managers: dict[RemoteStorage, RemoteStorageManager] = {}

    @cached_property
    def image(self) -> ImageRef:
        """Return the node image of all hosts. Raise `SoftwareError` when there is none, and no engine to make it."""
        try:
            return node_image()
        except EngineError as error:
            if error.trouble is not Trouble.ABSENT:
                raise
            raise SoftwareError(f"{error}; `testbed doctor --fix` installs and starts one") from error

    def kafka(self, source: str) -> KafkaSoftware:
        """Return the Kafka that `source` names: a version, a tarball's or folder's path, an imported build's version.

        A path is read again each time, as its build may have changed. Raise `SoftwareError` when it is not available,
        `KafkaStuck` when it does not start.
        """
        if source in self._kafka:
            return self._kafka[source]
        release = kafka_release(source)
        if release.version not in self._kafka:
            self._kafka[release.version] = self._made(release)
        return self._kafka[release.version]

    def of(self, topology: Topology) -> dict[str, str]:
        """Return host → version of its Kafka, each looked up once. Raise the errors of `kafka`."""
        hosts = [host for host in topology.hosts if host.role.runs_kafka]
        if topology.automq is not None:
            known = self._builds.get(_named_by(topology.automq))
            version = known or automq_release(supplied(topology.automq.path, topology.automq.image)).version
            return dict.fromkeys((host.name for host in hosts), self.kafka(version).version)
        named = {host.name: host.kafka_version for host in hosts if host.kafka_version}
        versions = {source: self.kafka(self._builds.get(source, source)).version for source in set(named.values())}
        return {name: versions[source] for name, source in named.items()}

    def _made(self, release: KafkaRelease) -> KafkaSoftware:
        shared = release.shared_storage
        # AutoMQ alone, without a store, does not start: it has no class-data archive, and formats itself.
        archive = cds_archive(release, self.image) if self._has_image and not shared else None
        command = broker_command(release, PROPERTIES, archive=archive, extra_flags=FLAGS if shared else ())
        return KafkaSoftware(
            release=release,
            command=with_credentials(command) if shared else command,
            mounts=mounts(release, archive),
            checkpoint=None if shared else bootstrap_checkpoint(release).read_bytes(),
            artefacts=(release.folder, *([archive.parent] if archive is not None else [])),
        )

    def minio(self, progress: Callable[[str], None] = lambda _text: None) -> Minio:
        """Return the object store's server; build it when missing. Raise `SoftwareError` on failure."""
        if self._minio is None:
            self._minio = minio(progress)
        return self._minio

    def manager(
        self, wanted: RemoteStorage, progress: Callable[[str], None] = lambda _text: None
    ) -> RemoteStorageManager:
        """Return the remote storage manager of a topology; build it when new. Raise `SoftwareError` on failure.

        All brokers of a testbed have the same one, whatever its folder has now.
        """
        if wanted not in self._managers:
            if wanted.manager is None and not self._manager_digest and cached_manager() is None:
                progress("building the remote storage manager, once: half a minute")
            digest = self._manager_digest or self._builds.get(wanted.manager or "", "")
            self._managers[wanted] = remote_storage_manager(wanted.manager, digest)
        return self._managers[wanted]

    def lowest(self, versions: Iterable[str]) -> KafkaSoftware:
        """Return the Kafka of one cluster whose features all others have. Raise `SoftwareError` when there is none."""
        return self.kafka(lowest({version: self.kafka(version).features for version in versions}))

    def member(
        self, version: str, cluster: Iterable[str], remote_storage: RemoteStorage | None = None
    ) -> KafkaSoftware:
        """Return a Kafka as a node of a cluster of these: formatted at the feature levels of the lowest of them.

        Nodes that are formatted differently differ in the begin of the metadata log. With `remote_storage` the node
        has the manager.
        """
        found = self.kafka(version)
        manager = None if remote_storage is None else self.manager(remote_storage)
        seen = {} if manager is None else {str(manager.folder): TARGET}
        return replace(
            found, checkpoint=self.lowest(cluster).checkpoint, mounts={**found.mounts, **seen}, manager=manager
        )
