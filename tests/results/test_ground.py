"""What a run stands on besides its network: memory, disk and clock; each leaves rates open by its own name."""

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from results.contract.logs import HostLog, LogFinding
from results.contract.schema import Sample, events_table, samples_table
from results.criteria.catalogue.logs_clean import SLOW_EVENT
from results.criteria.cluster_measures import ShrinkCause, measure_isr
from results.criteria.judgement import by_machine, noisy
from results.criteria.sample_series import RunSeries
from results.criteria.unfit import ALWAYS_FIT, UnfitSpan, UnfitTime
from tests.results.judged import verdicts
from tests.results.moves import simulate
from tests.results.scenes import one_to_two, stuck
from tests.results.synthetic import us

RATES = ("steady-mean", "duration-model", "nic-conservation", "broker-rate-agrees")
NAMES = ("memory-pressure", "disk-pressure", "clock-steady")


def with_samples(run, metric, value, host="machine", until=70):
    rows = [Sample(us(t), host, metric, float(value(t))) for t in range(-5, until)]
    return replace(run, samples=pa.concat_tables([run.samples, samples_table(rows)]))


def found(judgement):
    return {(c.name, c.host): c for c in judgement.criteria if c.name in NAMES}


def test_runs_without_these_readings_have_no_such_criteria(make_run):
    assert found(make_run().judged()) == {}


@pytest.mark.parametrize(
    ("metric", "name", "what"),
    [("pressure.memory", "memory-pressure", "memory"), ("pressure.io", "disk-pressure", "a disk")],
)
def test_a_machine_whose_tasks_wait_is_named_and_one_whose_tasks_do_not_passes(make_run, metric, name, what):
    calm = with_samples(make_run(), metric, lambda t: 40 + 0.01 * t).judged()
    assert calm.verdict == "pass"
    assert found(calm)[name, "machine"].why == f"tasks waited for {what} for at most 1.0 % of any 33 s"
    waiting = with_samples(make_run(), metric, lambda t: 40 + 4.0 * (t > 20)).judged()
    assert found(waiting)[name, "machine"].why == f"for 12.1 % of 33 s every task waited for {what}, brokers too"
    assert verdicts(waiting, *RATES) == {"inconclusive"}
    assert noisy(waiting)
    silent = with_samples(make_run(), metric, lambda t: 40, until=20).judged()
    assert "no sample for" in found(silent)[name, "machine"].why


def test_a_cpu_quota_that_is_used_up_leaves_rates_open_though_the_machine_is_idle(make_run):
    assert with_samples(make_run(), "cpu.quota", lambda t: 0.6).judged().verdict == "pass"
    judgement = with_samples(make_run(), "cpu.quota", lambda t: 0.97 if 20 < t < 40 else 0.3).judged()
    (load,) = [each for each in judgement.criteria if each.name == "machine-load"]
    assert load.why == "97.0 % of the CPU quota used over 11 s: the testbed ran in a limited container or service"
    assert verdicts(judgement, *RATES) == {"inconclusive"}


def test_a_move_shorter_than_a_quota_window_says_nothing_of_pressure(make_run):
    run = with_samples(make_run(log_bytes=60e6), "pressure.io", lambda t: 40 + t)
    assert found(run.judged()) == {}
    # No reading lies within a move of half a second, and two are next to it.
    shorter = with_samples(make_run(log_bytes=5e6), "pressure.io", lambda t: 40 + t)
    assert found(shorter.judged()) == {}
    unread = with_samples(make_run(log_bytes=5e6), "pressure.io", lambda t: 40 + t, until=-3)
    assert "no sample for" in found(unread.judged())["disk-pressure", "machine"].why


def test_a_disk_that_the_topology_makes_slow_is_no_surprise(make_run):
    run = with_samples(make_run(), "pressure.io", lambda t: 40 + 0.5 * t)
    document = {"hosts": {"b1": {"disk": {"size": "2GB"}}, "b2": {"disk": {"size": "2GB", "bandwidth": "20MB/s"}}}}
    manifest = replace(run.manifest, topology=replace(run.manifest.topology, document=document))
    assert found(run.judged()).keys() == {("disk-pressure", "machine")}
    assert found(replace(run, manifest=manifest).judged()) == {}


