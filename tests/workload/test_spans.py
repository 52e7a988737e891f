"""Spans are held against the sets of their places."""

from hypothesis import given
from hypothesis import strategies as st

from testbed.workload.spans import common, count, less, merged, spans

SPANS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 8)).map(lambda each: (each[0], each[0] + each[1])))


def places(several):
    return {place for begin, end in several for place in range(begin, end)}


@given(SPANS, SPANS)
def test_spans_are_sets(one, other):
    assert merged(one) == spans(places(one))
    assert count(merged(one)) == len(places(one))
    assert less(one, other) == spans(places(one) - places(other))
    assert common(one, other) == spans(places(one) & places(other))


def test_no_place_has_no_span():
    assert merged([(3, 3)]) == less([(1, 4)], [(0, 9)]) == common([], [(0, 9)]) == ()
