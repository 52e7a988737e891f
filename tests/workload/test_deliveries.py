"""What a consumer is given: what a broker serves wrong for a moment is found, and what a client may do is not."""

import random
import tracemalloc
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.workload.audit import Audit, ProducerAudit
from testbed.workload.delivered_spans import UNORDERED, DeliveredSpan, rows_of, unreadable_row
from testbed.workload.deliveries import compare
from testbed.workload.delivery_reports import Delivered
from testbed.workload.records import Fill, Flaw, Recipe, WrittenRecords, inspect

PAYLOADS = Recipe(48, 3).payloads()
ONE, TWO = 1, 2
TOPICS = ("t", "u")
WHOLE = Audit(0, 0, 0, 0, 0, ())


def written(producer=ONE, settled=100, partition=0, topic="t", **more):
    return WrittenRecords(producer, f"producer-{producer}", topic, partition, settled, settled, **more)


def value(place, producer=ONE, partition=0):
    return PAYLOADS.record(partition, place, producer)


def given_records(*calls, topic=0, partition=0):
    """Return what a consumer reported; each call has a session, and its records as pairs of offset and value."""
    delivered = Delivered()
    for session, records in calls:
        offsets, values = [offset for offset, _value in records], [each for _offset, each in records]
        many = len(records)
        rows = rows_of(session, [topic] * many, [partition] * many, offsets, inspect(values, partition))
        delivered.add(TOPICS, rows)
    return delivered


def in_order(places, shift=0, producer=ONE):
    return [(place + shift, value(place, producer)) for place in places]


def account(*calls, producers=None, audit=WHOLE, **more):
    return compare("consumer-1", given_records(*calls), producers or [written(**more)], audit)


def flaws(found):
    return {
        kind: number
        for kind in ("skipped", "missed", "repeated", "corrupt", "refused")
        if (number := getattr(found, kind))
    }


# ---- what is right


def test_records_in_order_are_one_span_and_right():
    delivered = given_records((1, in_order(range(40))), (1, in_order(range(40, 90))))
    assert delivered.spans == {("t", 0): [DeliveredSpan(1, ONE, 0, 0, 90)]}
    found = compare("consumer-1", delivered, [written()], WHOLE)
    assert (found.name, found.records, found.wrong) == ("consumer-1", 90, 0)
    assert found.first == ()


def test_a_consumer_may_begin_anywhere():
    assert account((1, in_order(range(20, 30), shift=7))).wrong == 0


def test_what_comes_again_in_a_new_session_is_right_and_so_is_what_was_left_out_between_two():
    calls = (1, in_order(range(10))), (2, in_order(range(4, 12))), (3, in_order(range(50, 60)))
    found = account(*calls)
    assert (found.wrong, found.records) == (0, 28)


def test_what_came_with_a_new_assignment_has_no_order():
    records = [*in_order(range(8, 10)), *in_order(range(4, 6))]
    assert account((1, in_order(range(8))), (UNORDERED, records), (2, in_order(range(6, 9)))).wrong == 0


def test_a_transaction_has_a_marker_and_an_aborted_one_leaves_a_gap():
    records = [*in_order(range(5)), *in_order(range(5, 10), shift=1), *in_order(range(15, 20), shift=3)]
    one = written(transactional=True, refused=((10, 15),))
    assert account((1, records), producers=[one]).wrong == 0


def test_refused_and_doubtful_records_may_be_missing_and_so_may_what_has_no_answer():
    one = written(settled=20, refused=((3, 5),), doubtful=((5, 7),))
    records = [(n, value(place)) for n, place in enumerate([*range(3), *range(7, 20), 25])]
    assert account((1, records), producers=[one]).wrong == 0


def test_producers_of_one_partition_take_turns():
    rng, left = random.Random(3), {ONE: list(range(60)), TWO: list(range(40))}
    records = []
    while any(left.values()):
        producer = rng.choice([each for each, places in left.items() if places])
        records.append((len(records), value(left[producer].pop(0), producer)))
    assert account((1, records), producers=[written(ONE), written(TWO)]).wrong == 0


def test_what_the_log_has_twice_or_lost_is_the_audits():
    records = [(n, value(place)) for n, place in enumerate([0, 1, 2, 1, 2, 3, 6])]
    one = ProducerAudit("producer-1", 100, 98, 2, 2, 0, 0, 0, ())
    found = account((1, records), audit=replace(WHOLE, producers=(one,)))
    assert (found.wrong, found.first) == (0, ())
    fewer = account((1, records), audit=replace(WHOLE, producers=(replace(one, lost=1, duplicated=0),)))
    assert flaws(fewer) == {"missed": 1, "repeated": 2}


