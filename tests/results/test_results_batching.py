"""Steps judged: limits kept, limits broken, and what nobody saw."""

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from results.contract.document import decode, encode
from results.contract.logs import HostLog
from results.contract.manifest import Done
from results.contract.move import BatchingPolls, Limits
from results.contract.schema import Event, Sample, events_table, samples_table
from results.criteria import judge
from results.criteria.catalogue.in_sync_unbounded import judge_in_sync
from results.criteria.catalogue.last_step import judge_last_step
from results.criteria.catalogue.leaders_in_flight import judge_leaders
from results.criteria.catalogue.no_double_copy import judge_copies
from results.criteria.catalogue.partitions_in_flight import judge_partitions
from results.criteria.catalogue.replicas_fetching import judge_fetching
from results.criteria.catalogue.replicas_per_step import judge_replicas
from tests.results.moves import simulate
from tests.results.scenes import one_to_two, two_node
from tests.results.synthetic import us
from tests.results.test_planned_steps import logged, planned

FINE = BatchingPolls("batched", Limits(1, 25, 5), 80, 0.4, 100, 200, 25, 5, 1, 2)


def judge_batching(polls):
    judges = (judge_partitions, judge_leaders, judge_replicas, judge_last_step, judge_copies)
    return [finding for judge_each in judges for finding in judge_each(polls)]


def verdicts(steps):
    return {each.name: each.verdict for each in judge_batching(steps)}


def test_what_was_promised_was_kept():
    assert verdicts(FINE) == {
        "partitions-in-flight": "pass",
        "leaders-in-flight": "pass",
        "replicas-per-step": "pass",
        "last-step": "pass",
        "no-double-copy": "pass",
    }


@pytest.mark.parametrize(
    ("name", "broken"),
    [
        ("partitions-in-flight", {"most_in_flight": 26}),
        ("leaders-in-flight", {"most_leaders": 6}),
        ("replicas-per-step", {"most_added": 2, "added_over": ("t-0: [3, 4]",)}),
        ("last-step", {"astray": ("t-0: [3], not [4]",)}),
        ("no-double-copy", {"again": ("t-0: broker 3",)}),
    ],
)
def test_each_broken_promise_fails_by_itself_also_when_it_was_seldom_looked(name, broken):
    for seen in (FINE, replace(FINE, gap_s=9.0)):
        found = verdicts(replace(seen, **broken))
        assert [each for each, verdict in found.items() if verdict == "fail"] == [name]


@pytest.mark.parametrize("unseen", [{"gap_s": 3.5}, {"gap_s": None}, {"steps": 0}])
def test_what_nobody_saw_is_not_known_to_be_kept(unseen):
    assert set(verdicts(replace(FINE, **unseen)).values()) == {"inconclusive"}


def test_without_a_limit_there_is_nothing_to_keep():
    assert set(verdicts(replace(FINE, limits=Limits(None, None, None)))) == {"last-step", "no-double-copy"}
    assert verdicts(None) == {"last-step": "inconclusive"}


def test_a_limit_that_the_whole_plan_keeps_says_nothing():
    """Of 100 partitions no 101 are in flight: the limit was kept whatever the driver did."""
    few = replace(FINE, limits=Limits(1, 100, 100))
    assert set(verdicts(few)) == {"replicas-per-step", "last-step", "no-double-copy"}
    assert "partitions-in-flight" in verdicts(replace(few, limits=Limits(1, 99, None)))
    assert verdicts(replace(few, partitions=0, steps=0))["partitions-in-flight"] == "inconclusive"


def test_a_limit_is_judged_although_brokers_described_few_partitions_of_the_plan():
    """Of a plan of 100, brokers described 10, and the controller listed 26: the limit of 25 could not fail."""
    few = replace(FINE, limits=Limits(1, 25, 25), partitions=10, most_in_flight=26, most_leaders=26)
    found = verdicts(few)
    assert (found["partitions-in-flight"], found["leaders-in-flight"]) == ("fail", "fail")


def test_more_replicas_for_min_insync_replicas_are_no_breach():
    assert verdicts(replace(FINE, most_added=3))["replicas-per-step"] == "pass"


def test_a_run_keeps_it():
    assert decode(BatchingPolls, encode(FINE), "steps") == FINE


def judged(scene, events=(), batching=FINE, **known):
    run = simulate(scene)
    seen = replace(run.manifest.facts, batching=batching, **known)
    stepped = replace(run.manifest, parameters={**run.manifest.parameters, "mode": "batched"}, facts=seen)
    judgement = judge(stepped, run.samples, pa.concat_tables([run.events, events_table(events)]))
    return {each.name: each.verdict for each in judgement.criteria}


def test_a_move_in_steps_is_judged_by_its_bound_and_its_steps_and_by_no_steady_rate():
    found = judged(two_node())
    assert {"throttled-window", "long-window-bound", "last-step", "quota-in-force", "move-done"} <= set(found)
    assert not {"steady-mean", "duration-model", "bottleneck-as-modelled"} & set(found)
    assert set(found.values()) == {"pass"}


def test_without_a_look_at_its_steps_it_does_not_pass():
    assert judged(two_node(), batching=None)["last-step"] == "inconclusive"


HALF_WAY = (planned([(1,), (2,)]), *logged([(1,)]))
NOT_DONE = Done(False, "still being reassigned", 50.0)


