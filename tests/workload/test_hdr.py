"""The buckets are HdrHistogram's own."""

import numpy as np
from hdrh.histogram import HdrHistogram
from hypothesis import given
from hypothesis import strategies as st

from testbed.workload.child import highest_equivalent, per_second

DIGITS = 2
LIBRARY = HdrHistogram(1, 3_600_000_000, DIGITS)
EDGES = [1, 2, 127, 128, 255, 256, 257, 511, 512, 1023, 1024, 65535, 65536, 1_000_000, 3_599_999_999]


@given(st.lists(st.integers(1, 3_600_000_000), min_size=1))
def test_a_value_is_in_the_librarys_bucket(values):
    values += EDGES
    expected = [LIBRARY.get_highest_equivalent_value(value) for value in values]
    assert highest_equivalent(np.array(values)).tolist() == expected


def test_a_bucket_is_less_than_one_per_cent_wide():
    values = np.unique(np.geomspace(1, 3.6e9, 20_000).astype(np.int64))
    highest = highest_equivalent(values)
    assert ((highest >= values) & (highest - values < values * 0.01)).all()


def test_quantiles_are_the_librarys():
    latencies = np.random.default_rng(5).lognormal(9, 1, 20_000).astype(np.int64)
    library = HdrHistogram(1, 3_600_000_000, DIGITS)
    for value in latencies.tolist():
        library.record_value(value)
    ((_end, buckets),) = per_second(np.full(len(latencies), 5_500_000), latencies)
    labels, counts = np.array(sorted(buckets)).T
    for share in (50, 99, 99.9, 100):
        rank = np.searchsorted(np.cumsum(counts), len(latencies) * share / 100)
        assert labels[rank] == library.get_value_at_percentile(share)


def test_each_second_has_its_own():
    at = np.array([1_999_999, 2_000_000, 2_500_000, 4_000_000])
    assert per_second(at, np.array([10, 20, 20, -3])) == [
        (2_000_000, [(10, 1)]),
        (3_000_000, [(20, 2)]),
        (5_000_000, [(1, 1)]),  # a clock that went back: no latency is below a microsecond
    ]
    assert per_second(np.array([], np.int64), np.array([], np.int64)) == []