@pytest.mark.parametrize(
    ("places", "one", "refused"),
    [
        ([0, 1, 2, 1, 2, 3], ProducerAudit("producer-1", 4, 4, 0, 2, 0, 0, 0, ()), ()),
        ([0, 1, 3], ProducerAudit("producer-1", 4, 3, 1, 0, 0, 0, 0, ()), ()),
        ([0, 1, 2, 3], ProducerAudit("producer-1", 3, 3, 0, 0, 0, 0, 1, ()), ((2, 3),)),
    ],
)
def test_what_the_log_has_wrong_is_the_audits_also_if_a_consumer_meets_it_in_several_sessions(places, one, refused):
    records = [(n, value(place)) for n, place in enumerate(places)]
    calls, producers = [(session, records) for session in (2, 3, 4)], [written(settled=4, refused=refused)]
    assert account(*calls, producers=producers, audit=replace(WHOLE, producers=(one,))).wrong == 0
    found = account(*calls, producers=producers)
    assert found.wrong == max(1, one.duplicated)
    assert len(set(found.first)) == len(found.first)


def test_what_comes_late_in_the_log_may_be_outside_of_the_session():
    one = ProducerAudit("producer-1", 100, 100, 0, 0, 1, 0, 0, ())
    audit = replace(WHOLE, producers=(one,))
    assert account((1, [(0, value(0)), (1, value(2))]), (2, [(2, value(1))]), audit=audit).wrong == 0


# ---- what is wrong


def test_a_batch_that_is_skipped_is_named_by_its_offsets():
    found = account((1, in_order(range(24))), (1, in_order(range(40, 60))))
    assert flaws(found) == {"skipped": 16}
    assert found.first == ("t-0: offsets 24 to 39 were skipped",)


def test_a_batch_that_is_skipped_between_markers_is_named_by_its_records():
    records = [*in_order(range(5)), *in_order(range(10, 15), shift=2)]
    found = account((1, records), producers=[written(transactional=True)])
    assert flaws(found) == {"missed": 5}
    assert found.first == ("t-0: records 5 to 9 of producer-1 were acknowledged and not delivered before offset 12",)


def test_a_record_that_another_one_stands_for_is_missing():
    """A stale leader has another record at an offset."""
    records = [(0, value(0)), (1, value(0, TWO)), (2, value(2))]
    found = account((1, records), producers=[written(), written(TWO)])
    assert flaws(found) == {"missed": 1}
    assert found.first == ("t-0: record 1 of producer-1 was acknowledged and not delivered before offset 2",)


def test_records_of_a_stale_leader_that_come_later_at_other_offsets_are_repeated():
    stale = in_order(range(10), shift=0)
    found = account((1, stale), (1, [(10, value(5)), (11, value(6)), *in_order(range(7, 20), shift=5)]))
    assert flaws(found) == {"repeated": 5}
    assert found.first == ("t-0: record 5 of producer-1 came at offset 10, after record 9",)


@pytest.mark.parametrize("cut", [2, 3, 5, 6])
def test_what_a_broker_sends_twice_is_named(cut):
    """What comes again and what is new may be one span, or two."""
    again = in_order(range(5, 12))
    found = account((1, in_order(range(10))), (1, again[:cut]), (1, again[cut:]), (1, in_order(range(12, 20))))
    assert flaws(found) == {"repeated": 5}
    assert found.first[0].startswith("t-0: offsets 5 to ")
    assert found.first[-1].endswith(" came twice")


def test_batches_in_another_order_are_named():
    found = account((1, [*in_order(range(5)), *in_order(range(10, 15)), *in_order(range(5, 20))]))
    assert flaws(found) == {"skipped": 5, "repeated": 10}
    assert found.first == (
        "t-0: offsets 10 to 14 came twice",
        "t-0: offsets 5 to 9 came after later ones",
        "t-0: offsets 5 to 9 were skipped",
    )


def test_another_record_at_an_offset_that_came_before_is_corrupt():
    found = account((1, in_order(range(10))), (1, [(8, value(9)), (9, value(8))]))
    assert flaws(found) == {"corrupt": 2}
    assert found.first[0] == "t-0: offset 8: twice, with different records"


