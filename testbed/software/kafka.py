"""Kafka releases: the jars a broker needs, in a fixed order, verified by digest."""

import hashlib
import json
import os
import re
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path

from testbed.software.cache import artefact, digests, existing, sha256_of
from testbed.software.errors import SoftwareError
from testbed.software.maven import Coordinates, NotInRegistry, copy_jars, known_versions

DEFAULT_KAFKA = "4.3.1"
SCALA = "2.13"
AGENT = Coordinates("org.jolokia", "jolokia-agent-jvm", "2.4.2", "javaagent")
# For releases whose jars name no log4j of their own (4.0.0).
LOG4J = "2.25.4"
DIGESTS = Path(__file__).with_name("kafka-digests.json")
# Part of the artefact's key: counted up when what is laid into the folder changes.
LAYOUT = "1"
# The JVM compares the jars' times with those in its class-data archive: made again, they must be the same.
JAR_TIME_S = 1_600_000_000
_VERSION = re.compile(r"\d+\.\d+\.\d+(-[A-Za-z0-9.]+)?")


class Logging(StrEnum):
    """Which log library a release brings."""

    LOG4J2 = "log4j2"
    RELOAD4J = "reload4j"


@dataclass(frozen=True, slots=True)
class KafkaRelease:
    """One release on disk. `jars` are file names in `libs`, in class-path order; `digest` covers them all."""

    version: str
    folder: Path
    jars: tuple[str, ...]
    digest: str
    logging: Logging

    @property
    def libs(self) -> Path:
        """The folder of jars."""
        return self.folder / "libs"

    @property
    def agent(self) -> Path:
        """The JMX agent's jar."""
        return self.folder / "jolokia.jar"

    @property
    def logging_properties(self) -> Path:
        """The logging configuration: everything to standard output."""
        return self.folder / "logging.properties"


def kafka_release(version: str = DEFAULT_KAFKA) -> KafkaRelease:
    """The release's jars and the JMX agent, fetched through Maven when not cached.

    Every file is hashed at each call (0.04 s). Raises SoftwareError for a version that does not exist, and
    when a jar is not the one this project knows.
    """
    key = _key(version)
    return _release(version, artefact("kafka", key, lambda folder: _fetch(version, folder)))


def cached_release(version: str = DEFAULT_KAFKA) -> KafkaRelease | None:
    """The release if it is in the cache and intact; fetches nothing."""
    folder = existing("kafka", _key(version))
    return None if folder is None else _release(version, folder)


def _key(version: str) -> str:
    if not _VERSION.fullmatch(version):
        raise SoftwareError(f"{version!r} is no Kafka version; it looks like {DEFAULT_KAFKA}")
    return f"{version}-{LAYOUT}"


def _release(version: str, folder: Path) -> KafkaRelease:
    known = {Path(path).name: digest for path, digest in digests(folder).items() if path.startswith("libs/")}
    jars = tuple(sorted(known))
    return KafkaRelease(version, folder, jars, _digest_of(known), logging_of(jars))


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


def missing_binding(jars: tuple[str, ...]) -> Coordinates | None:
    """The slf4j binding to add, so that the broker logs at all; None when the jars bring one."""
    if any(re.match(r"slf4j-(reload4j|log4j12)-|log4j-slf4j\d?-impl-", jar) for jar in jars):
        return None
    slf4j = next((m[1] for jar in jars if (m := re.fullmatch(r"slf4j-api-(\d+)\..*\.jar", jar))), "1")
    core = next((m[1] for jar in jars if (m := re.fullmatch(r"log4j-core-([\d.]+)\.jar", jar))), LOG4J)
    name = "log4j-slf4j-impl" if slf4j == "1" else "log4j-slf4j2-impl"
    return Coordinates("org.apache.logging.log4j", name, core)


def logging_of(jars: tuple[str, ...]) -> Logging:
    """The log library among `jars`."""
    return Logging.RELOAD4J if any(jar.startswith("reload4j-") for jar in jars) else Logging.LOG4J2


@cache
def known_digests() -> dict[str, dict[str, str]]:
    """The committed sha256 of every jar, by version and file name (the agent under its coordinates)."""
    document = json.loads(DIGESTS.read_text(encoding="utf-8"))
    return {str(version): dict(jars) for version, jars in document.items()}


def verify(version: str, found: dict[str, str]) -> None:
    """Compare jars with the committed digests; a version without any is trusted at first use.

    Raises SoftwareError that names each jar that is missing, unknown or different.
    """
    known = known_digests().get(version)
    if known is None or known == found:
        return
    differences = [f"{jar}: missing" for jar in known.keys() - found.keys()]
    differences += [f"{jar}: not part of this release" for jar in found.keys() - known.keys()]
    differences += [
        f"{jar}: sha256 {found[jar]}, expected {known[jar]}"
        for jar in known.keys() & found.keys()
        if found[jar] != known[jar]
    ]
    raise SoftwareError(
        f"the jars Maven gave for Kafka {version} are not the ones this project knows:\n  "
        + "\n  ".join(sorted(differences))
        + "\nRemove them from Maven's local repository (~/.m2) and look at which mirror its settings name."
    )


def _digest_of(known: dict[str, str]) -> str:
    lines = "".join(f"{known[jar]}  {jar}\n" for jar in sorted(known))
    return hashlib.sha256(lines.encode()).hexdigest()


def _unknown_version(version: str) -> str:
    exist = [v for v in known_versions("org.apache.kafka", f"kafka_{SCALA}") if _VERSION.fullmatch(v)]
    told = f"Maven's registry has no Kafka {version} (asked for org.apache.kafka:kafka_{SCALA}:{version})."
    if exist:
        return f"{told} It has, newest first: {', '.join(list(reversed(exist))[:12])}."
    return f"{told} Known to work here: {', '.join(sorted(known_digests(), reverse=True))}."


LOGGING_PROPERTIES = {
    Logging.LOG4J2: """\
status = error
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = [%d] %p %m (%c)%n
rootLogger.level = info
rootLogger.appenderRef.out.ref = out
""",
    Logging.RELOAD4J: """\
log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=[%d] %p %m (%c)%n
""",
}
