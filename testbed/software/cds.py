"""The class-data archive of a Kafka release: brokers start from it in about half the time.

A short-lived container of the node image boots one broker with the very command line of a running one, and
the JVM writes what it loaded when it is told to end.
"""

import hashlib
import json
import os
import threading
import time
from pathlib import Path

from testbed.software.cache import artefact, existing
from testbed.software.engine import LABEL, Container, Engine
from testbed.software.errors import SoftwareError
from testbed.software.format import (
    META,
    bootstrap_checkpoint,
    meta_properties,
    new_id,
    single_node_properties,
)
from testbed.software.image import ImageRef
from testbed.software.jvm import broker_command, mounts
from testbed.software.release import KafkaRelease

WORK = "/opt/kafka-work"
FILE = "kafka.jsa"
READY = "Kafka Server started"
START_TIMEOUT_S = 90.0
END_TIMEOUT_S = 60.0
TOLD_LINES = 12


def cds_archive(release: KafkaRelease, image: ImageRef, engine: Engine | None = None) -> Path:
    """The archive for this release in this image, made when not cached (7 s); raises SoftwareError."""
    engine = engine or Engine.from_environment()
    folder = artefact("cds", _key(release, image), lambda made: _make(release, image, engine, made))
    return folder / FILE


def cached_archive(release: KafkaRelease, image: ImageRef) -> Path | None:
    """The archive if it is in the cache and intact; makes nothing."""
    folder = existing("cds", _key(release, image))
    return None if folder is None else folder / FILE


def _key(release: KafkaRelease, image: ImageRef) -> str:
    # Whatever the JVM compares when it opens the archive: the jars, the JVM itself, the command line.
    parts = json.dumps([release.digest, image.id, broker_command(release, "")])
    return f"{release.version}-{hashlib.sha256(parts.encode()).hexdigest()[:16]}"


def _make(release: KafkaRelease, image: ImageRef, engine: Engine, folder: Path) -> None:
    work = folder / "work"
    log_dir = work / "log"
    log_dir.mkdir(parents=True)
    (work / "server.properties").write_text(single_node_properties(1, f"{WORK}/log"), encoding="utf-8")
    (log_dir / META).write_text(meta_properties(new_id(), 1, new_id()), encoding="utf-8")
    checkpoint = bootstrap_checkpoint(release)
    (log_dir / checkpoint.name).write_bytes(checkpoint.read_bytes())
    command = broker_command(
        release,
        f"{WORK}/server.properties",
        agent=False,
        # The JVM warns of each class it cannot archive; what the broker says must not drown in that.
        extra_flags=(f"-XX:ArchiveClassesAtExit={WORK}/{FILE}", "-Xlog:disable"),
    )
    definition = {
        "Image": image.id,
        "Entrypoint": [],
        "Cmd": list(command),
        "User": f"{os.getuid()}:{os.getgid()}",
        "Labels": {LABEL: "cds"},
        "HostConfig": {
            "NetworkMode": "none",
            "Binds": [*(mount.bind for mount in mounts(release, None)), f"{work}:{WORK}"],
        },
    }
    with engine.container(definition) as container:
        _boot_and_end(container, release)
    archive = work / FILE
    if not archive.exists():
        raise SoftwareError(f"Kafka {release.version}: the JVM ended without writing its class-data archive")
    archive.chmod(0o644)
    archive.rename(folder / FILE)
    _remove(work)


def _boot_and_end(container: Container, release: KafkaRelease) -> None:
    deadline = threading.Timer(START_TIMEOUT_S, container.signal, ("SIGKILL",))
    deadline.start()
    said: list[str] = []
    begun = time.monotonic()
    try:
        for line in container.output():
            # The frames of stack traces are left out: the reason would be lost under them.
            if not line.startswith("\tat "):
                said.append(line)
            if READY in line:
                deadline.cancel()
                container.signal("SIGTERM")
                container.wait(END_TIMEOUT_S)
                return
    finally:
        deadline.cancel()
    raise SoftwareError(
        f"Kafka {release.version} did not start in the node image ({time.monotonic() - begun:.0f} s):\n"
        + "\n".join(f"    {line}" for line in said[-TOLD_LINES:])
    )


def _remove(folder: Path) -> None:
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_dir():
            path.rmdir()
        else:
            path.unlink()
    folder.rmdir()
