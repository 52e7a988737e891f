"""The return of a move on a cluster in memory: every moved partition gets its replicas back, without a throttle."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from testbed.experiments import throttled_run
from testbed.experiments.experiment import find_experiment
from testbed.experiments.layout import Layout, PartitionGroup
from testbed.experiments.throttled_run import move_back, return_plan, return_s
from testbed.kafka.types import TopicPartition
from testbed.throttle.journal import JournalFolder
from testbed.topology.find import find
from tests.fakes.admin import FakeAdmin

IDS = {"b1": 1, "b2": 2}
MOVED = PartitionGroup("kip73", range(2), ("b1",), ("b2",), 8192, 10.0)
STILL = PartitionGroup("low", range(1), ("b1", "b2"), ("b1", "b2"), 4096, 5.0)
LAYOUT = Layout((MOVED, STILL), calibration=STILL, control=PartitionGroup("control", range(1), ("b1",), ("b2",), 1))
TPS = MOVED.tps()


def environment(admin, events, samples):
    recorder = SimpleNamespace(
        event=lambda kind, name="", detail=None: events.append((kind, detail)), add=samples.extend
    )
    return SimpleNamespace(
        recorder=recorder,
        admin=admin,
        ids=IDS,
        layout=LAYOUT,
        setup=SimpleNamespace(storage="disk"),
        testbed=SimpleNamespace(topology=find("two-brokers")),
        context=SimpleNamespace(progress=lambda _text: None),
        throttled_groups=lambda: [group for group in LAYOUT.moving if group is not LAYOUT.control],
    )


@pytest.fixture
def admin(tmp_path, monkeypatch):
    monkeypatch.setattr(throttled_run, "JournalFolder", lambda: JournalFolder(tmp_path))
    monkeypatch.setattr(throttled_run, "UNTHROTTLED_LOOK_S", 0.001)
    return FakeAdmin({**dict.fromkeys(TPS, (2,)), TopicPartition("low", 0): (1, 2)}, broker_ids=(1, 2))


def test_what_moved_goes_back_and_nothing_else():
    found = return_plan(environment(None, [], []))
    assert found.targets == dict.fromkeys(TPS, (1,))


def test_it_goes_back_without_a_throttle_and_its_events_are_its_own(admin):
    events, samples = [], []
    move_back(environment(admin, events, samples))
    assert [kind for kind, _detail in events] == ["return.started", "return.done"]
    assert events[0][1] == {"partitions": 2, "throttle_bytes_per_s": None}
    assert admin.configs == {}
    assert all(admin.partitions(["kip73"])[tp].replicas == (1,) for tp in TPS)
    assert samples[-1].metric == "return.in_flight" and samples[-1].value == 0


def test_what_the_controller_refuses_is_a_note(admin):
    admin.refused = {TPS[0]: "INVALID_REPLICA_ASSIGNMENT"}
    events = []
    move_back(environment(admin, events, []))
    assert [kind for kind, _detail in events][-1] == "note"
    assert "INVALID_REPLICA_ASSIGNMENT" in events[-1][1]["error"]


def test_an_experiment_says_whether_it_returns():
    experiment = find_experiment("kip73-two-node-produce")
    (compare,) = (each for each in experiment.parameters if each.name == "compare")
    assert compare.default == "return" and compare.parse("none") == "none"


def test_it_has_as_long_as_its_bytes_need():
    """It had 90 s: after a `preload` of an hour the comparison was lost."""
    large = environment(None, [], [])
    assert return_s(large) == pytest.approx(90, abs=0.01)
    large.layout = replace(LAYOUT, throttled=(replace(MOVED, bytes=25_000_000_000), STILL))
    assert return_s(large) > 90 + 3 * 25_000 / 48
