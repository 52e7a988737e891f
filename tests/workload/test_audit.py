"""The audit is held against a plain account of the same records, one by one."""

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.workload.audit import Ledger, RecordTally
from testbed.workload.outcome import WorkloadResult
from testbed.workload.records import (
    BROKER_TIME,
    MARKED,
    Envelope,
    Fill,
    ReadRecords,
    Recipe,
    WrittenRecords,
    timestamp_ms,
)
from testbed.workload.spans import spans

PAYLOADS = Recipe(48, 3).payloads()
ONE, TWO = 1, 2


def written(producer=ONE, settled=10, sent=None, partition=0, **more):
    sent = settled if sent is None else sent
    return WrittenRecords(producer, f"producer-{producer}", "t", partition, settled, sent, **more)


def records(places, producer=ONE, partition=0):
    return [PAYLOADS.record(partition, place, producer) for place in places]


def bare(values, first=0):
    """Return values as records without an envelope, at offsets without a gap."""
    count = len(values)
    return ReadRecords([*range(first, first + count)], values, [None] * count, [None] * count, [BROKER_TIME] * count)


def audited(account, values, chunk=1000):
    ledger = Ledger(account)
    for begin in range(0, len(values), chunk):
        ledger.add("t", 0, bare(values[begin : begin + chunk], begin))
    return ledger.result()


TIME_US = 1_700_000_000_123_456


def sealed(places, producer=ONE, envelope=Envelope()):  # noqa: B008 - frozen
    """Return records with their envelopes, each at the offset that is its place."""
    found = ReadRecords()
    for place in places:
        time_us = TIME_US + 1000 * place
        value = PAYLOADS.record(0, place, producer, time_us)
        found.add(place, value, envelope.key(0, place), envelope.headers(place), timestamp_ms(time_us))
    return found


def account_of(found, **more):
    more = {"settled": 20, "envelope": Envelope(), "acked_at": ((0, 20, 0),)} | more
    ledger = Ledger([written(**more)])
    ledger.add("t", 0, found)
    return ledger.result()


def plain(places, settled, sent, refused, doubtful):
    """The same account, record by record: lost, twice, out of order, refused and there."""
    seen, highest = set(), -1
    twice = late = 0
    for place in places:
        if place in seen:
            twice += 1
        elif place < highest:
            late += 1
        seen.add(place)
        highest = max(highest, place)
    may_miss = set(refused) | set(doubtful) | set(range(settled, sent))
    lost = [p for p in range(settled) if p not in seen and p not in may_miss]
    return len(lost), twice, late, len(set(refused) & seen), lost


@st.composite
def histories(draw):
    """What a producer was told, and the places that are found, in order of their offsets."""
    sent = draw(st.integers(0, 60))
    settled = draw(st.integers(0, sent))
    outcome = [draw(st.sampled_from("aaaard")) for _ in range(settled)]
    refused = [p for p in range(settled) if outcome[p] == "r"]
    doubtful = [p for p in range(settled) if outcome[p] == "d"]
    rng = random.Random(draw(st.integers(0, 1 << 30)))
    found = [p for p in range(sent) if rng.random() > draw(st.sampled_from([0.0, 0.0, 0.1]))]
    for _ in range(draw(st.integers(0, 4))):
        if found:
            found.insert(rng.randrange(len(found) + 1), rng.choice(found))
    for _ in range(draw(st.integers(0, 4))):
        if found:
            found.insert(rng.randrange(len(found)), found.pop(rng.randrange(len(found))))
    return settled, sent, refused, doubtful, found, draw(st.integers(1, 20))


@settings(max_examples=300, deadline=None)
@given(histories())
def test_it_finds_what_a_plain_account_finds(history):
    settled, sent, refused, doubtful, found, chunk = history
    one = written(settled=settled, sent=sent, refused=spans(refused), doubtful=spans(doubtful))
    audit = audited([one], records(found), chunk)
    lost, twice, late, risen, places = plain(found, settled, sent, refused, doubtful)
    assert (audit.lost, audit.duplicated, audit.reordered) == (lost, twice, late)
    assert (audit.producers[0].refused_found, audit.corrupt) == (risen, 0)
    assert audit.expected == settled - len(refused) - len(doubtful)
    assert audit.found == audit.expected - lost
    if lost:
        assert f"t-0: {lost} of producer-1 lost, first at {places[:5]}" in audit.complaints


