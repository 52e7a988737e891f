"""A night: which runs it makes, what canaries leave behind, and what was not run is told."""

import contextlib
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from results.contract.canaries import canaries
from results.contract.store import Store
from results.nights import policies
from results.nights.night import Night
from results.nights.policies import Mute, Policies
from testbed.cli import nights
from testbed.cli.main import main
from testbed.errors import TestbedError, UsageError
from testbed.runner import nightly
from testbed.runner.campaign import NIGHTLY
from testbed.runner.canary import around
from testbed.runner.execution import out_of_time
from testbed.runner.journal import CanaryReading, RunDone, RunFailed, SlotRun, campaign_state, known
from testbed.runner.variant import resolve
from testbed.software.automq import VARIABLE
from testbed.suites.suite import find_suite
from tests.runner.fakes import campaign


def test_each_case_is_a_variant_and_may_be_run_three_times():
    cases = find_suite("kip73").cases("ci")
    plain = nightly.variants(cases, "ci", "4.3.1")
    assert [each.label for each in plain] == [case.name for case in cases]
    assert {each.kafka for each in plain} == {"4.3.1"}
    planned = nightly.variants(cases, "ci", "4.3.1", 3)
    assert [each.label for each in planned] == [
        f"{name}{more}" for more in ("", ", 2", ", 3") for name in map(str, [case.name for case in cases])
    ]
    assert planned[-1].settings == plain[-1].settings


CALM = (12.1, 12.2, 12.0, 12.1, 12.3, 12.2, 11.9, 12.2, 12.1, 12.2, 12.1, 11.8)


@pytest.mark.parametrize(
    ("verdict", "values", "again"),
    [
        ("pass", {"move-seconds": 12.1}, False),
        ("pass", {"move-seconds": 22.5}, True),
        ("pass", {"move-seconds": 7.0}, True),
        ("pass", {"highest-11s": 99.0}, False),  # nothing is known of it
        ("fail", {"move-seconds": 12.1}, True),
        ("inconclusive", {}, True),
    ],
)
def test_a_case_is_run_again_only_when_its_first_run_is_in_doubt(tmp_path, verdict, values, again):
    asked = nightly.new_night(nightly.NightRequest("brief", ("move", "add"), store=str(tmp_path / "s")))
    known = {each.label: each.label.partition(",")[0] for each in asked.variants}
    # The other machine in the store takes twice as long.
    earlier = {("move", "here", "move-seconds"): CALM, ("move", "there", "move-seconds"): [2 * each for each in CALM]}
    needless = partial(nightly.needless_slots(known, earlier, lambda _run_id: "here"), asked)
    nothing = campaign_state([])
    assert [needless(slot, nothing) for slot in asked.slots] == [", " in slot.variant for slot in asked.slots]
    first = next(slot.index for slot in asked.slots if slot.variant == "move")
    state = campaign_state([RunDone(first, "r", verdict, values, (), "jars", 1.0)])
    wanted = {slot.variant for slot in asked.slots if not needless(slot, state)}
    assert wanted == {"move", "add"} | ({"move, 2", "move, 3"} if again else set())


def test_what_was_not_needed_is_no_problem(doors, tmp_path):
    asked = nightly.new_night(nightly.NightRequest("brief", ("move",), store=str(tmp_path / "s")))
    made = nightly.run_night(asked, None, None, print)
    assert (len(made.result.state.ran), made.result.complete, made.problems) == (1, True, ())


def test_a_night_of_what_there_is_not_is_refused(tmp_path):
    with pytest.raises(UsageError, match="no scenario"):
        nightly.new_night(nightly.NightRequest("kip73", ("nothing",), store=str(tmp_path)))


def test_a_history_is_begun_with_each_case_before_any_once_more(tmp_path):
    wanted = nightly.NightRequest("brief", ("move", "bootstrap"), "ci", "4.3.1", 3, 1, str(tmp_path / "store"))
    asked = nightly.new_night(wanted)
    labels = [slot.variant for slot in asked.slots]
    assert [sorted(labels[at : at + 2]) for at in (0, 2, 4)] == [["bootstrap", "move"]] * 3
    with pytest.raises(UsageError, match="0 repeats"):
        nightly.new_night(replace(wanted, repeats=0))


