"""The windows against the plainest possible computation, on series with jitter, gaps and several hosts."""

import numpy as np
import pytest

from results.contract.manifest import Flow
from results.contract.schema import EVENTS, Sample, samples_table
from results.criteria.model import window_bound
from results.criteria.quantities import US
from results.criteria.sample_series import RunSeries, Series
from results.criteria.windows import growth, longest_gap_s, trailing_mean_max, windows, windows_within

MIB = 1 << 20


def series(t, value, oldest=None):
    t = np.array(t, np.int64)
    return Series(t, t if oldest is None else np.array(oldest, np.int64), np.array(value, float))


def jittered(seed, points=60):
    rng = np.random.default_rng(seed)
    t = np.cumsum(rng.normal(US, 30_000, points)).astype(np.int64)
    t = np.delete(t, rng.integers(1, points - 1, 4))
    lag = rng.integers(0, 900_000, len(t))
    return series(t, np.cumsum(rng.integers(0, 10_000_000, len(t))), t - lag)


@pytest.mark.parametrize("seed", range(5))
def test_windows_are_those_found_by_trying_all(seed):
    s = jittered(seed)
    found, within = windows(s, 11.0), windows_within(s, 10.95)
    least, most = [], []
    for i in range(len(s)):
        longer = [j for j in range(len(s)) if s.t[j] - s.oldest[i] >= 11 * US]
        shorter = [j for j in range(i + 1, len(s)) if s.t[j] - s.oldest[i] <= 10.95 * US]
        least += [(s.t[i], s.value[longer[0]] - s.value[i])] if longer else []
        most += [(s.t[i], s.value[shorter[-1]] - s.value[i])] if shorter else []
    assert list(zip(found.start, found.bytes, strict=True)) == least
    assert list(zip(within.start, within.bytes, strict=True)) == most
    assert np.all(found.elapsed_s >= 11)
    assert np.all(within.elapsed_s <= 10.95)


def test_a_gap_is_found_at_the_edges_too():
    t = np.array([1, 2, 3, 7, 8], np.int64) * US
    assert longest_gap_s(t, 1 * US, 8 * US) == 4
    assert longest_gap_s(t, 1 * US, 2 * US) == 1
    assert longest_gap_s(t, 1 * US, 20 * US) == 12
    assert longest_gap_s(t, -5 * US, 3 * US) == 6
    assert longest_gap_s(t, 4 * US, 5 * US) == 4  # nothing inside, but the neighbours are 4 s apart
    assert longest_gap_s(t[:0], 0, US) is None
    assert longest_gap_s(t, 4 * US, 5 * US, inside=True) == 1
    assert longest_gap_s(t, 6 * US, 8 * US) == 4
    assert longest_gap_s(t, 6 * US, 8 * US, inside=True) == 1
    assert longest_gap_s(t, -5 * US, 20 * US, inside=True) == 12


def test_growth_needs_a_reading_after_the_end():
    s = series([0, US, 2 * US], [5, 7, 11])
    assert growth(s, 0, 2 * US) == 6
    assert growth(s, -US, US) == 2
    assert growth(s, 0, 3 * US) is None


def test_the_load_is_judged_over_whole_windows():
    t = np.arange(1, 31) * US
    load = np.where((t > 10 * US) & (t <= 15 * US), 1.0, 0.2)
    assert trailing_mean_max(series(t, load), 0, 30 * US, 11) == pytest.approx((5 * 1 + 6 * 0.2) / 11)
    assert trailing_mean_max(series(t, load), 0, 5 * US, 11) == pytest.approx(0.2)
    assert trailing_mean_max(series(t, load), 40 * US, 50 * US, 11) is None


def test_a_move_between_two_readings_has_the_second_that_the_next_one_tells_of():
    t, load = np.arange(1, 6) * US, np.array([0.1, 0.2, 0.9, 0.1, 0.1])
    assert trailing_mean_max(series(t, load), round(2.1 * US), round(2.7 * US), 11) == 0.9
    assert trailing_mean_max(series(t, load), round(5.1 * US), round(5.7 * US), 11) is None


def test_the_load_across_a_restart_is_not_judged():
    t = np.arange(1, 61) * US
    load = np.where((t > 20 * US) & (t <= 25 * US), 1.0, 0.2)
    phases = [(0, 20 * US), (25 * US, 60 * US)]
    assert trailing_mean_max(series(t, load), 0, 60 * US, 11, phases) == pytest.approx(0.2)
    assert trailing_mean_max(series(t, load), 0, 60 * US, 11, [(0, 22 * US)]) == pytest.approx((2 * 1 + 9 * 0.2) / 11)
    # No phase as long as a window: the mean of all.
    assert trailing_mean_max(series(t, load), 0, 60 * US, 11, [(0, 10 * US)]) == pytest.approx(16 / 60)


def test_the_bound_is_that_of_the_derivation():
    def bound(direction, fetchers, quota=10e6, response=MIB):
        return window_bound(
            quota, direction, fetchers=fetchers, response_max_bytes=response, window_s=11.0, sample_s=1.0
        )

    assert bound("receive", 1) == 120e6 + MIB
    assert bound("receive", 3) == 120e6 + 3 * MIB
    assert bound("transmit", 1) == 120e6 + MIB
    assert bound("transmit", 2) == 110e6 + 3 * MIB + 10e6
    assert bound("transmit", 2, quota=5e6, response=10 * MIB) == 55e6 + 4 * 10 * MIB


def test_bytes_of_two_followers_add_up_from_their_own_instants():
    """A value of the sum names the oldest reading in it, so that a window never seems longer than its bytes took."""
    samples = [Sample(k * US + 100_000, "b2", "log.bytes", 10 * k, "t", 0) for k in range(1, 6)]
    samples += [Sample(k * US + 700_000, "b3", "log.bytes", 100 * k, "t", 1) for k in range(1, 6)]
    run = RunSeries(samples_table(samples), EVENTS.empty_table())
    flows = [Flow("throttled", "t", (0,), "b1", "b2"), Flow("throttled", "t", (1,), "b1", "b3")]
    found = run.flow_bytes(flows)
    assert found.t[:3].tolist() == [1_700_000, 2_100_000, 2_700_000]
    assert found.oldest[:3].tolist() == [1_100_000, 1_700_000, 2_100_000]
    assert found.value[:3].tolist() == [110, 120, 220]


def test_a_follower_without_any_sample_leaves_no_series():
    samples = samples_table([Sample(US, "b2", "log.bytes", 1, "t", 0)])
    flows = [Flow("throttled", "t", (0,), "b1", "b2"), Flow("throttled", "t", (1,), "b1", "b3")]
    assert len(RunSeries(samples, EVENTS.empty_table()).flow_bytes(flows)) == 0
