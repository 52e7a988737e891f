"""What is remembered: written whole, read back, acknowledged with a reason, a ground for keeping runs."""

from dataclasses import replace

import pytest

from results.contract.files import LocalFiles
from results.contract.store import Store, StoreError
from results.nights import state
from results.nights.retention import protected_runs
from results.nights.state import SeriesState, SeriesVerdict
from results.series.decision import LevelChange
from results.series.history import Acknowledgement, History, ReportedChange
from testbed.cli.main import main

CHANGE = LevelChange("step", 3, 100.0, 120.0, 15.0, 25.0, 0.001)
BY = Acknowledgement("a slower disk is bought", "ann", "2026-11-22T00:00:00+00:00")


def reported(first_bad):
    return ReportedChange(CHANGE, first_bad, f"before-{first_bad}", f"found-{first_bad}")


@pytest.fixture
def states():
    one = History("2026-01-01T00:00:00.000000Z", (reported("r1"), reported("r2")))
    first = SeriesState(
        "aaaaaaaaaaaa", "move", "seconds", 5, 3, one, SeriesVerdict("REGRESSED", reported=one.reported[1]), {"r1": "x"}
    )
    second = SeriesState("bbbbbbbbbbbb", "move", "cpu", history=History("", (reported("r2"),)))
    return {each.series: each for each in (first, second, SeriesState("cccccccccccc", "other", "cpu"))}


def test_states_come_back_as_they_were(tmp_path, states):
    store = Store.open(tmp_path)
    assert state.load(store) == {}
    state.save(store, states.values())
    assert state.load(store) == states


def test_runs_that_a_change_names_are_kept(tmp_path, states):
    store = Store.open(tmp_path)
    state.save(store, states.values())
    assert protected_runs(store) == {"r1", "before-r1", "found-r1", "r2", "before-r2", "found-r2"}


def of_before(states):
    """The file as earlier versions wrote it: nothing tells how many lines there are."""
    return "".join(f"{each.to_json()}\n" for each in states.values())


@pytest.mark.parametrize("text", ["{", '{"version": 1}', "[]", '{"version": 2, "reported": []}'])
def test_a_damaged_history_stops_everything(tmp_path, states, text):
    store = Store.open(tmp_path)
    store.files.put(state.SERIES, f"{of_before(states)}{text}".encode())
    with pytest.raises(StoreError, match="series.json, line 4: not a history: .* put a whole copy there"):
        state.load(store)
    state.save(store, states.values())
    path = store.files.root / state.SERIES
    path.write_text(f"{path.read_text()}{text}\n")
    with pytest.raises(StoreError, match="the 4 lines after its first are not the 3 that were written; put a"):
        state.load(store)


def test_a_history_of_an_earlier_version_is_read(tmp_path, states):
    store = Store.open(tmp_path)
    store.files.put(state.SERIES, of_before(states).encode())
    assert state.load(store) == states
    before = protected_runs(store)
    state.save(store, states.values())
    assert protected_runs(store) == before != set()


@pytest.mark.parametrize("left", [0, 1, 2, 3, "half"])
def test_a_history_that_was_cut_is_not_taken_for_a_whole_one(tmp_path, states, left, capsys):
    store = Store.open(tmp_path)
    state.save(store, states.values())
    path = store.files.root / state.SERIES
    lines = path.read_bytes().splitlines(keepends=True)
    assert len(lines) == 4
    path.write_bytes(lines[0][:20] if left == "half" else b"".join(lines[:left]))
    with pytest.raises(StoreError, match=r"series\.json.*put a whole copy there, or remove the file: all nights"):
        state.load(store)
    with pytest.raises(StoreError, match=r"series\.json.*none is removed: put a whole copy there, or remove the file"):
        protected_runs(store)
    assert main(["results", "verify", "--store", str(tmp_path)]) == 1
    told = capsys.readouterr().out
    assert told.count("series.json") == 1 and told.endswith("1 damaged\n")


def test_no_series_at_all_is_no_empty_file(tmp_path):
    store = Store.open(tmp_path)
    state.save(store, [])
    assert state.load(store) == {}
    assert protected_runs(store) == set()


