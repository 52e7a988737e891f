"""A Kafka in the cache: its jars, their version, and the digests that this project knows."""

import json
import re
import zipfile
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path

from testbed.errors import SoftwareError
from testbed.software.cache import digest_of, digests
from testbed.software.maven import Coordinates

# Part of an artefact's key: increased when the content of its folder changes.
LAYOUT = "1"
AGENT = Coordinates("org.jolokia", "jolokia-agent-jvm", "2.4.2", "javaagent")
AGENT_FILE, LOGGING_FILE = "jolokia.jar", "logging.properties"
"""The JMX agent and the logging configuration, which sends everything to standard output, in the folder of a Kafka."""
# For releases whose jars include no log4j (4.0.0).
LOG4J = "2.25.4"
# The JVM compares the jars' times with the times in its class-data archive: rebuilt jars must have the same.
JAR_TIME_S = 1_600_000_000
S3_STREAM = "s3stream-"
_ABOUT = "kafka/kafka-version.properties"
_CLIENTS = re.compile(r"kafka-clients-(?P<version>.+?)\.jar")
_NOT_RUN = re.compile(r"-(sources|test-sources|src|javadoc|scaladoc|test|test-fixtures)\.jar$")


class Logging(StrEnum):
    """A release's log library."""

    LOG4J2 = "log4j2"
    RELOAD4J = "reload4j"


@dataclass(frozen=True, slots=True)
class KafkaRelease:
    """One Kafka on disk. `jars` are file names in `libs`, in class-path order; `digest` covers them all.

    `version` is a release's (`4.3.1`), or a build's with digits from a digest of its original jars
    (`4.3.1+0123456789ab`): it identifies this Kafka to `kafka_release`.
    """

    version: str
    folder: Path
    jars: tuple[str, ...]
    digest: str
    logging: Logging

    @property
    def libs(self) -> Path:
        """Return the folder of jars."""
        return self.folder / "libs"

    @property
    def shared_storage(self) -> bool:
        """Return whether its partitions are in an object store that all brokers share: AutoMQ, known by its jar.

        Such a Kafka formats its folders by itself, and all nodes of its cluster run it.
        """
        return any(jar.startswith(S3_STREAM) for jar in self.jars)


def release_at(version: str, folder: Path) -> KafkaRelease:
    """Return the release in an artefact's folder."""
    known = sorted((Path(path).name, sha256) for path, sha256 in digests(folder).items() if path.startswith("libs/"))
    jars = tuple(name for name, _sha256 in known)
    return KafkaRelease(version, folder, jars, digest_of(known), logging_of(jars))


def runnable(jars: Iterable[Path]) -> list[Path]:
    """Return the `jars` for a class path: no sources, documentation or tests; sorted by name."""
    return sorted((jar for jar in jars if not _NOT_RUN.search(jar.name)), key=lambda jar: jar.name)


def clients_jar(jars: Iterable[Path]) -> Path | None:
    """Return the jar that every Kafka has and that has its version."""
    return next((jar for jar in runnable(jars) if _CLIENTS.fullmatch(jar.name)), None)


def version_in(jars: Iterable[Path]) -> str:
    """Return the version of `kafka-clients`. Raise SoftwareError for jars without it, or a broken one."""
    clients = clients_jar(jars)
    if clients is None:
        raise SoftwareError("no kafka-clients-*.jar among the jars")
    named = _CLIENTS.fullmatch(clients.name)
    assert named is not None
    try:
        with zipfile.ZipFile(clients) as archive:
            text = archive.read(_ABOUT).decode("utf-8") if _ABOUT in archive.namelist() else ""
    except (OSError, EOFError, UnicodeDecodeError, zipfile.BadZipFile, zlib.error) as error:
        raise SoftwareError(f"{clients}: not a jar that can be read ({error})") from error
    said = re.search(r"(?m)^version=(.*)$", text)
    return (said[1].strip() if said else "") or named["version"]


def missing_binding(jars: tuple[str, ...]) -> Coordinates | None:
    """Return the slf4j binding to add, so that the broker can log; None when the jars include one."""
    if any(re.match(r"slf4j-(reload4j|log4j12)-|log4j-slf4j\d?-impl-", jar) for jar in jars):
        return None
    slf4j = next((m[1] for jar in jars if (m := re.fullmatch(r"slf4j-api-(\d+)\..*\.jar", jar))), "1")
    core = next((m[1] for jar in jars if (m := re.fullmatch(r"log4j-core-([\d.]+)\.jar", jar))), LOG4J)
    name = "log4j-slf4j-impl" if slf4j == "1" else "log4j-slf4j2-impl"
    return Coordinates("org.apache.logging.log4j", name, core)


def logging_of(jars: tuple[str, ...]) -> Logging:
    """Return the log library among `jars`."""
    return Logging.RELOAD4J if any(jar.startswith("reload4j-") for jar in jars) else Logging.LOG4J2


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


DIGESTS = Path(__file__).with_name("kafka-digests.json")


@cache
def known_digests() -> dict[str, dict[str, str]]:
    """Return the committed sha256 of every jar, by version and file name (the agent under its coordinates)."""
    document = json.loads(DIGESTS.read_text(encoding="utf-8"))
    return {str(version): dict(jars) for version, jars in document.items()}


def verify(version: str, found: dict[str, str]) -> None:
    """Compare jars with the committed digests; a version without digests is trusted at first use.

    Raise SoftwareError, which names each missing, unknown or different jar.
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
        + "\nRemove them from Maven's local repository (~/.m2) and check the mirror that its settings name."
    )
