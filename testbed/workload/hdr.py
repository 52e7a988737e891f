"""Latencies as counts in the buckets of an HDR histogram with two significant digits. Pure.

The layout is HdrHistogram's own (a test holds it against that library); the counting is numpy's, because the
library's takes 2 µs of Python a value and 14 ms to list what it counted.
"""

import numpy as np

from testbed.workload.records import Ints

DIGITS = 2
_SUB_BUCKET_BITS = 8  # 2 × 10² values side by side take 8 bits
_SECOND_US = 1_000_000

Counts = list[tuple[int, list[tuple[int, int]]]]
"""Per second: its end (µs since the epoch), and each bucket's highest value (µs) with its count."""


def highest_equivalent(values_us: Ints) -> Ints:
    """The highest value in the bucket of each."""
    _mantissa, bits = np.frexp(values_us.astype(np.float64))
    shift = np.maximum(bits - _SUB_BUCKET_BITS, 0).astype(np.int64)
    found: Ints = (((values_us >> shift) + 1) << shift) - 1
    return found


def per_second(at_us: Ints, latencies_us: Ints) -> Counts:
    """How many latencies of each bucket belong to each second that `at_us` lies in."""
    if not len(at_us):
        return []
    seconds = at_us // _SECOND_US
    buckets = highest_equivalent(np.maximum(latencies_us, 1))
    first = int(seconds.min())
    # Both in one number: 42 bits of µs are 50 days.
    both, counts = np.unique(((seconds - first) << 42) | buckets, return_counts=True)
    found: dict[int, list[tuple[int, int]]] = {}
    for key, count in zip(both.tolist(), counts.tolist(), strict=True):
        found.setdefault((first + (key >> 42) + 1) * _SECOND_US, []).append((key & ((1 << 42) - 1), count))
    return list(found.items())