def test_what_was_learned_is_learned_again_when_it_cannot_be_read(tmp_path, learned):
    store = Store.open(tmp_path)
    assert state.load_noise(store) is None
    state.save(store, [], learned)
    assert state.load_noise(store) == learned
    for text in ("", "{}", "[]", "null", "7", '{"night": 1, "length": 1, "noise": []}'):
        (store.files.root / state.NOISE).write_text(text)
        assert state.load_noise(store) is None


def test_what_was_learned_stays_when_only_the_series_are_replaced(tmp_path, states, learned):
    store = Store.open(tmp_path)
    state.save(store, [], learned)
    state.save(store, states.values())
    assert (state.load(store), state.load_noise(store)) == (states, learned)


class Dying(LocalFiles):
    """Dies before the series are replaced."""

    def put(self, path, data):
        if path == state.SERIES:
            raise KeyboardInterrupt
        super().put(path, data)


def test_what_a_night_learned_that_was_killed_is_not_held_against_earlier_ones(tmp_path, states, learned):
    store = Store.open(tmp_path)
    later = replace(learned, night=20)
    dying = Store(Dying(tmp_path), str(tmp_path))
    with pytest.raises(KeyboardInterrupt):
        state.save(dying, states.values(), learned)
    assert store.files.exists(state.NOISE) and state.load_noise(store) is None  # of the first night there was none
    state.save(store, [], learned)
    for _ in range(2):  # killed once, and once more
        with pytest.raises(KeyboardInterrupt):
            state.save(dying, states.values(), later)
        assert (state.load(store), state.load_noise(store)) == ({}, learned)
    state.save(store, states.values(), later)
    assert (state.load(store), state.load_noise(store)) == (states, later)
    store.files.discard(state.SERIES)  # all nights are to be judged anew
    assert state.load_noise(store) is None


def test_noise_of_an_earlier_version_is_read(tmp_path, states, learned):
    store = Store.open(tmp_path)
    store.files.put(state.SERIES, of_before(states).encode())
    store.files.put(state.NOISE, learned.to_json().encode())
    assert state.load_noise(store) == learned
    state.save(store, states.values())
    assert state.load_noise(store) == learned


@pytest.mark.parametrize(
    ("names", "first_bad", "done"),
    [
        (["aaaaaaaaaaaa"], None, [("seconds", "r1"), ("seconds", "r2")]),
        (["aaaaaaaaaaaa"], "r2", [("seconds", "r2")]),
        (["move:cpu"], None, [("cpu", "r2")]),
        (["move"], "r2", [("seconds", "r2"), ("cpu", "r2")]),
        (["move", "move:cpu"], None, [("seconds", "r1"), ("seconds", "r2"), ("cpu", "r2")]),
    ],
)
def test_changes_are_acknowledged_by_series_experiment_or_metric(states, names, first_bad, done):
    after, acknowledged = state.acknowledge(states, names, BY, first_bad)
    assert [(own.metric, one.first_bad) for own, one in acknowledged] == done
    still = {(own.metric, one.first_bad) for own in after.values() for one in own.history.open}
    assert still == {("seconds", "r1"), ("seconds", "r2"), ("cpu", "r2")} - set(done)
    assert all(after[name].history.baseline == states[name].history.baseline for name in states)


@pytest.mark.parametrize(
    ("names", "by", "why"),
    [
        (["nothing"], BY, "no series 'nothing'"),
        (["other"], BY, "no change that is not acknowledged"),
        (["move"], replace(BY, reason=" "), "no reason"),
    ],
)
def test_what_cannot_be_acknowledged_is_refused(states, names, by, why):
    with pytest.raises(ValueError, match=why):
        state.acknowledge(states, names, by)
    with pytest.raises(ValueError, match="no change that begins with run r9"):
        state.acknowledge(states, ["move"], BY, "r9")


def test_a_verdict_of_an_earlier_version_is_read(states):
    own = replace(states["aaaaaaaaaaaa"], said=SeriesVerdict("OK", reported_at=7))
    assert SeriesState.from_json(own.to_json().replace('"reported_at"', '"told"')) == own
