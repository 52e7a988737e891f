"""The trade-off between combinations of settings, for a chart: the time against one burden. Pure.

Of an unthrottled move the time is drawn against its log size ÷ NIC: a bar for each combination, and the slope.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import linear_regression
from typing import Literal

from results.contract.texts import digits
from results.report.charts import scale

TIME = "move-seconds"
BURDENS = ("nic-max-1s", "highest-1s", "produce-p99", "in-flight")
"""What is drawn against the time, where it was asked for."""
WIDTH, HEIGHT, LEFT, TOP, RIGHT, BELOW = 960.0, 340.0, 64.0, 14.0, 24.0, 52.0
CHARACTER, LINE, ASIDE, MARK = 7.0, 14.0, 10.0, 6.0
"""About how wide a character of a label is, how high a line, how far from its mark it begins, half a mark's width."""


@dataclass(frozen=True, slots=True)
class Combination:
    """One combination of settings: `values` are those of the axes, in their order; `runs` counts verdicts.

    `medians` and `ranges` (lowest and highest of its runs) are by measure.
    """

    label: str
    values: tuple[str, ...]
    runs: Mapping[str, int]
    medians: Mapping[str, float]
    ranges: Mapping[str, tuple[float, float]]


@dataclass(frozen=True, slots=True)
class TradeoffMark:
    """A combination as it is drawn, in the picture's units: its median, and how far its runs reach either way."""

    x: float
    y: float
    left: float
    right: float
    low: float
    high: float
    label: str
    title: str
    text: "LabelPlace"

    @property
    def far(self) -> bool:
        """Return whether a line has to lead from the mark to its label."""
        return abs(self.text.y - self.y) > 2 * LINE


@dataclass(frozen=True, slots=True)
class LabelPlace:
    """Where a label stands: its baseline, and the end of it that is at the mark."""

    x: float
    y: float
    anchor: Literal["start", "end"]


@dataclass(frozen=True, slots=True)
class Tradeoff:
    """One picture; ticks are (place, label)."""

    measure: str
    unit: str
    marks: tuple[TradeoffMark, ...]
    across: tuple[tuple[float, str], ...]
    up: tuple[tuple[float, str], ...]


def tradeoff(found: Sequence[Combination], measure: str, unit: str) -> Tradeoff | None:
    """Return the picture of one measure against the time; None where fewer than two combinations have both."""
    known = [each for each in found if TIME in each.medians and measure in each.medians]
    if len(known) < 2:
        return None
    times = _ticks([value for each in known for value in each.ranges[TIME]])
    burdens = _ticks([value for each in known for value in each.ranges[measure]])
    x, y = scale(times[0], times[-1], LEFT, WIDTH - RIGHT), scale(burdens[0], burdens[-1], HEIGHT - BELOW, TOP)
    marks = []
    at = [(x(each.medians[TIME]), y(each.medians[measure])) for each in known]
    texts = places([each.label for each in known], at)
    for each, (across_x, up_y), text in zip(known, at, texts, strict=True):
        (first, last), (low, high) = each.ranges[TIME], each.ranges[measure]
        time, burden = each.medians[TIME], each.medians[measure]
        title = f"{each.label}: {time:.1f} s, {measure} {digits(burden, 3)} {unit}".rstrip()
        marks.append(TradeoffMark(across_x, up_y, x(first), x(last), y(low), y(high), each.label, title, text))
    across, up = tuple((x(t), f"{t:g}") for t in times), tuple((y(t), f"{t:g}") for t in burdens)
    return Tradeoff(measure, unit, tuple(marks), across, up)


def places(labels: Sequence[str], marks: Sequence[tuple[float, float]]) -> list[LabelPlace]:
    """Return a place for the label of each mark: just above it, else under it, else further off.

    It covers no mark and no label before it, and lies within the picture. Where there is no such place left, it stands
    just above its mark.
    """
    found: list[LabelPlace] = []
    taken = [(x - MARK, x + MARK, y + MARK) for x, y in marks]
    for label, (x, y) in zip(labels, marks, strict=True):
        left = x + ASIDE + CHARACTER * len(label) > WIDTH
        anchor: Literal["start", "end"] = "end" if left else "start"
        lines = (step for n in range(int(HEIGHT / LINE)) for step in (-n, n + 1))
        tried = (LabelPlace(x - ASIDE if left else x + ASIDE, y - 8 + LINE * line, anchor) for line in lines)
        inside = [place for place in tried if LINE <= place.y <= HEIGHT - BELOW]
        free = (place for place in inside if not any(_over(_box(place, label), box) for box in taken))
        found.append(next(free, inside[0]))
        taken.append(_box(found[-1], label))
    return found


def _box(place: LabelPlace, label: str) -> tuple[float, float, float]:
    """Return from where to where a label reaches, and its baseline."""
    width = CHARACTER * len(label)
    return (place.x - width, place.x, place.y) if place.anchor == "end" else (place.x, place.x + width, place.y)


