"""A move that is not done in its time: a machine that was unfit explains that it is late, and no wrong state."""

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from results.contract.manifest import Differences, Done
from results.contract.schema import Event, Sample, events_table, samples_table
from results.criteria import judge
from results.criteria.judgement import noisy
from tests.results.judged import named
from tests.results.relocated import Told, relocated
from tests.results.synthetic import us

COPY_S = 58
"""A copy of 580 MB at 10 MB/s."""


def sampled(metric, value, host="machine", until=60):
    return [Sample(us(t), host, metric, float(value(t))) for t in range(-5, until)]


def undone(run, waited_s, in_flight=lambda _t: 3, more=(), *, nic=None, why="still being reassigned", told=()):
    """The findings of `move-done` and the judgement of a run whose wait was over after so many seconds.

    `told` are events of an action that ended the move: then the runner did not wait for the move itself.
    """
    dropped = pa.array(["move.in_flight", "cpu.busy", "cpu.steal"])
    others = run.samples.filter(pc.invert(pc.is_in(run.samples["metric"], dropped)))
    others = others.filter(pc.less_equal(pc.cast(others["ts"], pa.int64()), us(waited_s)))
    polls = [Sample(us(t), "driver", "move.in_flight", float(in_flight(t))) for t in range(1, round(waited_s) + 1)]
    load = {each.metric for each in more}
    for metric, value in (("cpu.busy", 0.4), ("cpu.steal", 0.0)):
        if metric not in load:
            more = [*more, *sampled(metric, lambda _t, value=value: value, until=round(waited_s) + 2)]
    samples = pa.concat_tables([others, samples_table([*polls, *more])])
    events = run.events.filter(pc.not_equal(run.events["kind"], "move.done"))
    events = pa.concat_tables([events, events_table(told)])
    facts = replace(run.manifest.facts, done=Done(False, why, None if told else waited_s))
    manifest = replace(run.manifest, facts=facts)
    if nic:
        manifest = replace(manifest, nics=tuple(replace(each, ratio=nic) for each in manifest.nics))
    judgement = judge(manifest, samples, events)
    (found,) = named(judgement, "move-done")
    return found, judgement


WAITING = sampled("pressure.io", lambda t: 40 + 4.0 * (t > 20))
SHORT_OF_MEMORY = sampled("pressure.memory", lambda t: 40 + 4.0 * (t > 20))
SET = sampled("clock.offset", lambda t: 1.7e9 - 30.0 * (t >= 20))
UNFIT = {"slow NIC": ([], 0.5), "disk": (WAITING, None), "memory": (SHORT_OF_MEMORY, None), "clock": (SET, None)}
NAMES = {"slow NIC": "nic-measured", "disk": "disk-pressure", "memory": "memory-pressure", "clock": "clock-steady"}


def test_a_move_that_goes_on_too_long_on_a_fit_machine_fails(make_run):
    assert undone(make_run(), COPY_S - 8)[0].verdict == "fail"


@pytest.mark.parametrize("cause", UNFIT)
def test_a_move_that_goes_on_too_long_on_an_unfit_machine_names_the_fact(make_run, cause):
    more, nic = UNFIT[cause]
    found, judgement = undone(make_run(), COPY_S - 8, more=more, nic=nic)
    assert found.verdict == "inconclusive"
    assert found.why.startswith(f"not judged: {NAMES[cause]}")
    assert "fail" not in {each.verdict for each in judgement.criteria}


@pytest.mark.parametrize("cause", ["slow NIC", "disk", "memory", "clock"])
def test_a_state_that_stays_wrong_fails_on_any_machine(make_run, cause):
    """The copy ends after 10 s, and nothing is in flight after 12: the old log is there 48 s later."""
    more, nic = UNFIT[cause]
    run = make_run(log_bytes=100e6)
    left = undone(run, 60, lambda t: 3 * (t < 12), more, nic=nic, why="the old replica on broker 1 is still there")
    assert left[0].verdict == "fail"


def test_a_replica_that_never_joins_fails_unless_a_clock_was_set(make_run):
    """Everything is copied after 10 s, and the controller lists the move all the same."""
    run = make_run(log_bytes=100e6)
    assert undone(run, 60)[0].verdict == "fail"
    assert undone(run, 60, more=WAITING)[0].verdict == "fail"
    assert undone(run, 60, more=SET)[0].verdict == "inconclusive"


