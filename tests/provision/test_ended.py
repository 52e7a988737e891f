"""What is said of a testbed whose containers do not run any more."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from testbed.errors import TestbedError
from testbed.owner import Owner
from testbed.provision.containers import HOST, ContainerExit, Engine, EngineGone
from testbed.provision.liveness import NotWhole, explained, in_words, restarted, why_not_whole
from tests.provision.states import make

THEN = datetime(2026, 11, 21, 21, 40, tzinfo=UTC)
ALL = [
    ContainerExit("", 143, THEN),
    ContainerExit("b1", 137, THEN),
    ContainerExit("b2", 137, THEN + timedelta(seconds=10)),
]


class FakeEngine:
    def __init__(self, ended=(), running=()):
        self._ended = {each.host: each for each in ended}
        self._running = running
        self.waited = 0

    def wait_answering(self):
        self.waited += 1

    def containers(self, name):
        found = [SimpleNamespace(id=host, host=host, running=False) for host in self._ended]
        return found + [SimpleNamespace(id=host, host=host, running=True) for host in self._running]

    def ended(self, container, host):
        return self._ended.get(container)


def state():
    return make(topology={"hosts": {"b1": {}, "b2": {}}})


def test_all_at_once_is_the_engine():
    assert why_not_whole(FakeEngine(ALL), state()) == (
        "all its containers ended by 2026-11-21 21:40:10 UTC: the container engine was stopped or restarted"
    )


def test_all_at_once_in_another_boot_is_the_machine():
    before = Owner(1, 1, "another boot")
    assert in_words(["", "b1", "b2"], ALL, 3, before).endswith("UTC: the machine was restarted")


def test_one_of_them_is_told_with_its_exit_code():
    assert why_not_whole(FakeEngine(ALL[1:2], ["", "b2"]), state()) == (
        "the container of b1 ended at 2026-11-21 21:40:00 UTC with exit code 137"
    )


def test_what_was_removed_by_hand_has_no_container():
    assert why_not_whole(FakeEngine((), ["b2"]), state()) == "the fabric, b1 have no running container"


def test_what_runs_is_whole():
    assert why_not_whole(FakeEngine((), ["", "b1", "b2"]), state()) == ""


def test_a_restarted_container_has_another_first_process():
    elsewhere = SimpleNamespace()
    before = {"": 7, "b1": 8, "b2": 9, "b3": 10, "b4": elsewhere}
    assert restarted(before, {**before, "b4": SimpleNamespace(), "b5": 11}) == ""
    left = {"": 7, "b1": 8, "b2": 12, "b4": elsewhere}
    assert restarted(before, left) == "the container of b2 was restarted"


def test_a_paused_container_has_not_ended():
    labels = [(HOST, host) for host in ("", "b1", "b2")]
    found = [
        {"Id": host, "Labels": {name: host}, "State": "paused" if host == "b1" else "running"} for name, host in labels
    ]
    engine = Engine(lambda: SimpleNamespace(containers=lambda **_filters: found))
    assert why_not_whole(engine, state()) == ""


def test_an_error_that_comes_of_ended_containers_says_so_once_the_engine_answers_again():
    engine = FakeEngine(ALL)
    with pytest.raises(NotWhole) as told, explained(engine, state()):
        raise EngineGone("no answer")
    assert engine.waited == 1
    assert str(told.value) == (
        "testbed one is not whole: all its containers ended by 2026-11-21 21:40:10 UTC: the container engine was "
        "stopped or restarted; `testbed down one` removes what is left, and `testbed up` makes it again, "
        "without its data; seen as: no answer"
    )


def test_another_error_stays_what_it_is():
    with pytest.raises(TestbedError, match=r"^no such thing$"), explained(FakeEngine((), ["", "b1", "b2"]), state()):
        raise TestbedError("no such thing")


def test_one_that_was_just_being_made_had_fewer_containers_to_lose():
    engine = FakeEngine(ALL[:2])  # the third was never started
    told = pytest.raises(
        NotWhole, match="all its containers ended .* was stopped or restarted; bring it up again; seen"
    )
    with told, explained(engine, state(), "bring it up again"):
        raise EngineGone("no answer")


def test_what_was_made_for_a_run_needs_no_down():
    own = make(topology={"hosts": {"b1": {}, "b2": {}}}, ephemeral=True)
    assert str(NotWhole(own, "gone")) == "testbed one is not whole: gone; it was made for this alone, and is removed"
