"""The lines of brokers' and controllers' logs: which facts they are, and how facts of several hosts are merged."""

import pytest

from testbed.incidents.broker_logs import LogReport
from testbed.incidents.evidence_text import EvidenceText
from testbed.kafka.types import TopicPartition

T0 = TopicPartition("t-a", 0)
DAY = "2025-06-03"
RECORD = (
    "[QuorumController id=1] Replayed partition assignment change PartitionChangeRecord(partitionId=0, "
    "topicId=Zt4cXn1bQ7m9eWk2uVx3Yg, isr=null, leader=-2, replicas={}, removingReplicas={}, addingReplicas={}, "
    "leaderRecoveryState=-1) for topic t-a (r.R)"
)
DIFFERENCE = (
    "[Controller 1] partition change for t-a-0 with topic ID Zt4cXn1bQ7m9eWk2uVx3Yg: replicas: [1, 2] -> {}, "
    "isr: [1, 2] -> [2], removingReplicas: [] -> {}, addingReplicas: [] -> {}, leaderEpoch: 2 -> 3 (r.R)"
)
ZOOKEEPER = (
    "[Controller id=1] Successfully updated assignment of partition t-a-0 to "
    "ReplicaAssignment(replicas={}, addingReplicas={}, removingReplicas={}) (kafka.controller.KafkaController)"
)
REQUEST = (
    "[Broker id=1] Received LeaderAndIsr request LeaderAndIsrPartitionState(topicName='t-a', partitionIndex=0, "
    "controllerEpoch=1, leader=1, isr=[1], zkVersion=8, replicas={}, addingReplicas={}, removingReplicas={}, "
    "isNew=false) correlation id 1 from controller 1 epoch 1 (state.change.logger)"
)
SKIPPED = (
    "[Broker id=1] Skipped the become-leader state change for t-a-0 with topic id Some(Zt4cXn1bQ7m9eWk2uVx3Yg), "
    "partition registration PartitionRegistration(replicas={}, directories=[Tfza3aTaTjyCa20df-PdQA], isr=[1, 2], "
    "removingReplicas={}, addingReplicas={}, elr=[], lastKnownElr=[], leader=1, leaderRecoveryState=RECOVERED, "
    "leaderEpoch=0, partitionEpoch=1) and isNew=false since it is already the leader with leader epoch 0. Current high "
    "watermark 14912, ISR [1,2], adding replicas {} and removing replicas {}. (state.change.logger)"
)
LEADER = (
    "[Broker id=1] Leader t-a-0 with topic id Some(Zt4cXn1bQ7m9eWk2uVx3Yg) starts at leader epoch 0 from offset 0 with "
    "partition epoch 0, high watermark 0, ISR [1, 2], adding replicas {} and removing replicas {} (under-min-isr). "
    "Previous leader None and previous leader epoch was -1. (state.change.logger)"
)


def report(*lines, files=1):
    """Return what the lines say; each is a second after the hour and a message, with a level if it has one."""
    logs = LogReport()
    content = "".join(
        f"[{DAY} 10:{second // 60:02}:{second % 60:02},000] {'' if each.startswith('TRACE ') else 'INFO '}{each}\n"
        for second, each in lines
    )
    for number in range(files):
        assert logs.add(EvidenceText(f"{number}.log", content))
    return logs


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        (RECORD.format("[3, 2, 1]", "[1]", "[3]"), RECORD.format("[3, 2]", "[]", "[]")),
        (DIFFERENCE.format("[3, 2, 1]", "[1]", "[3]"), DIFFERENCE.format("[3, 2]", "[]", "[]")),
        ("UNCLEAN " + DIFFERENCE.format("[3, 2, 1]", "[1]", "[3]"), RECORD.format("[3, 2]", "[]", "[]")),
        (ZOOKEEPER.format("3,2,1", "3", "1"), ZOOKEEPER.format("3,2", "", "")),
        ("TRACE " + REQUEST.format("[3, 2, 1]", "[3]", "[1]"), "TRACE " + REQUEST.format("[3, 2]", "[]", "[]")),
        # With Kafka's own logging a KRaft controller says neither.
        (SKIPPED.format("[3, 2, 1]", "[1]", "[3]", "[3]", "[1]"), LEADER.format("[]", "[]")),
    ],
)
def test_a_reassignment_with_its_times_and_targets(begin, end):
    (move,) = report((0, begin), (90, end), files=2).moves()
    assert (move.tp, move.before, move.target) == (T0, (2, 1), (3, 2))
    assert move.ended_us - move.began_us == 90_000_000 and move.completed
    assert str(move.place) == "0.log:1"


