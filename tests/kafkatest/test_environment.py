"""The environment of the pins: its key, its choice of a Python, and its refusal. Nothing is installed here."""

import json
import sys
from pathlib import Path

import pytest

from testbed.errors import SoftwareError, UsageError
from testbed.kafkatest import environment as environments
from testbed.kafkatest.environment import PythonVersion, environment, examined, key_of, reason
from testbed.software.commands import CommandError

PINS = ("ducktape==0.12.0", "requests==2.31.0")
NEW, OLD = (PythonVersion(Path(f"/python3.{minor}"), (3, minor, 1)) for minor in (11, 9))


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine with two Pythons; returns the list of the programs that were started, and sets who fails."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    started, failing = [], {}

    def run_logged(argv, _log, **_options):
        words = [str(word) for word in argv]
        started.append(words)
        if "venv" in words:
            folder = Path(words[-1])
            (folder / "bin").mkdir(parents=True)
            (folder / "made-by").write_text(words[0])
            return
        made_by = (Path(words[0]).parents[1] / "made-by").read_text()
        if made_by in failing:
            raise CommandError("pip: exit code 1", None, failing[made_by])

    monkeypatch.setattr(environments, "run_logged", run_logged)
    monkeypatch.setattr(environments, "candidates", lambda: iter([NEW, OLD]))
    monkeypatch.setattr(environments, "_installed", lambda _folder: ["ducktape==0.12.0"])
    return started, failing


def test_the_key_follows_from_the_pins_and_from_a_python_that_is_asked_for():
    assert key_of(PINS) == key_of(tuple(reversed(PINS)))
    assert len({key_of(PINS), key_of(("ducktape==0.11.4",)), key_of(PINS, NEW), key_of(PINS, OLD)}) == 4


def test_machines_of_two_distributions_share_no_environment(monkeypatch):
    """The interpreter of one was missing on the other, with which it shared a home."""
    here = key_of(PINS)
    monkeypatch.setattr(sys, "version", f"{sys.version} of another distribution")
    assert key_of(PINS) != here


def test_it_is_made_once(machine):
    started, _failing = machine
    first = environment(PINS)
    count = len(started)
    assert (first.python, first.installed) == ("Python 3.11.1", ("ducktape==0.12.0",))
    assert environment(PINS) == first
    assert len(started) == count == 3
    assert started[1][-3:] == ["setuptools<72", *PINS]
    assert "c.free(" in started[2][-1]


@pytest.mark.parametrize(
    ("output", "why"),
    [
        ("ERROR: Failed building wheel for pyzmq", "pyzmq cannot be built"),
        ("AttributeError: module 'collections' has no attribute 'Iterable'",) * 2,  # installed, and does not work
    ],
)
def test_another_python_is_tried_where_the_first_cannot_have_the_pins(machine, output, why):
    _started, failing = machine
    failing["/python3.11"] = output
    said = []
    assert environment(PINS, progress=said.append).python == "Python 3.9.1"
    assert f"Python 3.11.1 cannot install them: {why}" in said


def test_this_programs_python_is_tried_first_then_older_ones_then_newer_ones(tmp_path, monkeypatch):
    here = sys.version_info[1]
    for minor in (here - 2, here, here + 2, here - 1, here + 1):
        (tmp_path / f"python3.{minor}").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))

    def version(program):
        own = program == sys.executable
        return PythonVersion(Path(program), (3, here if own else int(program.rpartition(".")[2]), 7 if own else 1))

    monkeypatch.setattr(environments, "examined", version)
    found = [python.version[1:] for python in environments.candidates()]
    assert found == [(here, 7), (here - 1, 1), (here - 2, 1), (here + 1, 1), (here + 2, 1)]


def test_where_none_works_each_is_named_and_nothing_is_left(machine, tmp_path):
    _started, failing = machine
    failing["/python3.11"] = "x: fatal error: longintrepr.h: No such file\nERROR: Failed building wheel for pyzmq"
    failing["/python3.9"] = "ERROR: No matching distribution found for ducktape==0.12.0"
    with pytest.raises(SoftwareError) as raised:
        environment(PINS)
    text = str(raised.value)
    assert "Python 3.11.1: pyzmq cannot be built (longintrepr.h: No such file)" in text
    assert "Python 3.9.1: No matching distribution found for ducktape==0.12.0" in text
    assert "--python PATH" in text
    assert not list(tmp_path.glob("cache/testbed/kafkatest/*/bin"))


def test_what_a_kill_left_is_made_again(machine, tmp_path):
    folder = tmp_path / "cache/testbed/kafkatest" / key_of(PINS)
    (folder / "bin").mkdir(parents=True)
    assert environment(PINS).python == "Python 3.11.1"
    assert json.loads((folder / "environment.json").read_text())["pins"] == list(PINS)


def test_a_python_that_does_not_run_is_refused():
    with pytest.raises(UsageError, match="--python /bin/false: it does not run as a Python"):
        environment(PINS, "/bin/false")
    assert examined("/absent") is None


def test_the_reason_is_one_line_of_what_pip_says():
    assert reason("ModuleNotFoundError: No module named 'pipes'") == "ModuleNotFoundError: No module named 'pipes'"
    assert reason("all is well") == ""
