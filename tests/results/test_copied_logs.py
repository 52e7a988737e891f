"""The copy of a log without writes has the leader's bytes; no log grows after its replica was declared in sync."""

from dataclasses import replace

import pytest

from results.contract.clocks import ClockReading
from results.contract.schema import Event, Sample, events_table, samples_table
from results.criteria.findings import finding
from results.criteria.judgement import catalogue
from results.criteria.quantities import US
from results.criteria.run_view import RunView
from tests.results.synthetic import EPOCH_US, synthetic_run

RECORDS, EXPANSION = catalogue()["records-intact"], catalogue()["isr-expansion"]
SIZE = 5_000_000.0
GROWS = (0.0, 1e6, 3e6, SIZE, SIZE, SIZE)


def run_of(copy, *, in_flight_s=4.0, parameters=None, kinds=("move.started", "move.done")):
    """Return a move of one partition whose copy on b2 has these bytes, second by second; None: it was not read."""
    plain = synthetic_run()
    [flow] = [each for each in plain.manifest.move.flows if each.kind == "throttled"]
    move = replace(plain.manifest.move, flows=(replace(flow, topic="moving", partitions=(0,)),))
    manifest = replace(plain.manifest, move=move, parameters={**plain.manifest.parameters, **(parameters or {})})
    samples = []
    for second, size in enumerate(copy):
        us = EPOCH_US + second * US
        samples.append(Sample(us, "b1", "log.bytes", SIZE, "moving", 0))
        if size is not None:
            samples.append(Sample(us, "b2", "log.bytes", size, "moving", 0))
    for half in range(2 * len(copy)):
        samples.append(Sample(EPOCH_US + half * US // 2, "driver", "move.in_flight", float(half / 2 < in_flight_s)))
    instants = {"move.started": 0, "broker.leaving": US, "move.done": round(4.5 * US)}
    events = [Event(EPOCH_US + instants[kind], kind, "move") for kind in kinds]
    return RunView(manifest, samples_table(samples), events_table(events))


def records(*run, **options):
    [found] = RECORDS.findings(run_of(*run, **options))
    return found


def test_a_whole_copy_passes():
    assert records(GROWS).verdict == "pass"


def test_the_finding_expects_what_is_judged_of_the_run_and_no_more():
    read = "every preloaded record once, unchanged, in order"
    assert records(GROWS).expected == f"{read}, on all replicas; copies as large as the leaders' logs"
    assert records(GROWS, kinds=("move.started",)).expected == f"{read}, on all replicas"
    assert records(GROWS, parameters={"storage": "tiered"}).expected == read


def test_a_copy_that_lacks_bytes_fails_although_every_record_is_read():
    found = records((*GROWS[:3], SIZE - 1, SIZE - 1, SIZE - 1))
    assert found.verdict == "fail"
    assert "the log of moving-0 has 4999999 bytes on b2, 5000000 on b1" in found.why


def test_a_reading_that_may_be_of_before_the_end_by_another_clock_says_nothing():
    copy = (*GROWS[:3], SIZE - 1, SIZE - 1, SIZE - 1)
    for clock, verdict in ((0.2, "fail"), (0.6, "pass"), (None, "pass")):  # the last reading is 0.5 s after the end
        run = run_of(copy)
        run.manifest = replace(run.manifest, clocks=(ClockReading("m2", "after", clock, 0.0),))
        [found] = RECORDS.findings(run)
        assert found.verdict == verdict


def test_a_copy_that_is_begun_again_fails():
    found = records((0.0, 3e6, 1e6, SIZE, SIZE, SIZE))
    assert found.verdict == "fail"
    assert "became smaller on b2" in found.why


@pytest.mark.parametrize(
    "options",
    [
        {"parameters": {"storage": "tiered"}},
        {"kinds": ("move.started", "broker.leaving", "move.done")},
        {"kinds": ("move.started",)},
    ],
)
def test_logs_that_change_for_other_reasons_are_not_compared(options):
    assert records((*GROWS[:3], 4e6, 4e6, 4e6), **options).verdict == "pass"


def test_a_follower_that_was_not_read_to_the_end_is_not_compared():
    assert records((0.0, 1e6, 3e6)).verdict == "pass"


def expansion(in_flight_s, add="yes"):
    [found] = EXPANSION.findings(run_of(GROWS, in_flight_s=in_flight_s, parameters={"add": add}))
    return found


def test_a_log_that_grows_after_its_replica_was_declared_in_sync_fails():
    # The log still grew after its reading at +2 s.
    assert [expansion(end_s).verdict for end_s in (4.0, 2.5)] == ["pass", "pass"]
    found = expansion(1.0)
    assert found.verdict == "fail"
    assert found.why == "logs of b2 grew 1.0 s or more after the reassignment had ended"


@pytest.mark.parametrize(
    ("in_flight_s", "precondition", "certain"),
    [
        (1.0, "machine-load", False),
        (1.0, "clock-steady", False),
        (6.0, "machine-load", True),
        (6.0, "clocks-agree", False),
    ],
)
def test_a_busy_machine_does_not_excuse_bytes_long_after_the_end(in_flight_s, precondition, certain):
    """The instant of a reading is off by a gap at most; two clocks say how long after the end it was."""
    grows = tuple(SIZE * min(1.0, second / 11) for second in range(15)) if in_flight_s > 2 else GROWS
    run = run_of(grows, in_flight_s=in_flight_s, parameters={"add": "yes"})
    assert [each.verdict for each in EXPANSION.findings(run)] == ["fail"]
    shaky = finding(precondition, "", "inconclusive", "", observed=None, series=())
    assert [each is not None for each in EXPANSION.holds_anyway(run, [shaky])] == [certain]


def test_a_reading_that_took_seconds_may_be_of_before_the_end():
    """It has the middle of its time, 10 s, and another one is 7 s away: it may have begun before the end at 6 s."""
    none = (None,) * 6
    run = run_of((0.0, 0.0, 0.0, 1e6, *none, 3e6, *none, SIZE), in_flight_s=6.0, parameters={"add": "yes"})
    [found] = EXPANSION.findings(run)
    assert found.verdict == "inconclusive"
    assert found.why == "the logs were not read to the end of the move: no sample for 7.0 s"


def test_where_the_old_leader_leaves_nothing_can_grow_afterwards():
    assert expansion(1.0, add="no").verdict == "pass"
