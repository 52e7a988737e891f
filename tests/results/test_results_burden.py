"""What a move was to the cluster: NICs, partitions at once, ISRs."""

from dataclasses import replace

import pytest

from results.compare.compared_measures import find_measure, measures, values_of
from results.contract.schema import Sample, samples_table
from results.criteria import judge
from tests.results.moves import simulate
from tests.results.scenes import one_to_two, two_node

WHERE = ("topic", "partition", "label")

UNTHROTTLED = {"formula-seconds", "time-vs-log-size", "inter-broker-bytes", "longest-ack", "store-requests", "p99-back"}
"""The measures of moves without a throttle."""


def judged(run, **changes):
    manifest = replace(run.manifest, move=replace(run.manifest.move, **changes))
    return judge(manifest, run.samples, run.events).measures.burden


@pytest.fixture(scope="module")
def flapping():
    """b1 leads all of it; an ISR of two has one for 2 s."""
    return simulate(one_to_two(2e6, flapping=("b1", 20.0)))


def test_each_nic_is_told_over_the_whole_move(flapping):
    burden = judged(flapping)
    uses = {(use.host, use.direction): use for use in burden.nics}
    assert set(uses) == {(host, way) for host in ("b1", "b2", "b3") for way in ("transmit", "receive")}
    sent = uses["b1", "transmit"]
    assert 0 < sent.mean_bytes_per_s < sent.peak_bytes_per_s
    assert uses["b1", "receive"].mean_bytes_per_s == 0.0


def test_time_under_min_insync_replicas_is_counted_from_look_to_look(flapping):
    assert judged(flapping).under_min_isr_s == 0.0  # one is enough by default
    burden = judged(flapping, min_insync=2)
    assert burden.under_min_isr_s == pytest.approx(2.0, abs=0.6)
    assert burden.lowest_isr == 1.0


def test_what_nobody_looked_at_is_not_known():
    burden = judged(simulate(two_node(without=("isr.size", "nic.tx.bytes", "move.in_flight"))))
    assert (burden.under_min_isr_s, burden.lowest_isr, burden.most_in_flight) == (None, None, None)
    assert {use.peak_bytes_per_s for use in burden.nics if use.direction == "transmit"} == {None}


def test_the_controllers_list_comes_before_what_the_driver_says(flapping):
    assert judged(flapping).most_in_flight == 1.0
    assert judged(replace(flapping, samples=listed(flapping, 25.0))).most_in_flight == 25.0


def listed(run, value):
    """The run's samples, and one look at the controller's list in the middle of them."""
    samples = [
        Sample(int(ts.timestamp() * 1e6), row["host"], row["metric"], row["value"], *(row[name] for name in WHERE))
        for row in run.samples.to_pylist()
        if (ts := row["ts"])
    ]
    middle = sorted(sample.ts_us for sample in samples)[len(samples) // 2]
    return samples_table([*samples, Sample(middle, "driver", "move.listed", value)])


def test_measures_that_are_asked_for_are_told_of_a_run_under_load(flapping):
    measured = judge(flapping.manifest, flapping.samples, flapping.events).measures
    values = values_of(flapping.manifest, measured)
    # Those of moves without a throttle, and of moves in batches, are of other runs.
    asked = {m.name for m in measures() if m.only_on_request} - UNTHROTTLED - {"rest-seconds"}
    assert asked <= set(values)
    assert 0 < values["nic-mean"] < values["nic-max-1s"] <= 1.1
    assert values["produce-p99"] > values["produce-p99-before"] > 0
    assert values["produce-p999"] >= values["produce-p99"] > values["produce-p50"] > 0
    assert values["consume-p99"] >= values["consume-p50"] > 0
    received = sum(rates.total_bytes for rates in measured.rates if rates.direction == "receive")
    assert values["copied"] == pytest.approx(received / 1e9)
    assert find_measure("under-min-isr").compared and not find_measure("under-min-isr").followed
