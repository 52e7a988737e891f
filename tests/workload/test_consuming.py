"""A consumer of a load: what it reports of records, sessions and refused batches, with a client that is played."""

import threading
import time
from types import SimpleNamespace

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME, TIMESTAMP_LOG_APPEND_TIME, KafkaError, KafkaException, TopicPartition

from testbed.workload import consume
from testbed.workload.audit import Audit
from testbed.workload.delivered_spans import UNORDERED
from testbed.workload.outcome import ProcessReports, WorkloadResult
from testbed.workload.records import MARKED, Envelope, Recipe, WrittenRecords, preloader, timestamp_ms
from testbed.workload.spec import ConsumerSpec
from testbed.workload.workload import START_S

PAYLOADS = Recipe(48, 3).payloads()
ASSIGN = "assign"
WHOLE = Audit(0, 0, 0, 0, 0, ())


class Message:
    def __init__(
        self, offset, value=None, *, topic="t", partition=0, error=None, key=None, headers=None, timestamp=None
    ):
        self._parts = topic, partition, offset, value, error
        self._envelope = key, headers, timestamp

    def topic(self):
        return self._parts[0]

    def partition(self):
        return self._parts[1]

    def offset(self):
        return self._parts[2]

    def value(self):
        return self._parts[3]

    def error(self):
        return self._parts[4]

    def key(self):
        return self._envelope[0]

    def headers(self):
        return self._envelope[1]

    def timestamp(self):
        return self._envelope[2]


def record(offset, topic="t", time_us=1_700_000_000_000_000, producer=1, rule=Envelope(), **changes):  # noqa: B008
    value = PAYLOADS.record(0, offset, producer, time_us)
    parts = {
        "key": rule.key(0, offset),
        "headers": rule.headers(offset),
        "timestamp": (TIMESTAMP_CREATE_TIME, timestamp_ms(time_us)),
    }
    return Message(offset, value, topic=topic, **(parts | changes))


REFUSED = KafkaError(KafkaError._BAD_MSG, "MessageSet at offset 4 failed CRC32C check")


class Failed(TopicPartition):
    pass


UNANSWERED = KafkaError(KafkaError._TIMED_OUT)


class FakeConsumer:
    """Gives the records of one call after the other; `ASSIGN` among them assigns the partitions again.

    The client meets an `ASSIGN` at the begin while it waits for a record, and any other one while it takes those at
    hand. A `TopicPartition` is a commit of its offset that was acknowledged. `ends` are what the fetches of the first
    partition return, one after the other; at first there was none. `leader` is the end that the leader answers with
    when it is asked; None: it does not answer.
    """

    calls = ()
    partitions = ()
    ends = ()
    leader = None

    def __init__(self, settings):
        self.settings, self.left, self.rest = settings, list(self.calls), []
        self.fetched = list(self.ends)

    def subscribe(self, _topics, on_assign):
        self.on_assign = on_assign

    def assign(self, _partitions):
        pass

    def poll(self, _wait_s):
        given = list(self.left.pop(0)) if self.left else []
        for done in [each for each in given if isinstance(each, TopicPartition)]:
            self.settings["on_commit"](UNANSWERED if isinstance(done, Failed) else None, [done])
            given.remove(done)
        if given[:1] == [ASSIGN]:
            self.on_assign(self, list(self.partitions))
            del given[0]
        self.rest = given[1:]
        return given[0] if given else None

    def consume(self, _most, _wait_s):
        if ASSIGN in self.rest:
            self.on_assign(self, list(self.partitions))
            self.rest.remove(ASSIGN)
        return self.rest

    def assignment(self):
        return list(self.partitions)

    def get_watermark_offsets(self, _partition, timeout=0, cached=False):
        if timeout:
            return None if self.leader is None else (0, self.leader)
        assert cached
        if not self.fetched:
            raise KafkaException(KafkaError(KafkaError._UNKNOWN_PARTITION))
        return 0, self.fetched.pop(0) if len(self.fetched) > 1 else self.fetched[0]

    def offsets_for_times(self, partitions, timeout):
        assert timeout
        return partitions

    def position(self, _partitions):
        return []


class Reporter:
    def __init__(self):
        self.said, self.times = [], []

    def report(self, said, times=None, *, by_end=False):
        self.said.append(said)
        self.times += [] if times is None else times.ravel().tolist()

    def cpu_cores(self):
        return 0.1