def test_clocks_that_nobody_sets_pass(make_run):
    run = with_samples(make_run(), "clock.offset", lambda t: 1.7e9 + 1e-5 * (t % 3))
    run = with_samples(run, "clock.offset", lambda t: 1.7e9, host="b2")
    judgement = run.judged()
    assert judgement.verdict == "pass"
    assert found(judgement)["clock-steady", None].why == "2 clocks were read; none was set by more than 0.0 ms"


def test_clocks_that_were_read_once_are_not_known_to_be_steady(make_run):
    judgement = with_samples(make_run(), "clock.offset", lambda _t: 1.7e9, until=-4).judged()
    assert found(judgement)["clock-steady", None].why == "no clock was read twice"
    assert verdicts(judgement, *RATES) == {"inconclusive"}


def test_a_clock_that_is_set_makes_followers_lag_and_an_isr_shrink():
    run = simulate(one_to_two(flapping=("b1", 20.0)))
    assert verdicts(run.judged(), "no-isr-shrink") == {"fail"}
    judgement = with_samples(run, "clock.offset", lambda t: 1.7e9 + 40.0 * (t >= 20), host="b1").judged()
    assert verdicts(judgement, "no-isr-shrink") == {"inconclusive"}


def test_a_stall_is_noticed_late_on_a_machine_that_is_robbed():
    run = simulate(stuck(stuck=(17.0, 8.0)))
    assert verdicts(run.judged(), "stall-detected") == {"fail"}
    assert verdicts(with_samples(run, "cpu.steal", lambda t: 0.4).judged(), "stall-detected") == {"inconclusive"}
    fine = with_samples(simulate(stuck()), "cpu.steal", lambda t: 0.4).judged()
    assert verdicts(fine, "stall-detected") == {"pass"}


@pytest.mark.parametrize(("metric", "value"), [("pressure.io", lambda t: 40 + 0.2 * t), ("nic", 0.5)])
def test_a_stall_ends_late_where_a_disk_or_a_nic_is_slow(metric, value):
    run = simulate(stuck(stuck=(17.0, 8.0)))
    if metric == "nic":
        nics = tuple(replace(each, ratio=value) for each in run.manifest.nics)
        slow = replace(run, manifest=replace(run.manifest, nics=nics))
    else:
        slow = with_samples(run, metric, value)
    assert verdicts(slow.judged(), "stall-detected") == {"inconclusive"}


def test_an_isr_shrinks_where_a_nic_was_slower_than_declared_and_not_where_a_disk_was_busy():
    """Another tenant of the link takes what followers need; a broker itself may keep a disk busy."""
    run = simulate(one_to_two(flapping=("b1", 20.0)))
    nics = tuple(replace(each, ratio=0.5) for each in run.manifest.nics)
    slow = replace(run, manifest=replace(run.manifest, nics=nics))
    assert verdicts(slow.judged(), "no-isr-shrink") == {"inconclusive"}
    busy = with_samples(run, "pressure.io", lambda t: 40 + 0.2 * t)
    assert verdicts(busy.judged(), "disk-pressure") == {"inconclusive"}
    assert verdicts(busy.judged(), "no-isr-shrink") == {"fail"}


@pytest.mark.parametrize(
    ("robbed", "verdict"),
    [
        (range(9, 21), "inconclusive"),
        (range(14, 21), "fail"),
        (range(23, 41), "fail"),
        (range(2, 12), "fail"),
        (range(0, 21, 2), "fail"),
        (range(0, 16), "inconclusive"),
    ],
    ids=[
        "for the time of a session",
        "for less",
        "afterwards",
        "in a session that was over before",
        "now and then, when heartbeats come through",
        "for half of the time of a lag",
    ],
)
def test_an_isr_shrinks_where_the_cpu_was_stolen_for_a_session_or_for_half_of_a_lag(robbed, verdict):
    run = simulate(one_to_two(flapping=("b1", 20.0)))
    other = run.samples.filter(pc.not_equal(run.samples["metric"], "cpu.steal"))
    judgement = with_samples(replace(run, samples=other), "cpu.steal", lambda t: 0.06 * (t in robbed)).judged()
    assert verdicts(judgement, "no-isr-shrink") == {verdict}


