"""KIP-73's scenarios, simulated: each passes as it should, and each fault in the cluster fails it."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from results.compare.compared_measures import values_of
from results.contract.live_load import LiveLoad
from results.contract.manifest import Expected, Manifest, NicMeasurement
from results.contract.network import payload_rates
from results.contract.schema import Event, Sample, events_table, samples_table
from results.criteria import judge
from results.criteria.catalogue.control_unthrottled import judge_controls
from results.criteria.catalogue.duration_model import judge_duration
from results.criteria.catalogue.long_window_bound import judge_phases
from results.criteria.catalogue.rate_after_throttle_change import judge_settled
from results.criteria.catalogue.throttled_window import judge_windows
from results.criteria.host_rates import ByteWindow
from results.criteria.judgement import noisy, skipped, sound
from results.criteria.model import bound_of, estimate
from results.criteria.sample_series import RunSeries, by_partition
from results.report.page import _figures, figures
from tests.results.judged import named, verdicts
from tests.results.moves import simulate
from tests.results.scenes import bounce, live_change, mixed, one_to_two, stuck, two_node, two_to_one
from tests.results.synthetic import MIB, us


def rejudged(run, *, facts=None, **move):
    manifest = replace(run.manifest, move=replace(run.manifest.move, **move))
    if facts is not None:
        manifest = replace(manifest, facts=replace(manifest.facts, **facts))
    return judge(manifest, run.samples, run.events)


SCENES = {
    "two-node": two_node(),
    "two-node-produce": two_node(3e6, 360e6),
    "one-to-two": one_to_two(),
    "one-to-two-produce": one_to_two(2e6),
    "two-to-one": two_to_one(),
    "two-to-one-produce": two_to_one(2e6),
    "live-change": live_change(),
    "bounce": bounce(),
    "stuck": stuck(),
    "mixed-volume": mixed(),
}


@pytest.mark.parametrize("scene", SCENES.values(), ids=SCENES)
def test_each_scenario_passes(scene):
    judgement = simulate(scene).judged()
    assert judgement.verdict == "pass", [c for c in judgement.criteria if c.verdict != "pass"]


@pytest.mark.parametrize("inbound", [0.0, 2e6])
def test_steady_is_judged_where_the_model_says_that_the_quota_binds(inbound):
    sender = simulate(one_to_two(inbound)).judged()
    assert [(c.host, c.direction) for c in named(sender, "steady-mean")] == [("b1", "transmit")]
    assert named(sender, "bottleneck-as-modelled")[0].observed == "b1 transmit"
    receiver = simulate(two_to_one(inbound)).judged()
    assert [(c.host, c.direction) for c in named(receiver, "steady-mean")] == [("b3", "receive")]
    assert named(receiver, "bottleneck-as-modelled")[0].observed == "b3 receive"


def test_a_leaders_bursts_and_pauses_are_judged_by_whole_windows():
    scene = one_to_two(cycle_s=11.9)
    judgement = simulate(replace(scene, groups=tuple(replace(g, bytes=296e6) for g in scene.groups))).judged()
    steady = next(r.steady for r in judgement.measures.rates if r.direction == "transmit")
    assert steady.mean_bytes_per_s > 1.05 * 10e6  # the steady part begins with a burst and ends with a pause cut short
    assert steady.typical_bytes_per_s == pytest.approx(0.985 * 10e6, rel=0.02)
    assert verdicts(judgement, "throttled-window", "steady-mean", "bottleneck-as-modelled", "duration-model") == {
        "pass"
    }


def test_what_replicas_in_sync_fetch_counts_on_the_leader_alone():
    judgement = simulate(one_to_two(2e6)).judged()
    steady = {(r.host, r.direction): r.steady.mean_bytes_per_s for r in judgement.measures.rates}
    assert steady["b1", "transmit"] == pytest.approx(9.85e6, rel=0.01)
    # Half of it each, without the 2 MB/s that the followers in sync take from the leader.
    assert steady["b2", "receive"] == pytest.approx((9.85e6 - 2e6) / 2, rel=0.01)


def test_a_wildcard_counts_on_the_follower_as_well():
    listed = simulate(mixed()).judged().measures.rates
    receive = next(r for r in listed if r.direction == "receive")
    assert receive.worst_window.in_sync_bytes == pytest.approx(0.2e6 * receive.worst_window.elapsed_s, rel=0.1)


def test_what_is_written_once_the_leader_has_gone_is_no_longer_copied():
    run = simulate(two_node(3e6, 360e6))
    measures = run.judged().measures
    assert measures.throttled_s == pytest.approx(measures.done_s, abs=1.5)  # though the new leader's logs go on growing
    kip73 = [s for s in run.samples.to_pylist() if s["metric"] == "log.bytes" and s["topic"] == "kip73"]
    assert max(s["ts"] for s in kip73 if s["host"] == "b2") > max(s["ts"] for s in kip73 if s["host"] == "b1")


@pytest.mark.parametrize("host", ["b1", "b2"])
def test_a_quota_doubled_on_one_broker_fails(host):
    judgement = simulate(two_node(real_quota=((host, 0.0, 999.0, 20e6),))).judged()
    assert verdicts(judgement, "quota-in-force") == {"pass", "fail"}
    assert judgement.verdict == "fail"


def test_a_quota_doubled_where_it_binds_fails_by_bytes_alone():
    everywhere = tuple((host, 0.0, 999.0, 20e6) for host in ("b1", "b3"))
    judgement = simulate(one_to_two(2e6, real_quota=everywhere, told_quota=False)).judged()
    assert verdicts(judgement, "quota-in-force") == {"pass"}
    assert [(c.host, c.direction) for c in named(judgement, "throttled-window") if c.verdict == "fail"] == [
        ("b1", "transmit")
    ]
    assert verdicts(judgement, "duration-model") == {"fail"}


@pytest.mark.parametrize("told", [True, False])
def test_a_throttle_removed_halfway_fails(told):
    gone = tuple((host, 25.0, 999.0, 45e6) for host in ("b1", "b2"))
    judgement = simulate(two_node(3e6, 360e6, real_quota=gone, told_quota=told)).judged()
    assert verdicts(judgement, "throttled-window") == {"fail"}
    assert ("fail" in verdicts(judgement, "quota-in-force")) == told


@pytest.mark.parametrize(
    ("quota", "window", "whole"),
    [(40e6, "pass", "pass"), (45e6, "inconclusive", "pass"), (300e6, "inconclusive", "inconclusive")],
)
def test_a_bound_that_the_nic_cannot_break_is_not_said_to_hold(quota, window, whole):
    """Both criteria passed, with a power, for 300 MB/s over NICs that carry 48 MB/s: nothing could have failed."""
    judgement = simulate(two_node(size=960e6, quotas=((0.0, quota),))).judged()
    for name, verdict in (("throttled-window", window), ("long-window-bound", whole)):
        findings = named(judgement, name)
        assert {c.verdict for c in findings} == {verdict}, findings
        left_open = verdict == "inconclusive"
        assert {"the bound holds whatever brokers do" in c.why for c in findings} == {left_open}
        assert {c.power is None for c in findings} == {left_open}


def test_a_run_whose_throttle_lies_above_its_nics_was_measured_all_the_same():
    """A comparison of `kip435-exchange --set rate=300MB/s` used the values of no run: all of them were inconclusive."""
    judgement = simulate(two_node(size=960e6, quotas=((0.0, 300e6),))).judged()
    bounds = (*named(judgement, "throttled-window"), *named(judgement, "long-window-bound"))
    above = replace(judgement, criteria=bounds)
    assert (above.verdict, sound(above), noisy(above)) == ("inconclusive", True, False)
    gap = replace(bounds[0], why="no sample for 6.0 s: the run would not show a burst in it")
    assert not sound(replace(judgement, criteria=(gap, *bounds[1:])))


def test_a_phase_that_cannot_break_its_bound_is_left_out_where_another_one_can():
    """Phases of 12 s, as of `kip73-bounce --set rate=30MB/s`: the NICs carry less than the bound of two windows."""
    run = simulate(two_node(size=960e6, quotas=((0.0, 30e6),)))
    measures, carries = run.judged().measures, payload_rates(run.manifest.nics)
    (whole,) = measures.phases

    def short(bytes_):
        part = {"total_bytes": bytes_, "all": ByteWindow(bytes_, 12.0, 40.0), "fullest": None, "longest_gap_s": 1.0}
        return replace(whole, begin_s=40.0, end_s=52.0, rates=tuple(replace(each, **part) for each in whole.rates))

    def found(*phases):
        judged = judge_phases(replace(measures, phases=phases), run.manifest.move, carries)
        return {(each.expected[:7], each.verdict) for each in judged}

    assert found(whole, short(350e6)) == {("phase 1", "pass")}
    assert found(whole, short(1e9)) == {("phase 1", "pass"), ("phase 2", "fail")}
    assert {verdict for _phase, verdict in found(short(350e6))} == {"inconclusive"}


@pytest.mark.parametrize("host", ["b1", "b2"])
def test_a_list_cleared_behind_the_throttle_s_back_is_seen_by_the_polls(host):
    judgement = simulate(two_node(unlisted=((host, 25.0, 27.0, 6),))).judged()
    (wrong,) = [c for c in named(judgement, "quota-in-force") if c.verdict == "fail"]
    assert wrong.host == host
    assert "leader list without 6 of its replicas at +25." in wrong.why and "another quota" not in wrong.why
    assert judgement.verdict == "fail"


def test_lists_before_the_move_and_after_it_are_nobody_s():
    judgement = simulate(two_node(unlisted=(("b1", -9.0, 0.0, 6), ("b2", 57.5, 99.0, 6)))).judged()
    assert verdicts(judgement, "quota-in-force") == {"pass"}


def test_a_run_that_was_recorded_before_lists_were_polled_is_judged_by_its_rates():
    scene = two_node(without=("quota.leader.unlisted", "quota.follower.unlisted"))
    assert verdicts(simulate(scene).judged(), "quota-in-force") == {"pass"}


@pytest.mark.parametrize("without", [(), ("isr.size",), ("broker.isr_shrinks",)])
def test_an_isr_that_flaps_fails_by_either_sign(without):
    judgement = simulate(one_to_two(2e6, flapping=("b1", 20.0), without=without)).judged()
    (kept,) = named(judgement, "no-isr-shrink")
    assert kept.verdict == "fail"
    assert ("b1 took replicas out of ISRs 3 times" in kept.why) == (without != ("broker.isr_shrinks",))
    assert ("first-0 had 1 in sync at +20." in kept.why) == (without == ("broker.isr_shrinks",))


def test_a_counter_that_begins_anew_with_its_broker_is_no_shrink():
    judgement = simulate(one_to_two(2e6, resets=("b1",))).judged()
    assert judgement.measures.isr.hosts[0].shrinks == 0
    assert verdicts(judgement, "no-isr-shrink") == {"pass"}


@pytest.mark.parametrize(
    ("scene", "name"),
    [
        (one_to_two(2e6, without=("isr.size",)), "no-isr-shrink"),
        (one_to_two(2e6, without=("broker.isr_shrinks",)), "no-isr-shrink"),
        (one_to_two(2e6, without=("log.bytes",)), "throttled-window"),
        (one_to_two(2e6, without=("log.bytes",)), "bottleneck-as-modelled"),
        (one_to_two(2e6, gap=("b3", 30.0, 36.0)), "bottleneck-as-modelled"),
        (one_to_two(2e6, gap=("driver", 30.0, 36.0)), "no-isr-shrink"),
        (live_change(gap=("b2", 30.0, 35.0)), "rate-after-throttle-change"),
        (live_change(gap=("b2", 30.0, 35.0)), "throttled-window"),
        (live_change(quotas=((0.0, 8e6), (26.0, 12e6), (36.0, 4e6))), "throttled-window"),
        (live_change(quotas=((0.0, 8e6), (26.0, 12e6), (44.0, 4e6))), "rate-after-throttle-change"),
        (stuck(without=("move.lag",)), "stall-detected"),
        (stuck(stuck=None), "stall-detected"),
        (two_node(3e6, 360e6, load_held=False), "load-rate-sustained"),
        (two_node(3e6, 360e6, load_held=False), "throttled-window"),
    ],
)
def test_what_was_not_observed_never_passes(scene, name):
    run = simulate(scene)
    judgement = rejudged(run) if name != "stall-detected" or scene.stuck else _without(run, "move.done")
    assert "inconclusive" in verdicts(judgement, name)
    # A move that was watched for long enough and was not done is late.
    assert judgement.verdict == ("fail" if "fail" in verdicts(judgement, "duration-model") else "inconclusive")


def _without(run, kind):
    return judge(run.manifest, run.samples, run.events.filter(pc.not_equal(run.events["kind"], kind)))


def test_each_phase_has_its_own_bound_and_windows_do_not_cross_a_change():
    judgement = simulate(live_change()).judged()
    assert [p.quota_bytes_per_s for p in judgement.measures.phases] == [8e6, 12e6, 4e6]
    windows = [c for c in named(judgement, "throttled-window") if c.direction == "receive"]
    assert [c.expected.split(":")[0] for c in windows] == [
        "phase 1, 8 MB/s from +0.0 s",
        "phase 2, 12 MB/s from +26.4 s",
        "phase 3, 4 MB/s from +52.4 s",
    ]
    settled = [c.observed for c in named(judgement, "rate-after-throttle-change") if c.direction == "receive"]
    assert settled == pytest.approx([0.985] * 3, abs=0.002)
    assert "8 MB/s, then 12 MB/s, then 4 MB/s in all" in named(judgement, "quota-in-force")[0].observed


@pytest.mark.parametrize(
    ("mean", "highest", "seconds", "verdict"),
    [
        (0.99, 4.0, 10.9, "pass"),  # bursts of four times the quota, all of them seen
        (0.99, 1.1, 1.0, "pass"),
        (1.07, 4.0, 10.9, "fail"),
        (0.88, 4.0, 10.9, "pass"),  # Kafka allows 10 s' worth in 12 s then
        (0.82, 4.0, 10.9, "fail"),
        (0.94, 1.2, 10.9, "fail"),
        (1.07, 1.2, 1.0, "fail"),  # evenly 7 % too much
        (2.00, 2.1, 1.0, "fail"),
        (0.80, 4.0, 1.0, "inconclusive"),  # two windows only, and what lies at their edges decides
    ],
)
def test_heaps_are_judged_where_there_is_time_for_their_mean(mean, highest, seconds, verdict):
    run = simulate(two_node(0.0, 240e6))
    measures = run.judged().measures
    seen = {"second_window": ByteWindow(80e6, 11.88, 60.1), "settled_bytes_per_s": mean * 7e6, "settled_s": seconds}
    rates = tuple(replace(rates, highest_second_bytes_per_s=highest * 7e6, **seen) for rates in measures.rates)
    phases = (replace(measures.phases[0], quota_bytes_per_s=7e6, rates=rates),)
    judged = judge_settled(replace(measures, phases=phases), run.manifest.move)
    assert {c.verdict for c in judged} == {verdict}
    assert all(("in bursts" in c.why) == (verdict == "inconclusive") for c in judged)


@pytest.mark.parametrize("host", ["b1", "b2"])
def test_a_change_that_one_broker_ignores_fails(host):
    scene = live_change(real_quota=((host, 52.0, 999.0, 12e6),))
    judgement = simulate(scene).judged()
    (wrong,) = [c for c in named(judgement, "quota-in-force") if c.verdict == "fail"]
    assert wrong.host == host
    assert "12 MB/s at +52." in wrong.why


def test_a_lowered_quota_that_nobody_obeys_fails_by_bytes_alone():
    scene = live_change(real_quota=tuple((h, 52.0, 999.0, 12e6) for h in ("b1", "b2")), told_quota=False)
    judgement = simulate(scene).judged()
    assert [c.expected[:7] for c in named(judgement, "throttled-window") if c.verdict == "fail"] == ["phase 3"] * 2


def test_a_broker_that_comes_back_when_all_is_copied_leaves_nothing_to_judge():
    late = bounce(restarts=(("b3", 14.0, 20.0, True), ("b2", 72.0, 95.0, False)))
    judgement = simulate(late).judged()
    assert [round(p.begin_s, 1) for p in judgement.measures.phases] == [0.0, 20.5]
    assert verdicts(judgement, "quota-in-force", "throttled-window") == {"pass"}


@pytest.mark.parametrize("left_s", [0.6, 4.0])
def test_a_broker_that_comes_back_just_before_the_end_leaves_too_little_to_judge(left_s):
    first = ("b3", 14.0, 20.0, True)
    end = simulate(bounce(restarts=(first,))).judged().measures.phases[-1].end_s
    run = simulate(bounce(restarts=(first, ("b2", end - left_s - 6.5, end - left_s - 0.5, True))))
    judgement = run.judged()
    *whole, last = judgement.measures.phases
    assert len(whole) == 2
    assert last.end_s - last.begin_s == pytest.approx(left_s, abs=0.5)
    windows = [c for c in judgement.criteria if c.name in ("throttled-window", "long-window-bound")]
    assert {c.expected.split(",")[0] for c in windows} == {"phase 1", "phase 2"}
    assert {c.verdict for c in windows} == {"pass"}
    # What is over the bound is judged, however short the phase; and so is a phase of which others say nothing.
    burst = {"total_bytes": 1e9, "longest_gap_s": 1.0, "worst_window": ByteWindow(1e9, 0.5, last.begin_s)}
    carries = payload_rates(run.manifest.nics)
    much = tuple(replace(rates, **burst) for rates in last.rates)
    over = replace(judgement.measures, phases=(*whole, replace(last, rates=much)))
    third = [c for c in judge_windows(over, run.manifest.move, carries) if c.expected[:7] == "phase 3"]
    assert {c.verdict for c in third} == {"fail"}
    alone = replace(judgement.measures, phases=(*(replace(p, rates=()) for p in whole), last))
    assert {c.verdict for c in judge_windows(alone, run.manifest.move, carries)} == {"inconclusive"}


def test_windows_across_a_restart_are_not_judged_nor_what_leaders_unknown_send():
    judgement = simulate(bounce()).judged()
    phases = judgement.measures.phases
    assert [(round(p.begin_s, 1), round(p.end_s, 1), p.leaders_known) for p in phases[:2]] == [
        (0.0, 14.0, True),
        (20.5, 36.0, True),
    ]
    assert (phases[2].begin_s, phases[2].leaders_known) == (42.5, False)
    assert [r.direction for r in phases[2].rates] == ["receive"]
    freed = tuple((h, 42.0, 999.0, 40e6) for h in ("b1", "b3"))
    broken = simulate(bounce(real_quota=freed, told_quota=False)).judged()
    assert [(c.host, c.expected[:7]) for c in named(broken, "throttled-window") if c.verdict == "fail"] == [
        ("b3", "phase 3")
    ]


def added(run, *told):
    """A run of which more is told, each (seconds after the start, kind, host)."""
    more = events_table([Event(us(t), kind, "", host, {}) for t, kind, host in told])
    events = pa.concat_tables([run.events, more])
    return judge(run.manifest, run.samples, events)


def test_a_bounce_is_one_only_when_every_broker_left_and_came_back():
    assert verdicts(simulate(bounce()).judged(), "brokers-restarted") == {"pass"}
    two = simulate(bounce(restarts=(("b3", 14.0, 20.0, True), ("b1", 36.0, 42.0, False))))
    (restarted,) = named(two.judged(), "brokers-restarted")
    assert (restarted.verdict, restarted.why) == ("inconclusive", "not restarted during the move: b2")
    (gone,) = named(added(two, (60.0, "broker.leaving", "b2")), "brokers-restarted")
    assert (gone.verdict, gone.why) == ("inconclusive", "not seen to come back during the move: b2")


def test_a_bounce_under_a_load_is_judged_by_the_load_as_well():
    run = simulate(bounce())
    assert verdicts(run.judged(), "load-rate-sustained", "live-records") == {"pass"}
    assert verdicts(rejudged(run, facts={"live": None}), "load-rate-sustained", "live-records") == {"inconclusive"}


def test_a_live_change_is_one_only_when_the_throttle_was_raised_and_lowered():
    assert verdicts(simulate(live_change()).judged(), "throttle-changed") == {"pass"}
    for quotas, word in ((((0.0, 8e6), (26.0, 12e6)), "lowered"), (((0.0, 12e6), (26.0, 8e6)), "raised")):
        (changed,) = named(simulate(live_change(quotas=quotas)).judged(), "throttle-changed")
        assert (changed.verdict, word in changed.why) == ("inconclusive", True)


def test_a_poll_that_was_answered_after_a_change_is_not_held_against_the_quota_before():
    run = simulate(live_change())
    edge = us(26.0 - 0.01)
    polls = [r for r in run.samples.to_pylist() if r["metric"] == "quota.leader.rate" and r["host"] == "b1"]
    last = max(r["ts"] for r in polls if r["ts"].timestamp() * 1e6 < edge)
    metric, ts = run.samples["metric"].to_pylist(), run.samples["ts"].to_pylist()
    at_edge = [m in ("quota.leader.rate", "quota.follower.rate") and t == last for m, t in zip(metric, ts, strict=True)]
    value = [12e6 if late else v for late, v in zip(at_edge, run.samples["value"].to_pylist(), strict=True)]
    column = run.samples.schema.get_field_index("value")
    samples = run.samples.set_column(column, run.samples.schema.field(column), pa.array(value, pa.float64()))
    assert sum(at_edge) == 4
    assert verdicts(judge(run.manifest, samples, run.events), "quota-in-force") == {"pass"}


def test_a_phase_too_short_to_be_polled_in_is_no_gap():
    brief = live_change(quotas=((0.0, 8e6), (26.0, 12e6), (52.0, 12e6), (52.7, 4e6)), without=())
    run = simulate(brief)
    polled = [s["ts"].timestamp() * 1e6 for s in run.samples.to_pylist() if s["metric"] == "quota.leader.rate"]
    inside = pc.and_(
        pc.greater(run.samples["ts"], pa.scalar(us(52.3), pa.timestamp("us", "UTC"))),
        pc.less(run.samples["ts"], pa.scalar(us(52.72), pa.timestamp("us", "UTC"))),
    )
    dropped = pc.and_(inside, pc.starts_with(run.samples["metric"], "quota."))
    judgement = judge(run.manifest, run.samples.filter(pc.invert(dropped)), run.events)
    assert polled and len(judgement.measures.phases) == 4
    assert verdicts(judgement, "quota-in-force") == {"pass"}


def test_a_control_beside_listed_partitions_that_do_not_grow_passes():
    run = simulate(two_node())
    (control,) = run.judged().measures.controls
    still = replace(run.judged().measures, controls=(replace(control, with_throttled_bytes=control.total_bytes),))
    (found,) = judge_controls(still, run.manifest.move, run.manifest.nics)
    assert found.verdict == "pass" and found.observed > 1e6


@pytest.mark.parametrize(
    ("carried", "verdict", "why"),
    [(1.4, "inconclusive", "2 partitions get no more next to 4 throttled ones"), (5.0, "fail", "the control")],
)
def test_a_control_is_blamed_only_where_the_nic_leaves_it_more(carried, verdict, why):
    """Of as many partitions each gets as much as a throttled one when the NIC carries 1.4 times the quota."""
    run = simulate(two_node())
    (control,), move = run.judged().measures.controls, run.manifest.move
    few = [replace(flow, partitions=(0, 1, 2, 3)) if flow.kind == "throttled" else flow for flow in move.flows]
    alike = replace(control, with_throttled_bytes=2 * control.beside_throttled_bytes)
    nics = [replace(nic, payload_bytes_per_s=carried * move.quota_bytes_per_s) for nic in run.manifest.nics]
    measures = replace(run.judged().measures, controls=(alike,))
    (found,) = judge_controls(measures, replace(move, flows=tuple(few)), nics)
    assert found.verdict == verdict and why in found.why


@pytest.mark.parametrize("without", [("cpu.busy",), ("cpu.steal",)])
def test_a_removed_throttle_cannot_hide_behind_the_load_it_makes(without):
    gone = tuple((host, 25.0, 999.0, 45e6) for host in ("b1", "b2"))
    judgement = simulate(two_node(real_quota=gone, told_quota=False, without=without)).judged()
    assert verdicts(judgement, "machine-load") == {"inconclusive"}
    assert verdicts(judgement, "throttled-window") == {"fail"}
    # A little over could be readings that came late.
    little = tuple((host, 25.0, 999.0, 13e6) for host in ("b1", "b2"))
    judgement = simulate(two_node(real_quota=little, told_quota=False, without=without)).judged()
    assert verdicts(judgement, "throttled-window") == {"inconclusive"}


@pytest.mark.parametrize("scene", [one_to_two, two_to_one])
def test_an_isr_that_flaps_without_a_load_fails_too(scene):
    assert verdicts(simulate(scene()).judged(), "no-isr-shrink") == {"pass"}
    assert verdicts(simulate(scene(flapping=("b1", 20.0))).judged(), "no-isr-shrink") == {"fail"}
    assert verdicts(simulate(scene(without=("isr.size",))).judged(), "no-isr-shrink") == {"inconclusive"}


@pytest.mark.parametrize(("instants", "verdict"), [((), "pass"), ((20.33,), "fail"), ((-0.17, 0.33), "pass")])
def test_a_replica_that_lags_while_an_added_one_is_in_sync_has_left_the_isr(instants, verdict):
    """The ISR is as large as before then. What lagged when the move began has not left by it."""
    run = simulate(one_to_two())
    topic = run.manifest.move.flows[0].topic
    looks = by_partition(RunSeries(run.samples, run.events).of_metric("isr.size"))[topic, 0][0]
    late = [Sample(int(looks[np.argmin(abs(looks - us(t)))]), "driver", "isr.lagging", 1.0, topic, 0) for t in instants]
    more = pa.concat_tables([run.samples, samples_table(late)])
    [found] = named(replace(run, samples=more).judged(), "no-isr-shrink")
    assert found.verdict == verdict
    assert (f"a replica of {topic}-0 of before the move was not in sync" in found.why) is (verdict == "fail")


def test_where_every_replica_is_alone_the_brokers_counts_are_enough():
    alone = two_node(experiment="kip73-bootstrap", without=("isr.size",))
    assert verdicts(simulate(alone).judged(), "no-isr-shrink") == {"pass"}
    assert verdicts(simulate(replace(alone, flapping=("b1", 20.0))).judged(), "no-isr-shrink") == {"fail"}


def slowed(factor, **changes):
    """A run with Kafka's own settings whose brokers make so much of their quota."""
    real = tuple((host, 0.0, 999.0, 5e6 * factor) for host in ("b1", "b2"))
    return two_node(size=250e6 * factor, quotas=((0.0, 5e6),), real_quota=real, told_quota=False, **changes)


