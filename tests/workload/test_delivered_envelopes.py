"""Keys, headers and timestamps of what a consumer is given: which differences are found, and in which records."""

import numpy as np
import pytest

from testbed.workload.delivered_envelopes import envelope_rows
from testbed.workload.records import (
    BROKER_TIME,
    HEADER,
    MARKED,
    PRELOADED,
    Envelope,
    Flaw,
    ReadRecords,
    Recipe,
    identity,
    inspect,
    preloader,
    timestamp_ms,
)

PAYLOADS = Recipe(48, 3).payloads()
PLAIN, KEYED, FILL, UNKNOWN = 1, 2, preloader("t"), 900
RULES = {PLAIN: Envelope(), KEYED: Envelope(keys=3), FILL: PRELOADED}
FIRST_US = 1_700_000_000_000_000


def sent(producer, partition, places):
    """Return records as their producer sends them, as lists of parts."""
    rule = RULES.get(producer, PRELOADED)
    found = []
    for place in places:
        value = PAYLOADS.record(partition, place, producer, (FIRST_US + 1500 * place) * (-1 if place < 2 else 1))
        time_ms = timestamp_ms(identity(value)[3])
        found.append([partition, 100 + place, value, rule.key(partition, place), rule.headers(place), time_ms])
    return found


def rows(records, rules=RULES):
    partitions, *columns = map(list, zip(*records, strict=True))
    found = ReadRecords(*columns)
    heads = inspect(found.values, np.array(partitions))
    return envelope_rows([0] * len(records), partitions, found, heads, rules)


def test_records_of_several_producers_and_partitions_are_right_as_they_were_sent():
    records = [each for p in (0, 3) for producer in (PLAIN, KEYED, FILL) for each in sent(producer, p, range(30))]
    assert rows(records) == ([], 180)


@pytest.mark.parametrize("producer", [PLAIN, KEYED, FILL])
@pytest.mark.parametrize(
    ("part", "value", "flaw"),
    [
        (3, b"1-99", Flaw.KEY),
        (3, None, Flaw.KEY),
        (4, None, Flaw.HEADERS),
        (4, [(HEADER, b"8")], Flaw.HEADERS),
        (4, [(HEADER, b"7"), ("more", b"")], Flaw.HEADERS),
        (5, FIRST_US // 1000, Flaw.TIME),
        (5, -1, Flaw.TIME),
        (5, BROKER_TIME, Flaw.BROKER_TIME),
    ],
)
def test_a_changed_part_of_one_record_is_named(producer, part, value, flaw):
    records = sent(producer, 1, range(20))
    right, records[MARKED][part] = records[MARKED][part], value
    [row], compared = rows(records)
    assert (row[:6], compared) == ([0, 1, producer, flaw, 1, 100 + MARKED], 20)
    assert row[6] == (f"not {right} ms" if value == BROKER_TIME else row[6])
    assert str(right) in row[6]


def test_an_unmarked_record_must_have_neither_key_nor_header():
    records = sent(PLAIN, 1, range(10))
    records[8][3], records[9][4] = b"1-8", [(HEADER, b"9")]
    found, _compared = rows(records)
    assert [(row[3], row[5]) for row in found] == [(Flaw.KEY, 108), (Flaw.HEADERS, 109)]


def test_the_keys_of_two_records_that_are_exchanged_are_two_flaws_in_one_row():
    records = sent(KEYED, 1, range(10))
    records[4][3], records[5][3] = records[5][3], records[4][3]
    assert rows(records) == ([[0, 1, KEYED, Flaw.KEY, 2, 104, "b'1-2', not b'1-1'"]], 10)


def test_records_without_a_rule_and_changed_values_are_not_compared():
    records = [*sent(UNKNOWN, 1, range(10)), *sent(PLAIN, 1, range(10))]
    for each in records:
        each[3:] = b"another", None, 5
    for each in records[10:]:
        each[2] = each[2][:-1] + b"?"
    assert rows(records) == ([], 0)


def test_a_record_without_a_time_may_have_any_timestamp():
    value = PAYLOADS.record(0, 1, PLAIN)
    assert rows([[0, 5, value, None, None, 77], [0, 6, value, None, None, BROKER_TIME]]) == ([], 2)
