import contextlib
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest

from testbed import paths
from testbed.errors import TestbedError
from testbed.owner import Owner
from testbed.paths import state_dir
from testbed.provision import fleet, resources
from testbed.provision import state as states
from testbed.provision.containers import HostContainer, Labels
from testbed.provision.resources import (
    collect_garbage,
    collect_testbeds,
    finish_restarts,
    garbage,
    known_here,
    overview,
)
from testbed.testing.session_testbeds import remove_dead_sessions
from tests.provision.engine_api import FullApi
from tests.provision.states import make


class FakeEngine:
    def __init__(self):
        self.found: list[HostContainer] = []
        self.nets: list[tuple[str, dict[str, str]]] = []

    def add(self, name, owner, *, host="b1", state_dir_text=None, running=True):
        labels = Labels(name, 0, owner, state_dir_text or str(state_dir()))
        self.found.append(HostContainer(f"id-{name}", labels.of("host", host), running))

    def containers(self, name=None):
        return [f for f in self.found if name in (None, f.labels["testbed.name"])]

    def networks(self, name=None):
        return [n for n in self.nets if name in (None, n[1]["testbed.name"])]

    def helpers(self):
        return [f for f in self.found if "testbed.name" not in f.labels]

    def remove_container(self, container):
        self.found = [f for f in self.found if f.id != container]


@pytest.fixture(autouse=True)
def own_state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


@pytest.fixture
def dead() -> Owner:
    code = "from testbed.owner import Owner; print(Owner.this_process())"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    owner = Owner.parse(told)
    assert owner is not None
    assert not owner.alive()
    return owner


def test_what_is_up_to_stay_is_kept_although_its_maker_is_dead(dead):
    engine = FakeEngine()
    engine.add("kept", dead)
    states.save(make("kept", owner=str(dead)))
    assert garbage(engine) == {}
    assert [row.status for row in overview(engine)] == ["up"]


def test_half_made_is_garbage_once_its_maker_is_dead_and_not_before(dead):
    engine = FakeEngine()
    engine.add("half", dead)
    states.save(make("half", owner=str(dead), status="creating"))
    engine.add("being-made", Owner.this_process())
    states.save(make("being-made", status="creating"))
    assert garbage(engine) == {"half": "its `up` was interrupted"}


def test_resources_without_state_are_garbage(dead):
    engine = FakeEngine()
    engine.add("lost", dead)
    assert garbage(engine) == {"lost": "the command that was making it is dead"}


def test_state_without_resources_is_garbage(dead):
    states.save(make("gone", owner=str(dead)))
    assert garbage(FakeEngine()) == {"gone": "its containers are gone"}


def test_a_testbed_that_an_engine_did_not_keep_running_is_garbage(dead):
    engine = FakeEngine()
    for host in ("", "b1"):
        engine.add("ended", dead, host=host, running=False)
        engine.add("half", dead, host=host, running=host == "b1")
    for name in ("ended", "half"):
        states.save(make(name, owner=str(dead)))
    assert garbage(engine) == {"ended": "all its containers have ended"}
    assert [(row.name, row.status) for row in overview(engine)] == [
        ("ended", "garbage: all its containers have ended"),
        ("half", "not whole"),
    ]


def test_kafka_that_a_dead_command_was_restarting_is_started(dead):
    states.save(make("one", restarting=str(dead), overlay={"a": "1"}))
    states.save(make("two", restarting=str(Owner.this_process())))
    states.save(make("three"))
    states.save(make("bad"))
    (states.folder("bad") / "state.json").write_text("[]")
    done = []

    def attach(name):
        return SimpleNamespace(reconfigure=lambda overlay: done.append((name, overlay)), close=lambda: None)

    told = "one: Kafka {}restarted, which a command was doing that is dead"
    assert list(finish_restarts(attach, dry_run=True)) == [told.format("would be ")]
    assert done == []
    assert list(finish_restarts(attach, dry_run=False)) == [told.format("")]
    assert done == [("one", {"a": "1"})]


def test_a_runs_testbed_dies_with_the_run(dead):
    engine = FakeEngine()
    engine.add("run-1", dead)
    states.save(make("run-1", owner=str(dead), ephemeral=True))
    assert garbage(engine) == {"run-1": "the run it was made for is dead"}


def test_another_state_folders_testbeds_are_left_alone(dead):
    engine = FakeEngine()
    engine.add("theirs", dead, state_dir_text="/somewhere/else")
    assert garbage(engine) == {}
    assert known_here(engine) == []
    assert "another state folder's" in overview(engine)[0].status


def test_testbeds_of_a_machine_that_shares_the_home_are_left_alone(dead, monkeypatch):
    """Its processes are dead to this machine's kernel, and its containers are on another engine."""
    monkeypatch.setattr(paths, "machine_digest", lambda: "01234567")
    states.save(make("theirs", owner=str(dead)))
    monkeypatch.setattr(paths, "machine_digest", lambda: "89abcdef")
    engine = FakeEngine()
    assert (garbage(engine), known_here(engine), overview(engine)) == ({}, [], [])
    engine.add("theirs", dead)  # this machine may have one of the same name
    states.save(make("theirs", owner=str(dead), status="creating"))
    assert list(garbage(engine)) == ["theirs"]


class Killed(BaseException):
    """Nothing after it runs."""


def test_a_removal_that_was_killed_is_finished_by_gc(dead, monkeypatch):
    """Some of its containers still ran, so it counted as a testbed that is up to stay."""
    engine = FakeEngine()
    engine.add("one", dead)
    engine.wait_answering, engine.members = lambda: None, {"": engine}
    states.save(make("one", owner=str(dead)))

    def killed(_engine, _name, _own):
        raise Killed

    monkeypatch.setattr(resources, "_removed", killed)
    with pytest.raises(Killed):
        resources.remove(engine, "one")
    assert garbage(engine) == {}
    assert [row.status for row in overview(engine)] == ["being removed"]
    states.save(replace(states.load("one"), owner=str(dead)))
    assert garbage(engine) == {"one": "its removal was interrupted"}


