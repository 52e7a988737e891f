"""What other clients change while a run moves data, from the records of the metadata log."""

from dataclasses import replace

from results.contract.schema import Event, Sample
from testbed.experiments.cluster_changes import (
    Answers,
    MoveTime,
    OwnSteps,
    deletions,
    foreign_changes,
    move_time,
    requests_of_others,
)
from testbed.probes.agent import OPERATORS
from testbed.probes.log_entries import entries
from testbed.reassignment.metadata_log import MetadataRecord

TOKEN = "ab12cd"
TOPIC = f"kip73-{TOKEN}"
RATE, LIST = "follower.replication.throttled.rate", "leader.replication.throttled.replicas"
S = 1_000_000
TIME = MoveTime(100 * S, 106 * S, 200 * S, ((140 * S, 150 * S),))


def read(host, label, *counts, instants=(90, 107, 130, 150, 195, 220)):
    return [Sample(t * S, host, "broker.requests", n, label=label) for t, n in zip(instants, counts, strict=True)]


ALL = Answers([each for label in OPERATORS for each in read("b1", label, 1, 2, 3, 4, 5, 6)])
"""Brokers answered each kind of request all the time."""


def record(t, kind, **data):
    return MetadataRecord(round(t * S), round(t * S), kind, data)


def config(ts_us, key, value, resource=4, name="2"):
    return record(ts_us, "CONFIG_RECORD", resourceType=resource, resourceName=name, name=key, value=value)


def partition(ts_us, kind="PARTITION_CHANGE_RECORD", topic="T", **data):
    return record(ts_us, kind, topicId=topic, partitionId=0, **data)


def created(ts_us, name=TOPIC, topic="T", replicas=(1,)):
    made = {"replicas": replicas, "isr": replicas, "leader": 1, "leaderEpoch": 0, "partitionEpoch": 0}
    return [
        record(ts_us, "TOPIC_RECORD", name=name, topicId=topic),
        partition(ts_us, "PARTITION_RECORD", topic, **made),
    ]


OWN = partition(105.9, replicas=[2, 1], addingReplicas=[2], removingReplicas=[1])
"""The run notes the begin of its move, and asks for it then. A controller may be slow to answer."""
BEFORE = [*created(10), config(20, RATE, "5000000"), OWN]
AFTER = [config(210, RATE, None), config(211, LIST, None, 2, TOPIC)]


def found(*records, answers=ALL):
    changes = foreign_changes([*BEFORE, *records, *AFTER], TIME, TOKEN, answers, OwnSteps([]))
    return [(each.kind, each.what) for each in changes]


def test_a_run_that_is_left_alone_has_no_change_of_others():
    own = [
        config(145, RATE, "9000000"),
        partition(160, isr=[2, 1]),
        partition(170, replicas=[2], addingReplicas=[], removingReplicas=[], leader=2),
    ]
    assert found(*own, *created(130, "__consumer_offsets", "C")) == []


def test_another_rate_or_list_of_the_throttle():
    changes = [config(120, RATE, "2500000"), config(121, RATE, None), config(145, LIST, "0:1", 2, TOPIC)]
    assert found(*changes) == [
        ("throttle", f"{RATE} of broker 2 was set to 2500000"),
        ("throttle", f"{RATE} of broker 2 was removed"),
        ("throttle", f"{LIST} of topic {TOPIC} was set to 0:1"),
    ]


def test_lists_that_the_run_extended_are_its_own_and_other_lists_are_not():
    time = MoveTime(100 * S, 106 * S, 200 * S, lists=((140 * S, 145 * S),))
    lists = [config(130, LIST, "0:1", 2, TOPIC), config(142, LIST, "0:1,0:3", 2, TOPIC)]
    changes = foreign_changes([*BEFORE, *lists, config(143, RATE, "1")], time, TOKEN, ALL, OwnSteps([]))
    assert [each.what for each in changes] == [
        f"{LIST} of topic {TOPIC} was set to 0:1",
        f"{RATE} of broker 2 was set to 1",
    ]


