"""The conditions that a move still lacks, one line for each."""

from dataclasses import replace

import pytest

from testbed.kafka.types import PartitionMove, PartitionState, Reassignment, TopicPartition
from testbed.reassignment.progress import not_placed

TP = TopicPartition("t", 0)
MOVE = PartitionMove.between(TP, (1, 2), (3, 2))
DONE = PartitionState(TP, leader=3, leader_epoch=5, replicas=(3, 2), isr=(2, 3))


@pytest.mark.parametrize(
    ("changes", "missing"),
    [
        ({}, []),
        ({"leader": 2}, []),
        ({"leader": None}, ["t-0: led by no broker, not by one of [3, 2]"]),
        ({"leader": 1}, ["t-0: led by broker 1, not by one of [3, 2]"]),
        ({"isr": (2,)}, ["t-0: ISR [2] lacks [3]"]),
        ({"replicas": (2, 3)}, ["t-0: replicas [2, 3], not [3, 2]"]),
    ],
)
def test_a_move_is_done_when_its_replicas_are_in_sync_and_one_of_them_leads(changes, missing):
    assert not_placed([MOVE], {}, {TP: replace(DONE, **changes)}) == missing


def test_a_partition_that_is_listed_is_not_done():
    listed = {TP: Reassignment((3, 2, 1), (3,), (1,))}
    assert not_placed([MOVE], listed, {TP: DONE}) == ["t-0: still being reassigned"]
    assert not_placed([MOVE], {}, {}) == ["t-0: no longer exists"]
