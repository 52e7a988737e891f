"""A bucket judged: the right runs are named, a canary takes the blame, what is there twice counts once."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from results.nights.bucket import iso, judge_bucket, learn_from, micros, moved
from results.nights.judged_runs import DAY_US
from results.nights.state import NEVER, SeriesState
from results.nights.values import FAILED
from results.series.history import Acknowledgement
from results.series.judge import Judge
from tests.nights.made import BEGIN

NIGHTS = 40


def rows(name, values, *, better="lower", metric="seconds", place="p"):
    return [
        {
            "series": name,
            "place": place,
            "metric": metric,
            "better": better,
            "at": BEGIN + night * DAY_US,
            "run_id": f"run{night:03d}",
            "value": value,
            "failed": None,
            "logged": None,
            "tested": None,
        }
        for night, value in enumerate(values)
    ]


def table(*parts):
    listed = [row for part in parts for row in part]
    made = pa.Table.from_pylist(listed)
    return made.set_column(made.column_names.index("at"), "at", made["at"].cast(pa.timestamp("us", tz="UTC")))


def calm(seed, level=100.0, sigma=0.03):
    return level * (1 + sigma * np.random.default_rng(seed).standard_normal(NIGHTS))


def stepped(seed, at, size):
    values = calm(seed)
    values[at:] *= 1 + size
    return values


def judged(runs, learned, states=()):
    found = judge_bucket(runs, {s.series: s.to_json() for s in states}, [learned], Judge(), 100)
    return {state.series: state for state in found}


def test_what_any_look_at_a_history_begun_in_one_go_finds_is_tonights(learned):
    found = table(rows("a", stepped(1, 15, 0.2)))
    at = pa.array(BEGIN + np.arange(NIGHTS) * 60_000_000).cast(pa.timestamp("us", tz="UTC"))
    found = found.set_column(found.column_names.index("at"), "at", at)
    said = judged(found, learned)["a"].said
    assert (said.verdict, said.runs, said.reported.first_bad) == ("REGRESSED", 25, "run015")
    nights = judged(table(rows("a", stepped(1, 15, 0.2))), learned)["a"]
    assert (nights.said.verdict, nights.history.reported[0].first_bad) == ("OK", "run015")


def test_a_step_is_reported_with_its_runs(learned):
    state = judged(table(rows("a", stepped(1, 36, 0.2)), rows("b", calm(2))), learned)
    (reported,) = state["a"].history.reported
    assert (reported.last_good, reported.first_bad) == ("run035", "run036")
    assert state["a"].history.baseline == iso(BEGIN + 36 * DAY_US)
    assert state["b"].history.reported == ()
    assert state["b"].said.verdict == "OK"
    assert state["b"].judged == BEGIN + 39 * DAY_US


def test_tonight_is_what_was_found_with_the_newest_run(learned):
    values = stepped(1, 37, 0.25)
    state = judged(table(rows("a", values)), learned)["a"]
    assert state.said.verdict == "REGRESSED"
    assert state.said.reported.found == "run039"
    again = judged(table(rows("a", values)), learned, [state])["a"]
    assert again == state
    later = judged(table(rows("a", [*values, values[-1]])), learned, [state])["a"]
    assert later.said.verdict == "NO-DATA"
    assert later.said.runs == 4
    assert len(later.history.reported) == 1


def test_what_several_nights_found_that_are_judged_at_once_is_told(learned):
    values = stepped(1, 37, 0.25)
    before = judged(table(rows("a", values[:36])), learned)["a"]
    assert before.said.verdict == "OK"
    state = judged(table(rows("a", [*values, values[-1]])), learned, [before])["a"]
    assert state.said.verdict == "REGRESSED"
    assert state.said.reported.first_bad == "run037"
    assert state.said.reported.found < "run040"  # not on the newest night
    replayed = judged(table(rows("a", [*values, values[-1]])), learned)["a"]
    assert replayed.said.verdict == "NO-DATA"  # as though it had been judged every night
    assert len(replayed.history.reported) == 1


def test_of_several_that_are_found_at_once_the_worst_is_told(learned):
    values = calm(1)
    values[21:] *= 1.4
    before = judged(table(rows("a", values[:21])), learned)["a"]
    longer = [*values, *(0.7 * each for each in values[30:])]
    state = judged(table(rows("a", longer)), learned, [before])["a"]
    assert [one.change.after > one.change.before for one in state.history.reported] == [True, False]
    assert state.said.verdict == "REGRESSED"
    assert state.said.reported == state.history.reported[0]


def night_by_night(values, learned, first):
    """The series' state after each night from its run `first` on, each from what was kept of the night before."""
    states = []
    for upto in range(first, len(values) + 1):
        states.append(judged(table(rows("a", values[:upto])), learned, states[-1:])["a"])
    return states


