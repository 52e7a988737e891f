"""Connections of a producer: as many as its rate needs where brokers acknowledge slowly."""

from dataclasses import replace

import pytest

from testbed.experiments.layout import PartitionGroup
from testbed.experiments.load import SHARED_ANSWER_S, load_specs
from testbed.experiments.load_shape import LoadShape
from testbed.handover.probe import MOST_PRODUCERS, producers
from testbed.workload.produce import _Producing
from testbed.workload.spec import MOST_BATCH_BYTES, ProducerSpec, batch_bytes, connections
from tests.experiments.test_load_shape import LAYOUT


@pytest.mark.parametrize(
    ("rate", "answer_s", "wanted"), [(500e3, 0.0, 1), (250e3, 0.33, 2), (500e3, 1.0, 7), (5e6, 1.0, 62)]
)
def test_five_requests_of_a_batch_are_in_flight_on_each(rate, answer_s, wanted):
    assert connections(rate, 16384, answer_s) == wanted


@pytest.mark.parametrize(
    ("rate", "answer_s", "wanted"), [(500e3, 1.0, 500_000), (1e3, 0.5, 500), (50e6, 1.0, MOST_BATCH_BYTES)]
)
def test_a_connection_holds_its_rate_one_request_after_the_other(rate, answer_s, wanted):
    assert batch_bytes(rate, answer_s) == wanted


@pytest.mark.parametrize("partitions", [1, 3])
def test_few_partitions_have_larger_batches_and_come_no_faster_than_they_are_answered(partitions):
    """Runs …071403Z-s3-reassign-de055d (16 KiB) and …072911Z-s3-reassign-f88160 (100 kB): 4.0 batches a second."""
    spec = slow_load(partitions)
    assert spec.connections == partitions
    assert spec.connections * spec.batch_bytes / 0.25 > 1.5 * spec.rate_bytes_per_s
    assert spec.linger_ms > 250


def test_with_many_partitions_connections_alone_hold_the_rate():
    spec = slow_load(100)
    assert (spec.connections, spec.batch_bytes, spec.linger_ms) == (7, 16384, 100.0)


def slow_load(partitions):
    group = PartitionGroup("t", range(partitions), ("b1",), ("b2",), 1_000_000, 500e3)
    specs = load_specs(replace(LAYOUT, throttled=(group,)), "ab", answer_s=SHARED_ANSWER_S)
    return next(spec for spec in specs if isinstance(spec, ProducerSpec))


def of(shape, answer_s):
    return [spec for spec in load_specs(LAYOUT, "ab12cd", shape, answer_s=answer_s) if isinstance(spec, ProducerSpec)]


def test_only_slow_brokers_cost_connections_and_a_transaction_has_one():
    assert {spec.connections for spec in of(LoadShape(), 0.0)} == {1}
    fast = 1e4 * SHARED_ANSWER_S  # the rates of the layout are low
    assert max(spec.connections for spec in of(LoadShape(), fast)) > 1
    assert {spec.connections for spec in of(LoadShape(transaction_s=1.0), fast)} == {1}
    wrong = ProducerSpec("p", "t", (0,), 1e3, transaction_s=1.0, connections=2)
    assert wrong.problems() == ["producer p: a transaction has one connection only"]


def test_the_probe_has_a_producer_for_five_partitions_and_not_too_many():
    assert [producers(count) for count in (1, 5, 6, 20, 1000)] == [1, 1, 2, 4, MOST_PRODUCERS]


def test_each_partition_keeps_to_one_client():
    """Records of one partition must not overtake each other."""
    spec = ProducerSpec("p", "t", (0, 1, 2), 1e3, connections=2)
    orders = type("Orders", (), {"bootstrap": "127.0.0.1:1", "seed": 1, "producer": 1})()
    producing = _Producing(spec, orders, None)
    assert len(set(map(id, producing.client_of.values()))) == 2
    assert producing.client_of[0] is producing.client_of[2] is producing.client