def test_offsets_that_go_back_to_what_was_skipped_are_late():
    found = account((1, [*in_order(range(5)), *in_order(range(8, 10)), *in_order(range(5, 8))]))
    assert flaws(found) == {"skipped": 3, "repeated": 3}
    assert "t-0: offsets 5 to 7 came after later ones" in found.first


def test_records_out_of_order_are_named():
    records = [(n, value(place)) for n, place in enumerate([0, 2, 1, 3])]
    found = account((1, records))
    assert flaws(found) == {"repeated": 1}
    assert found.first == ("t-0: record 1 of producer-1 came at offset 2, after record 2",)


def test_a_record_of_another_partition_is_named():
    records = in_order(range(10))
    records[4] = (4, value(4, partition=3))
    found = account((1, records))
    assert flaws(found) == {"corrupt": 1}
    assert found.first == ("t-0: offset 4: a record of another partition",)


def test_a_record_of_another_topic_has_a_producer_that_wrote_nothing_here():
    found = account((1, in_order(range(3), producer=TWO)), producers=[written(), written(TWO, topic="u")])
    assert flaws(found) == {"corrupt": 3}
    assert found.first == ("t-0: offsets 0 to 2: of producer 2, which wrote nothing here",)


def test_a_changed_value_is_named_by_its_offset():
    records = in_order(range(30))
    records[7] = (7, records[7][1][:-1] + b"?")
    found = account((1, records))
    assert flaws(found) == {"corrupt": 1}
    assert found.first == ("t-0: offset 7: its checksum does not match",)


@pytest.mark.parametrize("foreign", [None, b"", b"short", b"x" * 100])
def test_a_value_that_is_none_of_ours_is_corrupt_at_any_offset(foreign):
    records = in_order(range(10))
    records[3] = (3, foreign)
    found = account((1, records))
    assert flaws(found) == {"corrupt": 1}
    assert found.first == ("t-0: offset 3: not a record of the testbed",)


def test_what_was_refused_must_not_be_delivered():
    found = account((1, in_order(range(10), shift=2)), producers=[written(transactional=True, refused=((4, 7),))])
    assert flaws(found) == {"refused": 3}
    assert found.first == ("t-0: records 4 to 6 of producer-1 were refused and yet delivered, at offset 6",)


def test_what_was_refused_and_is_in_the_log_is_the_audits():
    one = ProducerAudit("producer-1", 97, 97, 0, 0, 0, 0, 3, ())
    producers = [written(refused=((4, 7),))]
    assert account((1, in_order(range(10))), producers=producers, audit=replace(WHOLE, producers=(one,))).wrong == 0


def test_a_batch_that_the_client_refuses_counts_once_however_often_it_is_met():
    delivered = given_records((1, in_order(range(10))))
    delivered.add(TOPICS, [unreadable_row(1, 0, 0, 10)] * 5)
    delivered.add(TOPICS, [[0, 0, 1, ONE, 26, 26, 4]])
    found = compare("consumer-1", delivered, [written()], WHOLE)
    assert flaws(found) == {"skipped": 16, "corrupt": 1}
    assert "t-0: offset 10: a batch that the client refused" in found.first


def test_the_first_flaws_of_each_kind_are_named():
    records = [(3 * n, value(3 * n)) for n in range(20)]
    found = account((1, records))
    assert (found.skipped, len(found.first)) == (38, 5)


# ---- as rows


def test_partitions_of_several_topics_are_told_apart():
    values = [value(0, ONE, 1), value(0, TWO, 1), value(1, ONE, 1), value(0, ONE, 0), value(1, TWO, 1)]
    partitions = [1, 1, 1, 0, 1]
    rows = rows_of(1, [0, 1, 0, 0, 1], partitions, [5, 9, 6, 2, 10], inspect(values, np.array(partitions)))
    assert rows == [[0, 0, 1, ONE, 2, 0, 1], [0, 1, 1, ONE, 5, 0, 2], [1, 1, 1, TWO, 9, 0, 2]]


@st.composite
def deliveries(draw):
    """Return partition, offset, producer and place of records as a broken broker may give them."""
    rng = random.Random(draw(st.integers(0, 1 << 30)))
    found, offsets, places = [], {}, {}
    for _ in range(draw(st.integers(1, 80))):
        partition, producer = rng.randrange(2), rng.choice((ONE, ONE, TWO))
        offsets[partition] = max(0, offsets.get(partition, 0) + rng.choice((1, 1, 1, 1, 2, -3)))
        key = partition, producer
        places[key] = max(0, places.get(key, 0) + rng.choice((1, 1, 1, 1, 2, -2)))
        found.append((partition, offsets[partition], producer, places[key]))
    return found, draw(st.integers(1, 30))


