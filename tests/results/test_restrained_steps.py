"""A broker that somebody stops in a KIP-455 scenario leaves its steps open; one that the scenario ends does not."""

from dataclasses import replace

import pyarrow as pa
import pytest

from results.contract.logs import HostLog, ProcessEnd
from results.contract.schema import Event, Sample, events_table, samples_table
from results.criteria import judge
from results.criteria.judgement import noisy
from tests.results.judged import named
from tests.results.stepped import LOGGED, LOGS, MOVING, POLLED, STEP, TOPIC, VARIANTS, log, stepped, told
from tests.results.synthetic import us

QUIET = {
    "jvm.stopped": 0.0,
    "agent.late": 0.002,
    "cpu.throttled.seconds": 4.0,
    "jvm.cpus": 2.0,
    "clock.offset": 1.7e9,
    "memory.killed": 0.0,
}
STUCK = VARIANTS["stuck0"]["events"]


def judged(changed=None, **variant):
    """The judgement of a scenario whose broker b1 has an agent; `changed` has functions of the time by metric."""
    manifest, samples, events = stepped(**variant)
    own = changed or {}
    rows = [
        Sample(us(t), "b1", metric, float(own[metric](t) if metric in own else value))
        for t in range(-2, 9)
        for metric, value in QUIET.items()
    ]
    return judge(manifest, pa.concat_tables([samples, samples_table(rows)]), events)


def verdict_of(judgement, name):
    return {each.name: each.verdict for each in judgement.criteria}[name]


STOPPED = {"jvm.stopped": lambda t: 2 <= t < 5}
WHY = "b1: a signal had stopped its process (SIGSTOP) in 3 readings, first at +1.0 s"
LATE = replace(STEP, within_s=1.5)
TIMED_OUT = replace(STEP, answer="REQUEST_TIMED_OUT")
UNHEARD = (*LOGGED, *POLLED, told(4.8, "trace.listed", {**MOVING, "adding": [9]}))
LEFT = Event(us(6), "trace.logs", TOPIC, None, {"topic": TOPIC, "sizes": {str(b): {"0": 1} for b in (1, 2, 3, 4)}})
BUSY = [Sample(us(t), "machine", "cpu.busy", 0.1) for t in range(9)]


@pytest.mark.parametrize(
    ("variant", "name"),
    [
        ({"events": STUCK}, "1-asked.done"),
        ({"steps": (TIMED_OUT,)}, "1-asked.answer"),
        ({"events": UNHEARD}, "polling-agrees.ListPartitionReassignments"),
        ({"events": (*LOGGED, *POLLED, LEFT)}, "logs-as-placed"),
        ({"equal": False}, "trace-whole"),
    ],
    ids=["state", "answer", "poll", "logs", "trace"],
)
def test_a_broker_that_somebody_stopped_leaves_open_what_fails_on_a_quiet_one(variant, name):
    quiet, stopped = judged(**variant), judged(STOPPED, **variant)
    assert (verdict_of(quiet, name), quiet.verdict) == ("fail", "fail")
    assert [each.verdict for each in named(quiet, "brokers-unrestrained")] == ["pass"]
    assert (verdict_of(stopped, name), stopped.verdict) == ("inconclusive", "inconclusive")
    assert [each.why for each in named(stopped, "brokers-unrestrained")] == [WHY]
    why = next(each.why for each in stopped.criteria if each.name == name)
    assert why.startswith(f"not judged: brokers-unrestrained (b1): {WHY}")
    assert noisy(stopped), "a night blames the machine"


@pytest.mark.parametrize(("changed", "verdict"), [(None, "fail"), (STOPPED, "inconclusive")])
def test_a_late_step_is_excused_by_a_stop_alone(changed, verdict):
    manifest, samples, events = stepped(steps=(LATE,))
    rows = [Sample(us(t), "b1", "jvm.stopped", float(changed["jvm.stopped"](t) if changed else 0)) for t in range(9)]
    judgement = judge(manifest, pa.concat_tables([samples, samples_table([*BUSY, *rows])]), events)
    assert verdict_of(judgement, "steps-in-time") == verdict


def stopped_at(second):
    return {"jvm.stopped": lambda t: t == second}


@pytest.mark.parametrize(("second", "verdict"), [(6, "inconclusive"), (7, "fail")])
@pytest.mark.parametrize(
    ("variant", "name"),
    [({"events": STUCK}, "1-asked.done"), ({"steps": (TIMED_OUT,)}, "1-asked.answer")],
    ids=["state", "answer"],
)
def test_a_stop_that_began_when_a_step_was_over_does_not_excuse_it(variant, name, second, verdict):
    """The step is over at 5 s. A stop that is read at 6 s may have begun since the reading at 5 s."""
    judgement = judged(stopped_at(second), **variant)
    assert [each.verdict for each in named(judgement, "brokers-unrestrained")] == ["inconclusive"]
    assert (verdict_of(judgement, name), judgement.verdict) == (verdict, verdict)


