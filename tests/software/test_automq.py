import contextlib
import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from testbed.errors import SoftwareError
from testbed.software import automq
from testbed.software.automq import VARIABLE, NoDistribution, Supplied, automq_release, jars_in, supplied, version_of
from testbed.software.engine import EngineError, Trouble
from testbed.software.kafka import kafka_release
from tests.software.jars import clients, no_registry, packed, unpacked, write

__all__ = ["no_registry"]
pytestmark = pytest.mark.usefixtures("no_registry")
ABOUT = "kafka/kafka-version.properties"


def core(*classes):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in classes:
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), b"")
    return buffer.getvalue()


def damaged(name):
    """A jar with an entry that cannot be unpacked."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, bytes(1000))
    content, begin = bytearray(buffer.getvalue()), 30 + len(name)  # after the head of the entry
    content[begin : begin + 4] = b"\xff" * 4
    return bytes(content)


def distribution(folder, kafka="3.9.0", *, stream="3.9.0", main="kafka/Kafka.class"):
    """An unpacked release as AutoMQ's tarball holds it."""
    unpacked(folder, kafka)
    write(folder / "libs", {f"kafka_2.13-{kafka}.jar": core(main), "automq-shell-3.9.0.jar": b"shell"})
    if stream is not None:
        write(folder / "libs", {f"s3stream-{stream}.jar": b"stream"})
    return folder


def test_a_folder_and_a_tarball_are_the_same_distribution_with_automqs_own_version(tmp_path: Path) -> None:
    folder = distribution(tmp_path / "automq-1.6.0_kafka-3.9.0")
    release = automq_release(Supplied(path=folder))
    assert release.version == f"automq-1.6.0+{release.digest[:12]}"
    assert release.shared_storage
    assert "s3stream-3.9.0.jar" in release.jars
    tarball = packed(folder, tmp_path / "automq-1.6.0_kafka-3.9.0.tgz", top="automq-1.6.0_kafka-3.9.0")
    assert automq_release(Supplied(path=tarball)) == release
    # By its version it is found again, as a testbed that is up does, whatever becomes of the folder.
    folder.rename(tmp_path / "gone")
    assert kafka_release(release.version) == release


def test_a_folder_with_the_release_in_it_will_do(tmp_path: Path) -> None:
    distribution(tmp_path / "here" / "automq-1.6.0_kafka-3.9.0")
    assert automq_release(Supplied(path=tmp_path / "here")).shared_storage


@pytest.mark.parametrize(
    ("name", "stream", "version"),
    [
        ("automq-1.6.0_kafka-3.9.0.tgz", "3.9.0", "1.6.0"),
        ("automq-1.6.0-rc1_kafka-3.9.0", "3.9.0", "1.6.0-rc1"),
        ("automq-kafka-1.5.2.tar.gz", "3.9.0", "1.5.2"),
        ("somebody/automq:1.6.0", "3.9.0", "1.6.0"),
        ("somebody/automq:latest", "3.9.0", "kafka-3.9.0"),
        ("whatever", "3.9.0", "kafka-3.9.0"),
        ("automq-1.6.0_kafka-3.9.0", "0.0.0-fake", "0.0.0-fake"),
    ],
)
def test_its_version_is_of_its_name_unless_its_jars_have_their_own(tmp_path, name, stream, version) -> None:
    libs = write(tmp_path / "libs", {"kafka-clients-3.9.0.jar": clients("3.9.0"), f"s3stream-{stream}.jar": b""})
    assert version_of(sorted(libs.iterdir()), name) == version


def test_nobody_has_supplied_one(tmp_path: Path) -> None:
    with pytest.raises(NoDistribution) as caught:
        supplied(None, None, {})
    told = str(caught.value)
    assert "there is no AutoMQ: the topology names none, and TESTBED_AUTOMQ is not set. Supply one" in told
    for word in ("automq-VERSION_kafka-VERSION.tgz", "libs/", "image", "releases of the AutoMQ project"):
        assert word in told
    with pytest.raises(NoDistribution):
        supplied(None, None, {VARIABLE: "  "})
    with pytest.raises(NoDistribution, match="TESTBED_AUTOMQ=~no-such-user/automq: "):
        supplied(None, None, {VARIABLE: "~no-such-user/automq"})


def test_the_topology_comes_before_the_environment(tmp_path: Path) -> None:
    elsewhere = {VARIABLE: "/elsewhere"}
    assert supplied(str(tmp_path), None, elsewhere) == Supplied(path=tmp_path)
    assert supplied(None, "automq:1.6.0", elsewhere) == Supplied(image="automq:1.6.0")
    assert supplied(None, None, elsewhere) == Supplied(path=Path("/elsewhere"), by=VARIABLE)
    assert supplied(None, None, {VARIABLE: "somebody/automq:1.6.0"}).image == "somebody/automq:1.6.0"
    assert supplied(None, None, {VARIABLE: "automq:1.6.0"}).image == "automq:1.6.0"
    assert supplied(None, None, {VARIABLE: "../automq"}).path == (Path.cwd() / "../automq").absolute()


