import random
import threading
from dataclasses import replace
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, KafkaException
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.workload import produce
from testbed.workload.outcome import ProcessReports, behind_s
from testbed.workload.produce import Outbox
from testbed.workload.records import Envelope, WrittenRecords
from testbed.workload.spans import count, spans
from testbed.workload.spec import ProducerSpec

SPEC = ProducerSpec("producer-1", "t", (0, 1), 1000.0)


def offset_of(partition, place):
    """Return an offset as if another producer had written before, and once in between."""
    return place + 3 + (7 if place > 20 else 0) + partition


def told(outbox, heard, **more):
    heard.hear({"t": 1, "cpu": 0.1, **outbox.news(), **more})


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from("ardn"), max_size=80), st.integers(0, 1 << 30))
def test_what_a_parent_heard_is_what_became_of_each_record(outcomes, seed):
    """`n`: no answer ever came. Answers come in any order, and reports at any time."""
    rng, outbox, heard = random.Random(seed), Outbox({0: 0, 1: 0}), ProcessReports(SPEC, 7)
    fates = {}
    for outcome in outcomes:
        partition = rng.randrange(2)
        fates[partition, outbox.sent[partition]] = outcome
        outbox.sent[partition] += 1
    answered = [key for key, outcome in fates.items() if outcome != "n"]
    rng.shuffle(answered)
    for key in answered:
        if fates[key] == "a":
            outbox.ack(*key, offset_of(*key))
        else:
            {"r": outbox.refuse, "d": outbox.doubt}[fates[key]](*key)
        if rng.random() < 0.2:
            told(outbox, heard)
    assert outbox.waiting == list(fates.values()).count("n")
    outbox.doubt_the_rest()
    assert outbox.waiting == 0
    told(outbox, heard, final=True, sent_places=list(outbox.sent.items()))
    for partition, written in enumerate(heard.written()):
        mine = {place: outcome for (where, place), outcome in fates.items() if where == partition}
        assert written.settled == written.sent == len(mine)
        assert sorted(p for b, e in written.refused for p in range(b, e)) == [p for p, o in mine.items() if o == "r"]
        assert sorted(p for b, e in written.doubtful for p in range(b, e)) == [p for p, o in mine.items() if o in "dn"]
        assert (written.producer, written.acked) == (7, list(mine.values()).count("a"))
        at = {place: place + shift for begin, end, shift in written.acked_at for place in range(begin, end)}
        assert at == {place: offset_of(partition, place) for place, outcome in mine.items() if outcome == "a"}


def test_of_a_dead_producer_only_what_it_told_is_settled():
    outbox, heard = Outbox({0: 3, 1: 0}), ProcessReports(SPEC, 1)
    outbox.ack(0, 0)
    told(outbox, heard)
    outbox.ack(0, 1)  # it died before it could tell
    assert heard.written() == (
        WrittenRecords(1, "producer-1", "t", 0, settled=1, sent=None, envelope=Envelope()),
        WrittenRecords(1, "producer-1", "t", 1, settled=0, sent=None, envelope=Envelope()),
    )
    result = heard.result()
    assert not result.held
    assert "ended before" in result.why


def test_places_become_spans():
    assert spans([5, 3, 4, 9]) == ((3, 6), (9, 10))
    assert count(spans([5, 3, 4, 9])) == 4
    assert spans([]) == ()


def test_offsets_without_a_gap_are_one_run_also_over_reports():
    outbox, heard = Outbox({0: 0}), ProcessReports(SPEC, 1)
    for place in range(9):
        outbox.sent[0] += 1
        outbox.ack(0, place, 100 + place)
        if place % 3 == 2:
            told(outbox, heard)
    assert heard.written()[0].acked_at == ((0, 9, 100),)


def test_an_offset_that_the_broker_did_not_know_is_no_offset():
    """After a repeated request librdkafka counts from -1 on."""
    outbox, heard = Outbox({0: 4, 1: 0}), ProcessReports(SPEC, 1)
    for place, offset in enumerate((None, -1, 0, 1)):
        outbox.ack(0, place, offset)
    told(outbox, heard)
    assert (heard.written()[0].settled, heard.written()[0].acked_at) == (4, ())


class Transactions:
    """Ends transactions as asked, and remembers how. The coordinator is not there for the first `refusals` times."""

    def __init__(self, refusals=0):
        self.ended, self.refusals = [], refusals

    def end(self, how):
        if self.refusals:
            self.refusals -= 1
            raise KafkaException(KafkaError(KafkaError.COORDINATOR_NOT_AVAILABLE, retriable=True))
        self.ended.append(how)

    def flush(self, _timeout):
        return 0

    def commit_transaction(self, _timeout):
        self.end("commit")

    def abort_transaction(self, _timeout):
        self.end("abort")

    def begin_transaction(self):
        pass


@pytest.mark.parametrize("every", [0, 2])
def test_the_end_of_a_transaction_is_tried_again_while_its_coordinator_moves(monkeypatch, every):
    clients = Transactions()
    monkeypatch.setattr(produce, "Producer", lambda _settings, logger: clients)
    orders = SimpleNamespace(bootstrap="b1:9092", producer=1, seed=1, stopping=threading.Event())
    producing = produce._Producing(replace(SPEC, transaction_s=1.0, abort_every=every), orders, None)
    producing.commit(begin=True)
    clients.refusals = 3
    producing.outbox.sent[0] += 1
    producing.uncommitted.append((0, 0, 0, 0))
    producing.commit(begin=True)
    assert (producing.outbox.in_doubt, producing.outbox.acked + producing.outbox.aborted) == (0, 1)


@pytest.mark.parametrize(("every", "ended"), [(0, "cccccc"), (3, "ccacca")])
def test_one_transaction_in_so_many_is_aborted_and_its_records_are_refused(monkeypatch, every, ended):
    clients = Transactions()
    monkeypatch.setattr(produce, "Producer", lambda _settings, logger: clients)
    spec = replace(SPEC, transaction_s=1.0, abort_every=every)
    orders = SimpleNamespace(bootstrap="b1:9092", producer=1, seed=1, stopping=threading.Event())
    producing = produce._Producing(spec, orders, None)
    heard = ProcessReports(spec, 1)
    for number in range(6):
        producing.outbox.sent[0] += 1
        producing.uncommitted.append((0, number, 0, 2 * number))
        producing.commit(begin=True)
    counts = {"due": 6, "acked": producing.outbox.acked, "failed": producing.outbox.refused, "in_doubt": 0}
    told(producing.outbox, heard, **counts, aborted=producing.outbox.aborted)
    assert "".join(each[0] for each in clients.ended) == ended
    assert (producing.outbox.waiting, producing.outbox.refused) == (0, 0)
    assert producing.outbox.aborted == ended.count("a")
    written = next(each for each in heard.written() if each.partition == 0)
    assert (written.acked, written.settled) == (ended.count("c"), 6)
    assert written.refused == tuple((at, at + 1) for at in range(6) if ended[at] == "a")
    assert behind_s(spec, heard.newest) == 0