@pytest.mark.parametrize(("second", "verdict"), [(6, "inconclusive"), (7, "fail")])
def test_nor_is_a_step_late_by_a_stop_that_began_when_it_was_over(second, verdict):
    manifest, samples, events = stepped(steps=(LATE,))
    rows = [Sample(us(t), "b1", "jvm.stopped", float(t == second)) for t in range(9)]
    judgement = judge(manifest, pa.concat_tables([samples, samples_table([*BUSY, *rows])]), events)
    assert verdict_of(judgement, "steps-in-time") == verdict


def test_a_later_step_is_excused_and_an_earlier_one_is_not():
    later = replace(TIMED_OUT, name="again", from_us=us(5.5), to_us=us(7.5), expectations=())
    judgement = judged(stopped_at(7), steps=(TIMED_OUT, later))
    assert (verdict_of(judgement, "1-asked.answer"), verdict_of(judgement, "2-again.answer")) == (
        "fail",
        "inconclusive",
    )


def test_no_stop_makes_a_controller_accept_or_answer_before_it_decides_or_write_an_unsound_state():
    accepted = replace(STEP, wanted_answer="INVALID_REPLICA_ASSIGNMENT for 0")
    assert verdict_of(judged(STOPPED, steps=(accepted,)), "1-asked.answer") == "fail"
    early = judged(STOPPED, **VARIANTS["early0"])
    assert verdict_of(early, "polling-agrees.ListPartitionReassignments") == "fail"
    unsound = (*LOGGED[:2], log(1.5, 21, {**MOVING, "leader": 4}), log(1.6, 22, MOVING), LOGGED[2], *POLLED)
    assert verdict_of(judged(STOPPED, events=unsound), "trace-whole") == "fail"


@pytest.mark.parametrize(
    ("metric", "read", "why"),
    [
        ("agent.late", lambda t: 3.0 * (t == 4), "b1: its agent was 3.0 s late at +3.0 s"),
        (
            "cpu.throttled.seconds",
            lambda t: 4.0 + 0.8 * min(max(t - 1, 0), 4),
            "b1: a CPU limit that the topology does not declare held it back for 9.7 % of 33 s",
        ),
    ],
    ids=["paused", "limited"],
)
def test_a_scenario_of_some_seconds_is_long_enough_for_a_pause_and_a_limit(metric, read, why):
    (found,) = named(judged({metric: read}, events=STUCK), "brokers-unrestrained")
    assert found.verdict == "inconclusive" and found.why.startswith(why)


def test_a_moment_of_a_limit_is_no_cause_of_seconds():
    assert judged({"cpu.throttled.seconds": lambda t: 4.0 + 1.6 * (t > 3)}).verdict == "pass"


@pytest.mark.parametrize(
    "log",
    [HostLog("b1", terminated_us=(us(3),)), HostLog("b1", ended=(ProcessEnd(us(3), 137),))],
    ids=["SIGTERM", "SIGKILL"],
)
@pytest.mark.parametrize(
    ("event", "verdict"),
    [(None, "inconclusive"), ("broker.killed", "fail"), ("controller.killed", "fail"), ("process.ending", "fail")],
)
def test_a_process_that_the_scenario_ended_was_not_ended_from_outside(event, verdict, log):
    own = () if event is None else (Event(us(2.9), event, "the scenario", "b1"),)
    judgement = judged(events=(*STUCK, *own), logs=(log,))
    assert (judgement.verdict, verdict_of(judgement, "1-asked.done")) == (verdict, verdict)
    (restraint,) = named(judgement, "brokers-unrestrained")
    assert (restraint.verdict == "pass") is (event is not None)


def test_a_kill_from_outside_is_named_in_a_scenario_that_killed_the_broker_before():
    asked = Event(us(1.9), "process.ending", "SIGKILL", "b1")
    log = HostLog("b1", ended=(ProcessEnd(us(2), 137), ProcessEnd(us(4), 137)))
    judgement = judged(events=(*STUCK, asked), logs=(log,))
    (restraint,) = named(judgement, "brokers-unrestrained")
    assert restraint.why == "b1: SIGKILL ended its process at +3.0 s, and the run did not send it"


def test_a_broker_that_starts_again_is_no_restraint():
    """The counters of its JVM begin again, and no reading says anything of it while it does not run."""
    manifest, samples, events = stepped(logs=LOGS)
    rows = [Sample(us(t), "b1", metric, value) for t in range(9) for metric, value in QUIET.items()]
    down = [each for each in rows if not (each.metric.startswith("jvm.") and 2 <= each.ts_us / 1e6 - us(0) / 1e6 < 6)]
    pauses = [Sample(us(t), "b1", "jvm.pause.seconds", 0.4 if t < 2 else 0.1) for t in (0, 1, 6, 7, 8)]
    killed = Event(us(1.9), "broker.killed", "the scenario", "b1")
    table = pa.concat_tables([samples, samples_table([*down, *pauses])])
    judgement = judge(manifest, table, pa.concat_tables([events, events_table([killed])]))
    assert judgement.verdict == "pass", [each.why for each in judgement.criteria if each.verdict != "pass"]
    assert not named(judgement, "jvm-pauses") and not named(judgement, "machine-load")