def cached(tmp_path: Path) -> list[str]:
    return sorted(str(path.relative_to(tmp_path)) for path in (tmp_path / "cache").rglob("*.jar"))


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda folder: None, "there is no AutoMQ at .*: no such file or folder"),
        (lambda folder: folder.mkdir(), "is not an AutoMQ: no jars in a folder libs/"),
        (lambda folder: distribution(folder, stream=None), "no s3stream-.* by which AutoMQ is known; it is a Kafka"),
        (lambda folder: distribution(folder, main="Other.class"), "no jar of its core has the class kafka.Kafka"),
        (lambda folder: write(folder / "libs", {"s3stream-1.jar": b""}), "no kafka-clients-.*among its 1 jars"),
        (
            lambda folder: write(distribution(folder) / "libs", {"kafka_2.13-3.9.0.jar": b"half"}),
            "kafka_2.13-3.9.0.jar cannot be read",
        ),
        (
            lambda folder: write(distribution(folder) / "libs", {"kafka-clients-3.9.0.jar": damaged(ABOUT)}),
            "kafka-clients-3.9.0.jar: not a jar that can be read",
        ),
    ],
)
def test_what_is_no_automq_is_refused_with_what_to_supply_and_leaves_nothing(tmp_path, make, told) -> None:
    folder = tmp_path / "automq"
    make(folder)
    with pytest.raises(SoftwareError, match=told) as caught:
        automq_release(Supplied(path=folder, by=VARIABLE))
    assert f"{folder}, named by {VARIABLE}" in str(caught.value)
    assert "Supply one" in str(caught.value)
    assert cached(tmp_path) == []


def test_a_truncated_tarball_is_told_as_one(tmp_path: Path) -> None:
    whole = packed(distribution(tmp_path / "automq"), tmp_path / "automq.tgz", top="automq-1.6.0_kafka-3.9.0")
    half = tmp_path / "half.tgz"
    half.write_bytes(whole.read_bytes()[: whole.stat().st_size // 2])
    with pytest.raises(SoftwareError, match="half.tgz is truncated or damaged"):
        automq_release(Supplied(path=half))
    assert cached(tmp_path) == []


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda folder, file: file.write_bytes(b"<html>not found</html>"), "not a gzip'ed tar archive"),
        (lambda folder, file: packed(write(folder, {"build.gradle": b""}), file), r"no kafka-clients-\*\.jar in its"),
    ],
    ids=["a page", "the sources"],
)
def test_a_file_that_is_no_release_is_refused_with_what_to_supply(tmp_path: Path, make, why) -> None:
    tarball = tmp_path / "automq-1.6.0.tar.gz"
    make(tmp_path / "core", tarball)
    with pytest.raises(SoftwareError, match=f"{VARIABLE}, is not an AutoMQ: {why}") as caught:
        automq_release(Supplied(path=tarball, by=VARIABLE))
    assert "automq-VERSION_kafka-VERSION.tgz" in str(caught.value)
    assert "kafka_2.13" not in str(caught.value)


def file_system(*folders):
    """The tar of an image in which these folders are release folders, among others."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("etc/passwd"), io.BytesIO())
        link = tarfile.TarInfo("opt/automq")
        link.type, link.linkname = tarfile.SYMTYPE, "/opt/kafka"
        archive.addfile(link)
        for place, folder in folders:
            archive.add(folder, arcname=place)
    buffer.seek(0)
    return buffer


class Engine:
    """An engine that has one image, or none."""

    def __init__(self, files, known=True):
        self.files, self.known, self.asked = files, known, 0

    def find_image(self, name):
        return "sha256:" + "ab" * 32 if self.known else None

    def pull_image(self, name):
        raise EngineError("no route to any registry", Trouble.FAILED)

    def files_of_image(self, identity):
        self.asked += 1
        self.files.seek(0)
        return contextlib.nullcontext(self.files)


def test_an_image_has_its_release_wherever_it_lies_and_is_looked_into_once(tmp_path: Path) -> None:
    other = unpacked(tmp_path / "other", "4.3.1")
    folder = distribution(tmp_path / "automq")
    engine = Engine(file_system(("usr/share/tool", other), ("opt/kafka/kafka", folder)))
    release = automq_release(Supplied(image="somebody/automq:1.6.0"), engine)
    assert release.version.startswith("automq-1.6.0+")
    assert release.digest == automq_release(Supplied(path=folder)).digest
    assert automq_release(Supplied(image="somebody/automq:1.6.0"), engine) == release
    assert engine.asked == 1


def test_an_image_without_one_and_an_image_that_is_not_there(tmp_path: Path) -> None:
    engine = Engine(file_system(("opt/kafka", unpacked(tmp_path / "kafka"))))
    with pytest.raises(SoftwareError, match="image kafka:1, named by the topology, is not an AutoMQ: no s3stream"):
        automq_release(Supplied(image="kafka:1"), engine)
    with pytest.raises(SoftwareError, match=r"does not have it and cannot get it \(no route.*docker load"):
        automq_release(Supplied(image="automq:1.6.0"), Engine(file_system(), known=False))
    assert jars_in(file_system(), tmp_path) == []


def test_a_path_in_an_image_cannot_leave_the_folder(tmp_path: Path) -> None:
    folder = distribution(tmp_path / "automq")
    found = jars_in(file_system(("../../../escaped/libs", folder / "libs")), tmp_path / "into")
    assert {jar.parent.parent for jar in found} <= {tmp_path / "into"}
    assert automq.problem(found) == ""
