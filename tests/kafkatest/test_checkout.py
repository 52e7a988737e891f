"""What a checkout says of itself, and the refusal of what is none."""

import io
import subprocess
import tarfile

import pytest

from testbed.errors import UsageError
from testbed.kafkatest.checkout import read_checkout
from testbed.kafkatest.layout import source_of
from tests.kafkatest.made_up import SETUP, make_checkout


@pytest.fixture
def folder(tmp_path):
    return make_checkout(tmp_path / "kafka")


def test_its_version_and_its_pins_are_read_without_running_its_setup(folder):
    found = read_checkout(folder)
    assert (found.version, found.release, found.built) == ("9.9.9", "9.9.9", False)
    assert found.pins == ("ducktape==0.12.0", "requests==2.31.0", "psutil==5.7.2")


def test_pins_may_have_a_name(folder):
    (folder / "tests/setup.py").write_text('pins = ["ducktape==0.8.14"]\nsetup(install_requires=pins)\n')
    assert read_checkout(folder).pins == ("ducktape==0.8.14",)


@pytest.mark.parametrize(
    ("setup", "said"),
    [
        ("setup(name='kafkatest')", "has no install_requires"),
        (
            SETUP.replace("ducktape==0.12.0", "other"),
            "line 4: install_requires is no list of requirements",
        ),
        ("setup(install_requires=[open('pins').read()])", "line 1: install_requires is no list"),
        ("setup(", "cannot be read as Python"),
    ],
)
def test_a_setup_without_its_ducktape_is_refused(folder, setup, said):
    (folder / "tests/setup.py").write_text(setup)
    with pytest.raises(UsageError, match=said):
        read_checkout(folder)


def test_a_path_that_is_no_checkout_is_refused_with_what_it_lacks(tmp_path, folder):
    with pytest.raises(UsageError, match="there is no such folder"):
        read_checkout(tmp_path / "absent")
    (tmp_path / "other").mkdir()
    with pytest.raises(UsageError, match=r"no checkout of Kafka: it has no gradle.properties, .* or tests/"):
        read_checkout(tmp_path / "other")
    with pytest.raises(UsageError, match=f"did you mean {folder}"):
        read_checkout(folder / "tests")


def test_tests_are_named_by_file_by_folder_or_by_their_bare_name(folder, tmp_path):
    found = read_checkout(folder)
    whole = str(folder / "tests/kafkatest/tests/core/moving_test.py")
    for name in ("moving_test", "moving_test.py", "core/moving_test.py", "tests/kafkatest/tests/core/moving_test.py"):
        assert found.find_tests(name, tmp_path) == whole
    assert found.find_tests("moving_test::MovingTest.test_move", tmp_path) == f"{whole}::MovingTest.test_move"
    assert found.find_tests("core", tmp_path) == str(folder / "tests/kafkatest/tests/core")
    with pytest.raises(UsageError, match=r"no such test file or folder; did you mean .*core/moving_test.py\?"):
        found.find_tests("movin_test", tmp_path)


def test_scripts_are_those_of_the_checkout_and_of_a_tag(folder):
    def git(*words):
        subprocess.run(["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b", *words], check=True)

    found = read_checkout(folder)
    assert found.scripts_of("9.9.8") is None
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "all")
    git("tag", "9.9.8")
    (folder / "bin/added.sh").write_text("#!/bin/sh\n")
    with tarfile.open(fileobj=io.BytesIO(found.scripts())) as archive:
        entries = {entry.name: entry for entry in archive}
    assert {"bin/added.sh", "bin/kafka-run-class.sh", "config/server.properties"} <= entries.keys()
    assert entries["bin/kafka-run-class.sh"].mode & 0o111
    assert {(entry.uid, entry.uname) for entry in entries.values()} == {(0, "")}
    tagged = found.scripts_of("9.9.8")
    assert tagged is not None
    with tarfile.open(fileobj=io.BytesIO(tagged)) as archive:
        assert "bin/added.sh" not in archive.getnames()
    assert found.scripts_of("9.9.7") is None


def test_the_build_under_test_is_what_the_checkout_is_of(folder, tmp_path):
    assert source_of(read_checkout(folder), None) == "9.9.9"
    assert source_of(read_checkout(folder), "3.9.1") == "3.9.1"
    snapshot = make_checkout(tmp_path / "snapshot", "9.9.9-SNAPSHOT")
    with pytest.raises(UsageError, match=r"is 9.9.9-SNAPSHOT, which is no release, .*name a release .* with --kafka"):
        source_of(read_checkout(snapshot), None)
    (snapshot / "clients/build/libs").mkdir(parents=True)
    (snapshot / "clients/build/libs/kafka-clients-9.9.9-SNAPSHOT.jar").write_bytes(b"")
    assert source_of(read_checkout(snapshot), None) == str(snapshot)