def test_the_budget_is_asked_for_each_run_alone():
    asked = campaign("ABC", repeats=1, command=NIGHTLY)
    state = campaign_state([RunDone(0, "r", "pass", {}, (), "jars", 40.0)])
    assert out_of_time(asked.slots[1], asked, state, 50.0) is None
    assert out_of_time(asked.slots[1], asked, state, 30.0)
    assert out_of_time(campaign("ABC", repeats=1).slots[1], campaign("ABC", repeats=1), state, 50.0)


def test_a_night_in_which_nothing_could_be_run_is_no_night(doors, tmp_path, capsys):
    doors.fail = lambda _variant, _number: TestbedError("no disk")
    asked = ["nightly", "--suite", "brief", "--store", str(tmp_path / "store"), "--out", str(tmp_path / "out")]
    assert main(asked) == 70
    assert "nothing of this night could be run: 3 runs in a row could not be made" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_night_tells_of_its_own_scenarios_and_of_all_since_it_was_begun(doors, tmp_path, monkeypatch):
    seen = []

    def judged(_store, _args, _page, made):
        seen.append(made)
        return Night((), {}), []

    monkeypatch.setattr(nights, "_night", judged)
    asked = ["nightly", "--suite", "brief", "--store", str(tmp_path / "store"), "--out", str(tmp_path / "out")]
    assert main([*asked, "--scenario", "move", "--scenario", "add"]) == 2
    [made] = seen
    wanted = [case for case in find_suite("brief").cases("ci") if case.name in ("move", "add")]
    assert len(made.scenarios) == len(wanted) == 2
    assert made.ran == made.scenarios


