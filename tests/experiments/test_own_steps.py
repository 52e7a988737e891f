"""The steps of a batched move are the run's own; a cancellation and another target are another client's."""

from types import SimpleNamespace

import pytest

from results.contract.schema import Event, Sample
from testbed.experiments.cluster_changes import Answers, MoveTime, OwnSteps, foreign_changes
from testbed.kafka.types import TopicPartition
from testbed.probes.recorder import now_us
from testbed.reassignment.batching.batch import BatchLimits
from testbed.reassignment.batching.execution import Execution
from testbed.reassignment.batching.job import Job, JobControl, JobFolder
from testbed.reassignment.metadata_log import MetadataRecord
from testbed.reassignment.plan import Plan
from testbed.throttle.journal import JournalFolder
from tests.fakes.kraft_log import KraftLog

TOKEN = "ab12cd"
TOPIC = f"kip435-{TOKEN}"
S = 1_000_000
ALWAYS = SimpleNamespace(near=lambda *_request: True, outnumber=lambda *_asked: True)
"""Brokers answer requests all the time, and more of them than the run's own."""
APART_S = 0.08
"""Between two turns: more than clocks may differ by."""


# ---- what the controller writes of one partition, from brokers 1 and 2 to 3 and 4


def asked(t, *replicas, partition=0):
    detail = {"partitions": 1, "targets": [[TOPIC, partition, list(replicas)]]}
    return Event(round(t * S), "batch.started", "batch", None, detail)


def record(t, kind="PARTITION_CHANGE_RECORD", **data):
    return MetadataRecord(round(t * S), round(t * S), kind, {"topicId": "T", "partitionId": 0, **data})


def assigned(t, replicas, adding=(), removing=(), **data):
    return record(t, replicas=[*replicas], addingReplicas=[*adding], removingReplicas=[*removing], **data)


MADE = [
    record(10, "TOPIC_RECORD", name=TOPIC),
    record(10, "PARTITION_RECORD", replicas=[1, 2], isr=[1, 2], leader=1, leaderEpoch=0, partitionEpoch=0),
]
ASKED = [asked(110, 3, 1, 2), asked(116, 3, 4, 2), asked(121, 3, 4)]
FIRST = [
    *MADE,
    assigned(110.02, (3, 1, 2), adding=(3,)),
    record(114, isr=[1, 2, 3], addingReplicas=[]),
    record(115, leader=3),
    assigned(116.01, (3, 4, 2, 1), adding=(4,), removing=(1,)),
    record(118, isr=[2, 3]),
]
LAST = [
    record(119, isr=[1, 2, 3]),
    assigned(120, (3, 4, 2), isr=[3, 2, 4]),
    assigned(121.02, (3, 4), isr=[3, 4]),
]


def found(records, steps=ASKED, begun=100, ended=200):
    time = MoveTime(begun * S, (begun + 6) * S, ended * S)
    return [each.what for each in foreign_changes(records, time, TOKEN, ALWAYS, OwnSteps(steps))]


def test_steps_and_their_ends_are_the_runs_own():
    assert found([*FIRST, *LAST]) == []


def test_the_same_records_of_a_run_that_did_not_ask_are_anothers():
    assert found([*FIRST, *LAST], [asked(110, 3, 1, 2, partition=1)]) == [
        f"{TOPIC}-0 was reassigned to [3, 1, 2]",
        f"{TOPIC}-0 was reassigned to [3, 4, 2]",
        f"{TOPIC}-0 was reassigned to [3, 4]",
    ]


CANCELLED = assigned(118.5, (3, 2, 1), isr=[2, 3])


def test_a_cancelled_step_is_named_and_its_repetition_is_not():
    again = [asked(119, 3, 4, 2), *ASKED[2:]]
    repeated = assigned(119.02, (3, 4, 2, 1), adding=(4,), removing=(1,))
    changes = [*FIRST, CANCELLED, repeated, *LAST[1:]]
    assert found(changes, [*ASKED[:2], *again]) == [f"the reassignment of {TOPIC}-0 was cancelled"]


