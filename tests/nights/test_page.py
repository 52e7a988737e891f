"""The history's page: tonight on top, every series in its data, nothing breaks out of it."""

import json

import pyarrow as pa
import pytest

from results.compare.log_lines import NewLines
from results.nights.night import Night
from results.nights.policies import Mute, Policies
from results.nights.recent_values import RecentValues, newest_of
from results.nights.render import lines
from results.nights.scenarios import scenarios
from results.nights.state import SeriesState, SeriesVerdict
from results.nights.values import FAILED
from results.report.nights import answer, change_row, levels, render_nights
from results.series.decision import LevelChange
from results.series.history import Acknowledgement, History, ReportedChange
from tests.nights.made import BEGIN
from tests.results.test_results_report import Page

OLD = ReportedChange(
    LevelChange("step", 9, 90.0, 100.0, 5.0, 15.0, 0.02), "r1", "r0", "r3", Acknowledgement("known", "ann", "then")
)
NEW = ReportedChange(LevelChange("step", 3, 100.0, 120.0, 15.0, 25.0, 0.0123), "r3", "r2", "r5")
EVIL = "</script><b onload=x>"


@pytest.fixture
def night(about):
    pairs = [
        (
            about("aaa", scenario="x", parameters=json.dumps({"quota": EVIL})),
            SeriesState(
                "aaa",
                history=History("", (OLD, NEW)),
                said=SeriesVerdict("REGRESSED", runs=40, reported=NEW, reported_at=BEGIN),
            ),
        ),
        (
            about("bbb", scenario="x", parameters=json.dumps({"quota": EVIL}), metric="rate", better="higher"),
            SeriesState("bbb", said=SeriesVerdict("OK", runs=40)),
        ),
        (about("ccc", scenario="y", metric="cpu"), SeriesState("ccc", said=SeriesVerdict("NO-DATA", runs=3))),
    ]
    return Night(tuple(a for a, _ in pairs), {s.series: s for _, s in pairs}, (f"run {EVIL}",), 5)


POINTS = {
    "aaa": RecentValues(
        tuple(f"r{i}" for i in range(6)), ("4.2",) * 3 + ("4.3",) * 3, (90.0, 101.0, None, 120.1, 120.2, 120.3)
    ),
    "bbb": RecentValues(("r4", "r5"), ("4.3", "4.3"), (1 / 3, 2.0)),
}


def page(night):
    read = Page(render_nights(f"store {EVIL}", night, scenarios(night), POINTS, {"r3": "runs/r3.html"}.get))
    data = json.loads(next(text for attributes, text in read.scripts if attributes.get("id") == "nights"))
    return read, data, " ".join("".join(read.text).split())


def test_tonight_is_told_worst_first(night):
    read, _, text = page(night)
    assert "Of 2 scenarios: 1 regressed, 1 learning." in text
    assert text.index("Regressed") < text.index("100 → 120") < text.index("Learning")
    assert "+20.0%" in text
    assert ("a", "href", "runs/r3.html") in read.attributes
    assert f"run {EVIL}" in text
    assert [name for tag, name, _ in read.attributes if tag == "b" and name == "onload"] == []
    assert len(read.scripts) == 2


def test_new_log_lines_are_named(about):
    said = SeriesVerdict("OK", runs=40, lines=(NewLines((f"WARN ReplicaManager: {EVIL}",), 3, 12, found=True),))
    night = Night((about("f", metric=FAILED),), {"f": SeriesState("f", said=said)})
    read, _, text = page(night)
    assert "Of 1 scenario: 1 regressed." in text
    assert f"logged in the newest 3 runs, in none of 12 before: WARN ReplicaManager: {EVIL}" in text
    assert [name for tag, name, _ in read.attributes if tag == "b" and name == "onload"] == []


@pytest.mark.parametrize(("better", "word"), [("unknown", "Regressed"), ("higher", "Regressed"), ("lower", "Improved")])
def test_a_change_of_which_nobody_knows_the_direction_is_for_the_worse(about, better, word):
    fall = ReportedChange(LevelChange("step", 3, 100.0, 50.0, -55.0, -45.0, 0.0123), "r3", "r2", "r5")
    verdict = {"Regressed": "REGRESSED", "Improved": "IMPROVED"}[word]
    said = SeriesVerdict(verdict, runs=40, reported=fall, reported_at=BEGIN)
    own = Night((about("aaa", better=better),), {"aaa": SeriesState("aaa", history=History("", (fall,)), said=said)})
    (change,) = [change_row(each, line, line.tonight, {}.get) for each in scenarios(own) for line in each.lines]
    assert (change.word, "direction unknown" in change.why) == (word, better == "unknown")
    _, data, _ = page(own)
    (drawn,) = data["scenarios"][0]["series"][0]["changes"]
    assert drawn["worse"] is (word == "Regressed")


