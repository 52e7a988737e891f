"""Runs of steps: judged by the states that the controller's log has, and reported."""

import json
import re
from dataclasses import replace

import pyarrow as pa
import pytest

from results.contract.clocks import ClockReading
from results.contract.manifest import Facts, Manifest, Records
from results.contract.schema import Event, Sample, samples_table
from results.contract.steps import RequiredState, State
from results.criteria import judge
from results.criteria.judgement import noisy, rates_failed
from results.report import render
from testbed.topology.jvm import OWN
from tests.results.stepped import DONE, LOGGED, MOVING, ORIGINAL, POLLED, STEP, TOPIC, VARIANTS, log, stepped, told
from tests.results.synthetic import us


def verdicts(**variant):
    manifest, samples, events = stepped(**variant)
    return {c.name: c for c in judge(manifest, samples, events).criteria}


def test_what_was_seen_as_expected_passes():
    found = verdicts()
    assert {c.verdict for c in found.values()} == {"pass"}
    assert list(found) == [
        "1-asked.answer",
        "1-asked.moving",
        "1-asked.both",
        "1-asked.done",
        "trace-whole",
        "polling-agrees.DescribeTopics",
        "polling-agrees.ListPartitionReassignments",
        "logs-clean",
    ]
    assert found["1-asked.done"].why == "it was so then"
    assert found["1-asked.moving"].why.startswith("it was so 0.00 s after it was asked for")
    assert "KIP-455: R: [1, 4, 3, 2]" in found["1-asked.both"].why


UNREAD = Event(us(6), "records.unread", TOPIC, None, {"why": "the leader does not answer"})


@pytest.mark.parametrize(
    ("records", "events", "verdict"),
    [
        (Records(9, 9, 0, 0, 0), (), "pass"),
        (Records(9, 8, 1, 0, 0), (), "fail"),
        (Records(9, 9, 0, 0, 1), (), "fail"),
        (Records(9, 9, 0, 0, 0, ("kip455-0: the log on b4 is not that of its leader, b2",)), (), "fail"),
        (None, (UNREAD,), "inconclusive"),
        (None, (), None),
    ],
    ids=["intact", "lost", "corrupt", "unlike", "unread", "none"],
)
def test_a_scenario_s_records_are_judged_where_it_reads_them_back(records, events, verdict):
    manifest, samples, recorded = stepped(events=(*LOGGED, *POLLED, *events))
    manifest = replace(manifest, facts=Facts(records=records, logs=manifest.facts.logs))
    found = {c.name: c.verdict for c in judge(manifest, samples, recorded).criteria}
    assert found.get("records-intact") == verdict


def test_a_state_that_should_never_be_fails_when_it_was_also_for_a_moment():
    found = verdicts(**VARIANTS["never0"])
    assert {name: c.verdict for name, c in found.items() if c.verdict != "pass"} == {"1-asked.both": "fail"}


def test_a_step_that_came_too_late_proves_nothing():
    found = verdicts(**VARIANTS["later0"])
    assert {c.verdict for name, c in found.items() if name.startswith("1-")} == {"inconclusive"}
    assert "was not as the step needs it (replicas {1, 2, 3}, nothing adding); it was: replicas [4, 3, 2]" in (
        found["1-asked.done"].why
    )


def test_an_end_that_did_not_come_fails_and_steps_not_taken_are_inconclusive():
    assert verdicts(**VARIANTS["stuck0"])["1-asked.done"].verdict == "fail"
    found = verdicts(**VARIANTS["nolead"])
    assert found["2-not-taken.moving"].verdict == "inconclusive"
    assert "was not taken: asked did not come to its end" in found["2-not-taken.answer"].why
    # When it was refused the move was over: what it needs was not there any more.
    assert found["3-refused.answer"].verdict == "inconclusive"


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"leader": 4}, "is led by 4, which is not in sync"),
        ({"isr": [1, 2, 3, 9]}, "has [9] in sync, adding or removing"),
        ({"replicas": [4, 3, 2, 1, 1]}, "has a broker twice"),
    ],
)
def test_a_state_that_breaks_a_rule_of_the_controller_fails_be_it_for_a_moment(changed, why):
    events = (*LOGGED[:2], log(1.5, 21, {**MOVING, **changed}), log(1.6, 22, MOVING), LOGGED[2], *POLLED)
    found = verdicts(events=events)["trace-whole"]
    assert found.verdict == "fail" and found.why.startswith(f"kip455-0 {why}")
    assert {c.name: c.verdict for c in clocked(-3.0, events=events).criteria}["trace-whole"] == "fail"


def test_another_answer_than_expected_fails():
    found = verdicts(steps=(STEP.__class__("a", "b", us(1.0015), us(5), "NOT_CONTROLLER", "accepted", ()),))
    assert (found["1-a.answer"].verdict, found["1-a.answer"].observed) == ("fail", "NOT_CONTROLLER")


