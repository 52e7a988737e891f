"""Windows over unaligned samples: bytes between two real sample instants, over the time that passed."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from results.criteria.quantities import US
from results.criteria.sample_series import Floats, Micros, Series


@dataclass(frozen=True, slots=True)
class Windows:
    """Windows between two instants of a series; arrays of equal length."""

    start: Micros
    end: Micros
    elapsed_s: Floats
    bytes: Floats

    @property
    def rate(self) -> Floats:
        """Return bytes per second of each window."""
        return self.bytes / self.elapsed_s

    def cut(self, wanted: npt.NDArray[np.bool_]) -> "Windows":
        """Return those windows."""
        return Windows(self.start[wanted], self.end[wanted], self.elapsed_s[wanted], self.bytes[wanted])


def windows(series: Series, at_least_s: float) -> Windows:
    """Return every window i..j of `series` with j the first instant at least `at_least_s` after what i contains."""
    j = np.searchsorted(series.t, series.oldest + round(at_least_s * US), side="left")
    return _windows(series, np.flatnonzero(j < len(series)), j)


def windows_within(series: Series, at_most_s: float) -> Windows:
    """Return every window i..j of `series` with j the last instant at most `at_most_s` after what i contains."""
    j = np.searchsorted(series.t, series.oldest + round(at_most_s * US), side="right") - 1
    return _windows(series, np.flatnonzero(j > np.arange(len(series))), j)


def _windows(series: Series, i: Micros, j: Micros) -> Windows:
    j = j[i]
    elapsed = (series.t[j] - series.oldest[i]) / US
    return Windows(series.t[i], series.t[j], elapsed, series.value[j] - series.value[i])


def longest_gap_s(t: Micros, start_us: int, end_us: int, *, inside: bool = False) -> float | None:
    """Return longest time without a sample between start and end; None when there are no samples at all.

    Readings just outside count as neighbours; where there is none, the start or the end itself is the edge. With
    `inside` only what of it lies between start and end counts: enough for a counter, which forgets nothing.
    """
    if len(t) == 0:
        return None
    first, last = enclosing(t, start_us, end_us)
    near = t[first : last + 1]
    near = np.clip(near, start_us, end_us) if inside else near
    gaps = [int(near[0]) - start_us, end_us - int(near[-1])]
    if len(near) > 1:
        gaps.append(int(np.max(np.diff(near))))
    return max(*gaps, 0) / US


def growth(series: Series, start_us: int, end_us: int) -> float | None:
    """Return growth from the last reading at or before start to the first at or after end; None without the latter.

    A series that begins after start grew from its first reading on.
    """
    first, last = enclosing(series.t, start_us, end_us)
    return float(series.value[last] - series.value[first]) if last < len(series) else None


def enclosing(t: Micros, start_us: int, end_us: int) -> tuple[int, int]:
    """Return the places of the last reading at or before the start, and of the first one at or after the end.

    Without the former it is 0; without the latter, the number of readings.
    """
    first = max(int(np.searchsorted(t, start_us, side="right")) - 1, 0)
    return first, int(np.searchsorted(t, end_us, side="left"))


def counts(values: Floats) -> Floats:
    """Return what a counter counted from each value to the next; one that goes back has begun again with its broker."""
    steps = np.diff(values)
    return np.where(steps >= 0, steps, values[1:])


def counted(values: Floats) -> float:
    """Return what a counter counted in all."""
    return float(np.sum(counts(values)))


def counted_between(series: Series, start_us: int, end_us: int) -> float | None:
    """Return the same of a counter, which begins again at 0 with its broker."""
    first, last = enclosing(series.t, start_us, end_us)
    return counted(series.cut(first, last).value) if last < len(series) else None


def sum_of_all(parts: Sequence[float | None]) -> float | None:
    """Return the sum of all parts; None when there is none or one is not known."""
    known = [part for part in parts if part is not None]
    return sum(known) if known and len(known) == len(parts) else None


def trailing_mean_max(
    series: Series, start_us: int, end_us: int, window_s: float, spans: Sequence[tuple[int, int]] = ()
) -> float | None:
    """Return the highest mean of a window's readings inside (start, end]; of all of them when none is that long.

    With `spans` (begin and end each) windows are those inside one of them. A reading tells of the second before it, so
    the next reading counts when none is inside: a move may take less than a second. None without one.
    """
    inside = (series.t > start_us) & (series.t <= end_us)
    if not inside.any():
        inside = np.arange(len(series)) == np.searchsorted(series.t, end_us)
    t, value = series.t[inside], series.value[inside]
    if len(t) == 0:
        return None
    width = round(window_s * US)
    sums = np.concatenate([[0.0], np.cumsum(value)])
    first = np.searchsorted(t, t - width, side="right")
    means = (sums[1:] - sums[first]) / (np.arange(len(t)) + 1 - first)
    whole = np.zeros(len(t), dtype=bool)
    for begin, until in spans or ((start_us, end_us),):
        whole |= (t - begin >= width) & (t <= until)
    return float(np.max(means[whole]) if whole.any() else np.mean(value))
