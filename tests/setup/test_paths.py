"""The cache of each architecture is its own, also in a home that machines share."""

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


def test_go_compiles_for_the_machine_that_it_runs_on(tmp_path: Path) -> None:
    assert not {"GOARCH", "GOOS"} & set(build_environment(tmp_path))
