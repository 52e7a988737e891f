import zlib

import pytest

from testbed.workload.preload import summarize
from testbed.workload.records import HEADER_BYTES, Flaw, Recipe, Tally, inspect

RECIPE = Recipe(record_bytes=512, seed=7)


@pytest.fixture(scope="module")
def pool() -> bytes:
    return RECIPE.pool()


def test_a_record_says_where_it_belongs(pool):
    record = RECIPE.record(pool, 3, 41)
    assert len(record) == 512
    assert inspect(record, 3) == 41


def test_no_layer_can_make_the_bytes_fewer(pool):
    many = b"".join(RECIPE.record(pool, 0, place) for place in range(200))
    assert len(zlib.compress(many, 9)) > 0.95 * len(many)


@pytest.mark.parametrize("position", [5, 9, HEADER_BYTES - 1, HEADER_BYTES, 511])
def test_any_changed_byte_is_seen(pool, position):
    record = bytearray(RECIPE.record(pool, 3, 41))
    record[position] ^= 1
    assert inspect(bytes(record), 3) == Flaw.CHECKSUM


@pytest.mark.parametrize("value", [None, b"", b"tbr1", b"x" * 512])
def test_a_foreign_record_is_not_ours(value):
    assert inspect(value, 0) == Flaw.NOT_OURS


def test_a_record_in_another_partition_is_seen(pool):
    assert inspect(RECIPE.record(pool, 3, 41), 4) == Flaw.WRONG_PARTITION


def test_the_audit_names_what_is_lost_twice_and_corrupt(pool):
    tallies = {("t", 0): Tally(4), ("t", 1): Tally(2)}
    for place in (0, 1, 1, 3):
        tallies["t", 0].add(RECIPE.record(pool, 0, place), 0)
    tallies["t", 1].add(RECIPE.record(pool, 1, 0), 1)
    tallies["t", 1].add(RECIPE.record(pool, 1, 1)[:-1] + b"?", 1)
    found = summarize(tallies)
    assert (found.expected, found.found, found.lost, found.duplicated, found.corrupt) == (6, 4, 2, 1, 1)
    assert found.complaints == (
        "t-0: 1 lost, first at [2]",
        "t-0: 1 twice",
        "t-1: 1 lost, first at [1]",
        "t-1: 1 corrupt",
    )


def test_a_partition_nobody_read_is_wholly_lost():
    assert summarize({("t", 0): Tally(3)}).complaints == ("t-0: 3 lost, first at [0, 1, 2]",)


def test_a_record_must_have_room_for_its_header():
    with pytest.raises(ValueError, match="no room"):
        Recipe(HEADER_BYTES, 0).pool()
