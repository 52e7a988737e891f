import pytest

from results.series.block import Block
from results.series.history import Acknowledgement, History, SeriesRun
from results.series.judge import Judge

BY = Acknowledgement("the fetch size was halved on purpose", "lead", "2026-11-21T23:00:00Z")


def runs_of(values):
    return [
        SeriesRun(f"2026-{1 + i // 28:02}-{1 + i % 28:02}T02:00:00Z", f"run-{i}", value)
        for i, value in enumerate(values)
    ]


def nights(noise, runs, history=None):
    """Judges night by night; what was reported, and the history in the end."""
    history = history or History()
    found = []
    for upto in range(1, len(runs) + 1):
        window = history.window(runs[:upto])
        judgement = Judge().night(Block.of([[run.value for run in window]]), noise)[0]
        history, new = history.advance(window, judgement)
        if new is not None:
            found.append((upto - 1, new))
    return history, found


@pytest.fixture
def stepped(calm):
    return runs_of([value * (1.2 if i >= 40 else 1) for i, value in enumerate(calm)])


def test_a_change_is_reported_once_with_its_first_bad_and_last_good_run(noise, stepped):
    history, found = nights(noise, stepped)
    assert len(found) == 1
    night, new = found[0]
    assert night <= 43
    assert (new.first_bad, new.last_good, new.found) == ("run-40", "run-39", f"run-{night}")
    assert history.open == (new,)
    assert history.window(stepped)[0].id == "run-40"


def test_the_same_night_judged_again_reports_nothing(noise, stepped):
    history, found = nights(noise, stepped[:45])
    window = history.window(stepped[:45])
    again = Judge().night(Block.of([[run.value for run in window]]), noise)[0]
    assert len(found) == 1
    assert history.advance(window, again) == (history, None)


def test_missing_nights_neither_hide_a_change_nor_move_it(noise, calm):
    values = [value * (1.2 if i >= 40 else 1) for i, value in enumerate(calm)]
    holes = [None if i % 4 == 1 or i == 40 else value for i, value in enumerate(values)]
    _, found = nights(noise, runs_of(holes))
    assert [(new.first_bad, new.last_good) for _, new in found] == [("run-42", "run-39")]


def test_a_step_and_back_are_reported_each(noise, calm):
    values = [value * (1.2 if 30 <= i < 36 else 1) for i, value in enumerate(calm)]
    _, found = nights(noise, runs_of(values))
    assert [new.first_bad for _, new in found] == ["run-30", "run-36"]
    assert found[0][1].change.after > found[0][1].change.before
    assert found[1][1].change.after < found[1][1].change.before


def test_acknowledging_needs_a_reason_and_an_open_change(noise, stepped):
    history, _ = nights(noise, stepped)
    with pytest.raises(ValueError, match="no reason"):
        history.acknowledge("run-40", Acknowledgement("  ", "lead", "2026-11-21T23:00:00Z"))
    with pytest.raises(ValueError, match="no open change begins with run run-7; open ones begin with: run-40"):
        history.acknowledge("run-7", BY)
    done = history.acknowledge("run-40", BY)
    assert done.open == ()
    assert done.reported[0].acknowledged == BY
    assert done.baseline == history.baseline
    with pytest.raises(ValueError, match="open ones begin with: none"):
        done.acknowledge("run-40", BY)


def test_it_goes_through_json(noise, stepped):
    history, _ = nights(noise, stepped)
    assert History.from_json(history.to_json()) == history
    done = history.acknowledge("run-40", BY)
    assert History.from_json(done.to_json()) == done
    assert History.from_json(History().to_json()) == History()
    with pytest.raises(ValueError, match="version 7"):
        History.from_json('{"version": 7}')


def test_a_change_in_runs_that_were_not_judged_is_refused(noise, stepped):
    window = History().window(stepped[:43])
    judgement = Judge().night(Block.of([[run.value for run in window]]), noise)[0]
    with pytest.raises(ValueError, match="not the runs that were judged"):
        History().advance(window[-2:], judgement)


def test_a_history_night_by_night_worked_by_hand(noise):
    """Throughput of a nightly move in MB/s, made up to look like one: quantised, a few bad nights, one without a run.

    Night 38 (from 0) brought a regression of 7 %, night 55 its fix; nights 12, 27 and 47 were bad by themselves.
    """
    values = [
        *(
            94.1,
            95.3,
            93.8,
            94.9,
            96.0,
            94.4,
            95.1,
            93.2,
            94.7,
            95.5,
            94.0,
            95.8,
            71.4,
            94.6,
            93.9,
            95.2,
            94.3,
            96.2,
            93.5,
        ),
        *(
            95.0,
            None,
            94.8,
            93.7,
            95.6,
            94.5,
            94.2,
            95.4,
            60.2,
            93.6,
            94.9,
            95.7,
            94.1,
            93.3,
            95.1,
            94.6,
            95.9,
            94.4,
            93.9,
        ),
        *(87.6, 88.9, 86.8, 88.1, 87.3, 89.2, 87.9, 86.5, 88.4, 52.0, 87.7, 88.6, 87.0, 88.2, 86.9, 87.8, 88.5),
        *(94.7, 95.2, 93.8, 94.9, 95.6, 94.1, 95.0, 94.4),
    ]
    history, found = nights(noise, runs_of(values))
    assert [(night, new.first_bad, new.last_good) for night, new in found] == [
        (40, "run-38", "run-37"),
        (57, "run-55", "run-54"),
    ]
    first, second = (new.change for _, new in found)
    assert (first.before, first.after) == (pytest.approx(94.6, abs=0.2), 87.6)
    assert first.effect == pytest.approx(-0.074, abs=0.002)
    assert first.interval is not None and first.interval[0] < -0.07 < first.interval[1]
    assert (second.before, second.after) == (87.8, pytest.approx(94.7, abs=0.1))
    assert len(history.open) == 2