@pytest.mark.parametrize(("lag", "verdict"), [({"lag": 3.0}, "inconclusive"), ({}, "fail")])
def test_a_shorter_time_explains_a_shrink_where_replicas_may_lag_for_a_shorter_time(lag, verdict):
    """`kip73-mixed-volume` lets replicas lag for 3 s; 2 s before the shrink were stolen."""
    run = simulate(one_to_two(flapping=("b1", 20.0)))
    other = run.samples.filter(pc.not_equal(run.samples["metric"], "cpu.steal"))
    manifest = replace(run.manifest, parameters={**run.manifest.parameters, **lag})
    stolen = with_samples(replace(run, manifest=manifest, samples=other), "cpu.steal", lambda t: 0.06 * (t in (19, 20)))
    assert verdicts(stolen.judged(), "no-isr-shrink") == {verdict}


def test_shrinks_are_counted_across_a_restart_where_some_before_it_are_explained():
    """The broker counted two shrinks after 12 s of stolen time, began again at 0, and counted one more later."""
    move = simulate(one_to_two()).manifest.move
    counts = [5.0 + 2 * (t >= 14) if t < 60 else float(t >= 70) for t in range(-5, 90)]
    samples = [Sample(us(t), "b1", "broker.isr_shrinks", count) for t, count in zip(range(-5, 90), counts, strict=True)]
    robbed = UnfitTime(tuple(UnfitSpan(us(t), us(t + 1), 0.5, 0.2, None) for t in range(2, 14)))
    series = RunSeries(samples_table(samples), events_table([]))
    for unfit, shrinks in ((ALWAYS_FIT, 3.0), (robbed, 1.0)):
        (first, *_others) = measure_isr(series, move, us(0), us(80), ShrinkCause(unfit)).hosts
        assert (first.host, first.shrinks) == ("b1", shrinks)


def test_the_instants_at_which_all_partitions_were_looked_at_are_judged_once_each():
    """Each partition was judged at each look: 10,000 of them, in twelve unfit minutes, took hours."""
    asked = []

    class Asked:
        def explains(self, instants):
            asked.append(len(instants))
            return instants == us(12)

    def look(t, partition):
        left = t >= {7: 12, 8: 14}.get(partition, 99)
        return Sample(us(t), "driver", "isr.size", 1.0 if left else 2.0, "kip73", partition)

    samples = [look(t, partition) for t in range(-5, 20) for partition in range(50)]
    series = RunSeries(samples_table(samples), events_table([]))
    found = measure_isr(series, simulate(one_to_two()).manifest.move, us(0), us(18), Asked())
    assert (found.partitions, found.smaller) == (50, ((14.0, "kip73-8", 1.0, 2.0),))
    assert asked == [25]


def test_a_clock_that_is_set_makes_a_rate_of_replicas_in_sync_wrong():
    run = simulate(one_to_two(0.2e6, quotas=((0.0, 10e6), (15.0, 5e6), (45.0, 10e6))))
    named = replace(run, manifest=replace(run.manifest, criteria=("in-sync-unbounded",)))
    set_ahead = with_samples(named, "clock.offset", lambda t: 1.7e9 + 40.0 * (t >= 20), host="b1")
    assert verdicts(set_ahead.judged(), "in-sync-unbounded") == {"inconclusive"}


def test_replicas_in_sync_take_little_when_little_is_written():
    run = simulate(one_to_two(0.2e6, quotas=((0.0, 10e6), (15.0, 5e6), (45.0, 10e6))))
    named = replace(run, manifest=replace(run.manifest, criteria=("in-sync-unbounded",)))
    assert verdicts(named.judged(), "in-sync-unbounded") == {"fail"}
    live = named.manifest.facts.live
    slow = replace(live, processes=tuple(replace(each, held=False, why="too little CPU") for each in live.processes))
    facts = replace(named.manifest.facts, live=slow)
    # A broker that holds its replicas back fills the buffers of its clients: that excuses nothing.
    judgement = replace(named, manifest=replace(named.manifest, facts=facts)).judged()
    assert verdicts(judgement, "in-sync-unbounded") == {"fail"}
    robbed = with_samples(named, "cpu.steal", lambda t: 0.4).judged()
    assert verdicts(robbed, "in-sync-unbounded") == {"inconclusive"}


