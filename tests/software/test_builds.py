import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from testbed.errors import SoftwareError
from testbed.software import kafka
from testbed.software.kafka import cached_release, kafka_release
from testbed.software.release import AGENT_FILE, JAR_TIME_S, LOGGING_FILE, Logging
from tests.software.jars import checkout, clients, no_registry, packed, unpacked, write

__all__ = ["no_registry"]
pytestmark = pytest.mark.usefixtures("no_registry")
JARS = (
    "kafka-clients-4.3.1.jar",
    "kafka-raft-4.3.1.jar",
    "kafka-tools-4.3.1.jar",
    "kafka_2.13-4.3.1.jar",
    "log4j-core-2.25.4.jar",
    "log4j-slf4j-impl-2.25.4.jar",
    "slf4j-api-1.7.36.jar",
)


def test_a_folder_and_a_tarball_of_the_same_jars_are_the_same_build(tmp_path: Path) -> None:
    folder = unpacked(tmp_path / "kafka_2.13-4.3.1")
    release = kafka_release(str(folder))
    assert release.version == f"4.3.1+{release.digest[:12]}"
    assert release.jars == JARS
    assert release.logging is Logging.LOG4J2
    assert (release.folder / AGENT_FILE).read_bytes() == b"the agent"
    assert "appender" in (release.folder / LOGGING_FILE).read_text()
    assert kafka_release(str(packed(folder, tmp_path / "kafka.tgz"))) == release


def test_a_build_is_found_again_by_its_version_also_when_its_folder_is_gone(tmp_path: Path) -> None:
    folder = unpacked(tmp_path / "kafka")
    release = kafka_release(str(folder))
    folder.rename(tmp_path / "elsewhere")
    assert kafka_release(release.version) == release == cached_release(release.version)


def test_a_build_that_is_not_cached_is_told_how_to_be_had() -> None:
    with pytest.raises(SoftwareError, match=r"\+0123456789ab is not in the cache .*: name the tarball or folder"):
        kafka_release("4.3.1+0123456789ab")


def test_a_folder_built_again_is_another_build(tmp_path: Path) -> None:
    folder = unpacked(tmp_path / "kafka")
    before = kafka_release(str(folder))
    (folder / "libs" / "kafka-raft-4.3.1.jar").write_bytes(b"mended")
    after = kafka_release(str(folder))
    assert before.version != after.version
    assert (before.libs / "kafka-raft-4.3.1.jar").read_bytes() == b"raft"