@pytest.mark.parametrize(("copied_s", "verdict"), [(10, "fail"), (70, "inconclusive")])
def test_what_clients_write_to_a_replica_that_has_everything_is_no_copy(make_run, copied_s, verdict):
    """Clients write 1 MB/s all the time; a copy of 60 MB has caught up with its leader after `copied_s`."""
    run = make_run(log_bytes=100e6, partitions=1, nic_ratio=0.5)
    others = run.samples.filter(pc.not_equal(run.samples["metric"], "log.bytes"))
    leader = [Sample(us(t), "b1", "log.bytes", 60e6 + 1e6 * t, "moving", 0) for t in range(-5, 60)]
    copy = [
        Sample(us(t + 0.4), "b2", "log.bytes", (60e6 + 1e6 * t) * min(1.0, t / copied_s), "moving", 0)
        for t in range(60)
    ]
    under_load = replace(run, samples=pa.concat_tables([others, samples_table([*leader, *copy])]))
    assert undone(under_load, 55)[0].verdict == verdict


def robbed(until, *, since=0, steal=0.3):
    return sampled("cpu.steal", lambda t: steal if since < t <= until else 0.0)


@pytest.mark.parametrize(("until", "verdict"), [(50, "inconclusive"), (36, "inconclusive"), (32, "fail"), (0, "fail")])
def test_stolen_time_explains_a_move_that_had_less_than_a_third_of_its_time(make_run, until, verdict):
    """The runner waits for three times what a healthy move takes, here for 50 s."""
    found, judgement = undone(make_run(), 50, more=robbed(until))
    assert found.verdict == verdict
    if verdict == "inconclusive":
        assert "30.0 % of the CPU was stolen" in found.why
        assert f"{50 - until:.1f} of 50.0 s are left; still being reassigned" in found.why
        assert noisy(judgement)


def test_stolen_time_is_no_part_of_the_rest_after_the_last_byte(make_run):
    """Half a minute without a change: whether it was stolen decides whether the state had to change."""
    run = make_run(log_bytes=100e6)
    assert undone(run, 40, more=robbed(40, since=12))[0].verdict == "inconclusive"
    assert undone(run, 40, more=robbed(12))[0].verdict == "fail"


def test_cpu_time_that_brokers_used_excuses_nothing(make_run):
    used = [Sample(us(t), host, "jvm.cpu.seconds", 10.0 + 1.9 * t) for host in ("b1", "b2") for t in range(-5, 60)]
    busy = sampled("cpu.busy", lambda _t: 0.97)
    assert undone(make_run(), 50, more=[*busy, *used])[0].verdict == "fail"
    others = [each._replace(value=10.0 + 0.1 * (each.value - 10.0)) for each in used]
    assert undone(make_run(), 50, more=[*busy, *others])[0].verdict == "inconclusive"


def restarted_in_vain(run, more=(), **detail):
    """The finding and the judgement of a run that restarted b2 5 s after its begin, and waited for it for 50 s."""
    leaving = Event(us(5), "broker.leaving", "restart", "b2")
    failed = Event(us(55), "restart.failed", "restart", "b2", {"why": "waited", **detail})
    return undone(run, 58, more=more, why="the restart of b2 failed: waited", told=(leaving, failed))


def not_back(run, more=(), **detail):
    """The finding of such a run."""
    return restarted_in_vain(run, more, **detail)[0]


@pytest.mark.parametrize(
    ("until", "late", "verdict"),
    [
        (55, True, "inconclusive"),
        (39, True, "inconclusive"),
        (37, True, "fail"),
        (0, True, "fail"),
        (55, False, "fail"),
    ],
)
def test_stolen_time_explains_a_broker_that_is_late_after_its_restart_and_none_that_ended(
    make_run, until, late, verdict
):
    """A broker that did not come back left a run of `kip73-bounce` inconclusive, and one of `kip73-upgrade` failed."""
    found = not_back(make_run(), robbed(until, since=5), late=late)
    assert found.verdict == verdict
    if verdict == "inconclusive":
        assert f"{55 - until:.1f} of 50.0 s are left; the restart of b2 failed: waited" in found.why


@pytest.mark.parametrize(
    ("until", "late", "verdict"), [(55, True, "inconclusive"), (37, True, "fail"), (55, False, "fail")]
)
def test_stolen_time_explains_that_a_broker_that_is_late_takes_no_setting_back(make_run, until, late, verdict):
    """The run failed by the throttle of a broker that a slow machine had not started yet."""
    run = make_run()
    facts = replace(run.manifest.facts, restored=Differences(False, ("broker 2 does not answer",)))
    run = replace(run, manifest=replace(run.manifest, facts=facts))
    _found, judgement = restarted_in_vain(run, robbed(until, since=5), late=late)
    (found,) = named(judgement, "config-restored")
    assert found.verdict == verdict


