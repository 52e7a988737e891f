"""The command line of a broker's JVM, and the class-data archive that halves the time of its start.

The JVM uses an archive only with the class path and flags of its making; hence one command line for both. The JMX
agent is the exception: the JVM makes no archive with an agent, but fully uses an archive made without one.

A container sees the cache's folders of all releases and archives. So a node can be started with another release than
its first one, even a release that was cached later.

To make an archive, a short-lived container of the node image starts one broker with a normal command line. The JVM
writes the archive when it ends.
"""

import hashlib
import json
import os
import shutil
import threading
import time
from pathlib import Path

from testbed.errors import KafkaStuck, SoftwareError
from testbed.software.cache import artefact, existing
from testbed.software.engine import Container, EngineError, EngineSocket, helper_labels
from testbed.software.format import META, bootstrap_checkpoint, meta_properties, new_id, single_node_properties
from testbed.software.image import ImageRef
from testbed.software.release import AGENT_FILE, LOGGING_FILE, KafkaRelease, Logging
from testbed.wait import WaitTimeout

# C1 only and the serial collector: brokers share few cores, and start-up time counts more than peak speed.
JVM_FLAGS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xms256m", "-Xmx512m", "-Djava.awt.headless=true")
MAIN_CLASS = "kafka.Kafka"

RELEASES = "/opt/kafka/releases"
ARCHIVES = "/opt/kafka/archives"
AGENT_PORT = 8778


def home(release: KafkaRelease) -> str:
    """Return the folder of a release inside a container."""
    return f"{RELEASES}/{release.folder.name}"


def class_path(release: KafkaRelease) -> str:
    """Return the class path inside a container: every jar by name, in the release's fixed order."""
    return ":".join(f"{home(release)}/{release.libs.name}/{jar}" for jar in release.jars)


def mounts(release: KafkaRelease, archive: Path | None) -> dict[str, str]:
    """Return folder of this machine → folder in a container, read-only, for this release and every other one.

    `archive` is its class-data archive, if any. The mounts are the same for all releases and archives of one cache.
    """
    found = {str(release.folder.parent): RELEASES}
    return found if archive is None else {**found, str(archive.parent.parent): ARCHIVES}


def broker_command(
    release: KafkaRelease,
    properties: str,
    *,
    archive: Path | None = None,
    agent: bool = True,
    extra_flags: tuple[str, ...] = (),
) -> tuple[str, ...]:
    """Return the command that starts a broker or controller with the properties file at `properties`.

    With `agent`, JMX answers HTTP on the loopback at `AGENT_PORT`. It starts from the class-data `archive`, if any.
    The JVM ignores an unsuitable archive (slower, not wrong).
    """
    jolokia = f"-javaagent:{home(release)}/{AGENT_FILE}"
    return (
        "java",
        *JVM_FLAGS,
        *((f"-XX:SharedArchiveFile={ARCHIVES}/{archive.parent.name}/{archive.name}",) if archive else ()),
        *((f"{jolokia}=host=127.0.0.1,port={AGENT_PORT},discoveryEnabled=false",) if agent else ()),
        logging_flag(release),
        *extra_flags,
        "-cp",
        class_path(release),
        MAIN_CLASS,
        properties,
    )


def with_flag(command: tuple[str, ...], flag: str) -> tuple[str, ...]:
    """Return the command with `flag` as the first of the JVM's flags. Raise ValueError for a command without a JVM."""
    at = command.index("java") + 1
    return (*command[:at], flag, *command[at:])


COLLECTOR_FLAGS = {
    "serial": "-XX:+UseSerialGC",
    "parallel": "-XX:+UseParallelGC",
    "g1": "-XX:+UseG1GC",
    "zgc": "-XX:+UseZGC",
}


def with_jvm(
    command: tuple[str, ...], heap_bytes: int | None, gc: str | None, flags: tuple[str, ...]
) -> tuple[str, ...]:
    """Return the command with another heap, collector and more flags; None keeps the testbed's own.

    `gc` is a key of `COLLECTOR_FLAGS`. `flags` come after the testbed's own: of two values the JVM takes the last.
    Raise ValueError for a command without a JVM.
    """
    at, end = command.index("java") + 1, command.index("-cp")
    size = () if heap_bytes is None else (f"-Xms{heap_bytes}", f"-Xmx{heap_bytes}")
    collector = () if gc is None else (COLLECTOR_FLAGS[gc],)
    replaced = {each for each in JVM_FLAGS if (size and each[:4] in ("-Xms", "-Xmx")) or (gc and each.endswith("GC"))}
    own = tuple(each for each in command[at:end] if each not in replaced)
    return (*command[:at], *size, *collector, *own, *flags, *command[end:])


def logging_flag(release: KafkaRelease) -> str:
    """Return the system property that selects the release's logging configuration."""
    key = {Logging.LOG4J2: "log4j2.configurationFile", Logging.RELOAD4J: "log4j.configuration"}[release.logging]
    return f"-D{key}=file:{home(release)}/{LOGGING_FILE}"