@pytest.mark.parametrize(("factor", "verdict"), [(1.0, "pass"), (0.92, "pass"), (0.6, "fail"), (0.25, "fail")])
def test_a_quota_of_which_default_settings_make_too_little_fails(factor, verdict):
    scene = slowed(factor, fetch="default", response=10 * MIB)
    assert verdicts(simulate(scene).judged(), "steady-mean") == {verdict}


@pytest.mark.parametrize("fetch", ["tuned", "default"])
def test_a_raise_without_effect_fails(fetch):
    response = MIB if fetch == "tuned" else 10 * MIB
    healthy = simulate(live_change(fetch=fetch, response=response)).judged()
    assert verdicts(healthy, "rate-after-throttle-change") == {"pass"}
    ignored = tuple((host, 26.0, 52.0, 8e6 * 0.95) for host in ("b1", "b2"))
    scene = live_change(fetch=fetch, response=response, real_quota=ignored, told_quota=False)
    failed = [
        c.expected[:7] for c in named(simulate(scene).judged(), "rate-after-throttle-change") if c.verdict == "fail"
    ]
    assert failed == ["phase 2"] * 2


def test_a_mean_above_what_a_long_time_may_have_fails():
    much = tuple((host, 0.0, 999.0, 11.5e6) for host in ("b1", "b2"))
    judgement = simulate(two_node(size=2200e6, real_quota=much, told_quota=False)).judged()
    assert verdicts(judgement, "throttled-window") == {"pass"}  # 1.13 of the quota: no window tells
    assert verdicts(judgement, "long-window-bound") == {"fail"}
    assert verdicts(simulate(mixed()).judged(), "long-window-bound") == {"pass"}


