"""What decides a scenario and what is only listed: noise, failures by chance, floors, and what a user mutes."""

import json
import math
from dataclasses import asdict
from datetime import UTC, datetime, timedelta, timezone

import pytest

from results.compare.effect import at_least
from results.compare.log_lines import NewLines
from results.contract.store import Store, StoreError
from results.nights import policies, render
from results.nights.bucket import UNNAMED, counting, parse_failures
from results.nights.night import Night
from results.nights.policies import Floor, Mute, Policies, SeriesPattern
from results.nights.scenarios import scenarios, worst
from results.nights.state import SeriesState, SeriesVerdict
from results.nights.values import FAILED
from tests.nights.made import BEGIN

NOW = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=BEGIN)
SECONDS = {"low": 60.0, "high": 61.0}


def state(verdict="OK", **other):
    return SeriesState("s", said=SeriesVerdict(verdict, **{"runs": 40, **other}))


def found(*pairs, floors=(), mutes=(), now=NOW):
    night = Night(tuple(about for about, _ in pairs), {about.series: each for about, each in pairs})
    return scenarios(night, policies=Policies(tuple(mutes), tuple(floors)), now=now)


def mute(series="move:seconds", until=NOW + timedelta(days=3)):
    return Mute(series, "a new disk", "ann", (NOW - timedelta(days=1)).isoformat(), until.isoformat())


class TestListed:
    def test_a_noisy_metric_is_listed_with_what_it_would_miss_and_decides_nothing(self, about):
        noisy = (about("p", metric="produce-p99"), state("NOISY", detectable=0.52))
        (each,) = found((about("a"), state()), noisy)
        assert (each.verdict, [line.judged for line in each.lines]) == ("OK", [True, False])
        told = render.lines([each])
        assert told[0].endswith("1 series, 1 listed, Kafka 4.3.1")
        assert told[1].strip() == "listed: produce-p99 [p] NOISY, a change of 52% would be missed in half of all cases"
        document = render.as_json("", [each], (), 0)["scenarios"][0]["series"]
        assert [(one["policy"], one["detectable"]) for one in document] == [("judged", None), ("listed", 0.52)]

    def test_a_scenario_of_which_no_measure_is_judged_is_not_ok(self, about):
        noisy = (about("p", metric="produce-p99"), state("NOISY", detectable=0.52))
        failures = (about("f", metric=FAILED), state())
        young = (about("y", metric="seconds", runs=4), state("NO-DATA", runs=4))
        assert [each.verdict for each in found(noisy, failures)] == ["NOISY"]
        assert [each.verdict for each in found(noisy, failures, young)] == ["LEARNING"]
        assert [each.verdict for each in found(failures)] == ["OK"]  # KIP-455's scenarios move nothing

    def test_what_is_found_in_a_noisy_metric_is_a_change_all_the_same(self, about):
        assert found((about("p"), state("REGRESSED")), (about("a", metric="b"), state()))[0].verdict == "REGRESSED"


class TestFailures:
    NONE, A, B = frozenset(), frozenset({"a"}), frozenset({"b"})

    def test_a_fail_is_a_fail_from_the_first_run_on(self):
        assert counting([], [self.A]) == ["a"]
        assert counting([self.NONE] * 40, [self.A | self.B, self.NONE]) == ["a", "b"]

    def test_one_that_fails_now_and_then_is_chance(self):
        earlier = [self.NONE] * 5 + [self.A] + [self.NONE] * 6
        assert counting(earlier, [self.A]) == []
        assert counting(earlier, [self.A | self.B]) == ["b"]
        assert counting(earlier[:9], [self.A]) == ["a"]  # nine runs do not say how often

    def test_one_that_goes_on_failing_counts_each_night(self):
        earlier = [self.NONE] * 12 + [self.A]
        assert counting(earlier, [self.A]) == ["a"]
        flaky = [self.A, *[self.NONE] * 12]
        assert [counting([*flaky, *[self.A] * nights], [self.A]) for nights in range(4)] == [[], [], ["a"], ["a"]]

    def test_three_of_three_are_no_chance(self):
        earlier = [self.NONE] * 5 + [self.A] + [self.NONE] * 6
        assert counting(earlier, [self.A, self.NONE, self.A]) == []
        assert counting(earlier, [self.A] * 3) == ["a"]
        assert at_least(3, 3, 4, 15) == pytest.approx(4 / 455)

    def test_runs_taken_in_by_an_earlier_version_have_no_names(self):
        assert parse_failures(None, 2.0) == {UNNAMED}
        assert parse_failures(None, 0.0) == frozenset()
        assert parse_failures("quota b1; quota b2", 2.0) == {"quota b1", "quota b2"}

    def test_they_decide_the_first_night_on_a_new_machine_too(self, about):
        failing = (about("f", metric=FAILED, runs=1), state("NO-DATA", runs=1, failed="quota failed in 1 of 1 runs"))
        (each,) = found((about("a", runs=1), state("NO-DATA", runs=1)), failing)
        assert (each.verdict, each.why, worst([each])) == ("FAILED", "quota failed in 1 of 1 runs", "FAILED")

    def test_not_when_the_machine_moved_or_nothing_was_measured_tonight(self, about):
        moved = state(failed="quota failed in 1 of 1 runs", machine="canary.nic went from 1 to 0.5")
        (each,) = found((about("f", metric=FAILED), moved))
        assert (each.verdict, each.why) == (
            "ENV-CHANGED",
            "canary.nic went from 1 to 0.5; quota failed in 1 of 1 runs",
        )
        old = about("f", metric=FAILED, newest_value=BEGIN - 86_400_000_000)
        assert found((old, state(failed="quota failed in 1 of 1 runs")))[0].verdict == "NO-DATA"