def heard(monkeypatch, *calls, topics=("t",), rules=None, played=None, **more):
    """Return what the parent knows of a consumer that was given these calls, and its reporter."""
    parts = {"calls": ([ASSIGN], *calls)} | (played or {})
    monkeypatch.setattr(consume, "Consumer", type("Played", (FakeConsumer,), parts))
    spec = ConsumerSpec("consumer-1", topics, "readers", **more)
    rules = {1: Envelope()} if rules is None else rules
    orders = SimpleNamespace(bootstrap="b1:9092", stopping=threading.Event(), paused=False, envelopes=rules)
    consuming, reporter = consume._Consuming(spec, orders, Reporter()), None
    reporter = consuming.reporter
    consuming.join()
    reports = ProcessReports(spec, 0)
    for number in range(len(calls)):
        consuming.take(0.1)
        if number % 2:
            consuming.report()
    consuming.report(final=True)
    for said in reporter.said:
        reports.hear(said)
    return reports.result(), reporter, consuming


def spans(result, topic="t"):
    return [(s.session, s.offset, s.records) for s in result.delivered.spans.get((topic, 0), [])]


def test_each_record_is_reported_once_in_order_with_its_times(monkeypatch):
    result, reporter, _consuming = heard(monkeypatch, [record(0), record(1)], [record(2)], [], [record(3)])
    assert spans(result) == [(2, 0, 4)]
    assert (result.read, result.delivered.records, result.delivered.checked, result.delivered.compared) == (4, 4, 4, 4)
    assert reporter.times[::2] == [1_700_000_000_000_000] * 4
    assert all(arrived > 1_700_000_000_000_000 for arrived in reporter.times[1::2])


def test_a_record_without_a_time_has_no_latency(monkeypatch):
    result, reporter, _consuming = heard(monkeypatch, [record(0, time_us=0), record(1, time_us=-5), record(2)])
    assert (result.read, len(reporter.times)) == (3, 2)


def test_an_assignment_begins_a_session_and_what_comes_with_it_has_no_order(monkeypatch):
    result, _reporter, _consuming = heard(
        monkeypatch,
        [record(0), record(1)],
        [record(2), ASSIGN, record(1)],
        [record(1), record(2)],
        [ASSIGN],
        [record(9)],
    )
    assert spans(result) == [(2, 0, 2), (UNORDERED, 2, 1), (UNORDERED, 1, 1), (3, 1, 2), (4, 9, 1)]
    written = [WrittenRecords(1, "producer-1", "t", 0, 10, 10)]
    [found] = WorkloadResult((result,)).live(WHOLE, others=written).deliveries
    assert (found.records, found.wrong) == (7, 0)


def test_what_comes_first_after_an_assignment_is_of_the_new_session_in_the_same_call_too(monkeypatch):
    result, _reporter, _consuming = heard(
        monkeypatch, [record(0), record(1)], [ASSIGN, record(1), record(2)], [record(3)], [ASSIGN], [ASSIGN, record(4)]
    )
    assert spans(result) == [(2, 0, 2), (3, 1, 3), (5, 4, 1)]


def test_many_records_are_checked_before_a_report(monkeypatch):
    monkeypatch.setattr(consume, "CHECKED_AT_ONCE", 3)
    result, _reporter, consuming = heard(monkeypatch, [record(n) for n in range(5)], [record(5)])
    assert spans(result) == [(2, 0, 6)]
    assert len(consuming.unchecked) == 0


def test_a_refused_batch_is_reported_with_its_offset_and_does_not_end_the_reading(monkeypatch):
    calls = [record(0), Message(4, error=REFUSED)], [record(8)]
    result, _reporter, consuming = heard(monkeypatch, *calls)
    assert consuming.client.settings["check.crcs"] is True
    assert "failed CRC32C" in result.error
    written = [WrittenRecords(1, "producer-1", "t", 0, 10, 10)]
    [found] = WorkloadResult((result,)).live(WHOLE, others=written).deliveries
    assert (found.skipped, found.corrupt, found.missed) == (7, 1, 0)
    assert found.first == (
        "t-0: offset 4: a batch that the client refused",
        "t-0: offsets 1 to 3 were skipped",
        "t-0: offsets 4 to 7 were skipped",
    )


@pytest.mark.parametrize("calls", [[50], [1] * 50, [3, 4, 20, 23]])
@pytest.mark.parametrize("changed", [0, 27, 49])
def test_the_checksum_of_every_value_is_computed(monkeypatch, calls, changed):
    records = [record(offset) for offset in range(50)]
    records[changed] = Message(changed, records[changed].value()[:-1] + b"?", timestamp=(TIMESTAMP_CREATE_TIME, 5))
    taken = iter(records)
    result, _reporter, _consuming = heard(monkeypatch, *([next(taken) for _ in range(many)] for many in calls))
    assert result.delivered.checked == 50
    [found] = accounts(result)
    assert (found.corrupt, found.wrong) == (1, 1)
    assert found.first == (f"t-0: offset {changed}: its checksum does not match",)