def test_a_leader_says_what_is_added_and_removed_alone():
    (move,) = report((0, LEADER.format("[3]", "[1]")), (5, LEADER.format("[]", "[]"))).moves()
    assert (move.before, move.target, move.adding, move.removing) == (None, None, {3}, {1})
    assert move.ended_us is not None
    (move,) = report((0, LEADER.format("[3]", "[1]")), (1, RECORD.format("[3, 2, 1]", "[1]", "[3]"))).moves()
    assert move.target == (3, 2) and str(move.place) == "0.log:1" and move.ended_us is None


def test_a_record_without_a_field_does_not_change_it():
    (move,) = report((0, RECORD.format("[3, 1, 2]", "null", "[3]")), (9, RECORD.format("null", "null", "[]"))).moves()
    assert (move.before, move.target, move.ended_us is not None) == ((1, 2), (3, 1, 2), True)


def test_the_newest_of_two_and_a_cancellation():
    logs = report(
        (0, ZOOKEEPER.format("3,2,1", "3", "1")),
        (5, ZOOKEEPER.format("4,2,1", "4", "1")),
        (9, ZOOKEEPER.format("1,2", "", "")),
    )
    first, second = logs.moves()
    assert (first.target, first.completed, second.target, second.completed) == ((3, 2), False, (4, 2), False)
    assert (first.cancelled, second.cancelled) == (False, True)
    assert first.began_us < second.began_us


def began_s(logs):
    hour_us = 1_748_944_800_000_000  # 2025-06-03 10:00
    return [(move.target, (move.began_us - hour_us) / 1e6) for move in logs.moves()]


@pytest.mark.parametrize("line", [RECORD, DIFFERENCE])
def test_what_a_controller_logs_once_more_when_it_starts_is_no_other_move(line):
    history = [
        line.format("[3, 2, 1]", "[1]", "[3]"),
        line.format("[3, 2]", "[]", "[]"),
        line.format("[4, 3, 2]", "[3]", "[4]"),
        line.format("[4, 2]", "[]", "[]"),
    ]
    moves = [(0, history[0]), (60, history[1]), (100, history[2]), (160, history[3])]
    started = [(900, each) for each in history]
    assert began_s(report(*moves, *started)) == [((3, 2), 0.0), ((4, 2), 100.0)]
    # It started in the middle of the second move, and reads what is there by then.
    started = [(130, each) for each in history[:3]]
    assert began_s(report(*moves[:3], *started, moves[3])) == [((3, 2), 0.0), ((4, 2), 100.0)]


def test_a_move_that_is_made_again_after_the_way_back_is_another_one():
    there, back = RECORD.format("[3, 2, 1]", "[1]", "[3]"), RECORD.format("[1, 2, 3]", "[3]", "[1]")
    done = {there: RECORD.format("[3, 2]", "[]", "[]"), back: RECORD.format("[1, 2]", "[]", "[]")}
    lines = [
        (60 * n + 30 * end, done[each] if end else each)
        for n, each in enumerate((there, back, there))
        for end in (0, 1)
    ]
    assert began_s(report(*lines)) == [((3, 2), 0.0), ((1, 2), 60.0), ((3, 2), 120.0)]


def test_a_move_that_replaces_its_replacement_is_another_one():
    lines = [RECORD.format(f"[{new}, 2, 1]", "[1]", f"[{new}]") for new in (3, 4, 3)]
    assert [target for target, _s in began_s(report(*enumerate(lines)))] == [(3, 2), (4, 2), (3, 2)]


