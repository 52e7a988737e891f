"""What a combination of settings costs against what it takes: time along the bottom, a burden upwards. Pure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

TIME = "move-seconds"
BURDENS = ("nic-peak", "produce-p99", "in-flight")
"""What is drawn against the time, where it was asked for."""
WIDTH, HEIGHT, LEFT, TOP, RIGHT, BELOW = 960.0, 340.0, 64.0, 14.0, 24.0, 52.0


class Told(Protocol):
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
class Mark:
    """A combination as it is drawn, in the picture's units: its median, and how far its runs reach either way."""

    x: float
    y: float
    left: float
    right: float
    low: float
    high: float
    label: str
    title: str


@dataclass(frozen=True, slots=True)
class Tradeoff:
    """One picture; ticks are (place, label)."""

    measure: str
    unit: str
    marks: tuple[Mark, ...]
    across: tuple[tuple[float, str], ...]
    up: tuple[tuple[float, str], ...]


def tradeoff(found: Sequence[Told], measure: str, unit: str) -> Tradeoff | None:
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
    for each in known:
        (first, last), (low, high) = each.ranges[TIME], each.ranges[measure]
        time, burden = each.medians[TIME], each.medians[measure]
        title = f"{each.label}: {time:.1f} s, {measure} {burden:.3g} {unit}".rstrip()
        marks.append(Mark(x(time), y(burden), x(first), x(last), y(low), y(high), each.label, title))
    across, up = tuple((x(t), f"{t:g}") for t in times), tuple((y(t), f"{t:g}") for t in burdens)
    return Tradeoff(measure, unit, tuple(marks), across, up)


def _ticks(values: Sequence[float]) -> list[float]:
    """From nought on, so that half as much looks like half; 3 to 8 round values."""
    high = max(*values, 0.0) or 1.0
    step = 10.0 ** math.floor(math.log10(high / 4))
    size = next(step * factor for factor in (1, 2, 5, 10) if high / (step * factor) <= 7)
    return [round(size * n, 9) for n in range(math.ceil(round(high / size, 6)) + 1)]
