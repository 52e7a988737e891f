"""Small stand-ins for Kafka's jars, as a tarball, a folder or a checkout would hold them."""

import hashlib
import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from testbed.software import kafka

AGENT_BYTES = b"the agent"


def clients(version: str) -> bytes:
    """A kafka-clients jar."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        about = f"commitId=0123456789abcdef\nversion={version}\n"
        archive.writestr(zipfile.ZipInfo("kafka/kafka-version.properties", (1980, 1, 1, 0, 0, 0)), about)
    return buffer.getvalue()


def jars(version: str) -> dict[str, bytes]:
    """File name → content of a small release."""
    return {
        f"kafka-clients-{version}.jar": clients(version),
        f"kafka_2.13-{version}.jar": b"core",
        f"kafka-tools-{version}.jar": b"tools",
        f"kafka-raft-{version}.jar": b"raft",
        "slf4j-api-1.7.36.jar": b"slf4j",
        "log4j-core-2.25.4.jar": b"log4j",
        "log4j-slf4j-impl-2.25.4.jar": b"binding",
    }


def write(folder: Path, files: dict[str, bytes]) -> Path:
    """Put files into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


def unpacked(folder: Path, version: str = "4.3.1") -> Path:
    """An unpacked release, with a test's jar that must not run."""
    write(folder / "libs", jars(version) | {f"kafka-clients-{version}-test.jar": b"tests"})
    write(folder / "bin", {"kafka-server-start.sh": b"#!/bin/sh\n"})
    write(folder / "config", {"server.properties": b"node.id=1\n"})
    return folder


def packed(release: Path, tarball: Path, top: str = "kafka_2.13-4.3.1") -> Path:
    """A release tarball of an unpacked release."""
    with tarfile.open(tarball, "w:gz") as archive:
        archive.add(release, arcname=top)
    return tarball


def checkout(folder: Path, version: str = "4.4.0-SNAPSHOT", scala: str = "2.13.18", *, built: bool = True) -> Path:
    """A source checkout, after `./gradlew jar` if `built`."""
    write(folder, {"gradle.properties": f"group=org.apache.kafka\nversion={version}\nscalaVersion={scala}\n".encode()})
    write(folder, {"settings.gradle": b""})
    (folder / "core" / "src").mkdir(parents=True)
    if built:
        every = jars(version)
        for module, name in (
            ("core", f"kafka_2.13-{version}.jar"),
            ("clients", f"kafka-clients-{version}.jar"),
            ("tools", f"kafka-tools-{version}.jar"),
            ("raft", f"kafka-raft-{version}.jar"),
        ):
            write(folder / module / "build" / "libs", {name: every[name]})
        others = {name: every[name] for name in every if version not in name or "raft" in name}
        write(folder / "core" / "build" / f"dependant-libs-{scala}", others)
    return folder


@pytest.fixture
def no_registry(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """An own cache, and Maven answered from here; the list holds what it was asked for."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    asked: list[str] = []

    def copy_jars(wanted, target, *, transitive=True):
        target.mkdir(exist_ok=True)
        for each in wanted:
            asked.append(str(each))
            content = AGENT_BYTES if each.name == "jolokia-agent-jvm" else b"from the registry"
            (target / f"{each.name}-{each.version}.jar").write_bytes(content)
            if transitive:
                (target / "log4j-api-2.25.4.jar").write_bytes(b"from the registry")
                (target / "slf4j-api-9.9.9.jar").write_bytes(b"another than the build's")

    monkeypatch.setattr(kafka, "copy_jars", copy_jars)
    digest = hashlib.sha256(AGENT_BYTES).hexdigest()
    monkeypatch.setattr(kafka, "known_digests", lambda: {"4.3.1": {str(kafka.AGENT): digest}})
    return asked