def test_a_drift_that_goes_on_is_told_once_and_its_report_grows(learned):
    nights = np.arange(85)
    shape = 1 + 0.005 * np.clip(nights - 35, 0, None)
    values = 100 * shape * (1 + 0.01 * np.random.default_rng(1).standard_normal(85))
    states = night_by_night(values, learned, 40)
    told = [state.said.reported for state in states if state.said.reported is not None]
    assert len(told) == 1
    (reported,) = states[-1].history.reported
    assert (reported.first_bad, reported.found) == (told[0].first_bad, told[0].found)
    assert (reported.change.kind, reported.change.before) == ("drift", told[0].change.before)
    assert reported.change.after > told[0].change.after * 1.08
    assert {state.said.verdict for state in states} <= {"OK", "REGRESSED", "NO-DATA"}
    at_once = judged(table(rows("a", values)), learned)["a"]
    assert at_once.history == states[-1].history


def test_what_was_acknowledged_does_not_grow(learned):
    nights = np.arange(85)
    shape = 1 + 0.005 * np.clip(nights - 35, 0, None)
    values = 100 * shape * (1 + 0.01 * np.random.default_rng(1).standard_normal(85))
    states = night_by_night(values[:50], learned, 42)
    (one,) = states[-1].history.reported
    by = Acknowledgement("a slower disk", "ann", "2026-11-22T00:00:00+00:00")
    known = replace(states[-1], history=states[-1].history.acknowledge(one.first_bad, by))
    later = judged(table(rows("a", values)), learned, [known])["a"]
    assert later.history.reported[0] == known.history.reported[0]
    assert len(later.history.reported) == 2  # it goes on, and that is new


def test_the_kind_of_a_change_is_told_when_it_is_known(learned):
    values = 100 * (1 + 0.03 * np.random.default_rng(2).standard_normal(70))
    values[36:] *= 1.07
    states = night_by_night(values, learned, 40)
    told = [state.said.reported for state in states if state.said.reported is not None]
    assert [one.change.kind for one in told] == ["unclear"]
    (reported,) = states[-1].history.reported
    assert reported.change == replace(told[0].change, kind="step")
    assert states[-1].since == BEGIN + 10 * DAY_US  # what was before the change is needed, too: 60 runs in all


def test_what_lands_late_belongs_to_a_window_that_has_room(learned):
    values = calm(5)
    young = judged(table(rows("a", values)[36:]), learned)["a"]
    assert (young.said.verdict, young.said.runs, young.since) == ("NO-DATA", 4, NEVER)
    state = judged(table(rows("a", [*values, values[0]])), learned, [young])["a"]
    assert (state.said.verdict, state.said.runs) == ("OK", 41)


@pytest.mark.parametrize(("better", "size", "word"), [("higher", 0.25, "IMPROVED"), ("lower", -0.25, "IMPROVED")])
def test_which_way_is_better_counts(learned, better, size, word):
    assert judged(table(rows("a", stepped(1, 37, size), better=better)), learned)["a"].said.verdict == word


@pytest.mark.parametrize(("size", "went"), [(0.25, "up"), (-0.25, "down")])
def test_where_nobody_knows_which_way_is_better_somebody_has_to_look(learned, size, went):
    own = rows("a", stepped(1, 37, size), better="unknown")
    said = judged(table(own), learned)["a"].said
    assert (said.verdict, said.why) == (
        "REGRESSED",
        f"direction unknown: it went {went}, and nothing says which way is better",
    )
    for better_machine in (0.7, 1.3):  # either way it may be what changed the series
        read = calm(9, 1.0, 0.01)
        read[37:] *= better_machine
        beside = rows("c", read, better="canary", metric="canary.cpu")
        assert judged(table(own, beside), learned)["a"].said.verdict == "ENV-CHANGED"