def test_a_muted_change_of_tonight_is_no_red_line_of_a_green_night(night):
    mute = Mute("move:seconds", "a new disk", "ann", "2020-01-01", "2099-01-01")
    found = scenarios(night, policies=Policies((mute,)))
    assert [each.verdict for each in found] == ["LEARNING", "OK"]
    (change,) = [change_row(each, line, line.tonight, {}.get) for each in found for line in each.lines if line.tonight]
    assert (change.word, change.state) == ("Muted", "inconclusive")


def test_nothing_is_loaded(night):
    read, _, _ = page(night)
    policy = next(v for tag, name, v in read.attributes if tag == "meta" and name == "content" and "default-src" in v)
    assert policy.startswith("default-src 'none'")
    assert {name for _, name, _ in read.attributes} & {"src", "srcset", "data-src"} == set()


def test_series_stand_beside_their_runs(night):
    _, data, _ = page(night)
    first, second = data["scenarios"]
    assert first["ids"] == [f"r{i}" for i in range(6)]
    assert [data["versions"][v] for v in first["kafka"]] == ["4.2"] * 3 + ["4.3"] * 3
    a, b = first["series"]
    assert b["values"] == [None] * 4 + [0.333333, 2.0]
    assert [c["at"] for c in a["changes"]] == [1, 3]
    assert [c["tonight"] for c in a["changes"]] == [False, True]
    assert [c["reason"] for c in a["changes"]] == ["known", None]
    assert all(c["worse"] for c in a["changes"])
    assert a["levels"] == [[0, 0, 90.0], [1, 2, 101.0], [3, 5, 120.2]]
    assert data["links"] == {"r3": "runs/r3.html"}
    assert (second["ids"], second["series"][0]["values"]) == ([], [])


def test_a_chart_has_the_unit_in_which_the_summary_gives_the_same_values(night):
    _, data, text = page(night)
    series = data["scenarios"][0]["series"][0]
    [drawn] = [change for change in series["changes"] if change["tonight"]]
    assert series["unit"]
    assert f"{drawn['before']:g} → {drawn['after']:g} {series['unit']}" in text


def test_levels_are_medians_between_changes():
    assert levels([1, 2, 3, 10, None, 12], [3]) == [(0, 2, 2), (3, 5, 11)]
    assert levels([1.0], [0]) == [(0, 0, 1.0)]
    assert levels([None, None], [1]) == []
    assert levels([], []) == []


def test_an_empty_store_has_a_page():
    read, data, text = page(Night((), {}))
    assert answer([]) in text
    assert data["scenarios"] == []
    assert "No series has changed." in text
    assert read.open == []


def test_a_run_without_kafka_has_the_commit_as_its_version(about):
    """The plays of `bench` have no Kafka: their page named nothing that had changed."""
    rows = [
        {"series": "s", "at": i, "run_id": f"r{i}", "kafka": kafka, "commit": commit, "value": float(i)}
        for i, (kafka, commit) in enumerate([("", "0123456789abcdef"), ("", None), ("4.3.1", "0123456789abcdef")])
    ]
    types = {"series": pa.string(), "at": pa.int64(), "run_id": pa.string()}
    schema = pa.schema(types | {"kafka": pa.string(), "commit": pa.string(), "value": pa.float64()})
    (newest,) = newest_of(pa.Table.from_pylist(rows, schema=schema), 2).to_pylist()
    assert newest["kafka"] == ["", "4.3.1"]
    (newest,) = newest_of(pa.Table.from_pylist(rows, schema=schema), 3).to_pylist()
    assert newest["kafka"] == ["testbed 0123456789ab", "", "4.3.1"]
    state = SeriesState("aaa", said=SeriesVerdict("OK", runs=40))
    (told,) = lines(scenarios(Night((about("aaa", kafka=""),), {"aaa": state})))
    assert told.endswith("1 series")