def test_without_the_log_nothing_is_said_of_any_state():
    found = verdicts(**VARIANTS["nolog0"])
    assert {c.verdict for name, c in found.items() if name.startswith("1-")} == {"inconclusive"}
    assert found["trace-whole"].verdict == "inconclusive"
    assert found["polling-agrees.DescribeTopics"].verdict == "inconclusive"


def test_a_client_that_was_told_what_was_not_decided_yet_is_found():
    assert verdicts(**VARIANTS["early0"])["polling-agrees.ListPartitionReassignments"].observed == 1
    found = verdicts(**VARIANTS["untold"])
    assert found["polling-agrees.DescribeTopics"].verdict == "inconclusive"
    assert found["trace-whole"].verdict == "fail"


def clocked(set_s, *, clocks=(), **variant):
    """The judgement of a run whose machine's clock was set by so many seconds after 3 s."""
    manifest, samples, events = stepped(**variant)
    read = [Sample(us(t), "machine", "clock.offset", 1.7e9 + set_s * (t > 3)) for t in range(8)]
    return judge(replace(manifest, clocks=clocks), pa.concat_tables([samples, samples_table(read)]), events)


def test_a_clock_that_is_steady_passes_and_changes_nothing():
    found = {c.name: c.verdict for c in clocked(0.0).criteria}
    assert found.pop("clock-steady") == "pass"
    assert found == {name: c.verdict for name, c in verdicts().items()}


LEFT = Event(us(6), "trace.logs", TOPIC, None, {"topic": TOPIC, "sizes": {str(b): {"0": 1} for b in (1, 2, 3, 4)}})
LEFT_BEHIND = {"events": (*LOGGED, *POLLED, LEFT)}


@pytest.mark.parametrize(
    ("variant", "name"),
    [
        (VARIANTS["never0"], "1-asked.both"),
        ({"events": (*LOGGED[:2], *POLLED[:4])}, "1-asked.done"),
        (VARIANTS["early0"], "polling-agrees.ListPartitionReassignments"),
        (LEFT_BEHIND, "logs-as-placed"),
    ],
)
def test_a_state_at_a_wrong_instant_is_not_kafkas_where_a_clock_was_set(variant, name):
    assert verdicts(**variant)[name].verdict == "fail"
    judgement = clocked(-3.0, **variant)
    found = {c.name: c for c in judgement.criteria}
    assert found[name].verdict == "inconclusive"
    assert found[name].why.startswith("not judged: clock-steady (machine): the clock of machine was set by -3.000 s")
    assert noisy(judgement)
    far = clocked(0.0, clocks=(ClockReading("m2", "before", 1.0, 0.001),), **variant)
    assert {c.name: c.verdict for c in far.criteria}[name] == "inconclusive"


REVERSED = log(4.5, 30, {**DONE, "replicas": [2, 3, 4]})
UNHEARD = told(4.8, "trace.listed", {**MOVING, "adding": [9]})
STRANGE = Event(us(6), "trace.logs", TOPIC, None, {"topic": TOPIC, "sizes": {str(b): {"0": 1} for b in (2, 3, 4, 9)}})


@pytest.mark.parametrize(
    ("events", "name"),
    [
        ((*LOGGED[:2], REVERSED, *POLLED), "1-asked.done"),
        ((*LOGGED, *POLLED, UNHEARD), "polling-agrees.ListPartitionReassignments"),
        ((*LOGGED, *POLLED, STRANGE), "logs-as-placed"),
    ],
)
def test_a_state_that_fits_to_no_time_fails_whatever_the_clocks_were(events, name):
    assert {c.name: c.verdict for c in clocked(-3.0, events=events).criteria}[name] == "fail"
    far = clocked(0.0, clocks=(ClockReading("m2", "before", 1.0, 0.001),), events=events)
    assert {c.name: c.verdict for c in far.criteria}[name] == "fail"


def test_a_late_state_is_open_where_a_clock_was_set_and_one_of_an_earlier_step_is_no_late_one():
    """The end comes 1 s late; another step waits in vain for the state from before the first one."""
    late = (*LOGGED[:2], log(6, 30, DONE), *POLLED)
    assert {c.name: c.verdict for c in clocked(0.0, events=late).criteria}["1-asked.done"] == "fail"
    assert {c.name: c.verdict for c in clocked(-3.0, events=late).criteria}["1-asked.done"] == "inconclusive"
    end = replace(STEP.expectations[3], name="back", wanted=RequiredState(order=(1, 2, 3)))
    back = replace(STEP, name="back", from_us=us(5.1), to_us=us(6), expectations=(end,))
    found = {c.name: c.verdict for c in clocked(-3.0, steps=(STEP, back)).criteria}
    assert (found["1-asked.done"], found["2-back.back"]) == ("pass", "fail")
    cancelled = (*LOGGED[:2], log(4.5, 30, ORIGINAL), *POLLED)
    only = {c.name: c.verdict for c in clocked(-3.0, events=cancelled, steps=(replace(back, name="asked"),)).criteria}
    assert only["1-asked.back"] == "pass"


