from pathlib import Path

import pytest

from testbed.errors import UsageError
from testbed.software.source import Kind, is_path, parse_source, too_old


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("4.3.1", Kind.RELEASE),
        ("3.9.0", Kind.RELEASE),
        ("4.3.0-rc1", Kind.RELEASE),
        ("4.3.1-our-fix.2", Kind.RELEASE),
        ("4.3.1-our-fix+0123456789ab", Kind.BUILD),
        ("4.4.0-SNAPSHOT+0123456789ab", Kind.BUILD),
    ],
)
def test_versions_are_taken_as_they_are(text: str, kind: Kind) -> None:
    source = parse_source(text)
    assert (source.kind, source.text, str(source)) == (kind, text, text)


def test_paths_are_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kafka").mkdir()
    (tmp_path / "kafka_2.13-4.3.1.tgz").write_bytes(b"")
    assert parse_source("./kafka").path == tmp_path / "kafka"
    assert parse_source("./kafka").kind is Kind.FOLDER
    found = parse_source("kafka_2.13-4.3.1.tgz")
    assert (found.kind, found.path) == (Kind.TARBALL, tmp_path / "kafka_2.13-4.3.1.tgz")
    assert parse_source(str(tmp_path / "kafka")).text == str(tmp_path / "kafka")


def test_relative_paths_count_from_where_the_command_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert parse_source(".").path == tmp_path
    assert parse_source("~/").path == tmp_path / "home"


def test_a_path_without_anything_there_is_told_in_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError) as caught:
        parse_source("./nothing.tgz")
    assert str(caught.value) == f"there is no Kafka at {tmp_path}/nothing.tgz: no such file or folder"


@pytest.mark.parametrize("version", ["3.8.1", "3.8.0-rc2", "2.8.2", "0.10.2"])
def test_a_release_before_3_9_is_refused_with_the_reason(version: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_source(version)
    assert f"Kafka {version} is too old; allowed: 3.9.0 or newer" in str(caught.value)
    assert "dynamic quorum" in str(caught.value)


@pytest.mark.parametrize("version", ["3.9.0", "3.10.0", "4.0.0", "4.4.0-SNAPSHOT", "10.0.0"])
def test_what_is_newer_may_run(version: str) -> None:
    assert too_old(version) is None


@pytest.mark.parametrize("text", ["latest", "", "4.3.1+xyz", "4.3.1 ", "v4"])
def test_what_is_neither_is_answered_with_what_is_allowed(text: str) -> None:
    with pytest.raises(UsageError, match=r"is no Kafka; allowed: a release \(4\.3\.1\), the path of a tarball"):
        parse_source(text)


@pytest.mark.parametrize(("text", "meant"), [("4.3", "4.3.0"), ("v4.3.1", "4.3.1"), ("4", "4.0.0")])
def test_a_version_written_otherwise_is_guessed(text: str, meant: str) -> None:
    with pytest.raises(UsageError, match=f"did you mean {meant}"):
        parse_source(text)


@pytest.mark.parametrize("text", ["./x", "/x", "~/x", "x/y", "x.tgz", "x.tar.gz", ".", ".."])
def test_paths_are_told_from_versions_by_how_they_are_written(text: str) -> None:
    assert is_path(text)
    assert not is_path("4.3.1")


def test_a_snapshot_is_refused_as_its_jars_change() -> None:
    with pytest.raises(UsageError, match=r"Maven gives this version to one build after the other; name the build"):
        parse_source("4.4.0-SNAPSHOT")


def test_a_path_that_cannot_be_read_is_an_error_of_the_user(tmp_path: Path) -> None:
    (tmp_path / "round").symlink_to(tmp_path / "round")
    for text in ("~no-such-user-here/kafka", str(tmp_path / "round" / "kafka"), f"./{'k' * 300}"):
        with pytest.raises(UsageError, match=r"cannot be read: |there is no Kafka at "):
            parse_source(text)