def test_a_machine_that_changed_takes_the_blame(learned):
    slow = calm(9, 1.0, 0.01)
    slow[37:] *= 1.3
    runs = table(
        rows("a", stepped(1, 37, 0.25)),
        rows("c", slow, better="canary", metric="canary.cpu"),
        rows("d", stepped(1, 37, 0.25), place="elsewhere"),
    )
    state = judged(runs, learned)
    assert state["a"].said.verdict == "ENV-CHANGED"
    assert state["a"].said.why.startswith("canary.cpu went from 0.99")
    assert state["a"].causes == {"run037": state["a"].said.why}
    assert state["d"].said.verdict == "REGRESSED"
    assert state["c"].since == BEGIN
    assert state["c"].history.reported == ()


def canary_beside(level, *, metric="canary.cpu", size=0.25, before=None, learned):
    """What is said of a step of `size`, with a canary whose level went by `level` with it."""
    read = calm(9, 1.0, 0.01) if before is None else before
    read[37:] = read[37:] * (1 + level)
    return judged(table(rows("a", stepped(1, 37, size)), rows("c", read, better="canary", metric=metric)), learned)["a"]


def test_a_machine_that_changed_for_the_better_makes_nothing_worse(learned):
    assert canary_beside(-0.15, learned=learned).said.verdict == "REGRESSED"
    assert canary_beside(-0.15, metric="canary.nic", learned=learned).said.verdict == "ENV-CHANGED"
    assert canary_beside(-0.15, metric="canary.of-somebody", learned=learned).said.verdict == "ENV-CHANGED"
    assert canary_beside(-0.15, size=-0.25, learned=learned).said.verdict == "ENV-CHANGED"
    assert canary_beside(0.15, size=-0.25, learned=learned).said.verdict == "IMPROVED"


@pytest.mark.parametrize(("level", "word"), [(0.07, "ENV-CHANGED"), (0.04, "REGRESSED")])
def test_a_canary_that_moved_by_half_as_much_explains_it(learned, level, word):
    assert canary_beside(level, size=0.12, learned=learned).said.verdict == word


def test_a_canary_that_is_often_as_far_off_explains_nothing(learned):
    jumping = calm(9, 1.0, 0.01)
    jumping[[3, 4, 5, 17, 18, 19, 29, 30]] *= 1.4
    assert canary_beside(0.3, before=jumping, learned=learned).said.verdict == "REGRESSED"


def test_a_spike_in_the_newest_run_alarms_nobody(learned):
    values = calm(3)
    values[-1] *= 10
    assert judged(table(rows("a", values)), learned)["a"].said.verdict == "OK"


def test_a_run_that_is_there_twice_counts_once(learned):
    once = rows("a", stepped(1, 37, 0.25))
    assert judged(table(once, once[20:]), learned) == judged(table(once), learned)


def test_runs_without_a_value_are_missing_nights(learned):
    values = [None if night in (5, 6, 39) else value for night, value in enumerate(calm(4))]
    state = judged(table(rows("a", values)), learned)["a"]
    assert state.said.runs == 37
    assert state.judged == BEGIN + 38 * DAY_US


def test_too_few_runs_are_no_data(learned):
    state = judged(table(rows("a", calm(1)[:9])), learned)["a"]
    assert (state.said.verdict, state.said.runs) == ("NO-DATA", 9)


def test_lessons_go_on_from_what_was_known(learned):
    runs = table(*(rows(f"s{i}", calm(i)[:12]) for i in range(30)))
    found = learn_from(runs, {}, None, Judge(), 30, 1)
    states = {s.series: s.to_json() for s in judge_bucket(runs, {}, found, Judge(), 30)}
    assert learn_from(runs, states, found[-1], Judge(), 30, 1) == [found[-1]]


@pytest.mark.parametrize(
    ("metric", "old", "new", "did"),
    [
        ("canary.nic", [0.998] * 10, [0.95] * 3, True),
        ("canary.nic", [0.998] * 10, [0.99] * 3, False),
        ("canary.steal", [0.0] * 10, [0.05] * 3, True),
        ("canary.steal", [0.0] * 10, [0.01] * 3, False),
        ("canary.cpu", [1.0, 1.4, 0.7, 1.3, 0.8, 1.2, 0.6, 1.4, 0.9, 1.1], [1.2] * 3, False),
        ("canary.cpu", [1.0, 1.01, 0.99, 1.0, 1.01], [1.2] * 3, True),
        ("canary.cpu", [1.0, 1.0], [9.0] * 3, False),
        ("canary.cpu", [1.0] * 9, [], False),
    ],
)
def test_a_canary_moves_beyond_its_limit_and_its_noise(metric, old, new, did):
    assert moved(metric, np.array(old), np.array(new)) is did