def test_a_late_broker_that_came_back_after_a_repeated_request_explains_no_later_failure(make_run):
    """The first wait decided: a process that ended later was explained by a slow machine."""
    events = [
        Event(us(5), "broker.leaving", "upgrade", "b2"),
        Event(us(30), "upgrade.failed", "upgrade", "b2", {"why": "waited", "late": True}),
        Event(us(35), "broker.back", "upgrade", "b2"),
    ]
    ended = [
        Event(us(40), "broker.leaving", "upgrade", "b1"),
        Event(us(45), "upgrade.failed", "upgrade", "b1", {"why": "it ended", "late": False}),
    ]
    for told in (events, [*events, *ended]):
        assert undone(make_run(), 58, more=robbed(55), why="failed", told=told)[0].verdict == "fail"


def test_what_tasks_wait_for_while_a_broker_is_out_is_not_judged_and_explains_nothing(make_run):
    """Its own start reads the disk."""
    assert not_back(make_run(), WAITING, late=True).verdict == "fail"


def test_a_changed_clock_explains_a_broker_that_is_late_after_its_restart_and_none_that_ended(make_run):
    assert not_back(make_run(), SET, late=True).verdict == "inconclusive"
    assert not_back(make_run(), SET, late=False).verdict == "fail"
    assert not_back(make_run(), SET).verdict == "fail"  # of an earlier version, which recorded no `late`


LEFT = ("moving-0 on b2", "moving-1 on b2", "moving-2 on b2", "moving-3 on b2")


def with_left(run, *more, **changes):
    """The finding of a run whose replicas were in sync when the move was done, and not when the run ended."""
    facts = replace(run.manifest.facts, records=replace(run.manifest.facts.records, out_of_sync=LEFT))
    samples = pa.concat_tables([run.samples, samples_table(more)]) if more else run.samples
    judgement = judge(replace(run.manifest, facts=facts, **changes), samples, run.events)
    (found,) = named(judgement, "move-done")
    return found, judgement


def test_a_replica_that_stops_following_after_the_move_fails(make_run):
    """Its log is compared with none, as it has left the ISR: everything else of such a run passes."""
    found, judgement = with_left(make_run())
    assert found.verdict == "fail"
    assert found.why == (
        "no longer in sync at the end of the run: moving-0 on b2, moving-1 on b2, moving-2 on b2, and 1 more"
    )
    assert {each.name for each in judgement.criteria if each.verdict != "pass"} == {"move-done"}


def test_a_broker_that_somebody_stopped_explains_that_its_replicas_do_not_follow(make_run):
    found, _judgement = with_left(make_run(), Sample(us(20), "b2", "jvm.stopped", 1.0))
    assert found.verdict == "inconclusive" and found.why.startswith("not judged: brokers-unrestrained")


@pytest.mark.parametrize("cause", ["disk", "memory"])
def test_a_machine_that_was_slow_during_the_move_does_not(make_run, cause):
    assert with_left(make_run(), *UNFIT[cause][0])[0].verdict == "fail"


def test_an_error_that_ends_the_wait_is_no_matter_of_time(make_run):
    run = make_run(nic_ratio=0.5)
    facts = replace(run.manifest.facts, done=Done(False, "topics that were being moved have been deleted: t"))
    (found,) = named(judge(replace(run.manifest, facts=facts), run.samples, run.events), "move-done")
    assert found.verdict == "fail"


@pytest.mark.parametrize(("seconds", "verdict"), [(60.0, "inconclusive"), (13.2, "fail")])
def test_a_move_without_a_throttle_goes_on_while_partitions_arrive(seconds, verdict):
    """The wait was over after 25 s; all partitions had arrived after 13.2 s, or none had."""
    manifest, samples, events = relocated(told=Told(seconds=seconds, done=False))
    logs = [Sample(us(t), "b2", "log.bytes", 1e6 * min(t, seconds), topic="t", partition=0) for t in range(25)]
    logs += [Sample(us(t), "b1", "log.bytes", 60e6, topic="t", partition=0) for t in range(-5, 25)]
    logs += [Sample(us(t), "b2", "log.bytes", 1e6 * t, topic="other", partition=0) for t in range(25)]
    facts = replace(manifest.facts, done=Done(False, "still being reassigned", 25.0))
    slow = tuple(replace(nic, ratio=0.5) for nic in manifest.nics)
    manifest = replace(manifest, facts=facts, nics=slow)
    (found,) = named(judge(manifest, pa.concat_tables([samples, samples_table(logs)]), events), "move-done")
    assert found.verdict == verdict
