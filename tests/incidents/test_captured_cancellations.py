"""Moves that were cancelled while they ran: the replay of their capture cancels them, too."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from testbed.incidents.captured_file import INCIDENT, incident_document, write_capture
from testbed.incidents.read import load
from testbed.incidents.scale_down import scale_down
from tests.incidents.test_capture import cluster, topic
from tests.incidents.test_file_capture import BEGINS, RATES, ROWS, TOPICS, capture, logged, plan


def test_moves_that_were_cancelled_are_cancelled_as_long_after_they_began(tmp_path):
    describe = TOPICS + ROWS + (TOPICS + ROWS).replace("Topic: t", "Topic: u")
    begins = [
        (60, BEGINS.format(0, "[4, 2, 1]", "[1]", "[4]", "t")),
        (90, BEGINS.format(0, "[4, 2, 1]", "[1]", "[4]", "u")),
    ]
    log = logged(*begins, (130, BEGINS.format(0, "[2, 1]", "[]", "[]", "u")))
    found = capture(describe, log, RATES).cluster
    assert {name: topic.cancelled_s for name, topic in found.topics.items()} == {"t": None, "u": 70.0}
    assert not [note for note in found.notes if "cancel" in note or "replaced" in note]
    lost = write_capture(tmp_path / "c", "x", found, 10**9, datetime(2026, 11, 24, tzinfo=UTC))
    assert "u: by its size and rate the move may be done before it is cancelled, 40.0 s after it began" in lost
    entries = {entry.name: entry for entry in load(tmp_path / "c" / INCIDENT).broken.entries}
    assert list(entries)[:3] == ["move", "move-2", "cancel-1"] and "clean-up" not in entries
    cancel = entries["cancel-1"]
    assert (str(cancel.trigger), cancel.delay_s) == ("when in_flight of u > 0", 40.0)
    assert [str(action) for action in cancel.actions] == ["cancel moves of u", "remove throttle"]
    # A move that the timeline cancels is not done.
    assert [each.topic for each in entries["move"].expectations] == ["t"] and entries["move-2"].expectations == ()
    small = scale_down(found, 4, 40_000_000)
    assert (small.topics["u"].begins_s, small.topics["u"].cancelled_s) == pytest.approx((3.0, 7.0))


@pytest.mark.parametrize(
    ("ends", "cancelled_s", "said"),
    [
        # The other move of the topic goes on, or its end is not known.
        ([(40, 0, "[2, 1]"), (70, 1, "[4, 2]")], None, ["1 move was cancelled while others of the topic went on"]),
        ([(40, 0, "[2, 1]")], None, ["1 move was cancelled while others of the topic went on"]),
        ([(40, 1, "[4, 2]"), (70, 0, "[2, 1]")], 70.0, []),
        ([(40, 1, "[2, 3]"), (70, 0, "[2, 1]")], 70.0, ["the moves of 1 topic were cancelled over up to 30.0 s"]),
        ([(40, 0, "[4, 2]"), (70, 1, "[4, 2]")], None, []),
    ],
)
def test_a_topic_is_cancelled_when_its_last_move_was_and_none_went_on(ends, cancelled_s, said):
    begins = [
        (0, BEGINS.format(0, "[4, 2, 1]", "[1]", "[4]", "t")),
        (0, BEGINS.format(1, "[4, 2, 3]", "[3]", "[4]", "t")),
    ]
    log = logged(*begins, *((second, BEGINS.format(number, now, "[]", "[]", "t")) for second, number, now in ends))
    found = capture(TOPICS + ROWS, log).cluster
    assert found.topics["t"].cancelled_s == cancelled_s
    notes = [note.partition(";")[0] for note in found.notes if "cancelled" in note or "replaced" in note]
    assert notes == said


def test_a_move_that_another_one_replaced_is_not_cancelled():
    moves = [BEGINS.format(0, f"[{new}, 2, 1]", "[1]", f"[{new}]", "t") for new in (4, 3)]
    found = capture(TOPICS + ROWS, logged(*zip((0, 40), moves, strict=True)), plan(("t", 0, [4, 2]))).cluster
    assert found.topics["t"].cancelled_s is None
    note = "1 move was replaced by others, the first of them 40.0 s after the first move began"
    assert any(each.startswith(note) for each in found.notes)


def test_the_throttle_stays_until_the_last_cancellation_where_that_is_later_than_the_other_moves():
    def ends(**topics):
        document, _lost = incident_document("x", cluster(topics), 10**9)
        entries = [
            each for each in document["timeline"] if {"remove_throttle": {}} in (each.get("do"), *each.get("do", ()))
        ]
        return [each["name"] for each in entries]

    big, small = topic(size=400_000_000), topic(size=1_000)  # 100 s and no time at 4 MB/s
    assert ends(a=big, b=replace(small, cancelled_s=30.0)) == ["clean-up"]
    assert ends(a=big, b=replace(small, cancelled_s=101.0)) == ["cancel-1"]
    assert ends(a=replace(big, cancelled_s=10.0), b=replace(big, cancelled_s=30.0)) == ["cancel-2"]


def test_a_cancellation_after_hours_is_brought_into_one_replay():
    document, lost = incident_document("x", cluster({"a": replace(topic(), cancelled_s=7200.0)}), 10**9)
    assert next(each["delay"] for each in document["timeline"] if each.get("name") == "cancel-1") == "1800s"
    assert "the timeline is × 0.25: it had 7200 s, and a replay ends after 3600 s" in lost