def accounts(result, settled=50, *, shared=False, **more):
    written = [WrittenRecords(1, "producer-1", "t", 0, settled, settled, **more)]
    return WorkloadResult((result,)).live(WHOLE, others=written, shared=shared).deliveries


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"key": b"0-8"}, "another key, first at offset 7: b'0-8', not b'0-7'"),
        ({"headers": None}, "other headers, first at offset 7: None, not [('place', b'7')]"),
        ({"timestamp": (TIMESTAMP_CREATE_TIME, 5)}, "another timestamp, first at offset 7: 5 ms, not 1700000000000"),
        (
            {"timestamp": (TIMESTAMP_LOG_APPEND_TIME, 1_700_000_000_000)},
            "the broker's timestamp, first at offset 7: not 1700000000000 ms",
        ),
    ],
)
def test_another_key_header_or_timestamp_of_one_record_is_named(monkeypatch, changes, what):
    records = [record(offset) for offset in range(20)]
    records[MARKED] = record(MARKED, **changes)
    result, _reporter, _consuming = heard(monkeypatch, records[:10], records[10:])
    [found] = accounts(result)
    assert (found.corrupt, found.wrong, found.compared) == (1, 1, 20)
    assert found.first == (f"t-0: 1 of producer-1 with {what}",)


def test_the_rules_of_producers_with_keys_and_of_the_fill_are_known(monkeypatch):
    keyed, fill = Envelope(keys=4), preloader("t")
    records = [record(n, producer=fill) for n in range(10)] + [record(n, producer=2, rule=keyed) for n in range(10, 20)]
    result, _reporter, _consuming = heard(monkeypatch, records, rules={2: keyed})
    assert (result.delivered.envelopes, result.delivered.compared) == ({}, 20)


# ---- the begin of a session

ONE = {"partitions": (TopicPartition("t", 0),)}


def missed(result):
    [found] = accounts(result, acked_at=((0, 50, 0),))
    assert found.wrong == found.missed
    return found.missed


def begins(result):
    found = result.delivered.begins.get(("t", 0), {})
    return {session: (begin.lowest, begin.highest) for session, begin in found.items()}


def test_a_consumer_that_joined_must_get_what_is_written_after_its_first_fetch(monkeypatch):
    played = ONE | {"ends": (-1001, -1001, 5), "calls": ([ASSIGN], [], [], [record(7)])}
    result, _reporter, consuming = heard(monkeypatch, [], played=played)
    assert begins(result) == {2: (0, 5)}
    assert not consuming.client.left
    assert missed(result) == 2


def test_a_consumer_that_begins_at_the_begin_must_get_the_first_record(monkeypatch):
    result, _reporter, _consuming = heard(monkeypatch, [record(7)], played=ONE | {"ends": (5,)}, from_beginning=True)
    assert missed(result) == 7


def test_a_fetch_that_has_no_answer_does_not_stop_the_consumer_and_leaves_its_begin_open(monkeypatch):
    monkeypatch.setattr(consume, "POSITION_S", 0.01)
    result, _reporter, _consuming = heard(monkeypatch, [record(7)], played=ONE)
    assert begins(result) == {}
    assert missed(result) == 0


def test_a_consumer_that_waits_for_all_its_answers_is_ready_before_the_load_gives_up():
    assert consume.READY_S + consume.POSITION_S < START_S


@pytest.mark.parametrize(("first", "wrong"), [(6, 0), (8, 0), (9, 1), (30, 22)])
def test_after_an_assignment_the_first_record_is_that_of_the_groups_offset_or_a_later_one_that_came(
    monkeypatch, first, wrong
):
    before = [record(n) for n in range(8)]
    result, _reporter, _consuming = heard(
        monkeypatch, before, [TopicPartition("t", 0, 6)], [ASSIGN], [record(first)], played=ONE | {"ends": (0,)}
    )
    assert begins(result) == {2: (0, 0), 3: (6, 6)}
    assert missed(result) == wrong


def test_a_first_record_that_comes_in_the_call_of_its_assignment_is_judged(monkeypatch):
    """The played brokers of librdkafka gave it there in half of the assignments."""
    calls = [record(n) for n in range(8)], [TopicPartition("t", 0, 6)], [ASSIGN, record(9), record(10)]
    result, _reporter, _consuming = heard(monkeypatch, *calls, played=ONE | {"ends": (0,)})
    assert missed(result) == 1


