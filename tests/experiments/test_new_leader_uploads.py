"""What new leaders upload after a tiered move: which partitions are judged, and what the store must have of them."""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from results.contract.relocation import Uploads
from testbed.experiments import new_leader_uploads
from testbed.experiments.new_leader_uploads import ASKED, SEGMENT_MS, NewLeaderUploads
from testbed.kafka.errors import KafkaError
from testbed.kafka.types import ConfigResource, TopicPartition
from testbed.probes.recorder import Recorder
from testbed.tiered.segments import Segment, SegmentId, SegmentState

FIRST, SECOND = TPS = [TopicPartition("s3", 0), TopicPartition("s3", 1)]


class Leaders:
    """The ends of two logs at each request for them, and what is configured."""

    def __init__(self, *ends):
        self._ends, self.configured = list(ends), []

    def end_offsets(self, tps):
        answer = self._ends.pop(0) if len(self._ends) > 1 else self._ends[0]
        if isinstance(answer, KafkaError):
            raise answer
        return {tp: end for tp, end in zip(TPS, answer, strict=True) if tp in list(tps)}

    def alter_configs(self, resource, values):
        self.configured.append((resource, values))


def copied(partition, end, state=SegmentState.COPIED):
    return Segment(SegmentId("s3", "id", partition, str(end)), 0, end, 1 << 20, 2, state)


@pytest.fixture
def seen(monkeypatch):
    monkeypatch.setattr(new_leader_uploads, "APPENDED_S", 0.05)
    monkeypatch.setattr(new_leader_uploads, "SETTLED_S", 0.05)
    monkeypatch.setattr(new_leader_uploads, "INTERVAL_S", 0.01)

    def seen(leaders, *segments):
        remote = SimpleNamespace(segments=lambda _topic: answered(segments))
        monkeypatch.setattr(new_leader_uploads, "RemoteLog", lambda _bootstrap: nullcontext(remote))
        recorder = Recorder()
        environment = SimpleNamespace(
            admin=leaders,
            recorder=recorder,
            context=SimpleNamespace(progress=lambda _text: None),
            testbed=SimpleNamespace(bootstrap=("127.0.0.1:1",)),
            throttled_groups=lambda: [SimpleNamespace(tps=lambda: TPS)],
        )
        uploads = NewLeaderUploads(environment)
        uploads.move_ended()
        uploads.close_segments()
        assert [event.kind for event in recorder.events()] == [ASKED] * bool(leaders.configured)
        return uploads.compare()

    return seen


def answered(segments):
    if segments and isinstance(segments[0], KafkaError):
        raise segments[0]
    return list(segments)


def test_a_segment_with_a_record_of_after_the_move_is_uploaded_of_each_partition(seen):
    leaders = Leaders((100, 200), (150, 250), (150, 251), (151, 251))
    assert seen(leaders, copied(0, 99), copied(0, 149), copied(1, 249)) == Uploads(2)
    assert leaders.configured == [(ConfigResource.topic("s3"), {"segment.ms": str(SEGMENT_MS)})]


def test_what_the_old_leader_had_uploaded_or_a_copy_that_did_not_end_is_none_of_the_new_leader(seen):
    found = seen(
        Leaders((100, 200), (150, 250), (151, 251)), copied(0, 99), copied(1, 199), copied(1, 249, SegmentState(0))
    )
    assert found == Uploads(
        2,
        ("s3-0 up to offset 99, and the move ended at 100", "s3-1 up to offset 199, and the move ended at 200"),
    )


@pytest.mark.parametrize("later", [((100, 250), (101, 251)), ((150, 250), (150, 251))])
def test_a_partition_without_a_record_before_or_after_the_segments_may_be_closed_is_not_judged(seen, later):
    assert seen(Leaders((100, 200), *later), copied(1, 249)) == Uploads(1)


def test_without_an_answer_it_is_not_known(seen):
    refused = KafkaError("list end offsets", "NOT_LEADER_OR_FOLLOWER")
    assert seen(Leaders((100, 200), refused)) == Uploads(0, problem=str(refused))
    unread = KafkaError("read", "TOPIC_AUTHORIZATION_FAILED")
    assert seen(Leaders((100, 200), (150, 250), (151, 251)), unread) == Uploads(2, problem=str(unread))
