"""The remote storage manager: the testbed's own from its sources, another one from its jars."""

import shutil
import struct
import zipfile
from dataclasses import replace

import pytest

from testbed.errors import SoftwareError
from testbed.software import maven
from testbed.software.rsm import INTERFACE, PROJECT, SOURCES, implementer, implementers, remote_storage_manager

WANTED = INTERFACE.replace(".", "/")
ABSTRACT, IS_INTERFACE, PUBLIC = 0x0400, 0x0200, 0x0001


def class_file(name, *interfaces, access=PUBLIC):
    """A class file, as far as its interfaces. A long constant takes two places."""
    names = [name, "java/lang/Object", *interfaces]
    pool = b"\x05" + bytes(8) + b"\x04" + bytes(4)
    for index, each in enumerate(names):
        pool += b"\x01" + struct.pack(">H", len(each)) + each.encode()
        pool += b"\x07" + struct.pack(">H", 4 + 2 * index)
    classes = [5 + 2 * index for index in range(len(names))]
    head = struct.pack(">IHHH", 0xCAFEBABE, 0, 61, 4 + 2 * len(names))
    return head + pool + struct.pack(f">HHHH{len(interfaces)}H", access, *classes[:2], len(interfaces), *classes[2:])


def jar(path, **classes):
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("META-INF/MANIFEST.MF", "")
        for name, content in classes.items():
            archive.writestr(f"a/{name}.class", content)
    return path


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (class_file("a/B", "java/io/Closeable", WANTED), "a.B"),
        (class_file("a/B", "java/io/Closeable"), ""),
        (class_file("a/B", WANTED, access=PUBLIC | ABSTRACT), ""),
        (class_file("a/B", WANTED, access=PUBLIC | IS_INTERFACE | ABSTRACT), ""),
        (b"\x00" * 40, ""),
    ],
)
def test_what_a_class_file_says(content, found):
    assert implementer(content, WANTED) == found


def test_a_jar_that_is_none(tmp_path):
    (tmp_path / "x.jar").write_bytes(b"PK")
    with pytest.raises(SoftwareError, match=r"x\.jar: not a jar"):
        implementers([tmp_path / "x.jar"], INTERFACE)


def test_a_jar_of_which_a_part_is_damaged_is_named(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.jar", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("B.class", bytes(1000))
    content = bytearray((tmp_path / "x.jar").read_bytes())
    begin = 30 + len("B.class")  # after the head of the entry
    content[begin : begin + 4] = b"\xff" * 4
    (tmp_path / "x.jar").write_bytes(content)
    with pytest.raises(SoftwareError, match="x.jar: not a jar that can be read"):
        implementers([tmp_path / "x.jar"], INTERFACE)


def test_a_class_that_is_cut_anywhere_is_named_by_its_jar_or_implements_nothing(tmp_path):
    whole, refused = class_file("a/B", "java/io/Closeable", WANTED), 0
    for kept in range(len(whole)):
        with zipfile.ZipFile(tmp_path / "x.jar", "w") as jar:
            jar.writestr("a/B.class", whole[:kept] + (WANTED.encode() if WANTED.encode() not in whole[:kept] else b""))
        try:
            assert implementers([tmp_path / "x.jar"], INTERFACE) in ([], ["a.B"])
        except SoftwareError as error:
            refused += 1
            assert "x.jar: not a jar that can be read" in str(error)
    assert refused > 20


def test_a_given_folders_jars_and_its_class(tmp_path, cache):
    folder = tmp_path / "given"
    jar(folder / "core" / "core.jar", B=class_file("a/B", WANTED), C=class_file("a/C"))
    jar(folder / "s3" / "s3.jar", D=class_file("a/D"))
    found = remote_storage_manager(folder)
    assert (found.class_name, found.is_own) == ("a.B", False)
    assert sorted(path.name for path in found.folder.iterdir()) == ["core.jar", "s3.jar"]
    # What lies in the folder later is another one; this one stays what it was.
    jar(folder / "s3" / "s3.jar", E=class_file("a/E", WANTED))
    other = remote_storage_manager(folder)
    assert (other.class_name, other.digest == found.digest) == ("", False)


def test_brokers_that_run_have_the_manager_they_began_with_whatever_its_folder_has_now(tmp_path, cache):
    folder = tmp_path / "given"
    jar(folder / "core.jar", B=class_file("a/B", WANTED))
    first = remote_storage_manager(folder)
    jar(folder / "core.jar", C=class_file("a/C", WANTED))
    assert remote_storage_manager(folder).class_name == "a.C"
    shutil.rmtree(folder)
    assert remote_storage_manager(folder, first.digest) == first
    with pytest.raises(SoftwareError, match="no longer in the cache: bring the testbed up again"):
        remote_storage_manager(folder, "0" * 64)


def test_a_folder_that_is_none_or_empty(tmp_path, cache):
    with pytest.raises(SoftwareError, match="is no folder"):
        remote_storage_manager(tmp_path / "none")
    with pytest.raises(SoftwareError, match="has no jars"):
        remote_storage_manager(tmp_path)


def test_the_digest_is_of_what_the_jar_is_made_of(tmp_path):
    copy = shutil.copytree(SOURCES, tmp_path / "java")
    copied = replace(PROJECT, sources=copy)
    assert copied.digest() == PROJECT.digest()
    (copy / "src" / "test" / "java" / "testbed" / "tiered" / "ManagerTest.java").unlink()
    assert copied.digest() == PROJECT.digest()
    with (copy / "src" / "main" / "java" / "testbed" / "tiered" / "Keys.java").open("a") as stream:
        stream.write("\n")
    assert copied.digest() != PROJECT.digest()


def test_without_maven_that_is_said(cache, monkeypatch):
    monkeypatch.setattr(maven.shutil, "which", lambda *_words, **_rest: None)
    said = "^mvn, which builds the remote storage manager, is not installed: "
    with pytest.raises(SoftwareError, match=said):
        remote_storage_manager()


@pytest.mark.nightly
def test_the_managers_own_tests():
    """In Java: its settings and keys, and its behaviour towards a store that is busy, silent, or breaks off."""
    PROJECT.run(["test"])