@pytest.mark.parametrize("commit", [[], [TopicPartition("t", 0, -1001)]])
def test_a_group_without_an_offset_begins_at_the_end(monkeypatch, commit):
    result, _reporter, _consuming = heard(
        monkeypatch, [record(0)], commit, [ASSIGN], [record(30)], played=ONE | {"ends": (0,)}
    )
    assert missed(result) == 0


@pytest.mark.parametrize(("first", "repeated"), [(3, 1), (4, 0), (6, 0)])
def test_a_group_may_have_the_offset_of_a_commit_without_an_answer_until_the_next_assignment(
    monkeypatch, first, repeated
):
    before = [record(n) for n in range(8)]
    commits = [Failed("t", 0, 4)], [Failed("t", 0, 5)], [TopicPartition("t", 0, 6)]
    played = ONE | {"ends": (0,)}
    again = [record(n) for n in range(first, 8)]
    result, _reporter, _consuming = heard(monkeypatch, before, *commits, [ASSIGN], again, [ASSIGN], played=played)
    assert begins(result) == {2: (0, 0), 3: (4, 6), 4: (6, 6)}
    [found] = accounts(result)
    assert (found.repeated, found.wrong) == (repeated, repeated)


def test_a_commit_that_failed_is_none(monkeypatch):
    _result, _reporter, consuming = heard(monkeypatch, [record(0)], played=ONE | {"ends": (0,)})
    consuming._on_commit(KafkaError(KafkaError.UNKNOWN_MEMBER_ID), [TopicPartition("t", 0, 7)])
    assert consuming.committed == {}
    consuming._on_commit(None, [TopicPartition("t", 0, 7)])
    assert consuming.committed == {(0, 0): 7}


# ---- the end of a load


def at_the_end(monkeypatch, *before, after=(), leader=None, paused=False, **more):
    """Return the account of a consumer to which the records up to 50 were due when the producers had ended.

    It was given the calls `before`, and then those `after`.
    """
    monkeypatch.setattr(consume, "POSITION_S", 0.05)
    monkeypatch.setattr(consume, "AGAIN_S", 0.01)
    played = ONE | {"ends": (0,), "calls": ([ASSIGN], *before, *after), "leader": leader}
    result, reporter, consuming = heard(monkeypatch, *before, played=played)
    consuming.orders.ends, consuming.paused = [("t", 0, 50)], paused
    consuming.report(last=consuming.finish(), final=True)
    result.delivered.hear(("t",), reporter.said[-1])
    [found] = accounts(result, acked_at=((0, 50, 0),), **more)
    return found


def some(begin, end):
    return [record(n) for n in range(begin, end)]


def test_a_consumer_waits_for_what_was_acknowledged_last(monkeypatch):
    found = at_the_end(monkeypatch, some(0, 40), after=([], some(40, 48), [], some(48, 50)), leader=50)
    assert (found.records, found.wrong, found.behind) == (50, 0, 0)


def test_a_partition_that_gives_nothing_more_is_named(monkeypatch):
    found = at_the_end(monkeypatch, some(0, 40), leader=50)
    assert (found.missed, found.wrong, found.behind) == (10, 10, 0)
    end = "never delivered; the leader gives consumers the end 50"
    line = f"t-0: records 40 to 49 of producer-1 were acknowledged and {end}"
    assert found.first == (line,)


@pytest.mark.parametrize(
    ("more", "missed", "behind"), [({}, 10, 0), ({"transactional": True}, 0, 10), ({"shared": True}, 0, 10)]
)
def test_an_end_below_what_was_acknowledged_is_wrong_unless_a_transaction_may_go_on(monkeypatch, more, missed, behind):
    found = at_the_end(monkeypatch, some(0, 40), leader=44, **more)
    assert (found.missed, found.behind) == (missed, behind)


def test_a_partition_of_which_no_record_came_is_named(monkeypatch):
    assert at_the_end(monkeypatch, [], leader=50).missed == 50


def test_where_no_leader_answers_the_consumer_is_behind(monkeypatch):
    found = at_the_end(monkeypatch, some(0, 40), leader=None)
    assert (found.wrong, found.behind) == (0, 10)


def test_a_consumer_that_still_gets_records_is_behind(monkeypatch):
    monkeypatch.setattr(consume, "LAST_S", -1.0)
    found = at_the_end(monkeypatch, some(0, 40), after=(some(40, 41), some(41, 42), some(42, 43)), leader=50)
    assert (found.wrong, found.behind, found.records) == (0, 9, 41)


