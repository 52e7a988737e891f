import json

import pytest

from testbed.kafka.types import TopicPartition
from testbed.reassignment.metadata_log import MetadataLogError, files_to_read, parse, replay

TOPIC = "AAAAAAAAAAAAAAAAAAAAAQ"


def line(offset, kind, data, version=0):
    payload = json.dumps({"type": kind, "version": version, "data": data})
    return (
        f"| offset: {offset} CreateTime: {1_700_000_000_000 + offset} keySize: -1 valueSize: 9 sequence: -1 "
        f"headerKeys: [] payload: {payload}"
    )


def change(offset, **data):
    return line(offset, "PARTITION_CHANGE_RECORD", {"partitionId": 0, "topicId": TOPIC, **data})


MADE = [
    "Dumping /data/__cluster_metadata-0/00000000000000000000.log",
    "baseOffset: 0 lastOffset: 1 count: 2 baseSequence: -1 isTransactional: false isControl: false",
    line(0, "TOPIC_RECORD", {"name": "t", "topicId": TOPIC}),
    line(
        1,
        "PARTITION_RECORD",
        {
            "partitionId": 0,
            "topicId": TOPIC,
            "replicas": [1, 2, 3],
            "isr": [1, 2, 3],
            "removingReplicas": [],
            "addingReplicas": [],
            "leader": 1,
            "leaderEpoch": 0,
            "partitionEpoch": 0,
        },
    ),
]


def test_a_move_is_replayed_step_by_step():
    lines = [
        *MADE,
        change(2, replicas=[4, 2, 3, 1], removingReplicas=[1], addingReplicas=[4]),
        change(3, isr=[1, 2, 3, 4]),
        change(4, replicas=[4, 2, 3], isr=[4, 2, 3], removingReplicas=[], addingReplicas=[], leader=4),
    ]
    history = replay(parse(lines))
    states = [change for change in history.changes if change.tp == TopicPartition("t", 0)]
    assert [(s.replicas, s.adding, s.removing, s.isr, s.leader, s.leader_epoch) for s in states] == [
        ((1, 2, 3), (), (), (1, 2, 3), 1, 0),
        ((4, 2, 3, 1), (4,), (1,), (1, 2, 3), 1, 0),
        ((4, 2, 3, 1), (4,), (1,), (1, 2, 3, 4), 1, 0),
        ((4, 2, 3), (), (), (4, 2, 3), 4, 1),
    ]
    assert [s.partition_epoch for s in states] == [0, 1, 2, 3]
    assert states[1].ts_us == 1_700_000_000_002_000
    assert history.now[TopicPartition("t", 0)] == states[-1]


def test_a_leader_given_again_begins_an_epoch_and_none_is_none():
    history = replay(parse([*MADE, change(2, leader=1), change(3, leader=-1, isr=[1]), change(4, leader=-2)]))
    assert [(s.leader, s.leader_epoch) for s in history.changes] == [(1, 0), (1, 1), (None, 2), (None, 2)]


def test_a_deleted_topic_has_no_state_but_keeps_its_history():
    history = replay(parse([*MADE, line(2, "REMOVE_TOPIC_RECORD", {"topicId": TOPIC})]))
    assert not history.now
    assert len(history.changes) == 1
    [removal] = history.removals
    assert (removal.offset, removal.ts_us, removal.tp) == (2, 1_700_000_000_002_000, TopicPartition("t", 0))


def test_a_hole_in_the_log_is_an_error_not_a_shorter_history():
    with pytest.raises(MetadataLogError, match="which no record made"):
        replay(parse([change(7, isr=[1])]))
    with pytest.raises(MetadataLogError, match="record 9"):
        list(parse(['| offset: 9 CreateTime: 1 keySize: -1 payload: {"type": }']))
    with pytest.raises(MetadataLogError, match="cannot be read"):
        list(parse(['| offset: 9 CreateTime: 1 keySize: -1 payload: {"type": "PARTITION']))


def test_a_log_whose_beginning_is_gone_is_read_from_the_snapshot_that_ends_there():
    assert files_to_read(["00000000000000000000.log", "x.index"]) == ["00000000000000000000.log"]
    names = ["00000000000000000900.log", "00000000000000000900-0000000001.checkpoint", "bootstrap.checkpoint"]
    assert files_to_read(names) == ["00000000000000000900-0000000001.checkpoint", "00000000000000000900.log"]
    assert files_to_read(["00000000000000000900.log", "00000000000000001500-0000000001.checkpoint"])[0].startswith(
        "00000000000000001500-"
    )
    with pytest.raises(MetadataLogError, match="begins at offset 900"):
        files_to_read(["00000000000000000900.log", "00000000000000000800-0000000001.checkpoint"])
    with pytest.raises(MetadataLogError, match="no segment"):
        files_to_read([])


def test_what_a_snapshot_holds_already_is_not_replayed_again():
    lines = [
        "Dumping /d/00000000000000000003-0000000001.checkpoint",
        *MADE[2:],
        "Dumping /d/00000000000000000002.log",
        change(2, isr=[1]),
        change(3, isr=[1, 2]),
    ]
    assert [s.isr for s in replay(parse(lines)).changes] == [(1, 2, 3), (1, 2)]
