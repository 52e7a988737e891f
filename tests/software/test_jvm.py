from pathlib import Path

from testbed.software.jvm import JVM_FLAGS, broker_command, class_path, mounts
from testbed.software.kafka import KafkaRelease, Logging

RELEASE = KafkaRelease("4.3.1", Path("/cache/4.3.1"), ("a.jar", "b.jar"), "digest", Logging.LOG4J2)


def test_the_class_path_names_every_jar_in_order() -> None:
    assert class_path(RELEASE) == "/opt/kafka/libs/a.jar:/opt/kafka/libs/b.jar"


def test_a_broker_starts_from_the_archive_with_the_agent() -> None:
    command = broker_command(RELEASE, "/etc/k.properties", agent_host="10.0.0.2")
    assert command[: 1 + len(JVM_FLAGS)] == ("java", *JVM_FLAGS)
    assert "-XX:SharedArchiveFile=/opt/kafka/kafka.jsa" in command
    assert "-javaagent:/opt/kafka/jolokia.jar=host=10.0.0.2,port=8778,discoveryEnabled=false" in command
    assert "-Dlog4j2.configurationFile=file:/opt/kafka/logging.properties" in command
    assert command[-2:] == ("kafka.Kafka", "/etc/k.properties")


def test_class_path_and_flags_are_the_same_with_and_without_the_archive() -> None:
    with_archive = broker_command(RELEASE, "p")
    without = broker_command(RELEASE, "p", archive_flags=(), agent=False)
    assert set(with_archive) - set(without) == {
        "-XX:SharedArchiveFile=/opt/kafka/kafka.jsa",
        "-javaagent:/opt/kafka/jolokia.jar=host=127.0.0.1,port=8778,discoveryEnabled=false",
    }


def test_older_releases_configure_the_other_log_library() -> None:
    older = KafkaRelease("3.9.2", Path("/cache/3.9.2"), ("a.jar",), "digest", Logging.RELOAD4J)
    assert "-Dlog4j.configuration=file:/opt/kafka/logging.properties" in broker_command(older, "p")


def test_everything_is_mounted_read_only_at_the_paths_of_the_command() -> None:
    assert [mount.bind for mount in mounts(RELEASE, Path("/cache/cds/kafka.jsa"))] == [
        "/cache/4.3.1/libs:/opt/kafka/libs:ro",
        "/cache/4.3.1/jolokia.jar:/opt/kafka/jolokia.jar:ro",
        "/cache/4.3.1/logging.properties:/opt/kafka/logging.properties:ro",
        "/cache/cds/kafka.jsa:/opt/kafka/kafka.jsa:ro",
    ]
    assert len(mounts(RELEASE, None)) == 3