@pytest.mark.parametrize(
    ("metric", "good", "bad"),
    [
        ("canary.nic", 1.0, 0.9),
        ("canary.transfer", 1.0, 1.1),
        ("canary.cpu", 0.05, 0.06),
        ("canary.memory", 0.6, 1.8),
        ("canary.fsync", 0.0002, 0.0006),
        ("canary.steal", 0.0, 0.05),
    ],
)
def test_a_worse_machine_explains_what_got_worse_and_a_better_one_what_got_better(metric, good, bad):
    """As `testbed.runner.canary` reads them; the lowest NIC and stolen time are a run's own."""
    old, new = np.array([good] * 10), np.array([bad] * 3)
    assert moved(metric, old, new, 0.1, worse=True)
    assert not moved(metric, old, new, -0.1, worse=False)
    assert not moved(metric, new.repeat(4), old[:3], 0.1, worse=True)
    assert moved(metric, new.repeat(4), old[:3], -0.1, worse=False)


def test_times_are_read_as_they_were_written():
    assert micros(iso(BEGIN + 7)) == BEGIN + 7
    assert len(iso(BEGIN)) == len(iso(BEGIN + 1))
    assert SeriesState("x") == SeriesState.from_json(SeriesState("x").to_json())


def history_of(values, learned):
    """What is reported of a series; None is a night without a run."""
    ran = [row for row in rows("a", values) if row["value"] is not None]
    return judged(table(ran), learned)["a"].history


def test_missing_nights_neither_hide_a_change_nor_move_it(learned):
    holes = [None if i % 4 == 1 or i == 30 else value for i, value in enumerate(stepped(1, 30, 0.2))]
    assert [(one.first_bad, one.last_good) for one in history_of(holes, learned).reported] == [("run031", "run028")]


def test_a_step_and_back_are_reported_each(learned):
    values = stepped(1, 28, 0.2)
    values[34:] /= 1.2
    up, back = history_of(values, learned).reported
    assert (up.first_bad, back.first_bad) == ("run028", "run034")
    assert up.change.after > up.change.before and back.change.after < back.change.before


def test_a_history_night_by_night_worked_by_hand(learned):
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
    history = history_of(values, learned)
    assert [(new.found, new.first_bad, new.last_good) for new in history.reported] == [
        ("run040", "run038", "run037"),
        ("run057", "run055", "run054"),
    ]
    first, second = (new.change for new in history.reported)
    assert (first.before, first.after) == (pytest.approx(94.6, abs=0.2), 87.6)
    assert first.effect == pytest.approx(-0.074, abs=0.002)
    assert first.interval is not None and first.interval[0] < -0.07 < first.interval[1]
    assert (second.before, second.after) == (87.8, pytest.approx(94.7, abs=0.1))
    assert len(history.open) == 2


def in_one_night(begin, *, metric="seconds", tested=lambda run: "kafka A"):
    """A night each run up to `begin`, then 12 runs in one night: the level rises with its sixth."""
    values = [*calm(1)[:begin], *(calm(3)[:12] * np.where(np.arange(12) < 5, 1.0, 1.3))]
    made = rows("a", values, metric=metric)
    for number, row in enumerate(made):
        row["tested"] = tested(number - begin)
        if number > begin:
            row["at"] = made[begin]["at"] + (number - begin) * 60_000_000
    return table(made)


def test_a_change_in_mid_night_is_not_of_the_kafka_that_all_runs_had(learned):
    said = judged(in_one_night(15), learned)["a"].said
    assert (said.verdict, said.reported.first_bad) == ("ENV-CHANGED", "run020")
    assert said.why == "the 5 runs before it, of the same night, Kafka, image and topology, do not have it"


@pytest.mark.parametrize(
    ("begin", "metric", "tested"),
    [
        (15, "seconds", lambda run: "kafka B" if run >= 5 else "kafka A"),
        (15, "seconds", lambda run: "kafka B" if run >= 4 else "kafka A"),
        (15, "seconds", lambda _run: None),
        (15, FAILED, lambda _run: "kafka A"),
    ],
    ids=["a new Kafka", "one run alone is no proof", "not known", "a criterion that fails by chance"],
)
def test_a_change_in_mid_night_may_be_kafkas(learned, begin, metric, tested):
    assert judged(in_one_night(begin, metric=metric, tested=tested), learned)["a"].said.verdict == "REGRESSED"