@pytest.mark.parametrize(
    ("change", "target"),
    [
        (assigned(118.5, (3, 5, 1, 2, 4), adding=(5,), removing=(1, 2, 4)), [3, 5]),
        (assigned(118.5, (3, 1, 2, 4), adding=(4,), removing=(4,)), [3, 1, 2]),
        (assigned(118.5, (3, 2), isr=[3, 2]), [3, 2]),
    ],
    ids=["another broker", "an earlier step of the run", "done at once"],
)
def test_another_target_is_named(change, target):
    assert found([*FIRST, change]) == [f"{TOPIC}-0 was reassigned to {target}"]


def test_a_request_that_waits_for_a_controller_is_the_runs_own():
    late = assigned(140, (3, 4, 2, 1), adding=(4,), removing=(1,))
    assert found([*FIRST[:5], late], ASKED[:2]) == []


def test_a_controller_that_answers_a_request_with_other_replicas_is_wrong_and_no_client():
    def written(t):
        return found([*FIRST[:5], assigned(t, (3, 5, 2, 1), adding=(5,), removing=(1,))], ASKED[:2])

    assert written(116.01) == []
    assert written(121.5) == [f"{TOPIC}-0 was reassigned to [3, 5, 2]"], "the request was answered seconds ago"
    order = [*FIRST[:5], assigned(116.01, (4, 3, 2, 1), adding=(4,), removing=(1,)), assigned(120, (2, 4, 3))]
    assert found(order, ASKED[:2]) == []


def counted(*counts):
    """Readings of the requests that brokers b1 and b2 answered; the controller is on b2, and b1 forwards to it."""
    return [
        Sample(round(t * S), host, "broker.requests", count, label="AlterPartitionReassignments")
        for t, count in counts
        for host in ("b1", "b2")
    ]


@pytest.mark.parametrize(
    ("counts", "names"),
    [
        ([(99, 2), (111, 3), (117, 4), (119, 4), (122, 5)], False),
        ([(99, 2), (111, 3), (117, 4), (119, 5), (122, 6)], True),
        ([(99, 2), (111, 3), (117, 4), (119, 4), (122, 5), (199, 5), (201, 6)], False),
    ],
    ids=["the run's three", "one more", "one more after the move"],
)
def test_what_a_controller_cancels_without_a_request_is_its_own(counts, names):
    time = MoveTime(100 * S, 106 * S, 200 * S)
    answers = Answers(counted(*counts), ["b2"])
    changes = foreign_changes([*FIRST, CANCELLED], time, TOKEN, answers, OwnSteps(ASKED))
    assert [each.what for each in changes] == [f"the reassignment of {TOPIC}-0 was cancelled"] * names
    alone = Answers([each for each in counted(*counts) if each.host == "b1"], ["c1"])
    assert len(foreign_changes([*FIRST, CANCELLED], time, TOKEN, alone, OwnSteps(ASKED))) == names


def test_what_the_run_cancels_after_its_last_poll_is_its_own():
    assert found([*FIRST, CANCELLED], ended=118) == []


# ---- whole moves


class Log(KraftLog):
    """With what a job asks for besides. A copy may last from one look to the next."""

    looks = 0

    def tick(self):
        self.looks += 1
        if self.looks % 2:
            super().tick()

    def topic_setting(self, _topic, _key):
        return ""


def records_of(log):
    known = set()
    records = [MetadataRecord(0, 0, "TOPIC_RECORD", {"topicId": "T", "name": TOPIC})]
    for state in log.changes:
        data = {
            "topicId": "T",
            "partitionId": state.tp.partition,
            "replicas": state.replicas,
            "addingReplicas": state.adding,
            "removingReplicas": state.removing,
            "isr": state.isr,
            "leader": -1 if state.leader is None else state.leader,
            "leaderEpoch": state.leader_epoch,
            "partitionEpoch": state.partition_epoch,
        }
        kind = "PARTITION_CHANGE_RECORD" if state.tp in known else "PARTITION_RECORD"
        known.add(state.tp)
        records.append(MetadataRecord(state.offset, state.ts_us, kind, data))
    return records


