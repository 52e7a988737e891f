"""Kafka by name: releases fetched through Maven and verified by digest, builds imported from where they lie."""

import os
from pathlib import Path

from testbed.software.builds import imported
from testbed.software.cache import artefact, existing, sha256_of
from testbed.software.errors import SoftwareError
from testbed.software.known import known_digests, verify
from testbed.software.maven import Coordinates, NotInRegistry, copy_jars, known_versions
from testbed.software.release import (
    AGENT,
    JAR_TIME_S,
    LAYOUT,
    LOGGING_PROPERTIES,
    KafkaRelease,
    logging_of,
    missing_binding,
    release_at,
)
from testbed.software.source import VERSION, KafkaSource, Kind, parse_source

DEFAULT_KAFKA = "4.3.1"
SCALA = "2.13"


def kafka_release(source: str | KafkaSource = DEFAULT_KAFKA) -> KafkaRelease:
    """The Kafka that `source` names (see `testbed.software.source`), with the JMX agent; put into the cache when new.

    Every file is hashed at each call (0.04 s; a tarball or folder itself, too). Raises SoftwareError for a version
    that does not exist, for what is no Kafka, and when a jar is not the one this project knows.
    """
    found = parse_source(source) if isinstance(source, str) else source
    if found.kind is Kind.RELEASE:
        folder = artefact("kafka", _key(found.text), lambda folder: _fetch(found.text, folder))
        return release_at(found.text, folder)
    if found.kind is Kind.BUILD:
        release = cached_release(found.text)
        if release is None:
            raise SoftwareError(
                f"the build {found.text} is not in the cache (any more): name the tarball or folder it came from"
            )
        return release
    return imported(found)


def cached_release(version: str = DEFAULT_KAFKA) -> KafkaRelease | None:
    """The release or imported build if it is in the cache and intact; fetches nothing."""
    folder = existing("kafka", _key(version))
    return None if folder is None else release_at(version, folder)


def _key(version: str) -> str:
    return f"{version}-{LAYOUT}"


def _fetch(version: str, folder: Path) -> None:
    libs = folder / "libs"
    wanted = [Coordinates("org.apache.kafka", name, version) for name in (f"kafka_{SCALA}", "kafka-tools")]
    try:
        copy_jars(wanted, libs)
    except NotInRegistry as error:
        raise SoftwareError(_unknown_version(version)) from error
    binding = missing_binding(tuple(path.name for path in libs.iterdir()))
    if binding is not None:
        copy_jars([*wanted, binding], libs)
    copy_jars([AGENT], folder, transitive=False)
    (agent,) = folder.glob("jolokia-*.jar")
    agent.rename(folder / "jolokia.jar")
    jars = tuple(sorted(path.name for path in libs.iterdir()))
    (folder / "logging.properties").write_text(LOGGING_PROPERTIES[logging_of(jars)], encoding="utf-8")
    found = {jar: sha256_of(libs / jar) for jar in jars}
    found[str(AGENT)] = sha256_of(folder / "jolokia.jar")
    verify(version, found)
    for path in (*libs.iterdir(), folder / "jolokia.jar", folder / "logging.properties"):
        os.utime(path, (JAR_TIME_S, JAR_TIME_S))


def _unknown_version(version: str) -> str:
    exist = [v for v in known_versions("org.apache.kafka", f"kafka_{SCALA}") if VERSION.fullmatch(v)]
    told = f"Maven's registry has no Kafka {version} (asked for org.apache.kafka:kafka_{SCALA}:{version})."
    if exist:
        return f"{told} It has, newest first: {', '.join(list(reversed(exist))[:12])}."
    return f"{told} Known to work here: {', '.join(sorted(known_digests(), reverse=True))}."