def test_a_change_between_two_nights_may_be_kafkas(learned):
    """Settings that no manifest has may have changed with the night."""
    made = rows("a", stepped(1, 36, 0.3))
    for row in made:
        row["tested"] = "kafka A"
    (reported,) = judged(table(made), learned)["a"].history.reported
    assert reported.first_bad == "run036"
    assert judged(table(made[:39]), learned)["a"].said.verdict == "REGRESSED"


def test_a_kind_of_log_lines_that_no_earlier_night_had_is_new(learned):
    """A run whose logs were not read whole says nothing, and neither do the lines of another series."""
    kind, known = "WARN ReplicaManager: A line.", "WARN Partition: Another line."
    nights = rows("f", [0.0] * 17, metric=FAILED)
    for row in nights:
        row["logged"] = json.dumps([known])
    for row in nights[-3:]:
        row["logged"] = json.dumps([kind, known])
    nights[2]["logged"] = None
    [new] = judged(table(nights), learned)["f"].said.lines
    assert (new.kinds, new.runs, new.before, new.found) == ((kind,), 3, 13, False)  # the night before found it
    [new] = judged(table(nights[:-1]), learned)["f"].said.lines
    assert (new.runs, new.before, new.found) == (2, 13, True)
    state = judged(table(nights), learned)["f"]
    assert SeriesState.from_json(state.to_json()) == state
    judged_late = judged(table(nights[:15]), learned)["f"]
    assert [new.found for new in judged_late.said.lines] == [False]
    [new] = judged(table(nights), learned, [judged_late])["f"].said.lines
    assert (new.runs, new.found) == (3, True)
    other = [{**row, "metric": "seconds", "series": "s"} for row in nights]
    assert judged(table(other), learned)["s"].said.lines == ()
    nights[-1]["logged"] = None
    assert judged(table(nights), learned)["f"].said.lines == ()


def test_a_night_that_is_known_to_have_begun_has_its_own_runs_whatever_the_date(learned):
    """A date ends at noon, UTC, perhaps in mid-night. An earlier command of the date is no part of this night."""
    hour = 3_600_000_000
    noon = (BEGIN // DAY_US + 20) * DAY_US + DAY_US // 2
    history = rows("f", [0.0] * 14, metric=FAILED)

    def failed(hours, begun):
        tonight = rows("f", [1.0, 0.0, 0.0], metric=FAILED)
        for number, (row, at) in enumerate(zip(tonight, hours, strict=True)):
            name = "records-intact" if row["value"] else None
            row |= {"at": noon + int(at * hour), "run_id": f"tonight{number}", "failed": name}
        (found,) = judge_bucket(table(history, tonight), {}, [learned], Judge(), 100, begun)
        return found.said.failed, found.said.high

    over_noon = (-0.5, 0.5, 1)
    assert failed(over_noon, noon - hour) == ("records-intact failed in 1 of 3 runs", 1.0)
    assert failed(over_noon, None) == ("", 0.0)
    one_date = (1, 5, 6)
    assert failed(one_date, noon + 4 * hour) == ("", 0.0)
    assert failed(one_date, None) == ("records-intact failed in 1 of 3 runs", 1.0)
    assert failed(one_date, noon + 9 * hour) == failed(one_date, None)  # nothing was measured since


def test_only_runs_that_failed_what_counts_are_counted(learned):
    """One of tonight's runs fails by chance, as in an earlier night, and another fails what never failed before."""
    nights = rows("f", [1.0, *[0.0] * 12], metric=FAILED)
    nights[0]["failed"] = "quota b1"
    tonight = rows("f", [1.0, 1.0, 0.0], metric=FAILED)
    for number, (row, failed) in enumerate(zip(tonight, ("quota b1", "records-intact", None), strict=True)):
        at = BEGIN + 13 * DAY_US + number * 60_000_000
        row |= {"at": at, "run_id": f"tonight{number}", "failed": failed}
    assert judged(table(nights, tonight), learned)["f"].said.failed == "records-intact failed in 1 of 3 runs"