def test_stuck_is_noticed_in_time():
    run = simulate(stuck(stuck=(17.0, 8.0)))
    (late,) = named(run.judged(), "stall-detected")
    assert late.verdict == "fail" and "noticed too late: the lag was lowest 14.8 s before" in late.why
    run = simulate(stuck())
    for patience, verdict in ((15.0, "pass"), (12.5, "pass"), (11.0, "fail")):
        manifest = replace(run.manifest, parameters={**run.manifest.parameters, "patience": patience})
        assert verdicts(judge(manifest, run.samples, run.events), "stall-detected") == {verdict}


def test_the_report_allows_what_the_judgement_does_and_has_one_error_of_kip73():
    run = simulate(mixed())
    measures, move = run.judged().measures, run.manifest.move
    worst = next(r for r in measures.rates if r.direction == "receive")
    bound = bound_of(move, "b2", "receive") + worst.worst_window.in_sync_bytes
    allowed_share = f"{bound / move.window_s / move.quota_bytes_per_s * 100:.1f} %"
    assert f"where the bound allows {allowed_share}" in _figures(measures, move)
    told = values_of(run.manifest, measures)["quota-bound-11s"]
    assert told > max(bound_of(move, h, d) for h, d in (("b1", "transmit"), ("b2", "receive"))) / 110e6
    plain = replace(move, model_seconds=None)
    (time,) = [f for f in figures(run.manifest, measures, plain) if f.label == "Time to move"]
    known = estimate("run", plain, measures)
    assert f"{(known.kip73_s / known.observed_s - 1) * 100:+.1f} %" in time.note
    endless = replace(plain, kip73_seconds=0.0)  # where producers write more than the quota, the runner records 0
    (time,) = [f for f in figures(run.manifest, measures, endless) if f.label == "Time to move"]
    assert time.note == "KIP-73: never ends"


