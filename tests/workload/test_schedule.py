from collections import Counter
from dataclasses import replace

import pytest

from testbed.errors import UsageError
from testbed.workload.outcome import ProcessReports, not_held
from testbed.workload.spec import ConsumerSpec, Pause, ProducerSpec, Size, check, schedule

SPEC = ProducerSpec("producer-1", "t", (3, 4, 5, 6), 1_024_000.0)
LAST = {"due": 1000, "sent": 1000, "failed": 0, "in_doubt": 0, "waiting_at_stop": 0}


def test_records_are_due_at_the_declared_rate():
    plan = schedule(SPEC, 1)
    assert plan.interval_us == 1000.0
    assert plan.due(999, 1000) == 0
    assert plan.due(1000, 1000) == 1
    assert plan.due(1000 + 10_000_000, 1000) == 10_001


def test_a_partition_gets_a_batch_before_the_next_has_its_turn():
    plan = schedule(SPEC, 1)
    assert plan.partitions == (3, 4, 5, 6)
    assert plan.turn == 15  # of 1024 bytes and what a batch adds, into 16384
    assert schedule(replace(SPEC, keys=4), 1).turn == 1
    assert schedule(replace(SPEC, record_bytes=100_000), 1).turn == 1


def test_skew_is_zipfs():
    table = schedule(replace(SPEC, skew=1.0), 1).partitions
    shares = [count / len(table) for _partition, count in sorted(Counter(table).items())]
    assert shares == pytest.approx([12 / 25, 6 / 25, 4 / 25, 3 / 25], abs=0.001)


def test_sizes_have_their_weights_and_keep_the_rate():
    spec = replace(SPEC, sizes=(Size(200, 9), Size(4000, 1)))
    plan = schedule(spec, 1)
    assert Counter(plan.sizes)[200] / len(plan.sizes) == pytest.approx(0.9, abs=0.001)
    mean = sum(plan.sizes) / len(plan.sizes)
    assert mean / plan.interval_us * 1e6 == pytest.approx(SPEC.rate_bytes_per_s, rel=0.005)


def test_the_same_seed_gives_the_same_schedule():
    spec = replace(SPEC, skew=1.0, sizes=(Size(200, 9), Size(4000, 1)))
    assert schedule(spec, 1) == schedule(spec, 1)
    assert schedule(spec, 1) != schedule(spec, 2)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (replace(SPEC, partitions=()), "no partitions"),
        (replace(SPEC, partitions=(1, 1)), "named twice"),
        (replace(SPEC, rate_bytes_per_s=0.0), "rate 0 bytes/s"),
        (replace(SPEC, record_bytes=32), "records of 32 bytes"),
        (replace(SPEC, sizes=(Size(100, 0),)), "weight"),
        (replace(SPEC, keys=3), "3 keys for 4 partitions"),
        (replace(SPEC, keys=-1), "-1 keys"),
        (replace(SPEC, skew=-1.0), "skew -1"),
        (replace(SPEC, compression="zip"), "there are none, gzip"),
        (replace(SPEC, redundancy=1.0), "redundancy 1"),
        (replace(SPEC, transaction_s=0.0), "transaction_s"),
        (replace(SPEC, transaction_s=1.0, abort_every=1), "abort_every 1: must be 0, or 2 or more"),
        (replace(SPEC, transaction_s=1.0, idempotence=False), "need idempotence"),
        (replace(SPEC, give_up_s=0.0), "give_up_s"),
        (replace(SPEC, name=""), "no name"),
        (ConsumerSpec("c", (), "g"), "no topics"),
        (ConsumerSpec("c", ("t",), ""), "no group"),
        (ConsumerSpec("c", ("t",), "g", pauses=(Pause(2, 1),)), "pauses 2..1"),
    ],
)
def test_a_mistake_is_named(spec, said):
    with pytest.raises(UsageError, match=said):
        check([spec])


def test_every_mistake_is_named_at_once():
    with pytest.raises(UsageError) as error:
        check([replace(SPEC, skew=-1.0), SPEC, ConsumerSpec("c", (), "g")])
    assert "skew" in str(error.value)
    assert "no topics" in str(error.value)
    assert "2 processes are called 'producer-1'" in str(error.value)


@pytest.mark.parametrize(
    ("sent", "waiting", "latest_s", "why"),
    [
        (1000, 0, 0.4, ""),
        (999, 1900, 0.4, ""),
        (1000, 0, 1.2, "1.20 s after it was due: this process had too little CPU"),
        (1000, 2100, 0.0, "2.1 s of records had no answer"),
    ],
)
def test_a_rate_is_held_or_it_is_said_why_not(sent, waiting, latest_s, why):
    said = not_held(SPEC, LAST | {"sent": sent, "waiting_at_stop": waiting}, latest_s)
    assert (why in said) and (bool(why) == bool(said))


@pytest.mark.parametrize(("failed", "in_doubt", "held"), [(55_000, 0, False), (600, 500, False), (500, 500, True)])
def test_a_load_whose_records_were_not_taken_is_not_held(failed, in_doubt, held):
    said = not_held(SPEC, LAST | {"due": 60_000, "sent": 60_000, "failed": failed, "in_doubt": in_doubt}, 0.4)
    assert said == "" if held else f"{failed} of 60000 records were refused and {in_doubt} had no answer" in said


@pytest.mark.parametrize(
    ("last", "late_s", "kept_waiting"),
    [
        ({"in_doubt": 2000}, 0.4, True),
        ({"waiting_at_stop": 3000}, 0.4, True),
        ({"in_doubt": 2000}, 1.4, False),
        ({"in_doubt": 2000, "sent": 9}, 0.4, False),
        ({"in_doubt": 2000, "fatal": True}, 0.4, False),
        ({}, 0.4, False),
    ],
)
def test_brokers_are_why_a_rate_is_not_held_where_every_record_was_handed_over_in_time(last, late_s, kept_waiting):
    reports = ProcessReports(SPEC, 0)
    final = {"t": 1, "cpu": 0.1, "late_s": late_s, "final": True, "sent_places": []}
    reports.hear(LAST | {"due": 60_000, "sent": 60_000} | final | last)
    result = reports.result()
    assert result.kept_waiting is kept_waiting
    assert result.held is (last == {})


def test_records_that_were_never_sent_are_told():
    said = not_held(SPEC, LAST | {"due": 5000}, 0.0)
    assert "4000 were never sent" in said


@pytest.mark.parametrize(("sent", "waiting", "held"), [(99, 1, True), (98, 0, False), (100, 2, False)])
def test_of_less_than_a_record_a_second_one_may_be_due_and_one_on_its_way_at_the_end(sent, waiting, held):
    slow = ProducerSpec("producer-1", "t", (0,), 450_000.0, record_bytes=900_000)
    last = LAST | {"due": 100, "sent": sent, "waiting_at_stop": waiting}
    assert (not_held(slow, last, 0.0) == "") == held
