import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from testbed.errors import KafkaStuck, SoftwareError, TestbedError
from testbed.provision.software import START_S
from testbed.software import jvm
from testbed.software.engine import EngineError, Trouble
from testbed.software.jvm import JVM_FLAGS, STARTED_LINE, _boot_and_end, broker_command, class_path, mounts
from testbed.software.release import KafkaRelease, Logging
from testbed.wait import WaitTimeout

RELEASE = KafkaRelease("4.3.1", Path("/cache/kafka/4.3.1-1"), ("a.jar", "b.jar"), "digest", Logging.LOG4J2)


ARCHIVE = Path("/cache/cds/4.3.1-k/kafka.jsa")


def test_the_class_path_names_every_jar_in_order() -> None:
    assert class_path(RELEASE) == "/opt/kafka/releases/4.3.1-1/libs/a.jar:/opt/kafka/releases/4.3.1-1/libs/b.jar"


def test_a_broker_starts_from_the_archive_with_the_agent() -> None:
    command = broker_command(RELEASE, "/etc/k.properties", archive=ARCHIVE)
    assert command[: 1 + len(JVM_FLAGS)] == ("java", *JVM_FLAGS)
    assert "-XX:SharedArchiveFile=/opt/kafka/archives/4.3.1-k/kafka.jsa" in command
    agent = "-javaagent:/opt/kafka/releases/4.3.1-1/jolokia.jar=host=127.0.0.1,port=8778,discoveryEnabled=false"
    assert agent in command
    assert "-Dlog4j2.configurationFile=file:/opt/kafka/releases/4.3.1-1/logging.properties" in command
    assert command[-2:] == ("kafka.Kafka", "/etc/k.properties")


def test_class_path_and_flags_are_the_same_with_and_without_the_archive() -> None:
    with_archive = broker_command(RELEASE, "p", archive=ARCHIVE)
    without = broker_command(RELEASE, "p", agent=False)
    assert set(with_archive) - set(without) == {
        "-XX:SharedArchiveFile=/opt/kafka/archives/4.3.1-k/kafka.jsa",
        "-javaagent:/opt/kafka/releases/4.3.1-1/jolokia.jar=host=127.0.0.1,port=8778,discoveryEnabled=false",
    }


def test_older_releases_configure_the_other_log_library() -> None:
    older = KafkaRelease("3.9.2", Path("/cache/kafka/3.9.2-1"), ("a.jar",), "digest", Logging.RELOAD4J)
    flag = "-Dlog4j.configuration=file:/opt/kafka/releases/3.9.2-1/logging.properties"
    assert flag in broker_command(older, "p")


def test_every_release_and_archive_of_the_cache_is_mounted() -> None:
    assert mounts(RELEASE, ARCHIVE) == {"/cache/kafka": "/opt/kafka/releases", "/cache/cds": "/opt/kafka/archives"}
    assert len(mounts(RELEASE, None)) == 1


@pytest.mark.parametrize(
    ("why", "error"),
    [
        ("java.lang.IllegalStateException: changed", KafkaStuck),
        (
            "java.lang.UnsupportedClassVersionError: kafka/Kafka compiled by a newer Java",
            SoftwareError,
        ),
    ],
)
def test_a_kafka_that_does_not_start_is_kafkas_own_fault_unless_java_is_too_old(
    why: str, error: type[TestbedError]
) -> None:
    """Its class-data archive is made before its first run: a qualification would find no run of it otherwise."""
    lines = ["ERROR Exiting Kafka due to fatal exception", why, "\tat kafka.Kafka"]
    container = SimpleNamespace(output=lambda: iter(lines), signal=lambda _name: None)
    with pytest.raises(error) as caught:
        _boot_and_end(container, RELEASE)
    told = str(caught.value)
    assert re.match(r"Kafka 4\.3\.1 did not start in the node image \(0 s\):", told)
    assert why in told and "at kafka.Kafka" not in told
    assert caught.value.__cause__ is None


def test_a_kafka_that_starts_late_may_be_the_machines_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """A campaign took a slow machine for a Kafka that does not start, and a user had no remedy."""
    assert 2 * START_S == jvm.START_TIMEOUT_S
    monkeypatch.setattr(jvm, "START_TIMEOUT_S", 0.0)
    container = SimpleNamespace(output=lambda: iter(["INFO loading"]), signal=lambda _name: None)
    with pytest.raises(KafkaStuck, match=r"give it more CPUs, and repeat the command; the end of its log:") as caught:
        _boot_and_end(container, RELEASE)
    assert isinstance(caught.value.__cause__, WaitTimeout)


def test_the_time_of_a_start_is_counted_from_before_its_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """The slow machine that starts the deadline late is the one that the time is about."""
    now = [0.0]

    def begin() -> None:
        now[0] += jvm.START_TIMEOUT_S

    deadline = SimpleNamespace(start=begin, cancel=lambda: None)
    monkeypatch.setattr(jvm, "threading", SimpleNamespace(Timer=lambda *_asked: deadline))
    monkeypatch.setattr(jvm, "time", SimpleNamespace(monotonic=lambda: now[0]))
    container = SimpleNamespace(output=lambda: iter(["INFO loading"]), signal=lambda _name: None)
    with pytest.raises(KafkaStuck) as caught:
        _boot_and_end(container, RELEASE)
    assert isinstance(caught.value.__cause__, WaitTimeout)


@pytest.mark.parametrize(
    ("cause", "told"),
    [(TimeoutError("timed out"), "did not write its class-data archive within 60 s: end other work"), (None, "gone")],
)
def test_a_jvm_that_does_not_end_names_the_remedy(cause: Exception | None, told: str) -> None:
    """The message was the engine's: *unix:///…: timed out*."""

    def wait(_timeout_s: float) -> None:
        raise EngineError("the engine is gone", Trouble.FAILED) from cause

    container = SimpleNamespace(output=lambda: iter([STARTED_LINE]), signal=lambda _name: None, wait=wait)
    with pytest.raises(SoftwareError, match=told):
        _boot_and_end(container, RELEASE)