def test_a_night_is_not_gone_on_with_as_another_one(doors, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(nights, "_night", lambda *_args: (Night((), {}), []))
    store = ["--store", str(tmp_path / "store"), "--out", str(tmp_path / "out")]
    asked = ["nightly", "--suite", "brief", "--kafka", "4.3.1", *store]
    assert main(asked) == 2
    [night_id] = known()
    for more in (["--resume", night_id], ["--resume", night_id, "--repeats", "1", "--seed", "1", "--profile", "ci"]):
        assert main([*asked, *more]) == 2
        assert main(["nightly", *more]) == 2
    capsys.readouterr()
    for wrong, why in (
        (["--kafka", "4.2.1"], "kafka: 4.3.1 there, 4.2.1 here"),
        (["--suite", "kip455"], "scenarios: add, "),
        (["--scenario", "move"], "scenarios: add, "),
        (["--repeats", "5"], "repeats: 1 there, 5 here"),
        (["--store", str(tmp_path / "other")], "store: "),
    ):
        assert main(["nightly", "--resume", night_id, *wrong]) == 64
        assert why in capsys.readouterr().err


def test_json_says_where_the_report_is_and_whether_the_night_is_whole(doors, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(nights, "_night", lambda *_args: (Night((), {}), []))
    out = tmp_path / "out"
    asked = ["nightly", "--suite", "brief", "--scenario", "move", "--store", str(tmp_path / "store"), "--out", str(out)]
    assert main([*asked, "--json"]) == 2
    document = json.loads(capsys.readouterr().out)
    assert (document["night"], document["complete"], document["ended"]) == (known()[0], True, "all runs are made")
    assert (document["report"], document["junit"]) == (str(out / "index.html"), str(out / "junit.xml"))


def test_a_resumed_night_does_not_name_the_missing_software_of_another_suite(doors, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(nights, "_night", lambda *_args: (Night((), {}), []))
    monkeypatch.setattr(nightly, "SUITE", "s3")  # the suite without another request
    monkeypatch.delenv(VARIABLE, raising=False)
    asked = ["nightly", "--suite", "brief", "--scenario", "move", "--store", str(tmp_path / "store")]
    assert main(asked) == 2
    capsys.readouterr()
    assert main(["nightly", "--resume", known()[0]]) == 2
    assert "not run: no AutoMQ" not in capsys.readouterr().err


def test_a_case_that_was_not_run_says_nothing_of_tonight(doors, tmp_path):
    asked = nightly.new_night(nightly.NightRequest("brief", store=str(tmp_path / "s")))
    case = asked.variants[0].label
    doors.fail = lambda label, _number: TestbedError("the broker is gone") if label == case else None
    made = nightly.run_night(asked, None, None, print)
    assert made.scenarios - made.ran == {nightly.scenario_of(resolve(asked.variants[0]))}


def test_a_muted_case_that_cannot_be_run_is_no_problem_of_the_night(doors, tmp_path):
    asked = nightly.new_night(nightly.NightRequest("brief", store=str(tmp_path / "s")))
    case = asked.variants[0]
    doors.fail = lambda label, _number: TestbedError("the broker is gone") if label == case.label else None
    now = datetime.now(UTC)
    at, until = now.isoformat(), (now + timedelta(days=1)).isoformat()
    mute = Mute(nightly.scenario_of(resolve(case)), "a new disk", "ann", at, until)
    policies.save(Store.open(tmp_path / "s"), Policies((mute,)))
    assert nightly.run_night(asked, None, None, print).problems == ()


def test_policies_that_cannot_be_read_are_refused_before_the_first_run(doors, tmp_path, capsys):
    Store.open(tmp_path / "s").files.put(policies.POLICIES, b"{}")
    assert main(["nightly", "--suite", "brief", "--store", str(tmp_path / "s")]) == 70
    assert policies.POLICIES in capsys.readouterr().err
    assert known() == []


def test_a_night_that_cannot_be_judged_now_says_how_it_is_later(doors, tmp_path, monkeypatch, capsys):
    def locked(*_asked):
        raise TestbedError("the store is being compacted")

    monkeypatch.setattr(nights, "_night", locked)
    asked = ["nightly", "--suite", "brief", "--store", str(tmp_path / "store"), "--out", str(tmp_path / "out")]
    assert main([*asked, "--scenario", "move"]) == 70
    told = capsys.readouterr().err
    assert "the store is being compacted; the night's runs are in the store, and `testbed nightly --resume " in told


def test_what_was_not_run_is_told(doors, tmp_path):
    doors.fail = lambda variant, _number: nightly_error(variant)
    asked = campaign(
        "ABC", repeats=1, command=NIGHTLY, id="20261121T200000Z-nightly-0a1b2c", store=str(tmp_path / "store")
    )
    made = nightly.run_night(asked, None, None, print)
    assert [problem.split(" was not run: ") for problem in made.problems] == [["B", "the broker is gone"]]
    assert not made.result.complete


def test_what_was_not_run_several_times_is_told_once(doors, tmp_path):
    doors.fail = lambda variant, _number: nightly_error(variant)
    asked = campaign("ABC", repeats=2, command=NIGHTLY, id="20261121T200000Z-nightly-0a1b2c", store=str(tmp_path / "s"))
    assert nightly.run_night(asked, None, None, print).problems == ("B was not run 2 times: the broker is gone",)


def test_a_night_in_which_nothing_can_be_run_any_more_ends_and_is_judged(doors, tmp_path):
    doors.fail = lambda _variant, number: TestbedError("no disk") if number else None
    asked = campaign(
        "ABCDE", repeats=1, command=NIGHTLY, id="20261121T200000Z-nightly-0a1b2c", store=str(tmp_path / "s")
    )
    made = nightly.run_night(asked, None, None, print)
    assert (len(made.result.state.ran), made.result.complete) == (1, False)
    assert made.result.why_ended == "3 runs in a row could not be made, the last one because: no disk"
    assert len(made.problems) == 4


@pytest.mark.parametrize("end", [None, KeyboardInterrupt])
def test_canaries_are_put_beside_each_run_also_of_a_series_that_is_interrupted(doors, tmp_path, end):
    def fail(_variant, number):
        if number == 2 and end is not None:
            raise end

    doors.fail = fail
    asked = campaign(
        "ABC", repeats=1, command=NIGHTLY, id="20261121T200000Z-nightly-0a1b2c", store=str(tmp_path / "store")
    )
    with pytest.raises(end) if end else contextlib.nullcontext():
        nightly.run_night(asked, None, None, print)
    store, [executor] = Store.open(tmp_path / "store"), doors.executors
    assert len(executor.store) == 3 - (end is not None)
    for run_id in executor.store:
        assert canaries(store, run_id) == executor.reading


def nightly_error(variant):
    return TestbedError("the broker is gone") if variant == "B" else None


def test_a_canary_is_the_median_around_its_run():
    look = lambda cpu, **other: CanaryReading({"cpu": cpu, **other}, "e")  # noqa: E731
    done = RunDone(0, "r", "pass", {}, (), "jars", 1.0)
    assert around(SlotRun(done, (look(1.0),), (look(3.0, nic=1.0),))) == {"cpu": 2.0, "nic": 1.0}
    assert around(SlotRun(done, (), ())) == {}
    assert RunFailed(0, "x", 1.0).why == "x"
