"""Catalogues are what lies in their folder."""

import sys

import pytest

from testbed.catalogue import discovered
from testbed.suggestions import did_you_mean


@pytest.fixture
def package(tmp_path, monkeypatch):
    home = tmp_path / "made_for_discovery"
    home.mkdir()
    (home / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    yield home
    for name in [name for name in sys.modules if name.startswith("made_for_discovery")]:
        del sys.modules[name]


def test_what_every_module_has_is_found_in_their_order(package):
    for name in ("pear", "apple"):
        (package / f"{name}.py").write_text(f"FRUIT = {name.upper()!r}\n")
    assert list(discovered("made_for_discovery", "FRUIT").items()) == [("apple", "APPLE"), ("pear", "PEAR")]


def test_a_module_without_it_is_named(package):
    (package / "stone.py").write_text("")
    with pytest.raises(TypeError, match="made_for_discovery.stone has no FRUIT"):
        discovered("made_for_discovery", "FRUIT")


def test_what_was_meant_is_written_as_it_is_to_be_typed():
    assert did_you_mean("SUITTE", ["suite", "sweep"], lambda name: f"`testbed {name}`") == (
        "; did you mean `testbed suite`?"
    )
    assert did_you_mean("x", ["suite"]) == did_you_mean(None, ["suite"]) == ""
