"""The audit is held against a plain account of the same records, one by one."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.workload.audit import Ledger, RecordTally
from testbed.workload.records import Fill, Recipe, WrittenRecords, spans

PAYLOADS = Recipe(48, 3).payloads()
ONE, TWO = 1, 2


def written(producer=ONE, settled=10, sent=None, partition=0, **more):
    sent = settled if sent is None else sent
    return WrittenRecords(producer, f"producer-{producer}", "t", partition, settled, sent, **more)


def records(places, producer=ONE, partition=0):
    return [PAYLOADS.record(partition, place, producer) for place in places]


def audited(account, values, chunk=1000):
    ledger = Ledger(account)
    for begin in range(0, len(values), chunk):
        ledger.add("t", 0, values[begin : begin + chunk])
    return ledger.result()


def plain(places, settled, sent, refused, doubtful):
    """The same account, record by record: lost, twice, out of order, refused and there, in doubt and there."""
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
    in_doubt = (set(doubtful) | set(range(settled, sent))) & seen
    return len(lost), twice, late, len(set(refused) & seen), len(in_doubt), lost


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
    lost, twice, late, risen, in_doubt, places = plain(found, settled, sent, refused, doubtful)
    assert (audit.lost, audit.duplicated, audit.reordered) == (lost, twice, late)
    assert (audit.refused_found, audit.in_doubt_found, audit.corrupt) == (risen, in_doubt, 0)
    assert audit.expected == settled - len(refused) - len(doubtful)
    assert audit.found == audit.expected - lost
    assert audit.in_doubt == len(doubtful) + sent - settled
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
    assert found.in_doubt_found == 3
    assert audited([dead], records([0, 900])).lost == 1


def test_what_was_refused_must_not_be_there():
    found = audited([written(settled=4, refused=((1, 3),))], records([0, 2, 3]))
    assert (found.lost, found.refused_found) == (0, 1)
    assert found.complaints == ("t-0: 1 of producer-1 refused and yet there, first at [2]",)


def test_a_partition_nobody_read_is_wholly_lost():
    fill = Fill("t", [0], 3, Recipe(48, 3))
    assert audited(fill.written(), []).complaints == ("t-0: 3 of preload lost, first at [0, 1, 2]",)


def test_preloaded_and_live_records_are_told_apart():
    fill = Fill("t", [0], 2, Recipe(48, 3))
    found = audited([*fill.written(), written(settled=2)], [*records([0, 1], 0), *records([0, 1])])
    assert [(each.name, each.found, each.lost) for each in found.producers] == [("preload", 2, 0), ("producer-1", 2, 0)]


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
        tally.add(places[begin : begin + 2000])
    found = tally.result()
    assert (found.lost, found.duplicated, found.reordered, found.corrupt) == tuple(
        int(flaw == each) for each in ("lose", "repeat", "swap", "spoil")
    )
    assert "first at [77777]" in found.first[0]