def test_an_answer_and_the_replayed_log_need_no_clock():
    steps = (replace(STEP, answer="NOT_CONTROLLER"),)
    found = {c.name: c.verdict for c in clocked(-3.0, steps=steps, equal=False).criteria}
    assert (found["1-asked.answer"], found["trace-whole"]) == ("fail", "fail")


def test_logs_that_stay_are_no_reason_to_measure_nics():
    assert not rates_failed(judge(*stepped(**LEFT_BEHIND)))


def test_a_deleted_partition_is_gone_and_one_never_heard_of_is_not_known():
    found = verdicts(**VARIANTS["gone00"])
    assert found["1-asked.gone"].verdict == "pass"
    assert found["1-asked.done"].verdict == "fail"
    assert found["2-other.there"].verdict == "inconclusive"


def test_a_record_of_a_batch_that_was_begun_a_moment_before_is_of_the_step_that_asked_for_it():
    found = verdicts(events=(LOGGED[0], log(0.98, 20, {**LOGGED[1].detail}), LOGGED[2], *POLLED))
    assert found["1-asked.moving"].verdict == "pass"


@pytest.mark.parametrize(
    ("wanted", "met"),
    [
        (RequiredState(), True),
        (RequiredState(replicas=(4, 1, 2, 3)), True),
        (RequiredState(replicas=(1, 2, 3)), False),
        (RequiredState(order=(4, 3, 2, 1)), True),
        (RequiredState(order=(1, 2, 3, 4)), False),
        (RequiredState(adding=()), False),
        (RequiredState(removing=(1,), isr=(3, 2, 1)), True),
        (RequiredState(in_sync=(4,)), False),
        (RequiredState(out_of_sync=(4,)), True),
        (RequiredState(leaders=()), False),
        (RequiredState(gone=True), False),
    ],
)
def test_sets_are_sets_and_orders_are_orders(wanted, met):
    assert wanted.met_by(State((4, 3, 2, 1), (4,), (1,), (1, 2, 3), 1, 0)) is met
    assert wanted.met_by(State(gone=True)) is wanted.gone


def test_the_manifest_keeps_the_steps():
    manifest, _samples, _events = stepped()
    assert Manifest.from_json(manifest.to_json()) == manifest
    assert json.loads(manifest.to_json())["steps"]["steps"][0]["expectations"][1]["wanted"]["in_sync"] == []


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_report_tells_steps_criteria_and_states(variant):
    manifest, samples, events = stepped(**VARIANTS[variant])
    judgement = judge(manifest, samples, events)
    page = render(manifest, samples, events, judgement.criteria, judgement.measures)
    for criterion in judgement.criteria:
        assert criterion.name in page
    drawn = len(re.findall(r"<rect class=\"(?:in-sync|out-of-sync)", page))
    assert (drawn > 0) == (variant != "nolog0")
    assert "http" not in page.replace("http-equiv", "")


def test_the_report_says_which_jvm_each_host_has():
    """Only the page of a throttled move said it, and no page said it of a host that declares none."""
    manifest, samples, events = stepped()
    hosts = {
        "b1": {"kafka": {"jvm": {"heap": "1280MiB", "gc": "g1", "flags": ["-Da=<b>"]}}},
        "b2": {"kafka": {"jvm": {"gc": "zgc"}}},
        "b3": {"kafka": {}},
        "b4": {"kafka": {}},
        "s1": {},
    }
    manifest = replace(manifest, topology=replace(manifest.topology, document={"hosts": hosts}))
    judgement = judge(manifest, samples, events)
    page = render(manifest, samples, events, judgement.criteria, judgement.measures)
    assert "<dt>JVM of b1</dt><dd>heap 1280MiB, gc g1, -Da=&lt;b&gt;</dd>" in page
    assert "<dt>JVM of b2</dt><dd>heap 256MiB to 512MiB, gc zgc</dd>" in page
    assert f"<dt>JVM of b3, b4</dt><dd>{OWN.in_force}</dd>" in page
    assert "s1</dt><dd>heap" not in page


def test_a_run_without_a_step_taken_has_no_picture():
    none = STEP.__class__("a", "b", None, None, "", "accepted", (), "nothing")
    manifest, samples, events = stepped(steps=(none,))
    judgement = judge(manifest, samples, events)
    assert judgement.verdict == "inconclusive"
    assert '<rect class="in-sync' not in render(manifest, samples, events, judgement.criteria, judgement.measures)
