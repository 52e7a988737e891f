"""A line a scenario: the worst counts, and what was not run or not measured is no OK."""

import json
import xml.etree.ElementTree as ET
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from results.nights import render
from results.nights.night import Night, family_of
from results.nights.scenarios import scenarios, worst
from results.nights.state import SeriesState, SeriesVerdict
from results.series.decision import LevelChange
from results.series.history import Acknowledgement, History, ReportedChange
from results.verdicts import EXIT, WORST_FIRST, rank
from tests.nights.made import BEGIN

HOUR = 3_600_000_000
CHANGE = LevelChange("step", 3, 100.0, 120.0, 15.0, 25.0, 0.0123)
REPORTED = ReportedChange(CHANGE, "run-bad", "run-good", "run-new")


def night(*pairs, problems=()):
    return Night(tuple(about for about, _ in pairs), {a.series: s for a, s in pairs if s is not None}, problems)


def said(verdict, why="", **other):
    return SeriesState("s", said=SeriesVerdict(verdict, why, **{"runs": 40, **other}))


def regressed(told_at=BEGIN, **other):
    return SeriesState(
        "s",
        history=History("", (REPORTED,)),
        said=SeriesVerdict("REGRESSED", runs=40, reported=REPORTED, reported_at=told_at),
        **other,
    )


def only(found):
    (one,) = found
    return one.verdict, one.why


@pytest.mark.parametrize(
    ("verdicts", "wanted"),
    [
        (["OK", "OK"], "OK"),
        (["OK", "IMPROVED"], "IMPROVED"),
        (["NOISY", "IMPROVED"], "IMPROVED"),
        (["NOISY", "NOISY"], "NOISY"),
        (["NOISY", "ENV-CHANGED", "REGRESSED"], "REGRESSED"),
        (["NOISY", "ENV-CHANGED"], "ENV-CHANGED"),
    ],
)
def test_the_worst_series_counts(about, verdicts, wanted):
    found = scenarios(night(*((about(f"s{i}", metric=f"m{i}"), said(v)) for i, v in enumerate(verdicts))))
    assert found[0].verdict == worst(found) == wanted
    assert found[0].lines[0].verdict == wanted


def test_codes():
    assert [EXIT[v] for v in WORST_FIRST] == [1, 1, 1, 2, 2, 2, 0, 0, 0, 0]
    assert rank("FAILED") == 0
    with pytest.raises(ValueError, match="expected one of FAILED, "):
        rank("GREEN")
    assert worst([]) == "NO-DATA"


def test_a_night_with_problems_is_at_best_no_data(about):
    fine, bad = scenarios(night((about("a"), said("OK")))), scenarios(night((about("a"), regressed())))
    assert (worst(fine), worst(fine, ["x"]), worst(bad, ["x"])) == ("OK", "NO-DATA", "REGRESSED")
    assert render.as_json("", fine, ["x"], 0)["verdict"] == "NO-DATA"
    assert render.markdown(fine, ["x"]).startswith("### NO-DATA\n")


def test_what_is_known_not_to_have_been_run_is_no_data_however_new_its_newest_run(about):
    a, b = about("a", scenario="x"), about("b", scenario="y")
    found = scenarios(night((a, said("OK")), (b, said("OK"))), ran={"x"})
    assert {each.id: each.verdict for each in found} == {"x": "OK", "y": "NO-DATA"}
    assert next(each for each in found if each.id == "y").why.startswith("not run tonight; the newest run is ")


def test_a_regression_goes_before_what_cannot_be_said(about):
    a, b = about("a", scenario="x"), about("b", scenario="y", parameters='{"quota": 2}')
    assert worst(scenarios(night((a, said("NO-DATA", runs=3)), (b, regressed())))) == "REGRESSED"


def test_series_that_can_report_nothing_any_more_do_not_make_others_harder_to_report(about):
    """After a year of updates of the kernel, most series of a store are of environments that are gone."""
    day = 24 * HOUR
    series = [about(f"s{days}", newest=BEGIN - days * day, newest_value=BEGIN - days * day) for days in (0, 1, 30, 31)]
    judged = {each.series: SeriesState(each.series, judged=each.newest) for each in series}
    assert family_of(series, judged) == 3
    assert family_of(series, {}) == 4  # of a store that was never judged, each had its nights
    assert family_of(series, judged | {"s31": SeriesState("s31", judged=BEGIN - 40 * day)}) == 4
    assert family_of([], {}) == 0