@pytest.mark.parametrize(
    ("scene", "verdict", "why"),
    [
        (stuck(), "pass", "raised to 10 MB/s at +17.0 s, done at"),
        (stuck(stuck=(17.0, 16.9)), "pass", "in the 16.9 s since; raised to"),
        (stuck(stuck=(30.0, 8.0)), "fail", "noticed too soon"),
        (stuck(stuck=None), "fail", "no notice says that the move was stuck; it was done at"),
    ],
)
def test_stuck_is_noticed_once_it_is_true(scene, verdict, why):
    (criterion,) = named(simulate(scene).judged(), "stall-detected")
    assert criterion.verdict == verdict
    assert why in criterion.why


@pytest.mark.parametrize(
    ("model_factor", "verdict"), [(1.0, "pass"), (1.09, "pass"), (0.96, "pass"), (1.18, "fail"), (0.92, "fail")]
)
def test_the_duration_is_the_models_within_a_tenth(model_factor, verdict):
    (duration,) = named(simulate(two_node(3e6, 360e6, model_factor=model_factor)).judged(), "duration-model")
    assert duration.verdict == verdict
    assert "KIP-73's MoveTime is 51.4 s, wrong by" in duration.why


def test_without_a_prediction_the_duration_is_open_and_says_why():
    run = simulate(two_node())
    (duration,) = named(rejudged(run, model_seconds=None, model_why="nobody knows"), "duration-model")
    assert (duration.verdict, duration.why) == ("inconclusive", "there is no prediction: nobody knows")
    assert named(rejudged(run, fetch="default"), "duration-model") == []
    assert named(rejudged(run, expected=()), "duration-model") == []


