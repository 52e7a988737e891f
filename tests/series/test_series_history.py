import pytest

from results.series.decision import LevelChange
from results.series.history import Acknowledgement, History, ReportedChange

BY = Acknowledgement("the fetch size was halved on purpose", "lead", "2026-11-21T23:00:00Z")
STEP = ReportedChange(
    LevelChange("step", 3, 100.0, 120.0, 15.0, 25.0, 0.01), first_bad="run-40", last_good="run-39", found="run-42"
)
HISTORY = History("2026-02-13T02:00:00Z", (STEP,))


def test_acknowledging_needs_a_reason_and_an_open_change():
    assert HISTORY.open == (STEP,)
    with pytest.raises(ValueError, match="no reason"):
        HISTORY.acknowledge("run-40", Acknowledgement("  ", "lead", "2026-11-21T23:00:00Z"))
    assert HISTORY.acknowledge("run-7", BY) == HISTORY
    done = HISTORY.acknowledge("run-40", BY)
    assert done.open == ()
    assert done.reported[0].acknowledged == BY
    assert done.baseline == HISTORY.baseline
    assert done.acknowledge("run-40", Acknowledgement("twice", "lead", "2026-11-22T23:00:00Z")) == done


def test_it_goes_through_json():
    for history in (HISTORY, HISTORY.acknowledge("run-40", BY), History()):
        assert History.from_json(history.to_json()) == history
    with pytest.raises(ValueError, match="version 7"):
        History.from_json('{"version": 7}')