def tp(partition):
    return TopicPartition(TOPIC, partition)


class Move:
    """A batched move of four partitions from brokers 1, 2 and 3 to 4, 5 and 6, on a controller with a log."""

    def __init__(self, tmp_path, mode):
        self.log, self.events = Log(range(1, 7)), []
        self.log.make(TOPIC, dict.fromkeys(range(4), (1, 2, 3)))
        self.folders = JobFolder(tmp_path / "moves"), JournalFolder(tmp_path / "reassign")
        plan = Plan({tp(p): (4, 5, 6) for p in range(4)})
        self.job = Job.new(self.log.bootstrap, self.log.cluster_id, mode, plan)
        self.begun_us = self.polled_us = now_us()
        self.execution().begin(JobControl(BatchLimits(1, 2, 1)))

    def execution(self):
        def event(kind, name, detail):
            self.events.append(Event(now_us(), kind, name, None, dict(detail)))

        return Execution(self.log, self.job, *self.folders, event)

    def run(self, on_turn=lambda _turn: None):
        def polled(turn):
            self.polled_us = now_us()
            on_turn(turn)

        run = self.execution()
        run.resume()
        return run.run(polled, interval_s=APART_S, timeout_s=30)

    def changes(self):
        """The changes by others; `move.started` was a second before the job began."""
        time = MoveTime(self.begun_us - S, self.begun_us, max(self.polled_us, self.begun_us))
        return [each.what for each in foreign_changes(records_of(self.log), time, TOKEN, ALWAYS, OwnSteps(self.events))]


@pytest.mark.parametrize("mode", ["batched", "incremental"])
def test_a_whole_move_has_no_change_of_others(mode, tmp_path):
    move = Move(tmp_path, mode)
    move.run()
    assert {each.replicas for each in move.log.now.values()} == {(4, 5, 6)}
    assert len([each for each in move.events if each.kind == "batch.started"]) > 3
    assert move.changes() == []


def test_a_second_client_that_cancels_and_one_that_sends_a_partition_elsewhere(tmp_path, monkeypatch):
    monkeypatch.setattr("testbed.reassignment.batching.execution._BEHIND_S", 0.2)
    move, done = Move(tmp_path, "incremental"), []

    def interfere(turn):
        running = [each.tp for each in turn.partitions if each.tp in move.log.now and move.log.now[each.tp].adding]
        if running and len(done) < 2:
            target = None if not done else (1, 2)
            move.log.alter_reassignments({running[0]: target})
            done.append((running[0], target))

    move.run(interfere)
    (cancelled, _none), (other, _target) = done
    expected = [f"the reassignment of {cancelled} was cancelled", f"{other} was reassigned to [1, 2]"]
    assert move.changes() == expected
    assert {each.replicas for each in move.log.now.values()} == {(4, 5, 6)}, "the move went on"


class Killed(BaseException):
    """What a process that is killed does next: nothing."""


def test_a_move_that_was_killed_and_resumed_has_only_its_own_steps(tmp_path):
    move, turns = Move(tmp_path, "batched"), []

    def kill(_turn):
        turns.append(1)
        if len(turns) in (3, 6):
            raise Killed

    for _ in range(2):
        with pytest.raises(Killed):
            move.run(kill)
    move.run(kill)
    assert {each.replicas for each in move.log.now.values()} == {(4, 5, 6)}
    assert move.changes() == []


def test_a_move_that_the_user_cancels_has_only_its_own_changes(tmp_path):
    move = Move(tmp_path, "batched")

    def cancel(_turn):
        move.folders[0].steer(move.job.id, lambda _: JobControl(BatchLimits(1, 2, 1), wish="cancel"))

    assert move.run(cancel).cancelled
    assert move.changes() == []