class TestLogLines:
    KIND = "WARN ReplicaManager: A line."
    FOUND = NewLines((KIND,), 3, 12, found=True)
    WORDS = f"logged in the newest 3 runs, in none of 12 before: {KIND}"

    def night(self, about, lines, **other):
        (each,) = found((about("f", metric=FAILED), state(lines=lines, **other)))
        return each

    def test_a_new_one_is_a_regression_on_the_night_that_finds_it(self, about):
        each = self.night(about, (self.FOUND,))
        assert (each.verdict, each.why) == ("REGRESSED", self.WORDS)
        assert render.lines([each])[1].strip() == f"log-lines: {self.WORDS}"
        [line] = render.as_json("", [each], (), 0)["scenarios"][0]["series"]
        assert line["log_lines"] == [{"kinds": (self.KIND,), "runs": 3, "before": 12, "found": True}]
        assert "| **REGRESSED** | move | logged in the newest 3 runs" in render.markdown([each], ())

    def test_before_and_after_that_night_it_is_named(self, about):
        each = self.night(about, (NewLines((self.KIND,), 1, 12, found=False),))
        assert each.verdict == "OK"
        assert "log-lines: logged in the newest 1 run, in none of 12" in render.lines([each])[1]
        assert "| OK | move | logged in the newest 1 run" in render.markdown([each], ())

    def test_not_when_the_machine_moved_and_a_failure_goes_first(self, about):
        moved = self.night(about, (self.FOUND,), machine="canary.nic went from 1 to 0.5")
        assert (moved.verdict, moved.why) == ("ENV-CHANGED", f"canary.nic went from 1 to 0.5; {self.WORDS}")
        failed = self.night(about, (self.FOUND,), failed="quota failed in 3 of 3 runs")
        assert (failed.verdict, failed.why) == ("FAILED", "quota failed in 3 of 3 runs")

    def test_not_where_nothing_was_measured_tonight(self, about):
        old = about("f", metric=FAILED, newest_value=BEGIN - 86_400_000_000)
        (each,) = found((old, state(lines=(self.FOUND,))))
        assert (each.verdict, each.lines[0].new_lines) == ("NO-DATA", ())


class TestFloors:
    def test_a_value_beyond_one_has_its_own_verdict_at_once(self, about):
        pair = about("a", runs=1), state("NO-DATA", runs=1, **SECONDS)
        (each,) = found(pair, floors=[Floor("move:seconds", never_above=60.5)])
        assert (each.verdict, each.why) == ("BELOW-FLOOR", "61, and never above 60.5 s")
        (each,) = found(pair, floors=[Floor("move quota=1:seconds", never_below=60.5)])
        assert (each.verdict, each.why) == ("BELOW-FLOOR", "60, and never below 60.5 s")

    def test_one_that_holds_or_is_of_other_series_says_nothing(self, about):
        pair = about("a"), state(**SECONDS)
        for text in ("move quota=2:seconds", "other:seconds", "move:rate"):
            assert found(pair, floors=[Floor(text, never_above=1.0)])[0].verdict == "OK"
        assert found(pair, floors=[Floor("move:seconds", never_above=61.0)])[0].verdict == "OK"

    def test_the_machine_answers_when_a_canary_moved(self, about):
        pair = about("a"), state(machine="canary.nic went from 1 to 0.5", **SECONDS)
        assert found(pair, floors=[Floor("move:seconds", never_above=1.0)])[0].verdict == "ENV-CHANGED"

    @pytest.mark.parametrize(
        "wrong",
        [{}, {"never_above": 1.0, "series": "move quota=1"}, {"never_above": math.nan}, {"never_below": -math.inf}],
    )
    def test_one_that_cannot_be_meant_is_refused(self, wrong):
        with pytest.raises(ValueError):
            Floor(**{"series": "move:seconds", **wrong})