@pytest.mark.parametrize(("model_s", "verdict"), [(5.1, "inconclusive"), (10.9, "inconclusive"), (11.1, "fail")])
def test_a_move_that_ends_within_the_quotas_window_has_no_duration(model_s, verdict):
    (duration,) = named(rejudged(simulate(two_node()), model_seconds=model_s), "duration-model")
    assert duration.verdict == verdict
    assert ("the quota holds over 11 s, not over less" in duration.why) == (verdict == "inconclusive")


@pytest.mark.parametrize(
    ("model_s", "moved_s", "verdict"),
    [(12.0, 13.9, "pass"), (12.0, 14.1, "fail"), (12.0, 10.7, "fail"), (30.0, 32.9, "pass"), (30.0, 33.1, "fail")],
)
def test_the_edges_of_a_short_move_are_no_slowness(model_s, moved_s, verdict):
    """A healthy move begins up to a second late, and its end is known to a reading: 1.8 s are 15 % of 12 s."""
    run = simulate(two_node())
    measures = replace(run.judged().measures, moved_s=moved_s)
    (duration,) = judge_duration(measures, replace(run.manifest.move, model_seconds=model_s))
    assert duration.verdict == verdict


def test_another_broker_than_the_models_fails():
    run = simulate(one_to_two())
    turned = tuple(
        replace(e, bytes=e.bytes * 4 if e.direction == "receive" else e.bytes) for e in run.manifest.move.expected
    )
    (binding,) = named(rejudged(run, expected=turned), "bottleneck-as-modelled")
    assert (binding.verdict, binding.observed) == ("fail", "b1 transmit")


