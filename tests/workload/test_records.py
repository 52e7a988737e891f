import zlib

import pytest

from testbed.workload.records import HEADER_BYTES, MARKED, Envelope, Fill, Flaw, Recipe, identity, inspect

RECIPE = Recipe(record_bytes=512, seed=7)


@pytest.fixture(scope="module")
def payloads():
    return RECIPE.payloads()


def test_a_record_says_where_it_belongs(payloads):
    record = payloads.record(3, 41, 2, 1_700_000_000_000_000)
    assert len(record) == 512
    assert identity(record) == (3, 2, 41, 1_700_000_000_000_000)
    heads = inspect([record, payloads.record(3, 42, 1)], 3)
    assert heads.producers.tolist() == [2, 1]
    assert heads.places.tolist() == [41, 42]
    assert heads.times_us.tolist() == [1_700_000_000_000_000, 0]
    assert not heads.flaws
    assert heads.sound().all()


def test_no_layer_can_make_the_bytes_fewer(payloads):
    many = b"".join(payloads.record(0, place, 1) for place in range(200))
    assert len(zlib.compress(many, 9)) > 0.95 * len(many)


def test_redundancy_is_what_a_codec_can_save():
    payloads = Recipe(1024, 7, redundancy=0.5).payloads()
    many = b"".join(payloads.record(0, place, 1) for place in range(200))
    assert 0.45 < len(zlib.compress(many, 9)) / len(many) < 0.6


def test_the_same_recipe_gives_the_same_bytes(payloads):
    assert RECIPE.payloads().record(5, 6, 7, 8) == payloads.record(5, 6, 7, 8)
    assert Recipe(512, 8).payloads().record(5, 6, 7, 8) != payloads.record(5, 6, 7, 8)


@pytest.mark.parametrize("position", [5, 9, 13, 20, 27, HEADER_BYTES - 1, HEADER_BYTES, 511])
def test_any_changed_byte_is_seen(payloads, position):
    record = bytearray(payloads.record(3, 41, 1))
    record[position] ^= 1
    assert inspect([payloads.record(3, 40, 1), bytes(record)], 3).flaws == {1: Flaw.CHECKSUM}


def test_a_record_that_was_cut_short_is_seen(payloads):
    assert inspect([payloads.record(3, 41, 1)[:-1]], 3).flaws == {0: Flaw.CHECKSUM}


@pytest.mark.parametrize("value", [None, b"", b"tbr2", b"x" * 512, b"x" * HEADER_BYTES])
def test_a_foreign_record_is_not_ours(value):
    assert inspect([value], 0).flaws == {0: Flaw.NOT_OURS}


def test_a_record_in_another_partition_is_seen(payloads):
    assert inspect([payloads.record(3, 41, 1)], 4).flaws == {0: Flaw.WRONG_PARTITION}


def test_a_record_must_have_room_for_its_header():
    with pytest.raises(ValueError, match="no room"):
        Recipe(HEADER_BYTES, 0).pool()


def test_records_longer_than_the_pool_can_be_made():
    record = Recipe(3_000_000, 1).payloads().record(0, 0, 1)
    assert len(record) == 3_000_000
    assert not inspect([record], 0).flaws


def test_one_record_in_a_few_has_a_header_and_a_key_and_with_keys_each_has_one_of_them():
    some, keyed = Envelope(), Envelope(keys=2)
    assert [place for place in range(20) if some.headers(place)] == [0, MARKED, 2 * MARKED]
    assert [place for place in range(20) if some.key(1, place)] == [0, MARKED, 2 * MARKED]
    assert [keyed.key(1, place) for place in range(3)] == [b"1-0", b"1-1", b"1-0"]
    assert [place for place in range(20) if keyed.headers(place)] == [0, MARKED, 2 * MARKED]


def test_the_preloads_of_two_topics_have_two_producers():
    producers = [Fill(topic, [0], 1, RECIPE).producer for topic in ("one", "other")]
    assert len(set(producers)) == 2
    assert all(1 << 31 <= producer < 1 << 32 for producer in producers)
