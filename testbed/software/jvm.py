"""How a broker's JVM is started: one command line, for the class-data archive and for running brokers.

An archive is only used when class path and flags are those it was made with; hence one place for both.
The JMX agent is the exception: the JVM makes no archive with one, but uses one made without it in full.

A container sees the cache's folders of all releases and of all archives, not one release: so a node can be started
with another release than it was made with, also with one that came into the cache later.
"""

from dataclasses import dataclass
from pathlib import Path

from testbed.software.release import KafkaRelease, Logging

# C1 only and the serial collector: brokers share few cores, and start-up counts more than peak speed.
JVM_FLAGS = (
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-Xms256m",
    "-Xmx512m",
    "-Djava.awt.headless=true",
)
MAIN_CLASS = "kafka.Kafka"

RELEASES = "/opt/kafka/releases"
ARCHIVES = "/opt/kafka/archives"
AGENT_PORT = 8778


@dataclass(frozen=True, slots=True)
class Mount:
    """A file or folder of this machine that a container sees read-only at `target`."""

    source: Path
    target: str

    @property
    def bind(self) -> str:
        """As the engine's interface wants it: `source:target:ro`."""
        return f"{self.source}:{self.target}:ro"


def home(release: KafkaRelease) -> str:
    """Where a release lies inside a container."""
    return f"{RELEASES}/{release.folder.name}"


def class_path(release: KafkaRelease) -> str:
    """The class path inside a container: every jar by name, in the release's fixed order."""
    return ":".join(f"{home(release)}/{release.libs.name}/{jar}" for jar in release.jars)


def mounts(release: KafkaRelease, archive: Path | None) -> tuple[Mount, ...]:
    """What a container needs to run this release, and every other one; `archive` is its class-data archive, if any.

    The same for all releases and archives of one cache.
    """
    releases = Mount(release.folder.parent, RELEASES)
    return (releases,) if archive is None else (releases, Mount(archive.parent.parent, ARCHIVES))


def broker_command(
    release: KafkaRelease,
    properties: str,
    *,
    archive: Path | None = None,
    agent: bool = True,
    agent_host: str = "127.0.0.1",
    agent_port: int = AGENT_PORT,
    extra_flags: tuple[str, ...] = (),
) -> tuple[str, ...]:
    """The words that start a broker or controller with the properties file at `properties`.

    With `agent`, JMX answers HTTP at `agent_host`:`agent_port`. It starts from the class-data `archive`, if given; one
    that does not fit is ignored by the JVM (slower, not wrong).
    """
    jolokia = f"-javaagent:{home(release)}/{release.agent.name}"
    return (
        "java",
        *JVM_FLAGS,
        *((f"-XX:SharedArchiveFile={ARCHIVES}/{archive.parent.name}/{archive.name}",) if archive else ()),
        *((f"{jolokia}=host={agent_host},port={agent_port},discoveryEnabled=false",) if agent else ()),
        logging_flag(release),
        *extra_flags,
        "-cp",
        class_path(release),
        MAIN_CLASS,
        properties,
    )


def logging_flag(release: KafkaRelease) -> str:
    """The system property that makes the broker read the release's logging configuration."""
    key = {Logging.LOG4J2: "log4j2.configurationFile", Logging.RELOAD4J: "log4j.configuration"}[release.logging]
    return f"-D{key}=file:{home(release)}/{release.logging_properties.name}"
