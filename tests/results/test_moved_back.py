"""A throttle that is removed holds nothing back: what moves back is faster than it would have allowed."""

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from results.contract.move import Flow, RoundTrip
from results.contract.schema import Event, Sample, events_table, samples_table
from results.criteria import judge
from results.criteria.judgement import rates_failed
from tests.results.judged import named
from tests.results.synthetic import us

BACK_S, BYTES, WRITTEN = 70, 580e6, 1e6


def moved_back(run, rate, *, done=True, **move):
    """The judgement of a run whose partitions move back to b1 at this rate from 70 s on, while clients write."""
    takes_s = BYTES / rate
    seconds = round(takes_s) + 20
    leaders = pc.and_(
        pc.equal(run.samples["host"], "b1"), pc.fill_null(pc.equal(run.samples["topic"], "moving"), False)
    )
    others = run.samples.filter(pc.invert(leaders))
    gone = pc.less(pc.cast(run.samples["ts"], pa.int64()), us(60))
    before = run.samples.filter(pc.and_(leaders, gone))
    back = [
        Sample(us(BACK_S + t + 0.1), "b1", "log.bytes", (min(BYTES, rate * t) + WRITTEN * t) / 100, "moving", p)
        for t in range(seconds)
        for p in range(100)
    ]
    events = [Event(us(BACK_S), "return.started"), *([Event(us(BACK_S + takes_s + 1), "return.done")] if done else [])]
    manifest = replace(run.manifest, move=replace(run.manifest.move, **move))
    return judge(
        manifest,
        pa.concat_tables([others, before, samples_table(back)]),
        pa.concat_tables([run.events, events_table(events)]),
    )


def returned(judgement):
    return [each for each in named(judgement, "control-unthrottled") if each.unit == "of what the throttle allows"]


@pytest.mark.parametrize(
    ("rate", "done", "verdict"),
    [(40e6, True, "pass"), (20e6, True, "pass"), (9.9e6, True, "fail"), (9.9e6, False, "fail"), (5e6, True, "fail")],
)
def test_a_throttle_that_stays_in_force_is_seen_in_the_move_back(make_run, rate, done, verdict):
    judgement = moved_back(make_run(), rate, done=done)
    [found] = returned(judgement)
    assert (found.host, found.direction, found.verdict) == ("b1", "receive", verdict)
    assert rates_failed(judgement) is (verdict == "fail")


def test_a_move_back_says_nothing_where_something_else_may_hold_it_back(make_run):
    delay = (RoundTrip("b1", "b2", 0.04, 131072.0),)
    assert returned(moved_back(make_run(), 9.9e6, round_trips=delay)) == []
    assert returned(moved_back(make_run(), 9.9e6, quota_bytes_per_s=30e6)) == []
    assert returned(moved_back(make_run(), 9.9e6, inbound_bytes_per_s=40e6)) == []
    many = (Flow("throttled", "moving", tuple(range(1000)), "b1", "b2"),)
    assert returned(moved_back(make_run(), 9.9e6, flows=many)) == []
    run = make_run()
    document = {**run.manifest.topology.document, "racks": {"r1": {"uplink": {}}, "r2": {}}}
    racks = replace(run.manifest, topology=replace(run.manifest.topology, document=document))
    assert returned(moved_back(replace(run, manifest=racks), 9.9e6)) == []
    assert returned(make_run().judged()) == []
    waiting = [Sample(us(t), "machine", "pressure.io", 40 + 0.3 * max(0, t - BACK_S)) for t in range(160)]
    run = make_run()
    slow = replace(run, samples=pa.concat_tables([run.samples, samples_table(waiting)]))
    assert returned(moved_back(slow, 9.9e6)) == []
