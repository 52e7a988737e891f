"""Once another broker is seen to lead a partition, what its replicas grow by does not come from the one before."""

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from results.contract.schema import Sample, samples_table
from results.criteria import judge
from tests.results.flowing import Group
from tests.results.moves import simulate
from tests.results.scenes import bounce, two_node
from tests.results.test_results_burden import WHERE


@pytest.fixture(scope="module")
def run():
    """b1 is copied to b2 in some 60 s."""
    return simulate(two_node(1e6))


def with_leaders(run, *seen):
    """The run's samples, and who was seen to lead partition 0 at which second of the move."""
    started = judge(run.manifest, run.samples, run.events).measures.started_us
    samples = [
        Sample(int(row["ts"].timestamp() * 1e6), row["host"], row["metric"], row["value"], *(row[w] for w in WHERE))
        for row in run.samples.to_pylist()
    ]
    led = [Sample(started + int(at * 1e6), host, "partition.led", 1.0, "kip73", 0) for at, host in seen]
    return samples_table([*samples, *led])


def carried(run, samples, direction):
    measures = judge(run.manifest, samples, run.events).measures
    [rates] = [rates for rates in measures.rates if rates.direction == direction]
    return rates.total_bytes


def received(run, samples):
    return carried(run, samples, "receive")


def test_growth_counts_until_another_one_leads(run):
    whole = received(run, run.samples)
    early, late = (received(run, with_leaders(run, (0.5, "b1"), (at, "b2"))) for at in (10.0, 40.0))
    # One of six partitions; the others go on.
    assert whole * 5 / 6 < early < late < whole


def test_the_same_one_seen_again_and_one_that_never_led_change_nothing(run):
    whole = received(run, run.samples)
    assert received(run, with_leaders(run, (0.5, "b1"), (20.0, "b1"))) == whole
    assert received(run, with_leaders(run, (10.0, "b2"), (20.0, "b2"))) == whole


def test_a_log_that_moves_back_after_the_move_ends_its_flow_all_the_same():
    """The first topic arrives long before the second, and both move back to b1 once the move is done."""
    groups = tuple(Group(name, 6, "b1", (), ("b2",), size, 1.5e6) for name, size in (("kip73", 90e6), ("more", 270e6)))
    run = simulate(replace(two_node(3e6), groups=groups))
    measures = judge(run.manifest, run.samples, run.events).measures
    looks = run.samples.filter(
        pc.and_(pc.equal(run.samples["host"], "b1"), pc.equal(run.samples["metric"], "nic.rx.bytes"))
    )
    done_us = measures.started_us + round(measures.done_s * 1e6)
    later = [us for us in pc.cast(looks["ts"], pa.int64()).to_pylist() if us > done_us]
    assert later
    back = [Sample(us, "b1", "log.bytes", 1e6, "kip73", p) for us in later for p in range(6)]
    assert received(run, pa.concat_tables([run.samples, samples_table(back)])) == received(run, run.samples)


def test_a_follower_goes_on_to_receive_when_a_replica_in_sync_takes_the_lead():
    """b1 is restarted from 36 to 42 s: b2, in sync before, leads from then on, and b3 copies from it."""
    run = simulate(bounce())
    led = with_leaders(run, (0.5, "b1"), (38.0, "b2"))
    assert received(run, led) == received(run, run.samples)
    assert carried(run, led, "transmit") < carried(run, run.samples, "transmit")