@settings(max_examples=50, deadline=None)
@given(histories(), histories(), st.integers(0, 1 << 30))
def test_producers_of_one_partition_do_not_mix(first, second, seed):
    accounts = [
        written(each, h[0], h[1], refused=spans(h[2]), doubtful=spans(h[3]))
        for each, h in ((ONE, first), (TWO, second))
    ]
    left = [records(first[4], ONE), records(second[4], TWO)]
    rng, values = random.Random(seed), []
    while any(left):
        values.append(rng.choice([each for each in left if each]).pop(0))
    together = audited(accounts, values, first[5]).producers
    for number, history in ((ONE, first), (TWO, second)):
        alone = audited([accounts[number - 1]], records(history[4], number)).producers
        assert alone[0] in together


def test_a_lost_record_is_named():
    found = audited([written(settled=6)], records([0, 1, 2, 4, 5]))
    assert found.complaints == ("t-0: 1 of producer-1 lost, first at [3]",)
    assert (found.expected, found.found, found.lost) == (6, 5, 1)


def test_what_is_there_twice_or_out_of_order_is_named():
    found = audited([written(settled=6)], records([0, 2, 1, 3, 3, 4, 5, 0]))
    assert found.complaints == (
        "t-0: 2 of producer-1 twice, first at [3, 0]",
        "t-0: 1 of producer-1 out of order, first at [1]",
    )


def test_a_corrupt_record_is_named_and_its_original_is_lost():
    values = records([0, 1, 2])
    values[1] = values[1][:-1] + b"?"
    found = audited([written(settled=3)], values)
    assert (found.lost, found.corrupt) == (1, 1)
    assert found.complaints == (
        "t-0: 1 of producer-1 lost, first at [1]",
        "t-0: 1 of producer-1 corrupt (its checksum does not match), first at [1]",
    )


def test_records_that_nobody_wrote_are_corrupt():
    values = [*records([0]), *records([0], TWO), b"something else", None, *records([7])]
    found = audited([written(settled=1)], values)
    assert (found.lost, found.corrupt) == (0, 4)
    assert found.complaints == (
        "t-0: 1 of producer-1 corrupt (never sent), first at [7]",
        "t-0: 2 of an unknown producer corrupt (not a record of the testbed), first at [0, 0]",
        "t-0: 1 of an unknown producer corrupt (of producer 2, which is not in this audit), first at [0]",
    )


def test_nobody_knows_how_far_a_dead_producer_came():
    dead = WrittenRecords(ONE, "producer-1", "t", 0, settled=3, sent=None, doubtful=((1, 2),))
    found = audited([dead], records([0, 2, 3, 5, 900]))
    assert (found.expected, found.lost, found.corrupt) == (2, 0, 0)
    assert audited([dead], records([0, 900])).lost == 1


def test_what_was_refused_must_not_be_there():
    found = audited([written(settled=4, refused=((1, 3),))], records([0, 2, 3]))
    assert (found.lost, found.producers[0].refused_found) == (0, 1)
    assert found.complaints == ("t-0: 1 of producer-1 refused and yet there, first at [2]",)


@pytest.mark.parametrize(
    ("part", "number", "changed", "told"),
    [
        ("times_ms", 3, 7, "another timestamp), first at [3: at offset 3, 7 ms, not 1700000000126]"),
        ("times_ms", 3, -1, "another timestamp), first at [3: at offset 3, -1 ms, not 1700000000126]"),
        ("keys", MARKED, None, "another key), first at [7: at offset 7, None, not b'0-7']"),
        ("keys", 3, b"0-7", "another key), first at [3: at offset 3, b'0-7', not None]"),
        ("headers", 0, None, "other headers), first at [0: at offset 0, None, not [('place', b'0')]]"),
        ("headers", 3, [("x", b"")], "other headers), first at [3: at offset 3, [('x', b'')], not None]"),
    ],
)
def test_a_changed_envelope_is_named_with_what_the_producer_gave(part, number, changed, told):
    found = sealed(range(20))
    getattr(found, part)[number] = changed
    audit = account_of(found)
    assert (audit.lost, audit.found, audit.corrupt) == (0, 20, 1)
    assert audit.complaints == (f"t-0: 1 of producer-1 corrupt ({told}",)
    assert account_of(found, envelope=None).corrupt == 0