STOPS = [
    "[QuorumController id=1] Fencing broker 7 because its session has timed out. (r.R)",
    "[QuorumController id=1] Fencing broker 7 at epoch 12 because its session has timed out. (r.R)",
    "[Controller 1] Fenced broker: FenceBrokerRecord(id=7, epoch=176) (c.C)",
    "[QuorumController id=1] Replayed BrokerRegistrationChangeRecord modifying the registration for broker 7: "
    "BrokerRegistrationChangeRecord(brokerId=7, brokerEpoch=7, fenced=1, inControlledShutdown=0, logDirs=[]) (c.C)",
    "[QuorumController id=1] Replayed RegisterBrokerRecord establishing a new incarnation of broker 7: "
    "RegisterBrokerRecord(brokerId=7, incarnationId=x, rack='r 1', fenced=true, logDirs=[]) (c.C)",
    "[BrokerServer id=7] Transition from STARTED to SHUTTING_DOWN (kafka.server.BrokerServer)",
    "[KafkaServer id=7] shutting down (kafka.server.KafkaServer)",
    "[Controller id=1] Newly added brokers: , deleted brokers: 7, bounced brokers: , all live brokers: 1,2 (k.K)",
    "[Controller id=1] Newly added brokers: , deleted brokers: 7, all live brokers: 1,2 (k.K)",
]
SERVES = [
    "[Controller 1] Unfenced broker: UnfenceBrokerRecord(id=7, epoch=176) (c.C)",
    "[QuorumController id=1] Replayed BrokerRegistrationChangeRecord modifying the registration for broker 7: "
    "BrokerRegistrationChangeRecord(brokerId=7, brokerEpoch=7, fenced=-1, inControlledShutdown=0, logDirs=[]) (c.C)",
    "[QuorumController id=1] The request from broker 7 to unfence has been granted because it has caught up. (h.H)",
    "[BrokerLifecycleManager id=7] The broker has been unfenced. Transitioning from RECOVERY to RUNNING. (l.L)",
    "[KafkaServer id=7] started (kafka.server.KafkaServer)",
    "[Controller id=1] Newly added brokers: 7, deleted brokers: , bounced brokers: , all live brokers: 1,2,7 (k.K)",
]


@pytest.mark.parametrize("stops", STOPS)
@pytest.mark.parametrize("serves", SERVES)
def test_an_outage_is_one_whatever_logs_it(stops, serves):
    (outage,) = report((0, SERVES[0]), (10, stops), (11, STOPS[0]), (40, serves), (41, SERVES[2])).outages()
    assert (outage.broker, outage.returned_us - outage.stopped_us) == (7, 30_000_000)


def test_a_bounced_broker_and_one_that_does_not_return():
    bounced = (
        "[Controller id=1] Newly added brokers: , deleted brokers: , bounced brokers: 3, all live brokers: 3 (k.K)"
    )
    first, second = report((1, bounced), (2, STOPS[0])).outages()
    assert (first.broker, first.returned_us) == (3, first.stopped_us)
    assert (second.broker, second.returned_us) == (7, None)


def test_the_first_registration_is_no_stop_and_has_a_rack():
    initial = STOPS[4].replace("establishing a new incarnation of", "for").replace("Replayed", "Replayed initial")
    logs = report((0, initial), (1, "[Controller id=1] connected to x:1 (id: 8 rack: null) for sending state (r.R)"))
    assert logs.outages() == []
    assert logs.racks == {7: "r 1", 8: None}


def test_in_sync_replicas():
    shrinks = "[Partition t-a-0 broker=1] Shrinking ISR from 1,2,3 to 1. Leader: (highWatermark: 1) (k.P)"
    logs = report((0, shrinks), (1, "[Partition t-a-0 broker=1] Expanding ISR from 1 to 1,2 (k.P)"))
    assert [(each.tp, each.shrinks) for each in logs.isrs] == [(T0, True), (T0, False)]


def test_what_is_a_log_and_what_is_none():
    logs = LogReport()
    for content in (
        "",
        "hello\n",
        "[06/03/25 10:00:00] INFO month or day first? (a.B)\n",
        "[2025-99-03 10:00:00,000] INFO a day that does not exist (a.B)\n",
        "OpenJDK 64-Bit Server VM warning: something\n",
    ):
        assert not logs.add(EvidenceText("f", content))
    assert logs.add(EvidenceText("f", "\tat a stack trace\nkafka-1  | [2025-06-03 10:00:00,000] INFO x (a.B)\n"))
    assert logs.moves() == logs.outages() == []


def test_a_state_change_log_that_repeats_itself_is_not_kept():
    still = "TRACE " + REQUEST.format("[1, 2]", "[]", "[]")
    logs = report(*[(second, still) for second in range(50)])
    assert len(logs.assignments) == 1