def test_any_other_configuration_also_while_the_run_changes_its_rate():
    changes = [
        config(145, "num.replica.fetchers", "4", name=""),
        config(146, "retention.ms", "1", 2, TOPIC),
        record(147, "CLIENT_QUOTA_RECORD", key="producer_byte_rate", value=1024.0),
    ]
    assert found(*changes) == [
        ("configuration", "num.replica.fetchers of all brokers was set to 4"),
        ("deletion", f"retention.ms of topic {TOPIC} was set to 1"),
        ("configuration", "a client quota, producer_byte_rate 1024.0"),
    ]


def test_topics_that_come_and_go():
    changes = [*created(110, "theirs", "X"), record(120, "REMOVE_TOPIC_RECORD", topicId="X")]
    assert found(*changes, record(130, "REMOVE_TOPIC_RECORD", topicId="T")) == [
        ("topic", "topic theirs was created"),
        ("topic", "topic theirs was deleted"),
        ("deletion", f"topic {TOPIC} was deleted"),
    ]


def test_a_configuration_of_another_topic_explains_what_its_creation_does():
    changes = [*created(20, "theirs", "X"), config(145, "retention.ms", "1", 2, "theirs")]
    assert found(*changes) == [("topic", "retention.ms of topic theirs was set to 1")]


def test_a_reassignment_that_the_run_did_not_ask_for():
    again = partition(130, replicas=[3, 1, 2], addingReplicas=[3], removingReplicas=[1, 2])
    theirs = partition(140, topic="X", replicas=[2, 1], addingReplicas=[2])
    assert found(*created(20, "theirs", "X"), again, theirs) == [
        ("reassignment", f"{TOPIC}-0 was reassigned to [3]"),
        ("reassignment", "theirs-0 was reassigned to [2, 1]"),
    ]


def test_a_topic_of_others_that_moves_with_the_plan_and_without_a_request_is_moved_by_the_controller():
    theirs = [*created(20, "theirs", "X"), partition(105.9, topic="X", replicas=[2, 1], addingReplicas=[2])]

    def requests(count):
        return Answers(read("b1", "AlterPartitionReassignments", 0, *[count] * 5))

    assert found(*theirs, answers=requests(1)) == [], "the run's own request"
    named = [("reassignment", "theirs-0 was reassigned to [2, 1]")]
    assert found(*theirs, answers=requests(2)) == named
    late = [*theirs[:2], partition(120, topic="X", replicas=[2, 1], addingReplicas=[2])]
    assert found(*late, answers=requests(1)) == [], "without any request"
    assert found(*late) == named


def test_a_topic_of_others_may_move_while_the_run_sets_its_throttle_or_removes_it():
    changes = [
        *BEFORE,
        *created(20, "theirs", "X"),
        partition(95, topic="X", replicas=[2, 1], addingReplicas=[2]),
        partition(205, topic="X", replicas=[3, 2, 1], addingReplicas=[3]),
        partition(206, replicas=[3, 1], addingReplicas=[3], removingReplicas=[1]),
    ]
    time = replace(TIME, step_us=(92 * S, 207 * S))
    named = ["theirs-0 was reassigned to [2, 1]", "theirs-0 was reassigned to [3, 2, 1]"]
    assert [each.what for each in foreign_changes(changes, time, TOKEN, ALL, OwnSteps([]))] == named
    assert foreign_changes(changes, TIME, TOKEN, ALL, OwnSteps([])) == ()


def test_a_cancellation_that_the_run_did_not_ask_for():
    back = partition(130, replicas=[1], addingReplicas=[], removingReplicas=[])
    assert found(back) == [("reassignment", f"the reassignment of {TOPIC}-0 was cancelled")]