def test_each_record_has_one_of_its_producers_keys():
    keyed = Envelope(keys=3)
    found = sealed(range(20), envelope=keyed)
    assert account_of(found, envelope=keyed).corrupt == 0
    found.keys[4], found.keys[5] = found.keys[5], found.keys[4]
    assert "2 of producer-1 corrupt (another key), first at [4:" in account_of(found, envelope=keyed).complaints[0]


def ledger_of(found, **rules):
    ledger = Ledger([written(settled=20, envelope=Envelope())], **rules)
    ledger.add("t", 0, found)
    return ledger.result()


def test_times_that_the_broker_gave_say_nothing_in_a_topic_where_it_sets_them():
    found, asked = sealed(range(20)), []
    found.times_ms = [BROKER_TIME] * 20
    assert ledger_of(found, broker_times=lambda topic: not asked.append(topic)).corrupt == 0
    assert asked == ["t"]
    found.times_ms[3] = 7
    told = "first at [3: at offset 3, 7 ms, not 1700000000126]"
    assert ledger_of(found, broker_times=lambda _topic: True).complaints == (
        f"t-0: 1 of producer-1 corrupt (another timestamp), {told}",
    )


@pytest.mark.parametrize("stamped", [1, 20], ids=["one record", "every record"])
def test_a_record_that_the_broker_stamped_is_named_where_producers_set_the_times(stamped):
    found = sealed(range(20))
    found.times_ms[:stamped] = [BROKER_TIME] * stamped
    audit = ledger_of(found)
    assert audit.corrupt == stamped
    assert audit.complaints[0].startswith(
        f"t-0: {stamped} of producer-1 corrupt (another timestamp), first at [0: at offset 0, the broker's time, not 17"
    )


def test_a_value_without_a_time_has_any():
    found = sealed(range(20))
    found.values[3], found.times_ms[3] = PAYLOADS.record(0, 3, ONE, 0), 99
    assert account_of(found).corrupt == 0


def test_a_value_changed_together_with_its_checksum_is_another_time():
    found = sealed(range(20))
    found.values[3] = PAYLOADS.record(0, 3, ONE, TIME_US)
    assert account_of(found).complaints[0].startswith("t-0: 1 of producer-1 corrupt (another timestamp)")


def test_a_record_at_another_offset_than_acknowledged_is_named():
    found = sealed(range(20))
    found.offsets = [*range(15), *range(16, 21)]
    audit = account_of(found)
    assert audit.corrupt == 6
    assert audit.complaints == (
        "t-0: 5 of producer-1 corrupt (at another offset than acknowledged), first at [15: at offset 16, not 15, "
        "16: at offset 17, not 16, 17: at offset 18, not 17, 18: at offset 19, not 18, 19: at offset 20, not 19]",
        "t-0: 1 of the log's offsets corrupt (a gap), first at [16, not 15]",
    )
    assert account_of(found, acked_at=()).corrupt == 1


@pytest.mark.parametrize("chunk", [1, 5, 100])
def test_a_record_that_was_sent_again_is_at_the_acknowledged_offset_too(chunk):
    places = [*range(8), *range(4, 20)]
    values = records(places)
    one = written(settled=20, acked_at=((0, 4, 0), (4, 20, 4)))
    found = audited([one], values, chunk)
    assert (found.duplicated, found.corrupt) == (4, 0)
    first = written(settled=20, acked_at=((0, 8, 0), (8, 20, 4)))
    assert (audited([first], values, chunk).duplicated, audited([first], values, chunk).corrupt) == (4, 0)