def test_a_folder_that_is_built_while_it_is_copied_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its copy would have the name of other jars, for ever."""
    copy = shutil.copyfile

    def built_meanwhile(source: Path, target: Path) -> Path:
        if source.name == "kafka-raft-4.3.1.jar":
            source.write_bytes(b"built meanwhile")
        return copy(source, target)

    folder = unpacked(tmp_path / "kafka")
    monkeypatch.setattr(kafka.shutil, "copyfile", built_meanwhile)
    with pytest.raises(SoftwareError, match=r"kafka-raft-4\.3\.1\.jar was built again while it was copied; run"):
        kafka_release(str(folder))
    assert (kafka_release(str(folder)).libs / "kafka-raft-4.3.1.jar").read_bytes() == b"built meanwhile"


def test_an_unchanged_tarball_is_unpacked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tarball = packed(unpacked(tmp_path / "kafka"), tmp_path / "kafka.tgz")
    release = kafka_release(str(tarball))
    monkeypatch.setattr(kafka, "unpack", lambda *_: pytest.fail("unpacked again"))
    assert kafka_release(str(tarball)) == release


def test_jars_have_the_time_that_class_data_archives_know(tmp_path: Path) -> None:
    release = kafka_release(str(unpacked(tmp_path / "kafka")))
    assert {int((release.libs / jar).stat().st_mtime) for jar in release.jars} == {JAR_TIME_S}


def test_a_build_without_a_log_binding_gets_one_and_keeps_its_own_jars(tmp_path: Path, no_registry: list[str]) -> None:
    folder = unpacked(tmp_path / "kafka")
    (folder / "libs" / "log4j-slf4j-impl-2.25.4.jar").unlink()
    release = kafka_release(str(folder))
    assert "org.apache.logging.log4j:log4j-slf4j-impl:2.25.4" in no_registry
    assert {"log4j-slf4j-impl-2.25.4.jar", "log4j-api-2.25.4.jar", "slf4j-api-1.7.36.jar"} <= set(release.jars)
    assert "slf4j-api-9.9.9.jar" not in release.jars


def test_an_agent_that_is_not_the_known_one_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka, "known_digests", lambda: {"4.3.1": {str(kafka.AGENT): "0" * 64}})
    with pytest.raises(SoftwareError, match="is not the one this project knows"):
        kafka_release(str(unpacked(tmp_path / "kafka")))


# ---- checkouts


def test_a_built_checkout_runs_its_modules_and_what_they_need(tmp_path: Path) -> None:
    release = kafka_release(str(checkout(tmp_path / "kafka")))
    assert release.version == f"4.4.0-SNAPSHOT+{release.digest[:12]}"
    assert {jar.replace("4.4.0-SNAPSHOT", "4.3.1") for jar in release.jars} == set(JARS)


def test_a_module_built_after_its_copy_was_made_is_the_one_that_runs(tmp_path: Path) -> None:
    folder = checkout(tmp_path / "kafka")
    (folder / "raft" / "build" / "libs" / "kafka-raft-4.4.0-SNAPSHOT.jar").write_bytes(b"just built")
    release = kafka_release(str(folder))
    assert (release.libs / "kafka-raft-4.4.0-SNAPSHOT.jar").read_bytes() == b"just built"


def test_what_an_earlier_version_left_in_a_checkout_does_not_run(tmp_path: Path) -> None:
    folder = checkout(tmp_path / "kafka")
    write(folder / "core" / "build" / "dependant-libs-2.13.18", {"kafka-raft-4.3.0-SNAPSHOT.jar": b"old"})
    write(folder / "core" / "build" / "libs", {"kafka_2.13-4.3.0-SNAPSHOT.jar": b"old"})
    assert not [jar for jar in kafka_release(str(folder)).jars if "4.3.0" in jar]


def test_a_checkout_that_is_not_built_is_told_how_to_be(tmp_path: Path) -> None:
    folder = checkout(tmp_path / "kafka", built=False)
    with pytest.raises(SoftwareError) as caught:
        kafka_release(str(folder))
    assert f"{folder} is a checkout of Kafka 4.4.0-SNAPSHOT that is not built" in str(caught.value)
    assert "core/build/dependant-libs-*" in str(caught.value)
    assert "`./gradlew jar`" in str(caught.value)
    assert "`./gradlew releaseTarGz`" in str(caught.value)


# ---- what is no Kafka


def with_a_dead_link(folder: Path) -> Path:
    """A release with a link that leads nowhere."""
    raft = unpacked(folder / "kafka") / "libs" / "kafka-raft-4.3.1.jar"
    raft.unlink()
    raft.symlink_to(folder / "nowhere")
    return folder / "kafka"


def with_half_a_jar(folder: Path) -> Path:
    write(unpacked(folder / "kafka") / "libs", {"kafka-clients-4.3.1.jar": clients("4.3.1")[:40]})
    return folder / "kafka"


def with_a_changed_jar_next_to_the_original(folder: Path) -> Path:
    write(unpacked(folder / "kafka") / "libs", {"kafka-raft-4.3.2-SNAPSHOT.jar": b"changed"})
    return folder / "kafka"


def in_part(folder: Path) -> Path:
    """A checkout whose tools are not built."""
    (checkout(folder / "kafka") / "tools" / "build" / "libs" / "kafka-tools-4.4.0-SNAPSHOT.jar").unlink()
    return folder / "kafka"


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda f: write(f / "libs", {"x.jar": b""}).parent, "is not a Kafka: allowed are an unpacked release"),
        (lambda f: unpacked(f / "kafka_2.13-4.3.1").parent, "did you mean .*/kafka_2.13-4.3.1"),
        (lambda f: unpacked(f / "kafka", "3.8.1"), r"Kafka 3\.8\.1 is too old; allowed: 3\.9\.0 or newer"),
        (
            lambda f: packed(write(f / "src" / "clients", {"build.gradle": b""}), f / "kafka-4.3.1-src.tgz"),
            r"no kafka-clients-\*\.jar in its libs/ .* -src\.tgz has to be built",
        ),
        (
            lambda f: write(f, {"kafka.tgz": b"<html>not found</html>"}) / "kafka.tgz",
            "is not a release tarball: not a gzip'ed tar archive",
        ),
        (lambda f: unpacked(f / "kafka", "4.3"), r"calls itself '4\.3', which is no version; allowed: 4\.3\.1, also"),
        (in_part, r"\(no kafka-tools-4\.4\.0-SNAPSHOT\.jar\)"),
        (
            with_a_changed_jar_next_to_the_original,
            r"one module of Kafka: kafka-raft-4\.3\.1\.jar, kafka-raft-4\.3\.2-SNAPSHOT\.jar; the JVM",
        ),
        (with_half_a_jar, r"is not a Kafka: .*kafka-clients-.*\.jar: not a jar that can be read"),
        (with_a_dead_link, r"kafka cannot be copied into the cache: No such file .*kafka-raft-4\.3\.1"),
    ],
)
def test_what_is_no_kafka_is_refused_with_the_reason(tmp_path: Path, make: Callable[[Path], Path], told: str) -> None:
    with pytest.raises(SoftwareError, match=told):
        kafka_release(str(make(tmp_path)))


@pytest.mark.parametrize("kept", [0.05, 0.5, 0.9, 0.999])
def test_a_truncated_tarball_is_said_to_be_one(tmp_path: Path, kept: float) -> None:
    folder = unpacked(tmp_path / "kafka")
    (folder / "libs" / "kafka-raft-4.3.1.jar").write_bytes(os.urandom(300_000))
    whole = packed(folder, tmp_path / "whole.tgz").read_bytes()
    (tmp_path / "kafka.tgz").write_bytes(whole[: int(len(whole) * kept)])
    with pytest.raises(
        SoftwareError, match="truncated or damaged .*: get it again, and compare it with the release's .sha512"
    ):
        kafka_release(str(tmp_path / "kafka.tgz"))
    assert not list((tmp_path / "cache" / "testbed").glob("kafka*/[0-9a-f]*"))


def test_a_tarballs_paths_lead_nowhere_else(tmp_path: Path) -> None:
    release = kafka_release(str(packed(unpacked(tmp_path / "kafka"), tmp_path / "k.tgz", top="../../../../escaped")))
    assert release.jars == JARS
    assert not list(tmp_path.rglob("escaped"))