def test_a_lost_live_record_fails_and_a_load_that_was_not_read_back_is_open():
    run = simulate(two_node(3e6, 360e6, lost_live=2))
    assert named(run.judged(), "live-records")[0].verdict == "fail"
    live = run.manifest.facts.live
    unread = rejudged(run, facts={"live": LiveLoad(live.processes, None)})
    assert (unread.verdict, verdicts(unread, "live-records")) == ("inconclusive", {"inconclusive"})
    assert verdicts(rejudged(run, facts={"live": None}), "load-rate-sustained", "live-records") == {"inconclusive"}


def test_retries_of_a_producer_that_is_not_idempotent_may_come_twice_but_not_be_lost():
    run = simulate(two_node(3e6, 360e6))
    live = run.manifest.facts.live
    (audit,) = live.audits
    for changes, verdict in (
        ({"duplicated": 3}, "fail"),
        ({"duplicated": 3, "exactly_once": False}, "pass"),
        ({"lost": 1, "exactly_once": False}, "fail"),
        ({"acked": 0}, "inconclusive"),
        ({"found": 8999}, "fail"),
    ):
        judgement = rejudged(run, facts={"live": replace(live, audits=(replace(audit, **changes),))})
        assert verdicts(judgement, "live-records") == {verdict}


def nic_bound(quota, **changes):
    run = simulate(two_node(quotas=((0.0, quota),), experiment="kip73-nic-bound", nic_bound=True, **changes))
    nics = tuple(replace(n, payload_bytes_per_s=changes["nic_rate"] * 1448 / 1514) for n in run.manifest.nics)
    return judge(replace(run.manifest, nics=nics), run.samples, run.events)