def test_a_transaction_has_markers_between_its_records_and_a_log_without_transactions_has_no_gap():
    found = sealed(range(20))
    found.offsets = [place + place // 5 for place in range(20)]
    acked_at = tuple((begin, begin + 5, begin // 5) for begin in (0, 5, 10, 15))
    assert account_of(found, acked_at=acked_at, transactional=True).corrupt == 0
    assert account_of(found, acked_at=acked_at).complaints == (
        "t-0: 3 of the log's offsets corrupt (a gap), first at [6, not 5, 12, not 11, 18, not 17]",
    )


def test_a_gap_between_two_reads_is_a_gap_and_a_log_may_begin_later():
    ledger = Ledger([written(settled=4)])
    for first, places in ((5, [0, 1]), (8, [2, 3])):
        ledger.add("t", 0, bare(records(places), first))
    assert ledger.result().of_none == ("t-0: 1 of the log's offsets corrupt (a gap), first at [8, not 7]",)


def test_an_offset_that_comes_again_has_a_record_that_was_read():
    ledger = Ledger([written(settled=3)])
    ledger.add("t", 0, bare(records([0, 1, 2])))
    ledger.add("t", 0, bare(records([1, 2]), 1))
    ledger.add("t", 0, bare([b"another", *records([0], TWO)], 1))
    found = ledger.result()
    assert (found.found, found.duplicated, found.corrupt) == (3, 0, 2)
    assert found.complaints == ("t-0: 2 of the log's offsets corrupt (twice, for different records), first at [1, 2]",)


def test_preloaded_records_of_another_topic_are_named_by_it():
    one, other = (Fill(topic, [0], 3, Recipe(48, 3)) for topic in ("t", "other"))
    ledger = Ledger([*one.written(), *other.written()])
    ledger.add("t", 0, bare(records(range(3), other.producer)))
    found = ledger.result()
    assert (found.lost, found.corrupt) == (6, 3)
    assert found.complaints[-1] == (
        "t-0: 3 of an unknown producer corrupt (of preload of other, which wrote nothing here), first at [0, 1, 2]"
    )


def test_a_partition_nobody_read_is_wholly_lost():
    fill = Fill("t", [0], 3, Recipe(48, 3))
    assert audited(fill.written(), []).complaints == ("t-0: 3 of preload lost, first at [0, 1, 2]",)


def test_preloaded_and_live_records_are_told_apart():
    fill = Fill("t", [0], 2, Recipe(48, 3))
    before = [replace(each, envelope=None) for each in fill.written()]
    found = audited([*before, written(settled=2)], [*records([0, 1], fill.producer), *records([0, 1])])
    assert [(each.name, each.found, each.lost) for each in found.producers] == [("preload", 2, 0), ("producer-1", 2, 0)]


def test_a_producer_that_is_no_process_of_the_load_has_an_account_too():
    probe = WrittenRecords(900, "handover-probe", "t", 0, 2, 2)
    found = audited([written(), probe], [*records(range(10)), *records([0], producer=900)])
    [account] = WorkloadResult(()).live(found, more=[probe]).audits
    assert (account.name, account.acked, account.lost, account.exactly_once) == ("handover-probe", 2, 1, True)


def test_a_producer_can_be_declared_once():
    with pytest.raises(ValueError, match="twice"):
        Ledger([written(), written()])


@pytest.mark.parametrize("flaw", ["lose", "repeat", "swap", "spoil"])
def test_one_flaw_among_a_hundred_thousand_is_named(flaw):
    places = np.arange(100_000)
    tally = RecordTally(written(settled=100_000))
    if flaw == "lose":
        places = np.delete(places, 77_777)
    elif flaw == "repeat":
        places = np.insert(places, 90_000, 77_777)
    elif flaw == "swap":
        places[[77_777, 77_778]] = places[[77_778, 77_777]]
    else:
        tally.add_flawed(77_777, "spoiled")
    for begin in range(0, len(places), 2000):
        tally.add(places[begin : begin + 2000], np.arange(begin, min(begin + 2000, len(places))))
    found = tally.result()
    assert (found.lost, found.duplicated, found.reordered, found.corrupt) == tuple(
        int(flaw == each) for each in ("lose", "repeat", "swap", "spoil")
    )
    assert "first at [77777" in found.first[0]


def test_records_that_no_producer_of_the_run_wrote_are_foreign_and_spoilt_ones_are_not():
    ours = records(range(10))
    theirs = audited([written()], [*ours, *records([0], producer=TWO), b"hello"])
    assert (theirs.lost, theirs.corrupt, theirs.foreign) == (0, 2, 2)
    spoilt = audited([written()], [*ours[:9], b"?" + ours[9][1:]])
    assert (spoilt.lost, spoilt.corrupt, spoilt.foreign) == (1, 1, 1), "one of the run's is lost then"
    changed = audited([written()], [*ours[:9], ours[9][:-1] + b"?"])
    assert (changed.corrupt, changed.foreign) == (1, 0)