@settings(max_examples=200, deadline=None)
@given(deliveries())
def test_rows_have_every_record_in_the_order_of_its_partition(drawn):
    records, chunk = drawn
    delivered = Delivered()
    for at in range(0, len(records), chunk):
        part = records[at : at + chunk]
        values = [value(place, producer, partition) for partition, _offset, producer, place in part]
        columns = [0] * len(part), [each[0] for each in part], [each[1] for each in part]
        delivered.add(TOPICS, rows_of(1, *columns, inspect(values, np.array(columns[1]))))
    for partition in (0, 1):
        plain = [each[1:] for each in records if each[0] == partition]
        spans = delivered.spans.get(("t", partition), [])
        assert [
            (span.offset + n, span.producer, span.place + n) for span in spans for n in range(span.records)
        ] == plain
        assert all(not one.goes_on(other) for other, one in pairwise(spans))
    assert delivered.records == len(records)


def test_rows_are_whole_numbers_that_json_has():
    rows = rows_of(1, [0], [0], [7], inspect([value(0)], 0))
    assert all(type(each) is int for each in rows[0])
    assert not isinstance(rows[0][0], np.integer)


def test_what_comes_again_after_an_assignment_is_counted_and_legal():
    first = [(offset, value(offset)) for offset in range(10)]
    again = [(offset, value(offset)) for offset in range(4, 14)]
    found = compare("consumer-1", given_records((1, first), (2, again), (3, again[6:])), [written()], WHOLE)
    assert (found.records, found.again, found.wrong) == (24, 6 + 4, 0)


# ---- the first record of a session


def begun(*calls, begins=None, producers=None, audit=WHOLE, **more):
    """Return the account of calls. `begins` has the first fetch's end in session 2, and committed offsets of others."""
    delivered = given_records(*calls)
    rows = [
        (0, 0, session, *([offset] * 2 if session > 2 else [0, offset])) for session, offset in (begins or {}).items()
    ]
    delivered.hear(TOPICS, {"begins": rows})
    return compare("consumer-1", delivered, producers or [acked()], audit, **more)


def acked(settled=100, shift=0, **more):
    return written(settled=settled, acked_at=((0, settled, shift),), **more)


def test_what_is_left_out_between_two_sessions_is_missed_if_the_group_has_an_offset():
    calls = (1, in_order(range(10))), (3, in_order(range(14, 20)))
    found = begun(*calls, begins={3: 8})
    assert flaws(found) == {"missed": 4}
    assert found.first == (
        "t-0: records 10 to 13 of producer-1 were acknowledged and not delivered after an assignment, before offset 14",
    )
    assert begun(*calls).wrong == 0  # without an offset of its group a consumer begins at the end
    assert begun(*calls, begins={3: 8}, alone=False).wrong == 0  # another member may have had them


@pytest.mark.parametrize("first", [8, 9, 10])
def test_a_session_may_begin_at_the_groups_offset_or_where_the_one_before_it_ended(first):
    calls = (1, in_order(range(10))), (UNORDERED, in_order(range(10, 12))), (3, in_order(range(first, 20)))
    found = begun(*calls, begins={3: 8})
    assert (found.wrong, found.again) == (0, 12 - first)


def test_a_group_whose_committed_offset_is_lost_is_named():
    found = begun((1, in_order(range(10))), (3, in_order(range(5, 20))), begins={3: 8})
    assert (flaws(found), found.again) == ({"repeated": 3}, 5)
    assert found.first == ("t-0: offsets 5 to 7 came again, although the group had committed 8",)


def test_what_came_with_the_assignment_belongs_to_what_came_before_it():
    calls = (1, in_order(range(10))), (UNORDERED, in_order(range(10, 12))), (3, in_order(range(13, 20)))
    assert flaws(begun(*calls, begins={3: 8})) == {"missed": 1}


def test_the_first_session_begins_at_the_end_of_the_first_fetch_or_before():
    assert begun((2, in_order(range(5, 20))), begins={2: 5}).wrong == 0
    assert begun((2, in_order(range(4, 20))), begins={2: 5}).wrong == 0
    assert flaws(begun((2, in_order(range(7, 20))), begins={2: 5})) == {"missed": 2}