def test_what_was_not_run_tonight_is_no_data_and_later_not_asked_for(about):
    new = about("a", scenario="x", newest=BEGIN + 40 * 24 * HOUR, newest_value=BEGIN + 40 * 24 * HOUR)
    for days, wanted in ((0, "OK"), (1, "OK"), (2, "NO-DATA"), (29, "NO-DATA"), (31, None)):
        at = new.newest - days * 24 * HOUR
        old = about("b", scenario="y", experiment="other", newest=at, newest_value=at)
        found = {each.experiment: each for each in scenarios(night((new, said("OK")), (old, said("OK"))))}
        assert found["move"].verdict == "OK"
        assert (found["other"].verdict if wanted else found.get("other")) == wanted
    assert [each.experiment for each in scenarios(night((new, said("OK"))), experiments=["other"])] == []
    late = scenarios(night((new, said("OK")), (old, said("OK"))), retired=timedelta(days=99))
    assert "not run tonight" in late[0].why


def test_a_run_that_says_nothing_is_no_data(about):
    silent = about(newest_value=BEGIN - 24 * HOUR, verdict="inconclusive")
    assert only(scenarios(night((silent, said("OK"))))) == (
        "NO-DATA",
        "tonight's run 20240101T020000Z-move-000001 was inconclusive",
    )
    assert only(scenarios(night((about(newest_value=BEGIN - 24 * HOUR), said("OK")))))[1].endswith("has no value")
    of_three = about(newest_value=BEGIN - HOUR, verdict="inconclusive")
    assert only(scenarios(night((of_three, said("OK"))))) == ("OK", "")


def test_what_was_never_measured_or_not_for_long_is_no_series(about):
    pairs = [
        (about("a"), said("OK")),
        (about("b", metric="cpu", newest_value=None), None),
        (about("c", metric="old", newest_value=BEGIN - 31 * 24 * HOUR), said("OK")),
    ]
    pairs.append((about("d", metric="renamed", newest=BEGIN - 48 * HOUR, newest_value=BEGIN - 48 * HOUR), said("OK")))
    (found,) = scenarios(night(*pairs))
    assert [line.about.series for line in found.lines] == ["a"]
    (empty,) = scenarios(night(pairs[1]))
    assert (empty.verdict, empty.why) == ("NO-DATA", "nothing was measured")


def test_a_new_environment_is_named(about):
    old = about("a", newest=BEGIN - 24 * HOUR, newest_value=BEGIN - 24 * HOUR)
    new = about("b", environment="e2", environment_details='{"kernel": "6.12"}', runs=2)
    verdict, why = only(scenarios(night((old, said("OK")), (new, said("NO-DATA", runs=2)))))
    assert verdict == "ENV-CHANGED"
    assert why == "the environment changed: kernel 6.1 → 6.12 (2 of 10 runs in it)"
    young = about("a", newest=BEGIN - 24 * HOUR, newest_value=BEGIN - 24 * HOUR, runs=3)
    assert only(scenarios(night((young, said("OK")), (new, said("NO-DATA", runs=2)))))[0] == "LEARNING"
    second = replace(new, oldest=BEGIN - 24 * HOUR)  # an environment is new for one night
    assert only(scenarios(night((old, said("OK")), (second, said("NO-DATA", runs=2)))))[0] == "LEARNING"


def test_a_machine_that_kept_tonights_run_from_a_verdict_is_named(about):
    disturbed = about(newest_value=BEGIN - 24 * HOUR, verdict="inconclusive", noisy=True)
    verdict, why = only(scenarios(night((disturbed, said("OK")))))
    assert verdict == "ENV-CHANGED"
    assert why.startswith("only other work on the machine prevented a verdict of tonight's run 2024")