WORK_FOLDER = "/opt/kafka-work"
ARCHIVE_FILE = "kafka.jsa"
STARTED_LINE = "Kafka Server started"
START_TIMEOUT_S = 180.0
"""Twice the time that a node of a testbed has for its start, as a start without an archive takes twice as long."""
END_TIMEOUT_S = 60.0
TOLD_LINES = 12
_SLOW = "end other work on this machine, or give it more CPUs, and repeat the command"
NEEDS_NEWER_JAVA = "UnsupportedClassVersionError"
"""The error of a JVM that is older than a release needs: the image is the cause, not Kafka."""


def cds_archive(release: KafkaRelease, image: ImageRef) -> Path:
    """Return the archive for this release in this image; make it when not cached (7 s).

    Raise `KafkaStuck` when the release does not start, `SoftwareError` otherwise.
    """
    folder = artefact("cds", _archive_key(release, image), lambda made: _make_archive(release, image, made))
    return folder / ARCHIVE_FILE


def cached_archive(release: KafkaRelease, image: ImageRef) -> Path | None:
    """Return the archive if it is in the cache and intact; make nothing."""
    folder = existing("cds", _archive_key(release, image))
    return None if folder is None else folder / ARCHIVE_FILE


def _archive_key(release: KafkaRelease, image: ImageRef) -> str:
    # The values that the JVM compares when it opens the archive: the jars, the JVM itself, the command line.
    parts = json.dumps([release.digest, image.id, broker_command(release, "")])
    return f"{release.version}-{hashlib.sha256(parts.encode()).hexdigest()[:16]}"


def _make_archive(release: KafkaRelease, image: ImageRef, folder: Path) -> None:
    work = folder / "work"
    log_dir = work / "log"
    log_dir.mkdir(parents=True)
    (work / "server.properties").write_text(single_node_properties(1, f"{WORK_FOLDER}/log"), encoding="utf-8")
    (log_dir / META).write_text(meta_properties(new_id(), 1, new_id()), encoding="utf-8")
    checkpoint = bootstrap_checkpoint(release)
    (log_dir / checkpoint.name).write_bytes(checkpoint.read_bytes())
    command = broker_command(
        release,
        f"{WORK_FOLDER}/server.properties",
        agent=False,
        # The JVM warns of each class it cannot archive; these warnings must not hide the broker's messages.
        extra_flags=(f"-XX:ArchiveClassesAtExit={WORK_FOLDER}/{ARCHIVE_FILE}", "-Xlog:disable"),
    )
    definition = {
        "Image": image.id,
        "Entrypoint": [],
        "Cmd": list(command),
        "User": f"{os.getuid()}:{os.getgid()}",
        "Labels": helper_labels("cds"),
        "HostConfig": {
            "NetworkMode": "none",
            "SecurityOpt": ["label=disable"],
            "Binds": [f"{release.folder.parent}:{RELEASES}:ro", f"{work}:{WORK_FOLDER}"],
        },
    }
    with EngineSocket.from_environment().container(definition) as container:
        _boot_and_end(container, release)
    archive = work / ARCHIVE_FILE
    if not archive.exists():
        raise SoftwareError(f"Kafka {release.version}: the JVM ended without writing its class-data archive")
    archive.chmod(0o644)
    archive.rename(folder / ARCHIVE_FILE)
    shutil.rmtree(work)


def _boot_and_end(container: Container, release: KafkaRelease) -> None:
    """Wait until the broker in a container has started, and end it.

    Raise `KafkaStuck` when it does not start; its cause is a `WaitTimeout` where only the time was over. Raise
    `SoftwareError` where the image's Java is the cause, or when the JVM does not end in time.
    """
    deadline = threading.Timer(START_TIMEOUT_S, container.signal, ("SIGKILL",))
    begun = time.monotonic()  # before the deadline begins: a killed JVM had no less than its time
    deadline.start()
    said: list[str] = []
    try:
        for line in container.output():
            # The frames of stack traces are omitted: they would hide the reason.
            if not line.startswith("\tat "):
                said.append(line)
            if STARTED_LINE in line:
                deadline.cancel()
                container.signal("SIGTERM")
                try:
                    container.wait(END_TIMEOUT_S)
                except EngineError as error:
                    if not isinstance(error.__cause__, TimeoutError):
                        raise
                    raise SoftwareError(
                        f"Kafka {release.version}: the JVM did not write its class-data archive within "
                        f"{END_TIMEOUT_S:g} s: {_SLOW}"
                    ) from error
                return
    finally:
        deadline.cancel()
    seconds = time.monotonic() - begun
    late = seconds >= START_TIMEOUT_S
    told = f"Kafka {release.version} did not start in the node image ({seconds:.0f} s)"
    told += f": {_SLOW}; the end of its log:\n" if late else ":\n"
    told += "\n".join(f"    {line}" for line in said[-TOLD_LINES:])
    if any(NEEDS_NEWER_JAVA in line for line in said):
        raise SoftwareError(told)
    # As of every Kafka that starts late, a campaign asks whether the machine explains it.
    raise KafkaStuck(told) from (WaitTimeout(STARTED_LINE, START_TIMEOUT_S, said[-1:]) if late else None)
