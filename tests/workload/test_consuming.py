"""A consumer of a load: what it reports of records, sessions and refused batches, with a client that is played."""

import threading
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError

from testbed.workload import consume
from testbed.workload.audit import Audit
from testbed.workload.delivered_spans import UNORDERED
from testbed.workload.outcome import ProcessReports, WorkloadResult
from testbed.workload.records import Recipe, WrittenRecords
from testbed.workload.spec import ConsumerSpec

PAYLOADS = Recipe(48, 3).payloads()
ASSIGN = "assign"
WHOLE = Audit(0, 0, 0, 0, 0, ())


class Message:
    def __init__(self, offset, value=None, *, topic="t", partition=0, error=None):
        self._parts = topic, partition, offset, value, error

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


def record(offset, topic="t", time_us=1_700_000_000_000_000):
    return Message(offset, PAYLOADS.record(0, offset, 1, time_us), topic=topic)


REFUSED = KafkaError(KafkaError._BAD_MSG, "MessageSet at offset 4 failed CRC32C check")


class FakeConsumer:
    """Gives the records of one call after the other; `ASSIGN` among them assigns the partitions again."""

    calls = ()

    def __init__(self, settings):
        self.settings, self.left, self.rest = settings, list(self.calls), []

    def subscribe(self, _topics, on_assign):
        self.on_assign = on_assign

    def assign(self, _partitions):
        pass

    def poll(self, _wait_s):
        given = list(self.left.pop(0)) if self.left else []
        if ASSIGN in given:
            self.on_assign(self, [])
            given.remove(ASSIGN)
        self.rest = given[1:]
        return given[0] if given else None

    def consume(self, _most, _wait_s):
        return self.rest

    def assignment(self):
        return []

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


def heard(monkeypatch, *calls, topics=("t",)):
    """Return what the parent knows of a consumer that was given these calls, and its reporter."""
    monkeypatch.setattr(consume, "Consumer", type("Played", (FakeConsumer,), {"calls": ([ASSIGN], *calls)}))
    spec = ConsumerSpec("consumer-1", topics, "readers")
    orders = SimpleNamespace(bootstrap="b1:9092", stopping=threading.Event(), paused=False)
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
    assert (result.read, result.delivered.records, result.delivered.checked) == (4, 4, 1)
    assert reporter.times[::2] == [1_700_000_000_000_000] * 4
    assert all(arrived > 1_700_000_000_000_000 for arrived in reporter.times[1::2])


def test_a_record_without_a_time_has_no_latency(monkeypatch):
    result, reporter, _consuming = heard(monkeypatch, [record(0, time_us=0), record(1, time_us=-5), record(2)])
    assert (result.read, len(reporter.times)) == (3, 2)


def test_an_assignment_begins_a_session_and_what_comes_with_it_has_no_order(monkeypatch):
    result, _reporter, _consuming = heard(
        monkeypatch,
        [record(0), record(1)],
        [ASSIGN, record(2), record(1)],
        [record(1), record(2)],
        [ASSIGN],
        [record(9)],
    )
    assert spans(result) == [(2, 0, 2), (UNORDERED, 2, 1), (UNORDERED, 1, 1), (3, 1, 2), (4, 9, 1)]
    written = [WrittenRecords(1, "producer-1", "t", 0, 10, 10)]
    [found] = WorkloadResult((result,)).live(WHOLE, others=written).deliveries
    assert (found.records, found.wrong) == (7, 0)


def test_many_records_are_checked_before_a_report(monkeypatch):
    monkeypatch.setattr(consume, "CHECKED_AT_ONCE", 3)
    result, _reporter, consuming = heard(monkeypatch, [record(n) for n in range(5)], [record(5)])
    assert spans(result) == [(2, 0, 6)]
    assert len(consuming.delivered) == 0


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
@pytest.mark.parametrize("changed", [26, 27])
def test_the_checksum_of_one_value_in_thirteen_is_computed(monkeypatch, calls, changed):
    records = [record(offset) for offset in range(50)]
    records[changed] = Message(changed, records[changed].value()[:-1] + b"?")
    taken = iter(records)
    result, _reporter, _consuming = heard(monkeypatch, *([next(taken) for _ in range(many)] for many in calls))
    assert result.delivered.checked == 4
    written = [WrittenRecords(1, "producer-1", "t", 0, 50, 50)]
    [found] = WorkloadResult((result,)).live(WHOLE, others=written).deliveries
    assert found.corrupt == found.wrong == (1 if changed == 26 else 0)


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
    assert (found.name, found.corrupt) == ("consumer-1", 2)  # nobody is known to have written them