def test_a_night_has_no_value_of_a_run_before_it_began_also_of_the_same_date(about):
    """An earlier command of the same night began the history; tonight's runs are inconclusive."""
    begun = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=BEGIN - HOUR)
    earlier = about(newest_value=BEGIN - 2 * HOUR, verdict="inconclusive", noisy=True)
    assert only(scenarios(night((earlier, said("OK")))))[0] == "OK"
    assert only(scenarios(night((earlier, said("OK"))), begun=begun))[0] == "ENV-CHANGED"
    silent = replace(earlier, noisy=False)
    assert only(scenarios(night((silent, said("OK"))), begun=begun))[0] == "NO-DATA"
    own = replace(earlier, newest_value=BEGIN - HOUR)
    assert only(scenarios(night((own, said("OK"))), begun=begun))[0] == "OK"


def test_a_value_since_a_night_began_is_tonights_whatever_the_date(about):
    """A date ends at noon, UTC: the first repeat has a value before it, and the second is inconclusive after it."""
    begun = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=BEGIN)
    noon = BEGIN + 10 * HOUR
    split = about(newest=noon + HOUR, newest_value=noon - HOUR, verdict="inconclusive")
    assert only(scenarios(night((split, said("OK"))), begun=begun))[0] == "OK"
    assert only(scenarios(night((split, said("OK")))))[0] == "NO-DATA"


def test_another_environment_of_an_earlier_command_says_nothing_of_this_night(about):
    begun = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=BEGIN - HOUR)
    here = about("a", newest=BEGIN - 2 * HOUR, newest_value=BEGIN - 2 * HOUR)
    off = about("b", environment="e2", environment_details='{"network": "off its rate"}', newest_value=None, runs=0)
    (found,) = scenarios(night((here, said("OK")), (off, None)), begun=begun)
    assert (found.verdict, found.environment) == ("ENV-CHANGED", {"network": "off its rate"})


def test_a_new_environment_without_any_value_is_named_too(about):
    day = 24 * HOUR
    old = about("a", newest=BEGIN - day, newest_value=BEGIN - day)
    new = about(
        "b",
        environment="e2",
        environment_details='{"kernel": "6.1", "network": "off its rate"}',
        newest_value=None,
        runs=0,
    )
    assert only(scenarios(night((old, said("OK")), (new, None)))) == (
        "ENV-CHANGED",
        "the environment changed: network None → off its rate (0 of 10 runs in it)",
    )


def test_each_environment_of_the_night_is_told(about):
    first = about("a", newest=BEGIN - HOUR, newest_value=BEGIN - HOUR)
    second = about("b", environment="e2", environment_details='{"kernel": "6.12"}')
    found = scenarios(night((first, regressed()), (second, said("OK"))))
    assert [(each.name, each.verdict) for each in found] == [
        ("move, kernel=6.1", "REGRESSED"),
        ("move, kernel=6.12", "OK"),
    ]
    yesterday = replace(first, newest=BEGIN - 24 * HOUR, newest_value=BEGIN - 24 * HOUR)
    old_news = regressed(told_at=BEGIN - 24 * HOUR)
    assert [each.name for each in scenarios(night((yesterday, old_news), (second, said("OK"))))] == ["move"]
    assert worst(scenarios(night((yesterday, regressed()), (second, said("OK"))))) == "REGRESSED"


@pytest.mark.parametrize("begun", [None, BEGIN - 2 * HOUR])
def test_a_machine_whose_runs_say_nothing_is_not_hidden_by_another_one_in_the_same_store(about, begun):
    own = about("a", newest=BEGIN - HOUR, newest_value=BEGIN - 24 * HOUR, verdict="inconclusive")
    other = about("b", environment="e2", environment_details='{"kernel": "6.12"}')
    at = None if begun is None else datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=begun)
    found = scenarios(night((own, said("OK")), (other, said("OK"))), begun=at)
    assert [(each.name, each.verdict) for each in found] == [
        ("move, kernel=6.1", "NO-DATA"),
        ("move, kernel=6.12", "OK"),
    ]
    assert found[0].why == "tonight's run 20240101T020000Z-move-000001 was inconclusive"


