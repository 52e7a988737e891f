"""Connections of a producer: as many as its rate needs where brokers acknowledge slowly."""

import math
from dataclasses import replace

import pytest

from testbed.experiments.layout import PartitionGroup
from testbed.experiments.load import SHARED_ANSWER_S, load_specs
from testbed.experiments.load_shape import LoadShape
from testbed.workload.connections import (
    BATCH_BYTES,
    MOST_BATCH_BYTES,
    MOST_CONNECTIONS,
    Sending,
    connections,
    sending,
)
from testbed.workload.produce import _Producing
from testbed.workload.spec import ProducerSpec
from tests.experiments.test_load_shape import LAYOUT


@pytest.mark.parametrize(
    ("rate", "partitions", "answer_s", "wanted"),
    [
        (500e3, 100, 0.0, Sending(1, BATCH_BYTES)),
        (250e3, 100, 0.33, Sending(6, BATCH_BYTES)),
        (500e3, 100, 1.0, Sending(20, 25_000)),
        (5e6, 100, 1.0, Sending(20, 250_000)),
        (50e6, 100, 1.0, Sending(50, MOST_BATCH_BYTES)),
        (500e3, 1, 1.0, Sending(1, 500_000)),
        (1e3, 1, 0.5, Sending(1, BATCH_BYTES)),
        (50e6, 1, 1.0, Sending(1, MOST_BATCH_BYTES)),
    ],
)
def test_one_batch_at_a_time_is_on_its_way_on_each_connection(rate, partitions, answer_s, wanted):
    assert sending(rate, partitions, answer_s) == wanted


@pytest.mark.parametrize("partitions", [1, 2, 3, 7, 19, 20, 21, 99, 100, 500])
@pytest.mark.parametrize("rate", [1e3, 16e3, 100e3, 500e3, 2e6, 10e6])
@pytest.mark.parametrize("answer_s", [0.0, 0.3, 1.0])
def test_batches_and_connections_carry_the_rate_or_are_as_large_as_they_may_be(rate, partitions, answer_s):
    found = sending(rate, partitions, answer_s)
    busiest = math.ceil(partitions / found.connections) / partitions
    assert 1 <= found.connections <= partitions
    assert found.connections <= MOST_CONNECTIONS or found.batch_bytes == MOST_BATCH_BYTES
    assert found.batch_bytes >= rate * busiest * answer_s or found.batch_bytes == MOST_BATCH_BYTES
    assert BATCH_BYTES <= found.batch_bytes <= MOST_BATCH_BYTES


def test_no_load_is_carried_worse_than_by_what_runs_have_shown_to_hold():
    """Of 100 partitions at 500 kB/s, 7 connections with 16 KiB held: runs …070712Z-…-94cb8c and …073408Z-…-4264d4."""
    found = sending(500e3, 100, SHARED_ANSWER_S)
    assert found.connections >= 7
    assert found.batch_bytes >= BATCH_BYTES


def test_the_one_connection_of_a_transaction_has_larger_batches():
    assert sending(500e3, 100, 1.0, transactional=True) == Sending(1, 500_000)
    assert sending(500e3, 100, 0.0, transactional=True) == Sending(1, BATCH_BYTES)


@pytest.mark.parametrize("partitions", [1, 3])
def test_few_partitions_have_larger_batches_and_come_no_faster_than_they_are_answered(partitions):
    """Runs …071403Z-s3-reassign-de055d (16 KiB) and …072911Z-s3-reassign-f88160 (100 kB): 4.0 batches a second."""
    spec = slow_load(partitions)
    assert spec.connections == partitions
    assert spec.connections * spec.batch_bytes / 0.25 > 1.5 * spec.rate_bytes_per_s
    assert spec.linger_ms > 250


def test_many_partitions_have_connections_first_and_then_larger_batches():
    spec = slow_load(100)
    assert (spec.connections, spec.batch_bytes, spec.linger_ms) == (20, 25_000, 300.0)


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
    wrong = ProducerSpec("p", "t", (0, 1), 1e3, transaction_s=1.0, connections=2)
    assert wrong.problems() == ["producer p: a transaction has one connection only"]


def test_more_connections_than_partitions_are_refused():
    assert ProducerSpec("p", "t", (0, 1), 1e3, connections=2).problems() == []
    wrong = ProducerSpec("p", "t", (0, 1), 1e3, connections=3)
    assert wrong.problems() == ["producer p: 3 connections for 2 partitions: too many"]


def test_the_probe_has_a_producer_for_each_partition_and_not_too_many():
    assert [connections(count) for count in (1, 5, 6, 20, 1000)] == [1, 5, 6, 20, MOST_CONNECTIONS]


def test_each_partition_keeps_to_one_client():
    """Records of one partition must not overtake each other."""
    spec = ProducerSpec("p", "t", (0, 1, 2), 1e3, connections=2)
    orders = type("Orders", (), {"bootstrap": "127.0.0.1:1", "seed": 1, "producer": 1})()
    producing = _Producing(spec, orders, None)
    assert len(set(map(id, producing.client_of.values()))) == 2
    assert producing.client_of[0] is producing.client_of[2] is producing.client