@pytest.mark.parametrize(
    ("signals", "done", "verdicts"),
    [
        ((), NOT_DONE, ("fail", "fail")),
        ((20,), NOT_DONE, ("inconclusive", "inconclusive")),
        ((20,), Done(True, ""), ("fail", "inconclusive")),
    ],
    ids=["nothing", "somebody ended a broker", "the move is done all the same"],
)
def test_a_broker_that_somebody_ended_explains_the_end_of_a_move_that_is_not_done_and_steps_without_it(
    signals, done, verdicts
):
    ended = (HostLog("b1"), HostLog("b2", terminated_us=tuple(map(us, signals))))
    astray = replace(FINE, astray=("t-0: [1], not [2]",))
    found = judged(two_node(), events=HALF_WAY, logs=ended, done=done, batching=astray)
    assert (found["last-step"], found["steps-as-planned"]) == verdicts


@pytest.mark.parametrize(("late", "verdict"), [(True, "inconclusive"), (False, "fail")])
def test_a_broker_that_a_slow_machine_does_not_start_in_time_explains_a_missing_last_step(late, verdict):
    """Such a run of the scenario `bounce` failed, and its `move-done` was inconclusive."""
    run = simulate(two_node())
    astray = replace(FINE, astray=("t-0: [1], not [2]",))
    facts = replace(run.manifest.facts, batching=astray, done=Done(False, "the restart of b2 failed: waited"))
    manifest = replace(run.manifest, parameters={**run.manifest.parameters, "mode": "batched"}, facts=facts)
    leaving = Event(us(5), "broker.leaving", "restart", "b2")
    failed = Event(us(50), "restart.failed", "restart", "b2", {"why": "waited", "late": late})
    events = run.events.filter(pc.not_equal(run.events["kind"], "move.done"))
    events = pa.concat_tables([events, events_table([leaving, failed])])
    others = run.samples.filter(pc.invert(pc.is_in(run.samples["metric"], pa.array(["cpu.busy", "cpu.steal"]))))
    load = [Sample(us(t), "machine", "cpu.busy", 0.4) for t in range(-5, 60)]
    load += [Sample(us(t), "machine", "cpu.steal", 0.3 if 5 < t <= 50 else 0.0) for t in range(-5, 60)]
    judgement = judge(manifest, pa.concat_tables([others, samples_table(load)]), events)
    found = {each.name: each.verdict for each in judgement.criteria}
    assert (found["last-step"], found["move-done"]) == (verdict, verdict)


def test_under_load_the_windows_are_judged_and_the_nics_are_not_compared_with_logs():
    found = judged(one_to_two(2e6))
    assert {
        "throttled-window",
        "long-window-bound",
        "control-unthrottled",
        "last-step",
        "no-isr-shrink",
        "live-records",
    } <= set(found)
    assert not {"nic-conservation", "steady-mean"} & set(found)


def fetching(scene, **seen):
    run = simulate(scene)
    return judge_fetching(replace(FINE, **seen) if seen else None, run.manifest.move)


@pytest.mark.parametrize(
    ("mode", "limit", "seen", "verdict"),
    [
        ("unbatched", None, 2, "pass"),
        ("unbatched", None, 1, "fail"),
        ("batched", 1, 2, "pass"),
        ("batched", 1, 3, "fail"),
    ],
)
def test_at_once_all_replicas_fetch_and_in_steps_only_r_more_than_before(mode, limit, seen, verdict):
    [found] = fetching(one_to_two(2e6), mode=mode, limits=Limits(limit, None, None), fetching=seen)
    assert found.verdict == verdict


def test_without_r_or_a_look_there_is_nothing_to_say_of_who_fetches():
    assert fetching(one_to_two(2e6), mode="batched", limits=Limits(None, 5, None)) == []
    assert [each.verdict for each in fetching(one_to_two(2e6))] == ["inconclusive"]
    never = fetching(one_to_two(2e6), mode="unbatched", limits=Limits(None, None, None), steps=0, fetching=0)
    assert [(each.verdict, each.why) for each in never] == [("inconclusive", "no step was listed in 80 polls")]


def test_replicas_in_sync_are_not_held_back_by_a_throttle_below_what_they_take():
    quotas = ((0.0, 10e6), (10.0, 1e6), (20.0, 10e6))

    def verdict(run):
        found = judge_in_sync(judge(run.manifest, run.samples, run.events).measures)
        return found.verdict, found.why

    above, why = verdict(simulate(one_to_two(4e6, quotas=quotas)))
    assert above == "pass"
    assert why.startswith("b1 sent ")
    assert verdict(simulate(one_to_two(2e6)))[0] == "inconclusive"
    below = simulate(one_to_two(0.0, quotas=((0.0, 10e6), (15.0, 5e6), (45.0, 10e6))))
    assert verdict(below)[0] == "fail"
    # New replicas get five times the lowered throttle: those in sync may be held back all the same.
    leaking = tuple((host, 10.0, 20.0, 5e6) for host in ("b1", "b2", "b3"))
    assert verdict(simulate(one_to_two(0.5e6, quotas=quotas, real_quota=leaking)))[0] == "fail"
    # A leader that sent nothing at all in a phase that was watched: it was inconclusive.
    held, why = verdict(simulate(one_to_two(0.0, quotas=quotas, rests=((9.5, 20.5),))))
    assert (held, why.startswith("b1 sent 0")) == ("fail", True)
    brief = ((0.0, 10e6), (10.0, 1e6), (12.5, 10e6))
    assert verdict(simulate(one_to_two(0.0, quotas=brief, rests=((9.5, 13.0),))))[0] == "inconclusive"
