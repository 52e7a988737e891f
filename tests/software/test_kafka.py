import re
from pathlib import Path

import pytest

from testbed.errors import SoftwareError
from testbed.software import kafka
from testbed.software.kafka import kafka_release
from testbed.software.maven import NotInRegistry
from testbed.software.release import AGENT, LOG4J, Logging, known_digests, logging_of, missing_binding, verify


@pytest.mark.parametrize(
    ("jars", "expected"),
    [
        (("log4j-core-2.25.4.jar", "slf4j-api-1.7.36.jar"), "log4j-slf4j-impl:2.25.4"),
        (("log4j-core-2.26.0.jar", "slf4j-api-2.0.17.jar"), "log4j-slf4j2-impl:2.26.0"),
        (("slf4j-api-1.7.36.jar",), f"log4j-slf4j-impl:{LOG4J}"),
        (("slf4j-reload4j-1.7.36.jar", "slf4j-api-1.7.36.jar", "reload4j-1.2.25.jar"), None),
        (("log4j-slf4j-impl-2.25.4.jar", "log4j-core-2.25.4.jar", "slf4j-api-1.7.36.jar"), None),
    ],
)
def test_a_log_binding_is_added_where_the_release_brings_none(jars: tuple[str, ...], expected: str | None) -> None:
    binding = missing_binding(jars)
    assert (f"{binding.name}:{binding.version}" if binding else None) == expected


def test_the_log_library_is_seen_in_the_jars() -> None:
    assert logging_of(("reload4j-1.2.25.jar",)) is Logging.RELOAD4J
    assert logging_of(("log4j-core-2.25.4.jar",)) is Logging.LOG4J2


def test_the_committed_digests_are_whole() -> None:
    assert kafka.DEFAULT_KAFKA in known_digests()
    for version, jars in known_digests().items():
        assert f"kafka_2.13-{version}.jar" in jars
        assert str(AGENT) in jars
        assert missing_binding(tuple(jars)) is None
        assert all(re.fullmatch(r"[0-9a-f]{64}", digest) for digest in jars.values())


def test_jars_that_are_those_known_pass() -> None:
    verify("4.3.1", dict(known_digests()["4.3.1"]))


def test_a_version_without_digests_is_trusted_at_first_use() -> None:
    verify("9.9.9", {"kafka_2.13-9.9.9.jar": "0" * 64})


def test_each_jar_that_differs_is_named() -> None:
    found = dict(known_digests()["4.3.1"])
    expected = found["snakeyaml-2.5.jar"]
    found["snakeyaml-2.5.jar"] = "0" * 64
    del found["re2j-1.8.jar"]
    found["evil-1.0.jar"] = "1" * 64
    with pytest.raises(SoftwareError) as caught:
        verify("4.3.1", found)
    message = str(caught.value)
    assert "the jars Maven gave for Kafka 4.3.1 are not the ones this project knows" in message
    assert f"snakeyaml-2.5.jar: sha256 {'0' * 64}, expected {expected}" in message
    assert "re2j-1.8.jar: missing" in message
    assert "evil-1.0.jar: not part of this release" in message
    assert "Remove them from Maven's local repository" in message


@pytest.fixture
def nothing_in_registry(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def refuse(*_: object, **__: object) -> None:
        raise NotInRegistry("Maven finds no org.apache.kafka:kafka_2.13:4.9.9")

    monkeypatch.setattr(kafka, "copy_jars", refuse)


def test_a_version_that_does_not_exist_is_answered_with_those_that_do(
    nothing_in_registry: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka, "known_versions", lambda *_: ("3.9.2", "4.0.0-rc1", "4.3.0", "4.3.1"))
    with pytest.raises(SoftwareError) as caught:
        kafka_release("4.9.9")
    assert str(caught.value) == (
        "Maven's registry has no Kafka 4.9.9 (asked for org.apache.kafka:kafka_2.13:4.9.9). "
        "It has, newest first: 4.3.1, 4.3.0, 4.0.0-rc1, 3.9.2."
    )


def test_without_the_registrys_list_the_known_ones_are_told(
    nothing_in_registry: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka, "known_versions", lambda *_: ())
    with pytest.raises(SoftwareError, match=r"Known to work here: 4\.3\.1, 4\.2\.1"):
        kafka_release("4.9.9")