def test_the_nic_that_binds_is_the_slowest():
    run = simulate(two_node(quotas=((0.0, 40e6),), experiment="kip73-nic-bound", nic_rate=10e6))
    nics = tuple(replace(n, payload_bytes_per_s=10e6 * 1448 / 1514) if n.host == "b1" else n for n in run.manifest.nics)
    judgement = judge(replace(run.manifest, nics=nics), run.samples, run.events)
    assert [(c.host, c.direction, c.verdict) for c in named(judgement, "nic-bound")] == [("b1", "transmit", "pass")]


def test_the_verdict_says_which_of_quota_and_nic_bound():
    slow = nic_bound(40e6, nic_rate=10e6)
    assert {c.why.split(":")[0] for c in named(slow, "nic-bound")} == {"the NIC bound"}
    assert {", throttled bytes are " in c.why for c in named(slow, "nic-bound")} == {True}
    assert slow.verdict == "pass", [c for c in slow.criteria if c.verdict != "pass"]
    throttled = nic_bound(5e6, nic_rate=10e6, size=300e6)
    assert verdicts(throttled, "nic-bound") == {"fail"}
    assert {c.why.split(":")[0] for c in named(throttled, "nic-bound")} == {"the quota bound"}


def test_the_bound_of_a_quota_above_the_nics_on_purpose_is_not_judged():
    """A run that names both criteria was recorded while `kip73-nic-bound` named them."""
    run = simulate(two_node(quotas=((0.0, 40e6),), experiment="kip73-nic-bound", nic_bound=True, nic_rate=10e6))
    bounds = {"throttled-window", "long-window-bound"}
    manifest = replace(run.manifest, criteria=(*bounds, "nic-bound"))
    names = {each.name for each in judge(manifest, run.samples, run.events).criteria}
    assert "nic-bound" in names and not bounds & names
    assert {each.name for each in skipped(manifest)} == bounds