class TestMutes:
    def test_a_muted_series_decides_nothing_and_is_told_with_its_reason(self, about):
        pairs = (about("a"), state("REGRESSED")), (about("b", metric="rate"), state())
        (each,) = found(*pairs, mutes=[mute()])
        line = next(line for line in each.lines if line.about.series == "a")
        assert (each.verdict, line.verdict) == ("OK", "MUTED")
        assert line.why == f"until {mute().until[:16]}, ann: a new disk; otherwise REGRESSED"
        assert found(pairs[0], mutes=[mute()])[0].verdict == "MUTED"

    def test_a_muted_scenario_of_which_nothing_was_measured_decides_nothing(self, about):
        silent = (about("f", metric=FAILED, newest_value=None, runs=0), None)
        assert found(silent)[0].verdict == "NO-DATA"
        (each,) = found(silent, mutes=[mute("move quota=1")])
        assert (each.verdict, worst([each])) == ("MUTED", "MUTED")
        assert each.why.endswith("ann: a new disk; otherwise NO-DATA: nothing was measured")
        for other in ("move:seconds", "move quota=2", "f"):  # these are not of the whole scenario
            assert found(silent, mutes=[mute(other)])[0].verdict == "NO-DATA"
        over = found(silent, mutes=[mute("move")], now=NOW + timedelta(days=3))
        assert over[0].verdict == "NO-DATA"

    def test_a_muted_scenario_in_an_environment_without_values_decides_nothing(self, about):
        day = 86_400_000_000
        old = (about("a", newest=BEGIN - day, newest_value=BEGIN - day), state())
        new = (about("b", environment="e2", environment_details='{"kernel": "6.12"}', newest_value=None, runs=0), None)
        assert found(old, new)[0].verdict == "ENV-CHANGED"
        (each,) = found(old, new, mutes=[mute("move")])
        assert each.verdict == "MUTED"
        assert "otherwise ENV-CHANGED: the environment changed: kernel 6.1 → 6.12" in each.why

    def test_it_ends_by_itself(self, about):
        pair = about("a"), state("REGRESSED")
        assert found(pair, mutes=[mute()], now=NOW + timedelta(days=3))[0].verdict == "REGRESSED"

    def test_it_ends_at_its_time_whatever_offset_that_was_written_with(self, about):
        pair = about("a"), state("REGRESSED")
        at, until = NOW - timedelta(days=1), NOW + timedelta(hours=1)
        for zone in (timezone(timedelta(hours=9)), timezone(timedelta(hours=-9)), UTC):
            one = Mute("move:seconds", "x", "ann", at.astimezone(zone).isoformat(), until.astimezone(zone).isoformat())
            ended = [found(pair, mutes=[one], now=NOW + timedelta(hours=h))[0].verdict for h in (0, 2)]
            assert ended == ["MUTED", "REGRESSED"]
        with pytest.raises(ValueError, match="which is over"):
            east = timezone(timedelta(hours=9))
            Mute("move:seconds", "x", "ann", NOW.isoformat(), (NOW - timedelta(hours=1)).astimezone(east).isoformat())

    def test_a_time_that_is_none_is_refused(self):
        with pytest.raises(ValueError, match="isoformat"):
            Mute("move:seconds", "x", "ann", "2026-01-01", "tomorrow")

    def test_one_without_a_reason_or_over_already_is_refused(self):
        with pytest.raises(ValueError, match="which is over"):
            mute(until=NOW - timedelta(days=2))
        with pytest.raises(ValueError, match="no reason"):
            Mute("move:seconds", " ", "ann", "2026-01-01", "2026-01-02")


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("s1", True),
        ("sc:seconds", True),
        ("move", True),
        ("move:seconds", True),
        ("move quota=1:seconds", True),
        ("move quota=2:seconds", False),
        ("move rate=1:seconds", False),
        ("move:rate", False),
        ("s2", False),
    ],
)
def test_a_pattern_names_series(text, fits):
    assert SeriesPattern.parse(text).fits("s1", "sc", "move", "seconds", {"quota": 1}) == fits


@pytest.mark.parametrize("text", ["", " :seconds", "quota=1:seconds", "move:", "move quota:seconds"])
def test_what_names_no_series_is_refused(text):
    with pytest.raises(ValueError, match="names no series"):
        SeriesPattern.parse(text)


def test_policies_are_kept_in_the_store(tmp_path):
    store = Store.open(tmp_path)
    assert policies.load(store) == Policies()
    floor = Floor("move:seconds", never_above=60.0)
    said = Policies().muted([mute()]).floored(Floor("move:seconds", never_above=1.0)).floored(floor)
    policies.save(store, said)
    assert policies.load(store) == said == Policies((mute(),), (floor,))
    assert said.without_mutes(["move:seconds"]).without_floors(["move:seconds"]) == Policies()
    with pytest.raises(ValueError, match=r"'other' is not muted; there are: move:seconds"):
        said.without_mutes(["other"])
    wrong = {"version": 1, "floors": [], "mutes": [{**asdict(mute()), "reason": 3}]}
    store.files.put(policies.POLICIES, json.dumps(wrong).encode())
    with pytest.raises(StoreError, match="not the file of mutes and floors"):
        policies.load(store)
    store.files.put(policies.POLICIES, json.dumps({"version": 2}).encode())
    with pytest.raises(StoreError, match="policies of version 2"):
        policies.load(store)
