"""The article's picture: how long each combination's move took, beside log size ÷ NIC. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from results.report.tradeoff import TIME, Told

FORMULA = "formula-seconds"
WIDTH, ROW, LEFT, RIGHT = 960.0, 34, 330.0, 190.0


@dataclass(frozen=True, slots=True)
class Line:
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

    lines: tuple[Line, ...]
    width: float
    height: float
    left: float


def formula_picture(found: Sequence[Told]) -> FormulaPicture | None:
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
        lines.append(Line(each.label, ROW * row + 6, x(time), x(low), x(high), x(theirs), text))
    return FormulaPicture(tuple(lines), WIDTH, ROW * len(lines) + 10.0, LEFT)