def test_a_nic_that_was_not_measured_leaves_it_open():
    run = simulate(two_node(quotas=((0.0, 40e6),), experiment="kip73-nic-bound", nic_rate=10e6))
    judgement = judge(replace(run.manifest, nics=()), run.samples, run.events)
    assert verdicts(judgement, "nic-bound") == {"inconclusive"}


def first_window(quota, response, burst, seconds=50, **changes):
    scene = two_node(
        size=quota * seconds,
        quotas=((0.0, quota),),
        response=response,
        burst=burst,
        experiment="kip73-fetch-size",
        **changes,
    )
    return named(simulate(scene).judged(), "first-window")


def test_the_first_windows_burst_is_predicted_from_the_responses_size():
    small = first_window(10e6, 1 << 20, 0.0)
    assert {c.verdict for c in small} == {"pass"}
    assert "less than quota × 11." in small[0].why
    # A response that is larger than quota × window: 22 MB are within the prediction's reach, 120 MB are not.
    large = first_window(2e6, 32 << 20, 32 << 20)
    assert {c.verdict for c in large} == {"pass"}
    assert "more than quota × 11." in large[0].why
    assert all(c.power for c in large)
    assert {c.verdict for c in first_window(2e6, 1 << 20, 32 << 20)} == {"fail"}
    assert {c.verdict for c in first_window(2e6, 32 << 20, 0.0)} == {"fail"}


def test_a_first_window_that_may_have_all_bytes_of_a_move_finds_none_too_many():
    short = first_window(2e6, 32 << 20, 32 << 20, seconds=20, rests=((0.5, 14.0),))
    assert [(c.verdict, c.power) for c in short] == [("pass", None)] * 2


def test_the_model_and_the_live_load_survive_the_manifest():
    manifest = simulate(one_to_two(2e6)).manifest
    again = Manifest.from_json(manifest.to_json())
    assert again == manifest
    assert again.move.expected[0] == Expected("b1", "transmit", again.move.expected[0].bytes, 4e6)
    assert again.facts.live.audits[0].acked == 9000


def test_expected_names_a_broker():
    manifest = simulate(two_node()).manifest
    with pytest.raises(ValueError, match="expected names 'b9', not among brokers"):
        replace(manifest.move, expected=(Expected("b9", "transmit", 1, 0.0),))
    assert isinstance(manifest.nics[0], NicMeasurement)


def test_what_clients_saw_before_during_and_after():
    run = simulate(two_node(3e6, 360e6, silent=(20.0, 24.0)))
    views = {(v.kind, v.part): v for v in run.judged().measures.clients}
    assert set(views) == {(kind, part) for kind in ("produce", "consume") for part in ("before", "during", "after")}
    assert (views["produce", "before"].p50_us, views["produce", "before"].p99_us) == (4000.0, 8000.0)
    assert (views["produce", "during"].p50_us, views["produce", "during"].p999_us) == (12000.0, 96000.0)
    assert views["consume", "after"].p99_us == 12000.0
    assert views["produce", "during"].silence_s == pytest.approx(4.0)
    assert views["produce", "before"].silence_s == 0.0
    assert views["produce", "before"].records == 200 * 10