def test_one_repeat_elsewhere_that_says_nothing_does_not_take_the_others_along(about):
    here = about("a", newest=BEGIN - HOUR, newest_value=BEGIN - HOUR)
    off = about("b", environment="e2", environment_details='{"network": "off its rate"}', newest_value=None, runs=0)
    assert [(each.name, each.verdict) for each in scenarios(night((here, said("OK")), (off, None)))] == [("move", "OK")]


def test_a_change_is_told_once_and_not_after_it_is_acknowledged(about):
    other = about("b", scenario="y", experiment="other")
    last = about("a", newest=BEGIN - 24 * HOUR, newest_value=BEGIN - 24 * HOUR)
    for hours, word in ((0, "REGRESSED"), (12, "REGRESSED"), (24, "NO-DATA")):
        state = regressed(told_at=BEGIN - hours * HOUR)
        [mine] = [each for each in scenarios(night((last, state), (other, said("OK")))) if each.experiment == "move"]
        assert mine.verdict == word
    assert mine.why == "not measured since its change was reported"
    known = replace(REPORTED, acknowledged=Acknowledgement("it is as it is", "me", "2024-01-01"))
    state = replace(regressed(), history=History("", (known,)))
    assert only(scenarios(night((about(), state)))) == ("LEARNING", "its change was acknowledged: it is as it is")
    silent = about(newest_value=BEGIN - 24 * HOUR, verdict="inconclusive")
    assert only(scenarios(night((silent, state))))[0] == "NO-DATA"
    assert only(scenarios(night((about(), state)), ran=()))[0] == "NO-DATA"
    for told_at in (BEGIN, BEGIN - 24 * HOUR):  # a third repeat that says nothing hides nothing
        disturbed = about(newest_value=BEGIN - 24 * HOUR, verdict="inconclusive", noisy=True)
        word = "REGRESSED" if told_at == BEGIN else "ENV-CHANGED"
        assert only(scenarios(night((disturbed, regressed(told_at)))))[0] == word


def test_a_change_that_another_command_found_since_a_night_began_is_reported_by_that_night(about):
    """A night was killed; one of another suite judged the store; a day later the first night is resumed and ends."""
    other = about("b", scenario="y", experiment="other")
    mine = about("a", newest=BEGIN - 26 * HOUR, newest_value=BEGIN - 26 * HOUR)
    state = regressed(told_at=BEGIN - 25 * HOUR)
    for begun, word in ((BEGIN - 27 * HOUR, "REGRESSED"), (BEGIN - 24 * HOUR, "NO-DATA")):
        at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=begun)
        found = scenarios(night((mine, state), (other, said("OK"))), begun=at, only={"sc"})
        assert only(found)[0] == word


def test_only_some_are_told_and_what_was_never_run_often_is_not_asked_for(about):
    a, b = about("a", scenario="x"), about("b", scenario="y", experiment="other")
    assert [each.id for each in scenarios(night((a, said("OK")), (b, said("OK"))), only={"y"})] == ["y"]
    day = 24 * HOUR
    for runs, asked in ((9, False), (10, True)):
        swept = about("b", scenario="y", runs=runs, newest=BEGIN - 2 * day, newest_value=BEGIN - 2 * day)
        assert ("y" in {each.id for each in scenarios(night((a, said("OK")), (swept, None)))}) == asked


def test_what_is_measured_since_lately_does_not_take_its_scenario_along(about):
    lately = (about("b", metric="new", runs=3), said("NO-DATA", runs=3))
    (found,) = scenarios(night((about("a"), said("OK")), lately))
    assert (found.verdict, [line.verdict for line in found.lines]) == ("OK", ["OK", "LEARNING"])
    (found,) = scenarios(night((about("a", runs=5), said("NO-DATA", runs=5)), lately))
    assert found.verdict == "LEARNING"


def test_a_clock_that_is_ahead_retires_nobody(about):
    ahead = BEGIN + 60 * 24 * HOUR
    future = about("b", scenario="y", experiment="other", newest=ahead, newest_value=ahead)
    now = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=BEGIN + HOUR)
    pair = night((about("a"), said("OK")), (future, said("OK")))
    assert {each.experiment for each in scenarios(pair)} == {"other"}
    assert {each.experiment for each in scenarios(pair, now=now)} == {"move", "other"}