def test_a_full_state_folder_keeps_nothing_from_being_removed(use, monkeypatch):
    api = use(FullApi("nothing", 0))
    api.made["b1"] = Labels("one", 7, Owner(1, 0, "another boot"), str(state_dir())).of("host", "b1")
    states.save(make("one"))

    def full(_state):
        raise TestbedError("No space left on device")

    monkeypatch.setattr(states, "save", full)
    assert resources.remove(fleet.Engine(), "one") == ["container b1", "state and keys"]
    assert api.made == {}


def test_damaged_state_is_garbage(dead):
    states.save(make("bad", owner=str(dead)))
    (states.folder("bad") / "state.json").write_text("[]")
    assert garbage(FakeEngine()) == {"bad": "its state is damaged"}


def test_what_was_made_again_while_gc_waited_for_the_lock_is_kept(dead, monkeypatch):
    """Another `up` removed the remains and made a testbed of the same name."""
    engine = FakeEngine()
    engine.add("half", dead)
    states.save(make("half", owner=str(dead), status="creating"))
    removed = []
    monkeypatch.setattr(resources, "remove", lambda _engine, name, *, own: removed.append(name) or [])

    @contextlib.contextmanager
    def slow_lock(name, *, wait):
        states.save(make(name, owner=str(Owner.this_process())))
        yield

    monkeypatch.setattr(states, "lock", slow_lock)
    assert list(collect_garbage(engine, dry_run=False)) == []
    assert removed == []


def test_a_testbed_that_another_state_folder_made_under_the_name_of_a_killed_up_stays(dead, use):
    """The killed `up` had written its state and made nothing. Then another user brought up the same name."""
    api = use(FullApi("nothing", 0))
    theirs = Labels("three", 7, Owner(1, 0, "another boot"), "/another/folder")
    api.made["theirs"], api.nets["theirs"] = theirs.of("fabric"), theirs.of("management")
    states.save(make("three", owner=str(dead), status="creating"))
    said = list(collect_garbage(fleet.Engine(), dry_run=False))
    assert said == ["three: its `up` was interrupted; removed state and keys"]
    assert list(api.made) == list(api.nets) == ["theirs"]
    assert not states.folder("three").exists()


def test_a_testbed_that_cannot_be_removed_keeps_no_other_from_being_removed(dead, monkeypatch):
    engine = FakeEngine()
    for name in ("first", "second"):
        engine.add(name, dead)
        states.save(make(name, owner=str(dead), status="creating"))

    def remove(_engine, name, *, own):
        if name == "first":
            raise TestbedError("a machine does not answer")
        return ["container b1"]

    monkeypatch.setattr(resources, "remove", remove)
    lines = collect_garbage(engine, dry_run=False)
    assert next(lines) == "second: its `up` was interrupted; removed container b1"
    with pytest.raises(TestbedError, match="^first: a machine does not answer$"):
        next(lines)


def test_only_testbeds_with_the_prefix_are_removed(dead, monkeypatch):
    engine = FakeEngine()
    for name in ("pytest-1", "mine"):
        engine.add(name, dead)
        states.save(make(name, owner=str(dead), status="creating"))
    monkeypatch.setattr(resources, "remove", lambda _engine, name, *, own: [f"all of {name}"])
    problems = []
    assert list(collect_testbeds(engine, "pytest-", problems)) == [
        "pytest-1: its `up` was interrupted; removed all of pytest-1"
    ]
    assert problems == []


def test_a_dead_session_that_cannot_be_removed_fails_no_later_session(monkeypatch):
    """Its machine is off, or this machine has no engine: a topology of machines that exist needs none."""

    def refuse(*_asked, **_named):
        raise TestbedError("it does not answer")

    monkeypatch.setattr(resources, "garbage_on_machines", lambda: {"pytest-1": "the run it was made for is dead"})
    monkeypatch.setattr(resources, "remove", refuse)
    monkeypatch.setattr(resources, "garbage", refuse)
    remove_dead_sessions()


def test_kafka_that_cannot_be_started_keeps_no_other_from_being_started(dead):
    for name in ("one", "two"):
        states.save(make(name, restarting=str(dead)))

    def attach(name):
        if name == "one":
            raise TestbedError("it is not whole")
        return SimpleNamespace(reconfigure=lambda _overlay: None, close=lambda: None)

    lines = finish_restarts(attach, dry_run=False)
    assert next(lines) == "two: Kafka restarted, which a command was doing that is dead"
    with pytest.raises(TestbedError, match="^one: it is not whole$"):
        next(lines)


def test_a_container_of_a_killed_command_is_removed_whatever_it_was_for(dead):
    """Class-data archives, copies out of images and trials of the kernel have one, too."""
    engine = FakeEngine()
    for identity, role, owner, folder in (
        ("left", "cds", dead, str(state_dir())),
        ("busy", "files", Owner.this_process(), str(state_dir())),
        ("theirs", "root", dead, "/somewhere/else"),
    ):
        labels = {"testbed.role": role, "testbed.owner": str(owner), "testbed.state": folder}
        engine.found.append(HostContainer(identity, labels, True))
    engine.containers = lambda name=None: []
    assert list(collect_garbage(engine, dry_run=True)) == ["a container (cds) of a dead command: would be removed"]
    assert list(collect_garbage(engine, dry_run=False)) == ["a container (cds) of a dead command: removed"]
    assert [found.id for found in engine.found] == ["busy", "theirs"]