def _over(one: tuple[float, float, float], other: tuple[float, float, float]) -> bool:
    return one[0] < other[1] and other[0] < one[1] and abs(one[2] - other[2]) < LINE


def _ticks(values: Sequence[float]) -> list[float]:
    """Return 3 to 8 round values from nought on, so that half as much looks like half."""
    high = max(*values, 0.0) or 1.0
    step = 10.0 ** math.floor(math.log10(high / 4))
    size = next(step * factor for factor in (1, 2, 5, 10) if high / (step * factor) <= 7)
    return [round(size * n, 9) for n in range(math.ceil(round(high / size, 6)) + 1)]


FORMULA = "formula-seconds"
ROW, NAMES_PX, MOST_NAMES_PX, FIGURES_PX = 34, 330.0, 660.0, 190.0
"""A bar's row: its height, the least and the most width of the names left of the bar, and that of the figures right."""


@dataclass(frozen=True, slots=True)
class LogSizeBar:
    """A combination: its time as a bar (median, from lowest to highest), the formula's as a mark."""

    label: str
    y: int
    width: float
    low: float
    high: float
    formula: float
    text: str


@dataclass(frozen=True, slots=True)
class FormulaPicture:
    """All of them, in the picture's units."""

    lines: tuple[LogSizeBar, ...]
    width: float
    height: float
    left: float


def formula_picture(found: Sequence[Combination]) -> FormulaPicture | None:
    """Return the picture; None where nothing has both a time and a formula."""
    known = [each for each in found if TIME in each.medians and FORMULA in each.medians]
    if not known:
        return None
    longest = max(max(each.ranges[TIME][1], each.medians[FORMULA]) for each in known) or 1.0
    left = min(MOST_NAMES_PX, max(NAMES_PX, CHARACTER * max(len(each.label) for each in known) + ASIDE))
    x = scale(0.0, longest, 0.0, WIDTH - left - FIGURES_PX)
    lines = []
    for row, each in enumerate(known):
        time, theirs = each.medians[TIME], each.medians[FORMULA]
        low, high = each.ranges[TIME]
        text = f"{time:.1f} s, formula {theirs:.1f} s"
        lines.append(LogSizeBar(each.label, ROW * row + 6, x(time), x(low), x(high), x(theirs), text))
    return FormulaPicture(tuple(lines), WIDTH, ROW * len(lines) + 10.0, left)


SIZE = "size"
FLAT, LINEAR = 0.1, 0.8
"""Flat: at most a tenth of what the formula grows by; linear: at least so much of it."""
APART = 1.5
"""The largest is at least so many times the smallest: equal sizes show nothing."""


@dataclass(frozen=True, slots=True)
class SizeScaling:
    """Of combinations that differ in size alone: seconds of the move for each second of the formula.

    ``slope`` is that of the line through the medians (least squares); ``low`` and ``high`` are the least and the most
    that the runs of the smallest and of the largest size allow.
    """

    of: str
    sizes: int
    slope: float
    low: float
    high: float

    @property
    def word(self) -> str:
        """Return what that is called."""
        if self.high <= FLAT:
            return "flat"
        return "linear" if self.low >= LINEAR else "neither flat nor by the formula"

    def __str__(self) -> str:
        text = f"{self.slope:.2f} s ({self.low:.2f} to {self.high:.2f}) for each second that log size ÷ NIC grows"
        return f"{self.of or 'all'}: {self.word}, {text}; {self.sizes} sizes"


def growths(axes: Sequence[str], found: Sequence[Combination]) -> tuple[SizeScaling, ...]:
    """Return how the time grows with the size, for each group of combinations that differ in their size alone."""
    if SIZE not in axes:
        return ()
    at = list(axes).index(SIZE)
    groups: dict[str, list[Combination]] = {}
    for each in found:
        if TIME in each.medians and FORMULA in each.medians:
            others = [f"{a}={v}" for i, (a, v) in enumerate(zip(axes, each.values, strict=True)) if i != at]
            groups.setdefault(" ".join(others), []).append(each)
    known = (_growth(name, sorted(each, key=_formula)) for name, each in groups.items())
    return tuple(each for each in known if each is not None)


def _growth(of: str, found: Sequence[Combination]) -> SizeScaling | None:
    smallest, largest = found[0], found[-1]
    wide = _formula(largest) - _formula(smallest)
    if _formula(largest) < APART * _formula(smallest) or wide <= 0:
        return None
    slope = linear_regression([_formula(each) for each in found], [each.medians[TIME] for each in found]).slope
    low = (largest.ranges[TIME][0] - smallest.ranges[TIME][1]) / wide
    high = (largest.ranges[TIME][1] - smallest.ranges[TIME][0]) / wide
    return SizeScaling(of, len(found), slope, min(low, slope), max(high, slope))


def _formula(measured: Combination) -> float:
    return measured.medians[FORMULA]
