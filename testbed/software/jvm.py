"""How a broker's JVM is started: one command line, for the class-data archive and for running brokers.

An archive is only used when class path and flags are those it was made with; hence one place for both.
The JMX agent is the exception: the JVM makes no archive with one, but uses one made without it in full.
"""

from dataclasses import dataclass
from pathlib import Path

from testbed.software.kafka import KafkaRelease, Logging

# C1 only and the serial collector: brokers share few cores, and start-up counts more than peak speed.
JVM_FLAGS = (
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-Xms256m",
    "-Xmx512m",
    "-Djava.awt.headless=true",
)
MAIN_CLASS = "kafka.Kafka"

LIBS = "/opt/kafka/libs"
AGENT = "/opt/kafka/jolokia.jar"
LOGGING = "/opt/kafka/logging.properties"
ARCHIVE = "/opt/kafka/kafka.jsa"
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


def class_path(release: KafkaRelease) -> str:
    """The class path inside a container: every jar by name, in the release's fixed order."""
    return ":".join(f"{LIBS}/{jar}" for jar in release.jars)


def mounts(release: KafkaRelease, archive: Path | None) -> tuple[Mount, ...]:
    """What a container needs to run this release; `archive` is the class-data archive, when there is one."""
    always = (
        Mount(release.libs, LIBS),
        Mount(release.agent, AGENT),
        Mount(release.logging_properties, LOGGING),
    )
    return always if archive is None else (*always, Mount(archive, ARCHIVE))


def broker_command(
    release: KafkaRelease,
    properties: str,
    *,
    archive_flags: tuple[str, ...] = (f"-XX:SharedArchiveFile={ARCHIVE}",),
    agent: bool = True,
    agent_host: str = "127.0.0.1",
    agent_port: int = AGENT_PORT,
    extra_flags: tuple[str, ...] = (),
) -> tuple[str, ...]:
    """The words that start a broker or controller with the properties file at `properties`.

    With `agent`, JMX answers HTTP at `agent_host`:`agent_port`. An archive that does not fit is ignored by
    the JVM (slower, not wrong); `archive_flags=()` starts without one.
    """
    return (
        "java",
        *JVM_FLAGS,
        *archive_flags,
        *((f"-javaagent:{AGENT}=host={agent_host},port={agent_port},discoveryEnabled=false",) if agent else ()),
        logging_flag(release.logging),
        *extra_flags,
        "-cp",
        class_path(release),
        MAIN_CLASS,
        properties,
    )


def logging_flag(logging: Logging) -> str:
    """The system property that makes the broker read the mounted logging configuration."""
    key = {Logging.LOG4J2: "log4j2.configurationFile", Logging.RELOAD4J: "log4j.configuration"}[logging]
    return f"-D{key}=file:{LOGGING}"
