"""A broker that stands still leaves rates open, by name, and the cause is named where the readings tell it."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from results.contract.handover import HandoverRecord, PartitionHandover
from results.contract.schema import Sample, samples_table
from results.criteria import judge
from results.criteria.sample_series import Series
from results.criteria.standstill import highest_share
from tests.results.judged import verdicts
from tests.results.synthetic import us

MB = 1_000_000
OLD_MB = 358
RATES = ("steady-mean", "duration-model", "nic-conservation", "broker-rate-agrees")


def with_jvm(run, paused=lambda t: 0.001 * t, full=lambda _t: 0, left=lambda _t: 60, hosts=("b1", "b2"), until=70):
    """Add the readings of the brokers' JVMs: seconds of pauses, full collections, MB that are left."""
    rows = []
    for host in hosts:
        for t in range(-5, until):
            rows += [
                Sample(us(t), host, "jvm.pause.seconds", 2.0 + paused(t + 5)),
                Sample(us(t), host, "jvm.collection.seconds", 1.0 + paused(t + 5), label="full"),
                Sample(us(t), host, "jvm.collections", float(full(t)), label="full"),
                Sample(us(t), host, "jvm.old.used", left(t) * MB),
                Sample(us(t), host, "jvm.old.max", OLD_MB * MB),
            ]
    return replace(run, samples=pa.concat_tables([run.samples, samples_table(rows)]))


def pauses(judgement):
    return {c.host: c for c in judgement.criteria if c.name == "jvm-pauses"}


def test_a_run_that_did_not_read_its_jvms_has_no_such_criterion(make_run):
    assert pauses(make_run().judged()) == {}


def test_brokers_that_seldom_stand_still_pass(make_run):
    judgement = with_jvm(make_run()).judged()
    assert judgement.verdict == "pass"
    assert pauses(judgement)["b1"].why == "it stood still for at most 0.1 % of any 33 s; 0 full collections"


def test_one_long_collection_is_less_than_a_steady_mean_allows(make_run):
    judgement = with_jvm(make_run(), lambda t: 1.5 * (t > 30), lambda t: t > 25).judged()
    assert judgement.verdict == "pass"
    assert pauses(judgement)["b2"].why.endswith("; 1 full collection")


CONSTANT = {"paused": lambda t: 0.3 * t, "full": lambda t: t // 2 + 3}


@pytest.mark.parametrize(
    ("jvm", "steal", "cause"),
    [
        (
            {**CONSTANT, "left": lambda t: 330 + t % 3},
            0.0,
            "the heap is too small for what the broker holds, 330 MB of 358 MB after full collections",
        ),
        (
            {**CONSTANT, "left": lambda t: 60 + 3 * t},
            0.0,
            "Kafka keeps more and more, 66 MB to ",
        ),
        (CONSTANT, 0.2, "other machines took 2"),
        (CONSTANT, 0.0, "the readings do not show the cause"),
    ],
    ids=["settings", "Kafka", "the machine", "unknown"],
)
def test_a_broker_that_collects_all_the_time_is_named_with_the_likely_cause(make_run, jvm, steal, cause):
    judgement = with_jvm(make_run(real_quota=6e6, steal=steal), **jvm, hosts=("b2",), until=120).judged()
    found = pauses(judgement)["b2"]
    assert found.verdict == "inconclusive"
    assert found.why.startswith("it stood still for 30.0 % of 33 s, 30.0 % in collections; ")
    assert f" full collections: {cause}" in found.why
    assert verdicts(judgement, *RATES) == {"inconclusive"}
    assert pauses(judgement)["b1"].why == "its JVM was not read during the move"


def test_a_heap_that_every_full_collection_leaves_full_is_named_although_pauses_are_short(make_run):
    judgement = with_jvm(make_run(), full=lambda t: t // 10 + 1, left=lambda t: 340).judged()
    found = pauses(judgement)["b1"]
    assert (found.verdict, found.observed) == ("inconclusive", pytest.approx(0.001, rel=0.01))
    assert "full collections, each of which left 95.0 % or more: the heap is too small" in found.why


def test_readings_with_a_gap_say_nothing(make_run):
    judgement = with_jvm(make_run(), until=40).judged()
    assert "its JVM: no sample for" in pauses(judgement)["b1"].why


def counter(*values, at=None):
    t = np.array([us(s) for s in (at or range(len(values)))], np.int64)
    return Series(t, t, np.array(values, float))


def test_the_share_is_of_windows_within_a_span():
    whole = [(us(0), us(59))]
    assert highest_share(counter(*[0.0] * 30, *[3.3] * 30), whole) == pytest.approx(0.1)
    assert highest_share(counter(*[0.0] * 30, *[3.3] * 30), [(us(0), us(29)), (us(30), us(59))]) == 0.0
    assert highest_share(counter(*[0.0] * 10, *[1.0] * 11), [(us(0), us(20))]) == pytest.approx(0.05)
    assert highest_share(counter(0.0, 1.0, 2.0, 3.0), [(us(0), us(3))]) is None  # too short to say anything


def test_a_broker_that_begins_anew_has_not_stood_still():
    restarted = counter(*[50.0] * 20, *[0.5] * 20)
    assert highest_share(restarted, [(us(0), us(39))]) == 0.0


def test_a_move_shorter_than_a_quota_window_has_no_finding(make_run):
    run = with_jvm(make_run(log_bytes=60e6), lambda t: 0.3 * t)
    assert pauses(judge(run.manifest, run.samples, run.events)) == {}


def test_a_broker_that_the_run_killed_is_not_judged_afterwards(make_run):
    run = with_jvm(make_run(), hosts=("b1",))
    handed = PartitionHandover("t", 0, "b2", "b1", ())
    record = HandoverRecord("automq", us(0), (handed,), killed_us=us(1))
    killed = replace(run, manifest=replace(run.manifest, facts=replace(run.manifest.facts, handover=record)))
    assert set(pauses(run.judged())) == {"b1", "b2"}
    assert set(pauses(killed.judged())) == {"b1"}
