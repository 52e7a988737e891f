"""The trace of partitions: what clients are told, and what the controller's log has, as events of a run."""

from results.contract.steps import State
from testbed.experiments.kip455_trace import Trace, differences, log_events
from testbed.kafka.errors import KafkaError
from testbed.kafka.types import PartitionState, TopicPartition
from testbed.probes.recorder import Recorder, now_us
from testbed.reassignment.metadata_log import MetadataHistory, Registration, Removal
from tests.fakes.kraft import Controller, KraftAdmin

A = TopicPartition("t", 0)


class Admin(KraftAdmin):
    """Time stands still unless it is told to pass; topics can be deleted."""

    gone = False

    def topics(self):
        return () if self.gone else super().topics()

    def partitions(self, topics):
        if self.gone and topics:
            raise KafkaError("describe topics", "UNKNOWN_TOPIC_OR_PARTITION")
        return super().partitions(topics)


def registration(offset, replicas=(1, 2, 3), **other):
    state = {"adding": (), "removing": (), "isr": (1, 2, 3), "leader": 1, "leader_epoch": 0, "partition_epoch": 0}
    return Registration(offset, offset * 1000, A, replicas, **{**state, **other})


def test_only_what_changes_is_noted_and_the_latest_look_is_known():
    admin, recorder = Admin(Controller.of({A: (1, 2, 3)}, [1, 2, 3])), Recorder()
    trace = Trace(recorder, admin, ["t"])
    trace.look()
    trace.look()
    assert [event.kind for event in recorder.events()] == ["trace.described", "trace.listed"]
    asked = now_us()
    admin.controller.alter({A: (4, 2, 3)})
    assert trace.latest(A, asked) is None
    trace.look()
    state = trace.latest(A, asked)
    assert (state.replicas, state.adding, state.removing, state.isr) == ((4, 2, 3, 1), (4,), (1,), (1, 2, 3))
    kinds = [event.kind for event in recorder.events()]
    assert kinds == ["trace.described", "trace.listed", "trace.described", "trace.listed"]
    assert recorder.events()[-1].detail == {
        "topic": "t",
        "partition": 0,
        "replicas": [4, 2, 3, 1],
        "adding": [4],
        "removing": [1],
    }
    admin.gone = True
    trace.look()
    assert trace.latest(A, asked) == State(gone=True) or trace.latest(A, asked).gone


def test_the_log_is_noted_at_its_own_times_and_its_removals_too():
    history = MetadataHistory(
        (registration(5), registration(7, (4, 2, 3, 1), adding=(4,), removing=(1,))),
        {},
        (Removal(9, 9000, A), Removal(9, 9000, TopicPartition("other", 0))),
    )
    events = log_events(history, ["t"])
    assert [(e.ts_us, e.kind, e.name, e.detail["offset"]) for e in events] == [
        (5000, "trace.log", "t-0", 5),
        (7000, "trace.log", "t-0", 7),
        (9000, "trace.log", "t-0", 9),
    ]
    assert events[1].detail["adding"] == [4] and events[1].detail["partition_epoch"] == 0
    assert events[2].detail["gone"] is True


def test_the_log_s_end_is_held_against_describe_topics():
    now = {A: registration(7)}
    described = PartitionState(A, 1, 0, (1, 2, 3), (1, 2, 3))
    assert differences(MetadataHistory((), now), {A: described}, ["t"]) == []
    other = PartitionState(A, 2, 4, (1, 2, 3), (2, 3))
    assert differences(MetadataHistory((), now), {A: other}, ["t"]) == [
        "t-0: ISR (1, 2, 3) in the log, (2, 3) described",
        "t-0: leader 1 in the log, 2 described",
        "t-0: leader epoch 0 in the log, 4 described",
    ]
    assert differences(MetadataHistory((), {}), {A: described}, ["t"]) == ["t-0 exists only for DescribeTopics"]
    assert differences(MetadataHistory((), now), {}, ["t"]) == ["t-0 exists only in the log"]
    assert differences(MetadataHistory((), {TopicPartition("u", 0): registration(1)}), {}, ["t"]) == []


class Unreadable:
    """A host on which nothing can be read."""

    def run(self, *_args, **_named):
        raise KafkaError("read", "NO_ANSWER")


def test_a_log_that_cannot_be_read_is_told():
    trace = Trace(Recorder(), Admin(Controller.of({A: (1,)}, [1])), ["t"])
    compared = trace.finish([Unreadable(), Unreadable()])
    assert compared.equal is None and compared.problem.count("could not be read") == 2
    assert trace.finish([]).problem
