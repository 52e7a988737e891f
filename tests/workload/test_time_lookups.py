"""The record by whose time a leader is asked is held against the plain rule: the first one that late."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.workload.records import BROKER_TIME, WrittenRecords
from testbed.workload.time_lookups import TimeLookup, rounds, time_lookups

TIMES = st.lists(st.integers(0, 20), max_size=40)


def added(lookup, times, chunk, first=5):
    for begin in range(0, len(times), chunk):
        part = times[begin : begin + chunk]
        lookup.add(range(first + begin, first + begin + len(part)), part)
    return lookup


@given(TIMES, st.integers(0, 45), st.integers(1, 50))
def test_it_is_the_first_record_with_its_time_or_a_later_one(times, after, chunk):
    lookup = added(TimeLookup(after), times, chunk)
    newer = [n for n, time in enumerate(times) if all(time > before for before in times[:n])]
    wanted = next((n for n in newer if n >= after), newer[-1] if newer else None)
    if wanted is None:
        assert lookup.time_ms is None
    else:
        assert (lookup.offset, lookup.time_ms) == (5 + wanted, times[wanted])
        assert lookup.offset == next(5 + n for n, time in enumerate(times) if time >= lookup.time_ms)


def test_times_that_the_broker_sets_are_not_asked_for():
    assert added(TimeLookup(0), [3, BROKER_TIME, 9], 1).time_ms == 3  # found before
    assert added(TimeLookup(2), [3, BROKER_TIME, 9, 12], 1).time_ms is None


def written(partition, settled, producer=1, **more):
    return WrittenRecords(producer, "producer-1", "t", partition, settled, settled, **more)


def test_each_partition_is_asked_for_its_first_record_its_last_and_one_at_another_share_of_its_log():
    found = time_lookups([written(0, 100), written(1, 100), written(1, 200, producer=2), written(2, 40)])
    assert {where: [lookup.after for lookup in lookups] for where, lookups in found.items()} == {
        ("t", 0): [0, 25, 100],
        ("t", 1): [0, 150, 300],
        ("t", 2): [0, 30, 40],
    }


def test_a_request_has_one_timestamp_of_each_partition_and_none_is_asked_for_twice():
    def at(*offsets):
        return [TimeLookup(0, None if offset is None else 1000 + offset, offset) for offset in offsets]

    lookups = {("t", 0): at(0, 25, 99), ("t", 1): at(0, 0, 7), ("t", 2): at(None, None, 3), ("t", 3): at(None)}
    assert rounds(lookups) == [
        {("t", 0): (1000, 0), ("t", 1): (1000, 0), ("t", 2): (1003, 3)},
        {("t", 0): (1025, 25), ("t", 1): (1007, 7)},
        {("t", 0): (1099, 99)},
    ]


@pytest.mark.parametrize("transactional", [False, True])
def test_markers_of_transactions_have_times_of_their_own(transactional):
    found = time_lookups([written(0, 10), written(0, 10, producer=2, transactional=transactional)])
    assert bool(found) is not transactional
