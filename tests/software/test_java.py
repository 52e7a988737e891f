from pathlib import Path

import pytest

from testbed.software import commands
from testbed.software.commands import find_java, major_version


@pytest.mark.parametrize(
    ("text", "major"),
    [
        ('JAVA_VERSION="17.0.21"\nOS_ARCH="x86_64"', 17),
        ('openjdk version "21" 2023-09-19', 21),
        ('java version "1.8.0_392"', 8),
        ("no java at all", None),
    ],
)
def test_the_major_version(text: str, major: int | None) -> None:
    assert major_version(text) == major


def install(folder: Path, version: str) -> None:
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "java").write_text("#!/bin/sh\n")
    (folder / "bin" / "java").chmod(0o755)
    (folder / "release").write_text(f'JAVA_VERSION="{version}"\n')


def test_one_that_is_too_old_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path / "jvm" / "old", "11.0.2")
    install(tmp_path / "jvm" / "recent", "21.0.1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jvm" / "old"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(commands, "JVM_FOLDER", tmp_path / "jvm")
    found = find_java()
    assert found is not None
    assert (found.home, found.major) == (tmp_path / "jvm" / "recent", 21)
    (tmp_path / "jvm" / "recent").rename(tmp_path / "elsewhere")
    assert find_java() is None
