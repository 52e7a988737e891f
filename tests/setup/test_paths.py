"""A home that machines share: the cache of each architecture is its own, and the state of each machine."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from testbed import paths
from testbed.setup.environment import CHECKOUT, environment
from testbed.software.minio import build_environment


@pytest.mark.parametrize(("machine", "folder"), [("x86_64", "testbed"), ("aarch64", "testbed/aarch64")])
def test_what_is_cached_belongs_to_an_architecture(
    machine: str, folder: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(machine=machine))
    assert paths.cache_dir() == tmp_path / folder
    assert environment(CHECKOUT).folder.parent == tmp_path / folder


def on(monkeypatch: pytest.MonkeyPatch, folder: Path, identity: str | None) -> Path:
    """Return the state folder of a machine with this id."""
    monkeypatch.setenv("XDG_STATE_HOME", str(folder))
    monkeypatch.setattr(paths, "MACHINE_ID", folder / "machine-id")
    paths.MACHINE_ID.unlink(missing_ok=True)
    if identity is not None:
        paths.MACHINE_ID.write_text(f"{identity}\n")
    return paths.state_dir()


def test_machines_that_share_a_home_have_a_state_folder_each(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One machine's `gc` removed the state of the other's testbeds, and then that one's removed their containers."""
    assert on(monkeypatch, tmp_path, "0123456789abcdef") == tmp_path / "testbed"
    second = on(monkeypatch, tmp_path, "fedcba9876543210")
    assert second.parent == tmp_path / "testbed"
    assert on(monkeypatch, tmp_path, "a third") not in (second, second.parent)
    assert on(monkeypatch, tmp_path, "fedcba9876543210") == second
    assert on(monkeypatch, tmp_path, "0123456789abcdef") == tmp_path / "testbed"
    assert [each.name for each in (tmp_path / "testbed").iterdir()] == [paths.OWNER]


def test_state_of_an_earlier_version_stays_where_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "testbed" / "testbeds").mkdir(parents=True)
    assert on(monkeypatch, tmp_path, "0123456789abcdef") == tmp_path / "testbed"


@pytest.mark.parametrize("identity", [None, "", "uninitialized"])
def test_a_machine_without_an_id_has_the_state_folder_for_itself(
    identity: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A container gets another id each time that it is made, and would not find its state again."""
    assert on(monkeypatch, tmp_path, identity) == tmp_path / "testbed"


def test_a_home_that_cannot_be_written_has_no_owner(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Commands that need no state work there; others name the folder."""
    (tmp_path / "testbed").write_text("a file")
    assert on(monkeypatch, tmp_path, "0123456789abcdef") == tmp_path / "testbed"


def test_go_compiles_for_the_machine_that_it_runs_on(tmp_path: Path) -> None:
    assert not {"GOARCH", "GOOS"} & set(build_environment(tmp_path))