def test_a_record_that_was_on_its_way_when_the_leader_was_asked_is_not_withheld(monkeypatch):
    monkeypatch.setattr(consume, "POSITION_S", -1.0)
    found = at_the_end(monkeypatch, some(0, 40), after=(some(40, 50),), leader=50)
    assert (found.wrong, found.behind, found.records) == (0, 0, 50)


def test_an_error_does_not_end_the_wait_for_what_is_on_its_way(monkeypatch):
    monkeypatch.setattr(consume, "POSITION_S", -1.0)
    failed = [Message(None, error=KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART))]
    found = at_the_end(monkeypatch, some(0, 40), after=(failed, some(40, 50)), leader=50)
    assert (found.wrong, found.behind, found.records) == (0, 0, 50)


def test_leaders_without_an_answer_are_waited_for_together(monkeypatch):
    _result, _reporter, consuming = heard(monkeypatch, some(0, 2), played=ONE | {"ends": (0,)})
    monkeypatch.setattr(consume, "POSITION_S", 0.05)
    asked = []
    silent = lambda _partition, timeout: asked.append(timeout) or time.sleep(timeout)  # noqa: E731
    monkeypatch.setattr(consuming.client, "get_watermark_offsets", silent, raising=False)
    assert consuming._leaders_ends([(0, partition) for partition in range(100)]) == {}
    assert sum(asked) < 0.1


def test_a_consumer_asks_for_its_assignment_once_however_many_partitions_gave_nothing_more(monkeypatch):
    """With thousands of partitions the questions took longer than the wait for the consumer's end: it was killed."""
    there = tuple(TopicPartition("t", partition) for partition in range(50))
    played = {"partitions": there, "ends": (0,)}
    _result, _reporter, consuming = heard(monkeypatch, [], played=played)
    monkeypatch.setattr(consume, "POSITION_S", -1.0)
    monkeypatch.setattr(consume, "AGAIN_S", 0.01)
    monkeypatch.setattr(consuming, "_leaders_ends", lambda left: dict.fromkeys(left, 50))
    asked = []
    monkeypatch.setattr(consuming.client, "assignment", lambda: asked.append(1) or list(there))
    consuming.orders.ends = [("t", partition, 50) for partition in range(50)]
    assert len(consuming.finish()) == 50
    assert len(asked) == 1


def test_a_consumer_that_reads_nothing_on_purpose_lacks_nothing(monkeypatch):
    assert at_the_end(monkeypatch, some(0, 40), leader=50, paused=True).behind == 0


def test_a_partition_that_began_at_an_end_of_that_time_is_not_judged_at_the_end(monkeypatch):
    found = at_the_end(monkeypatch, some(0, 40), [ASSIGN], leader=50)
    assert (found.wrong, found.behind) == (0, 0)
    found = at_the_end(monkeypatch, some(0, 40), [TopicPartition("t", 0, 40)], [ASSIGN], some(40, 42), leader=50)
    assert found.missed == 8


@pytest.mark.parametrize("after", [[], [[ASSIGN]]])
def test_a_partition_that_was_assigned_again_and_is_not_fetched_yet_is_not_withheld(monkeypatch, after):
    again = [] if after else [[ASSIGN]]
    before = some(0, 40), [TopicPartition("t", 0, 40)]
    found = at_the_end(monkeypatch, *before, *again, after=after, leader=50)
    assert (found.wrong, found.behind) == (0, 10)


@pytest.mark.parametrize("topics", [("t", "u"), ("u", "t")])
def test_the_topics_are_told_apart(monkeypatch, topics):
    result, _reporter, _consuming = heard(monkeypatch, [record(0), record(3, "u"), record(1)], topics=topics)
    assert (spans(result), spans(result, "u")) == ([(2, 0, 2)], [(2, 3, 1)])


def test_a_load_that_was_not_read_back_has_no_account_of_what_was_delivered(monkeypatch):
    result, _reporter, _consuming = heard(monkeypatch, [record(0)])
    assert WorkloadResult((result,)).live(None).deliveries == ()


def test_a_reader_that_is_none_of_the_load_is_in_the_account(monkeypatch):
    result, _reporter, _consuming = heard(monkeypatch, [record(0), record(1)])
    [found] = WorkloadResult(()).live(WHOLE, readers=[result]).deliveries
    assert (found.name, found.corrupt) == ("consumer-1", 2)  # their producer is not in the account
