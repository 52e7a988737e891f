"""The metadata of remote logs, and the store held against it."""

import re
from pathlib import Path

import pytest

from testbed.errors import TestbedError, UsageError
from testbed.tiered.segments import Segment, SegmentId, SegmentState, SegmentUpdate, account, decode, parse_key, replay
from testbed.tiered.topics import TopicBytes, tiered_topic
from tests.tiered import records

TOPIC_ID, ONE, TWO, THREE = (c * 21 + "A" for c in "tabc")
WHERE = ("or-ders", TOPIC_ID, 3)


def made(id, start, end, size, state=0, **more):
    return records.segment(*WHERE, id, start, end, size, state, **more)


def key(id, start, kind):
    return f"or-ders-{TOPIC_ID}/3/{start:020d}-{id}.{kind}"


@pytest.mark.parametrize("more", [{}, {"epochs": ((0, 0), (7, 1200)), "custom": b"abc"}, {"more": b"\x01\x00\x01\x01"}])
def test_a_segments_record(more):
    of = SegmentId(*WHERE, ONE)
    assert decode(made(ONE, 1200, 1399, 1 << 20, **more)) == Segment(
        of, 1200, 1399, 1 << 20, 2, SegmentState.COPY_STARTED
    )


def test_an_updates_record():
    of = SegmentId(*WHERE, ONE)
    assert decode(records.update(*WHERE, ONE, 1, custom=b"x" * 200)) == SegmentUpdate(of, SegmentState.COPIED)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (b"", "cannot be read"),
        (made(ONE, 0, 9, 100)[:-30], "cannot be read"),
        (b"\x01\x09\x00", "kind 9"),
        (b"\x02\x00\x00", "frame 2"),
        (made(ONE, 0, 9, 100, 9), "cannot be read"),
    ],
)
def test_what_cannot_be_read_is_said(value, told):
    with pytest.raises(TestbedError, match=told):
        decode(value)


def test_replayed():
    known = {}
    replay(known, [made(ONE, 0, 9, 100), made(TWO, 10, 19, 100), records.update(*WHERE, ONE, 1)])
    replay(known, [records.update(*WHERE, THREE, 1)])  # of a segment whose begin was not seen
    assert {of.id: segment.state for of, segment in known.items()} == {
        ONE: SegmentState.COPIED,
        TWO: SegmentState.COPY_STARTED,
    }


def test_keys():
    assert parse_key(key(ONE, 1200, "timeindex")) == (SegmentId(*WHERE, ONE), "timeindex")
    assert parse_key("calls/" + key(ONE, 1200, "log")) is None
    assert parse_key(key(ONE, 1200, "tmp")) is None


def test_the_store_against_the_metadata():
    known = {}
    replay(
        known,
        [
            made(ONE, 0, 9, 100, 1),
            made(TWO, 10, 19, 100, 0),
            made(THREE, 10, 19, 100, 1),
            made("z" * 21 + "A", 20, 29, 100, 1),
        ],
    )
    listed = [
        *((key(ONE, 0, kind), 100 if kind == "log" else 10) for kind in ("log", "index", "timeindex")),
        (key(TWO, 10, "index"), 10),
        (key(TWO, 10, "log"), 100),
        (key("u" * 21 + "A", 10, "index"), 7),
        (key(THREE, 10, "log"), 99),
        ("something", 1),
    ]
    found = account(known.values(), listed)
    assert (found.segments, found.bytes, found.objects, found.foreign) == (1, 100, 4, 1)
    assert {of.id[0]: size for of, size in found.orphans.items()} == {"b": 110, "u": 7}
    # One is cut, the other one is not there at all.
    assert [segment.of.id[0] for segment in found.missing] == ["c", "z"]
    assert str(found).startswith("1 segments (100 bytes in 4 objects), 2 orphaned copies (117 bytes), 2 missing")


def test_the_largest_share_of_any_replica_counts():
    seen = TopicBytes({(0, 1): 50, (0, 2): 80, (1, 2): 90}, {0: 1000, 1: 10_000})
    assert seen.share == pytest.approx(0.08)
    assert str(seen).startswith("partition 0 has 80 bytes on broker 2 and 1,000 in the store (3 replicas, 220 bytes")
    assert TopicBytes({(0, 1): 5}, {}).share > 1
    assert TopicBytes({}, {0: 9}).share > 1


def test_a_tiered_topics_configuration():
    found = tiered_topic(segment_bytes=4 << 20, local_bytes=100)
    assert found["remote.storage.enable"] == "true"
    assert (found["segment.bytes"], found["local.retention.bytes"]) == ("4194304", "100")
    for wrong in ({"segment_bytes": 1000}, {"local_bytes": 0}):
        with pytest.raises(UsageError):
            tiered_topic(**wrong)


def test_the_java_sources_name_files_that_exist():
    root = Path(__file__).parents[2]
    sources = [path.read_text() for path in (root / "testbed/tiered/java").rglob("*.java")]
    named = {name for source in sources for name in re.findall(r"testbed/[\w/]+\.py", source)}
    assert "testbed/tiered/segments.py" in named
    assert [name for name in sorted(named) if not (root / name).is_file()] == []