@pytest.mark.parametrize(
    ("offset", "why"),
    [
        (lambda t: 1.7e9 + 2.0 * (t >= 20), "the clock of b2 was set by +2.000 s, to 18:15:28 UTC: no rate is known"),
        (lambda t: 1.7e9 - 0.06 * (t >= 20), "the clock of b2 was set by -0.060 s, to 18:15:28 UTC: no rate is known"),
    ],
)
def test_a_clock_that_jumps_leaves_rates_open_and_is_named(make_run, offset, why):
    run = with_samples(make_run(), "clock.offset", lambda _t: 1.7e9)
    judgement = with_samples(run, "clock.offset", offset, host="b2").judged()
    assert {key: c.why for key, c in found(judgement).items()} == {("clock-steady", "b2"): why}
    assert verdicts(judgement, *RATES) == {"inconclusive"}
    assert noisy(judgement)


@pytest.mark.parametrize(("leak", "verdict"), [(1.2, "fail"), (1.05, "fail"), (1.03, "inconclusive")])
def test_a_busy_machine_does_not_excuse_more_bytes_than_the_quota_allows_of_the_whole_time(make_run, leak, verdict):
    """A slow machine lets fewer bytes pass. A reading may be a second late: 2 % of this move."""
    judgement = make_run(cpu_busy=0.95, real_quota=leak * 10e6).judged()
    assert verdicts(judgement, "long-window-bound") == {verdict}
    assert verdicts(judgement, *RATES) == {"inconclusive"}


def test_bytes_over_any_bound_are_not_kafkas_where_a_clock_was_set(make_run):
    """A broker keeps its quota by its wall clock: one that is set ahead forgets what was sent."""
    run = make_run(real_quota=25e6)
    assert verdicts(run.judged(), "throttled-window", "long-window-bound") == {"fail"}
    set_ahead = with_samples(run, "clock.offset", lambda t: 1.7e9 + 2.0 * (t >= 10))
    assert verdicts(set_ahead.judged(), "throttled-window", "long-window-bound") == {"inconclusive"}


def test_a_jump_that_is_set_back_is_a_jump(make_run):
    run = with_samples(make_run(), "clock.offset", lambda t: 1.7e9 + 0.5 * (20 <= t < 25))
    assert found(run.judged())["clock-steady", "machine"].verdict == "inconclusive"


def test_a_gap_of_readings_says_nothing_of_its_own_where_a_clock_was_set(make_run):
    """A clock that is set ahead by 5 s makes readings lie 6 s apart."""
    gap = make_run(gap=("b2", 20, 26))
    assert not noisy(gap.judged())
    set_ahead = with_samples(gap, "clock.offset", lambda t: 1.7e9 + 5.0 * (t >= 20), host="b2")
    assert by_machine(set_ahead.judged()) and noisy(set_ahead.judged())


SLOW = LogFinding("b2", 0, "ERROR", SLOW_EVENT, "Exceptionally slow controller event", 1)
OTHER = LogFinding("b2", 0, "ERROR", "kafka.server.ReplicaManager", "Error processing append operation", 1)
SET = ("clock.offset", lambda t: 1.7e9 + 2.0 * (t >= 20))
WAITING = ("pressure.io", lambda t: 40 + 4.0 * (t > 20))


@pytest.mark.parametrize(
    ("logged", "unfit", "verdict"),
    [
        ((SLOW,), None, "fail"),
        ((SLOW,), SET, "inconclusive"),
        ((SLOW,), WAITING, "inconclusive"),
        ((OTHER,), SET, "inconclusive"),
        ((OTHER,), WAITING, "fail"),
        ((SLOW, OTHER), WAITING, "fail"),
    ],
)
def test_a_slow_event_of_a_controller_is_not_kafkas_where_clock_or_machine_are_unfit(make_run, logged, unfit, verdict):
    run = make_run()
    logs = (HostLog("b1"), HostLog("b2", findings=logged))
    run = replace(run, manifest=replace(run.manifest, facts=replace(run.manifest.facts, logs=logs)))
    if unfit:
        run = with_samples(run, *unfit)
    said = {c.host: c.verdict for c in run.judged().criteria if c.name == "logs-clean"}
    assert said == {"b1": "pass", "b2": verdict}
