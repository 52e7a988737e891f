"""The load after an unthrottled move: it runs until its producers have their answers, or notes what is missing."""

from types import SimpleNamespace

import pytest

from testbed.experiments import load as loads
from testbed.experiments.load import ClientLoad
from testbed.workload.outcome import behind_s
from testbed.workload.spec import ProducerSpec

SPEC = ProducerSpec("producer-1", "t", (0,), 102_400.0, record_bytes=1024)  # 100 records/s


@pytest.mark.parametrize(
    ("last", "seconds"),
    [
        ({}, 0.0),
        ({"due": 500, "acked": 100, "failed": 50, "in_doubt": 50}, 3.0),
        ({"due": 500, "acked": 500, "failed": 0, "in_doubt": 0}, 0.0),
    ],
)
def test_a_producer_is_behind_by_the_records_without_an_outcome(last, seconds):
    assert behind_s(SPEC, last) == seconds


@pytest.fixture
def load(monkeypatch):
    monkeypatch.setattr(loads, "CAUGHT_UP_S", 0.0)
    found = ClientLoad.__new__(ClientLoad)
    found.events = []
    found._recorder = SimpleNamespace(event=lambda *event: found.events.append(event))
    return found


@pytest.mark.parametrize(("behind", "notes"), [(1.0, 0), (2.7, 1)])
def test_what_has_no_answer_in_time_is_noted(load, behind, notes):
    load._workload = SimpleNamespace(behind_s=lambda: behind)
    load.catch_up()
    assert [name for _kind, name, _detail in load.events] == ["the load did not catch up"] * notes


def test_the_wait_ends_with_the_answers(load, monkeypatch):
    monkeypatch.setattr(loads, "CAUGHT_UP_S", 30.0)
    seen = iter([4.2, 2.4, 0.3])
    load._workload = SimpleNamespace(behind_s=lambda: next(seen))
    load.catch_up()
    assert (list(seen), load.events) == ([], [])


def test_without_a_load_there_is_nothing_to_wait_for(load):
    load._workload = None
    load.catch_up()
