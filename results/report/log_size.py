"""The time of an unthrottled move against its log size ÷ NIC: a bar for each combination, and the slope. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from results.report.tradeoff import TIME, CombinationValues

FORMULA = "formula-seconds"
WIDTH, ROW, LEFT, RIGHT = 960.0, 34, 330.0, 190.0


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


def formula_picture(found: Sequence[CombinationValues]) -> FormulaPicture | None:
    """The picture; None where nothing has both a time and a formula."""
    known = [each for each in found if TIME in each.medians and FORMULA in each.medians]
    if not known:
        return None
    longest = max(max(each.ranges[TIME][1], each.medians[FORMULA]) for each in known) or 1.0

    def x(seconds: float) -> float:
        return round((WIDTH - LEFT - RIGHT) * seconds / longest, 1)

    lines = []
    for row, each in enumerate(known):
        time, theirs = each.medians[TIME], each.medians[FORMULA]
        low, high = each.ranges[TIME]
        text = f"{time:.1f} s, formula {theirs:.1f} s"
        lines.append(LogSizeBar(each.label, ROW * row + 6, x(time), x(low), x(high), x(theirs), text))
    return FormulaPicture(tuple(lines), WIDTH, ROW * len(lines) + 10.0, LEFT)


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
        """What that is called."""
        if self.high <= FLAT:
            return "flat"
        return "linear" if self.low >= LINEAR else "neither flat nor by the formula"

    def __str__(self) -> str:
        told = f"{self.slope:.2f} s ({self.low:.2f} to {self.high:.2f}) for each second that log size ÷ NIC grows"
        return f"{self.of or 'all'}: {self.word}, {told}; {self.sizes} sizes"


def growths(axes: Sequence[str], found: Sequence[tuple[Sequence[str], CombinationValues]]) -> tuple[SizeScaling, ...]:
    """One for each group of combinations (values of the axes, what was measured) that differ in their size alone."""
    if SIZE not in axes:
        return ()
    at = list(axes).index(SIZE)
    groups: dict[str, list[CombinationValues]] = {}
    for values, told in found:
        if TIME in told.medians and FORMULA in told.medians:
            others = [f"{a}={v}" for i, (a, v) in enumerate(zip(axes, values, strict=True)) if i != at]
            groups.setdefault(" ".join(others), []).append(told)
    known = (_growth(name, sorted(each, key=_formula)) for name, each in groups.items())
    return tuple(each for each in known if each is not None)


def _growth(of: str, found: Sequence[CombinationValues]) -> SizeScaling | None:
    smallest, largest = found[0], found[-1]
    wide = _formula(largest) - _formula(smallest)
    if _formula(largest) < APART * _formula(smallest) or wide <= 0:
        return None
    x, y = [_formula(each) for each in found], [each.medians[TIME] for each in found]
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    slope = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True)) / sum((a - mean_x) ** 2 for a in x)
    low = (largest.ranges[TIME][0] - smallest.ranges[TIME][1]) / wide
    high = (largest.ranges[TIME][1] - smallest.ranges[TIME][0]) / wide
    return SizeScaling(of, len(found), slope, min(low, slope), max(high, slope))


def _formula(told: CombinationValues) -> float:
    return told.medians[FORMULA]