def test_markers_and_aborted_or_unanswered_records_may_lie_before_the_first_record():
    one = written(transactional=True, refused=((10, 12),), doubtful=((12, 14),), acked_at=((0, 10, 0), (14, 100, 4)))
    calls = (1, in_order(range(10))), (3, in_order(range(14, 20), shift=4))
    assert begun(*calls, begins={3: 10}, producers=[one]).wrong == 0
    later = (1, in_order(range(10))), (3, in_order(range(15, 20), shift=4))
    assert flaws(begun(*later, begins={3: 10}, producers=[one])) == {"missed": 1}


def test_records_that_are_deleted_from_the_logs_begin_are_the_audits():
    lost = ProducerAudit("producer-1", 100, 96, 4, 0, 0, 0, 0, ())
    calls = (1, in_order(range(10))), (3, in_order(range(14, 20)))
    assert begun(*calls, begins={3: 10}, audit=replace(WHOLE, producers=(lost,))).wrong == 0


# ---- records of a fill

FILL = Fill("t", [0], 30, Recipe(48, 3))
BOTH = [*FILL.written(), acked(shift=30)]


def of_fill(places):
    return in_order(places, producer=FILL.producer)


def test_records_that_were_there_before_a_consumer_of_the_end_are_counted_and_no_flaw():
    calls = (2, [*of_fill(range(10, 30)), *in_order(range(5), shift=30)]), (3, of_fill(range(8, 12)))
    found = begun(*calls, producers=BOTH)
    assert (found.wrong, found.older, found.again) == (0, 22, 2)
    assert begun(*calls, producers=BOTH, from_end=False).older == 0


def test_within_a_session_they_are_repeated_or_late():
    """An offset that is reset goes back in the same session."""
    found = begun((2, [*in_order(range(5), shift=30), *of_fill(range(10, 30))]), producers=BOTH)
    assert (flaws(found), found.older) == ({"repeated": 20}, 20)


def test_a_consumer_that_begins_at_the_begin_must_get_the_fill_and_one_at_the_end_need_not():
    calls = (2, [*of_fill(range(3, 30)), *in_order(range(5), shift=30)])
    assert flaws(begun(calls, begins={2: 0}, producers=BOTH, from_end=False)) == {"missed": 3}
    assert begun(calls, begins={2: 0}, producers=BOTH).wrong == 0


# ---- keys, headers and timestamps


def enveloped(flaw, audit=WHOLE):
    delivered = given_records((1, in_order(range(10))))
    row = [0, 0, ONE, flaw, 2, 4, "5 ms, not 7"]
    for _report in range(2):
        delivered.hear(TOPICS, {"envelopes": [row], "checked": 10, "compared": 9})
        row[-1] = "another detail"
    return compare("consumer-1", delivered, [written()], audit)


@pytest.mark.parametrize("flaw", [Flaw.KEY, Flaw.HEADERS, Flaw.TIME, Flaw.BROKER_TIME])
def test_another_key_header_or_timestamp_is_corrupt_and_named_with_the_first_record(flaw):
    found = enveloped(flaw)
    assert (flaws(found), found.checked, found.compared) == ({"corrupt": 4}, 10, 9)
    assert found.first == (f"t-0: 4 of producer-1 with {flaw}, first at offset 4: 5 ms, not 7",)


@pytest.mark.parametrize(("flaw", "wrong"), [(Flaw.BROKER_TIME, 0), (Flaw.TIME, 4)])
def test_a_timestamp_of_the_broker_is_right_in_a_topic_whose_configuration_says_so(flaw, wrong):
    assert enveloped(flaw, replace(WHOLE, broker_times=("t",))).wrong == wrong
    assert enveloped(flaw, replace(WHOLE, broker_times=("u",))).wrong == 4


def test_a_span_of_the_account_takes_144_bytes_and_goes_on_while_one_producer_writes():
    """Two producers take turns batch by batch, the worst case. `docs/measurements/workload.md` has what follows."""
    tracemalloc.start()
    try:
        turns = Delivered()
        turns.add(("t",), ([0, 0, 2, 1 + n % 2, 10**6 + 16 * n, 10**6 + 16 * (n // 2), 16] for n in range(20_000)))
        size, _peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(turns.spans["t", 0]) == 20_000
    assert size / 20_000 < 150
    alone = Delivered()
    alone.add(("t",), ([0, 0, 2, 1, 10**6 + 16 * n, 10**6 + 16 * n, 16] for n in range(20_000)))
    assert len(alone.spans["t", 0]) == 1
