"""What a combination of settings costs against what it takes: time along the bottom, a burden upwards. Pure."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

TIME = "move-seconds"
BURDENS = ("nic-max-1s", "highest-1s", "produce-p99", "in-flight")
"""What is drawn against the time, where it was asked for."""
WIDTH, HEIGHT, LEFT, TOP, RIGHT, BELOW = 960.0, 340.0, 64.0, 14.0, 24.0, 52.0
CHARACTER, LINE, ASIDE, MARK = 7.0, 14.0, 10.0, 6.0
"""About how wide a character of a label is, how high a line, how far from its mark it begins, half a mark's width."""


class CombinationValues(Protocol):
    """A combination: medians, and the lowest and highest value of its runs, by measure."""

    @property
    def label(self) -> str:
        """What it is called."""

    @property
    def medians(self) -> Mapping[str, float]:
        """Measure → median."""

    @property
    def ranges(self) -> Mapping[str, tuple[float, float]]:
        """Measure → lowest and highest."""


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


def tradeoff(found: Sequence[CombinationValues], measure: str, unit: str) -> Tradeoff | None:
    """The picture of one measure against the time; None where fewer than two combinations have both."""
    known = [each for each in found if TIME in each.medians and measure in each.medians]
    if len(known) < 2:
        return None
    times = _ticks([value for each in known for value in each.ranges[TIME]])
    burdens = _ticks([value for each in known for value in each.ranges[measure]])

    def x(value: float) -> float:
        return round(LEFT + (value - times[0]) / (times[-1] - times[0]) * (WIDTH - LEFT - RIGHT), 1)

    def y(value: float) -> float:
        return round(HEIGHT - BELOW - (value - burdens[0]) / (burdens[-1] - burdens[0]) * (HEIGHT - BELOW - TOP), 1)

    marks = []
    at = [(x(each.medians[TIME]), y(each.medians[measure])) for each in known]
    texts = places([each.label for each in known], at)
    for each, (across_x, up_y), text in zip(known, at, texts, strict=True):
        (first, last), (low, high) = each.ranges[TIME], each.ranges[measure]
        time, burden = each.medians[TIME], each.medians[measure]
        title = f"{each.label}: {time:.1f} s, {measure} {burden:.3g} {unit}".rstrip()
        marks.append(TradeoffMark(across_x, up_y, x(first), x(last), y(low), y(high), each.label, title, text))
    across, up = tuple((x(t), f"{t:g}") for t in times), tuple((y(t), f"{t:g}") for t in burdens)
    return Tradeoff(measure, unit, tuple(marks), across, up)


def places(labels: Sequence[str], marks: Sequence[tuple[float, float]]) -> list[LabelPlace]:
    """A place for the label of each mark: just above it, else under it, else further off.

    It covers no mark and no label before it, and lies within the picture.
    """
    found: list[LabelPlace] = []
    taken = [(x - MARK, x + MARK, y + MARK) for x, y in marks]
    for label, (x, y) in zip(labels, marks, strict=True):
        left = x + ASIDE + CHARACTER * len(label) > WIDTH
        anchor: Literal["start", "end"] = "end" if left else "start"
        lines = (step for n in itertools.count() for step in (-n, n + 1))
        tried = (LabelPlace(x - ASIDE if left else x + ASIDE, y - 8 + LINE * line, anchor) for line in lines)
        inside = (place for place in tried if place.y >= LINE)
        found.append(next(place for place in inside if not any(_over(_box(place, label), box) for box in taken)))
        taken.append(_box(found[-1], label))
    return found


def _box(place: LabelPlace, label: str) -> tuple[float, float, float]:
    """From where to where a label reaches, and its baseline."""
    width = CHARACTER * len(label)
    return (place.x - width, place.x, place.y) if place.anchor == "end" else (place.x, place.x + width, place.y)


def _over(one: tuple[float, float, float], other: tuple[float, float, float]) -> bool:
    return one[0] < other[1] and other[0] < one[1] and abs(one[2] - other[2]) < LINE


def _ticks(values: Sequence[float]) -> list[float]:
    """From nought on, so that half as much looks like half; 3 to 8 round values."""
    high = max(*values, 0.0) or 1.0
    step = 10.0 ** math.floor(math.log10(high / 4))
    size = next(step * factor for factor in (1, 2, 5, 10) if high / (step * factor) <= 7)
    return [round(size * n, 9) for n in range(math.ceil(round(high / size, 6)) + 1)]