def test_after_a_change_it_takes_ten_runs(about):
    assert only(scenarios(night((about(), said("NO-DATA", runs=4))))) == (
        "LEARNING",
        "4 of 10 runs since its last change",
    )
    assert only(scenarios(night((about(runs=4), said("NO-DATA", runs=4)))))[1] == "4 of 10 runs"


def test_canaries_are_no_series_of_their_own(about):
    pairs = [(about("a"), said("OK")), (about("c", metric="canary.cpu", better="canary"), said("OK"))]
    assert [line.about.series for line in scenarios(night(*pairs))[0].lines] == ["a"]


def test_names_tell_what_differs(about):
    a = about("a", scenario="x", parameters='{"quota": 1, "fetch": "tuned"}')
    b = about("b", scenario="y", parameters='{"quota": 2, "fetch": "tuned"}')
    found = scenarios(night((a, said("OK")), (b, said("OK"))))
    assert [each.name for each in found] == ["move quota=1", "move quota=2"]


@pytest.fixture
def full(about):
    a = about("aaa", scenario="x", parameters='{"quota": "a|b <x>"}')
    b = about("bbb", scenario="y", parameters='{"quota": "2\\u0000"}', metric="cpu")
    found = scenarios(night((a, regressed()), (b, said("NO-DATA", runs=3))))
    return found, ("run x: corrupt <manifest>",)


def test_lines_tell_the_change_and_what_is_open(full, about):
    found, _ = full
    told_lines = render.lines(found)
    assert told_lines[0].startswith("REGRESSED    move quota=a|b <x>")
    assert told_lines[1].strip() == (
        "seconds [aaa]: 100 → 120 s (+20.0%, +15.0% to +25.0%), p 0.012, 40 runs; first bad run-bad, last good run-good"
    )
    assert not any("not acknowledged" in line for line in told_lines)
    later = SeriesState("s", history=History("", (REPORTED,)), said=SeriesVerdict("OK", runs=12))
    told_lines = render.lines(scenarios(night((about("aaa"), later))))
    assert told_lines[0].startswith("OK ")
    assert "reported before, since run-bad, and is not acknowledged" in told_lines[1]


def test_json_has_effect_interval_and_runs(full):
    found, problems = full
    document = json.loads(json.dumps(render.as_json("/store", found, problems, 7)))
    assert (document["verdict"], document["ingested"], document["problems"]) == ("REGRESSED", 7, list(problems))
    series = document["scenarios"][0]["series"][0]
    assert series["effect"] == pytest.approx(0.2)
    assert series["interval"] == pytest.approx([0.15, 0.25])
    assert (series["first_bad"], series["last_good"], series["p"]) == ("run-bad", "run-good", 0.0123)
    assert len(series["open"]) == 1


def test_markdown_cells_hold_what_they_are_given(full):
    found, problems = full
    text = render.markdown(found, problems)
    assert text.startswith("### REGRESSED\n")
    assert "move quota=a\\|b &lt;x&gt;" in text
    rows = [line.replace("\\|", "") for line in text.splitlines() if line.startswith("|")]
    assert {row.count("|") for row in rows[:4]} == {6}
    assert {row.count("|") for row in rows[4:]} == {12}
    assert "| 100 s | 120 | +20.0% | +15.0% to +25.0% | 0.012 | 40 | `run-bad` | `run-good` |" in text
    assert "corrupt &lt;manifest&gt;" in text


def test_junit_fails_on_a_regression_and_errs_on_what_cannot_be_said(full):
    found, problems = full
    root = ET.fromstring(render.junit(found, problems).encode())
    assert {name: root.get(name) for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "3",
        "failures": "1",
        "errors": "1",
        "skipped": "0",
    }
    (failure,) = root.iter("failure")
    assert failure.get("type") == "REGRESSED"
    assert "100 → 120" in failure.text
    assert {error.get("type") for error in root.iter("error")} == {"problem"}


def test_junit_errs_where_nothing_was_judged():
    """The exit code is 2 then. A file without a case reads as success."""
    root = ET.fromstring(render.junit([], ()).encode())
    assert (worst([]), root.get("tests"), root.get("errors")) == ("NO-DATA", "1", "1")