def test_what_a_controller_writes_without_a_request_is_its_own():
    changes = [
        config(120, RATE, None),
        record(121, "CLIENT_QUOTA_RECORD", key="producer_byte_rate", value=1024.0),
        *created(122, "theirs", "X"),
        partition(130, replicas=[3, 2, 1], addingReplicas=[3, 2]),
        record(131, "REMOVE_TOPIC_RECORD", topicId="T"),
    ]
    assert len(found(*changes)) == 5
    assert found(*changes, answers=Answers([])) == []
    early = [each for label in OPERATORS for each in read("b1", label, 0, 1, 1, 1, 1, 1)]
    assert found(*changes, answers=Answers(early)) == [], "the run's own, 13 s before"


def test_a_clock_of_the_controller_that_differs_changes_nothing():
    own = [config(100.04, LIST, "0:1", 2, TOPIC), config(150.04, RATE, "9000000"), config(199.96, RATE, None)]
    assert found(*own) == []


def test_requests_of_operators_while_a_plan_moves_at_once():
    moves, elects = "AlterPartitionReassignments", "ElectLeaders"
    own = [*read("b1", moves, 0, 1, 1, 1, 1, 2), *read("b2", moves, 0, 0, 0, 0, 0, 1)]
    own += [*read("b1", moves, 1, 2, instants=(101, 102)), *read("b1", "Produce", 0, 9, 9, 9, 9, 9)]
    assert list(requests_of_others(Answers(own), TIME)) == []
    restarted = read("b1", moves, 3, 3, 0, 0, 0, 0)
    assert list(requests_of_others(Answers(restarted), TIME)) == []
    cancelled = [
        *read("b1", moves, 0, 1, 1, 2, 2, 2),
        *read("b2", moves, 0, 0, 1, 1, 1, 1),
        *read("b2", elects, 0, 0, 0, 1, 1, 1),
    ]
    assert [(each.ts_us, each.kind, each.what) for each in requests_of_others(Answers(cancelled), TIME)] == [
        (130 * S, "reassignment", f"a request {moves}, which b2 answered"),
        (150 * S, "reassignment", f"a request {elects}, which b2 answered"),
    ]


def test_records_that_a_client_deleted():
    log, start = "[UnifiedLog partition=kip73-ab12cd-{}, dir=/var/lib/kafka]", "Incremented log start offset to"
    logger = "(org.apache.kafka.storage.internals.log.UnifiedLog)"
    lines = (
        f"[2026-11-21 18:15:10,000] INFO {log.format(3)} {start} 500 due to client delete records request {logger}\n"
        f"[2026-11-21 18:15:11,000] INFO {log.format(4)} {start} 7 due to leader offset increment {logger}\n"
    )
    (change,) = deletions(entries(lines), 0, TOKEN)
    assert (change.kind, change.what) == ("deletion", "records of kip73-ab12cd-3 were deleted up to offset 500")
    assert list(deletions(entries(lines), change.ts_us + 1, TOKEN)) == [], "of an earlier run"
    assert list(deletions(entries(lines), 0, "000000")) == [], "of another topic"


def test_the_time_of_a_move_and_of_the_runs_own_changes():
    events = [
        Event(5, "throttle.in_force"),
        Event(10, "move.started"),
        Event(20, "throttle.changing"),
        Event(25, "throttle.in_force"),
        Event(7_000_000, "throttle.admitted"),
    ]
    own = ((20, 25), (2_000_000, 7_000_000))
    assert move_time([*events, Event(9_000_000, "move.done")], []) == MoveTime(10, 9_000_000, 9_000_000, own)
    extended = move_time([*events, Event(8_000_000, "throttle.extended"), Event(9_000_000, "move.done")], [])
    assert extended == MoveTime(10, 9_000_000, 9_000_000, own, lists=((3_000_000, 8_000_000),))
    polls = [Sample(us, "driver", "move.in_flight", 3.0) for us in (11, 8_000_000)]
    assert move_time(events, polls) == MoveTime(10, 11, 8_000_000, own), "it was not done: until its last poll"
    assert move_time(events[:1], polls) is None
    step = [Event(1, "step", "move"), Event(2, "step", "other"), Event(8_500_000, "step", "move")]
    assert move_time([*step[:2], *events, step[2]], polls) == MoveTime(10, 11, 8_000_000, own, (1, 8_500_000))
