"""How many partitions were being reassigned at once, and how few replicas in sync, over the time of a move. Pure."""

from dataclasses import dataclass

import numpy as np

from results.criteria.measures import MoveMeasures
from results.criteria.quantities import DRIVER, US
from results.criteria.series import Floats, Micros, RunSeries

WIDTH, HEIGHT, LEFT, TOP, BELOW = 960.0, 120.0, 64.0, 10.0, 22.0


@dataclass(frozen=True, slots=True)
class StepLine:
    """One line of steps in its own picture: `points` as SVG has them; ticks are (place, label)."""

    title: str
    points: str
    up: tuple[tuple[float, str], ...]
    across: tuple[tuple[float, str], ...]
    summary: str


def flights(measures: MoveMeasures, run: RunSeries) -> tuple[StepLine, ...]:
    """Both lines, of a move whose steps were watched; none of any other: at once there is nothing to see."""
    listed = run.gauge("move.listed", DRIVER)
    if measures.started_us is None or not len(listed):
        return ()
    begin, end = measures.started_us, int(listed.t[-1])
    table = run.of_metric("isr.size").sort_by("us")
    us, size = table["us"].to_numpy(), table["value"].to_numpy()
    looks, first = np.unique(us, return_index=True)
    lowest = np.minimum.reduceat(size, first) if len(first) else size
    lines = (
        ("Partitions being reassigned", listed.t, listed.value, "at most"),
        ("Fewest replicas in sync", looks, lowest, "at least"),
    )
    return tuple(
        _steps(title, t, value, begin, end, word)
        for title, t, value, word in lines
        if np.any((t >= begin) & (t <= end)) and end > begin
    )


def _steps(title: str, t: Micros, value: Floats, begin: int, end: int, word: str) -> StepLine:
    inside = (t >= begin) & (t <= end)
    t, value = t[inside], value[inside]
    most = max(1.0, float(np.max(value)))

    def x(us: int) -> float:
        return round(LEFT + (us - begin) / (end - begin) * (WIDTH - LEFT), 1)

    def y(height: float) -> float:
        return round(HEIGHT - BELOW - height / most * (HEIGHT - BELOW - TOP), 1)

    points = [f"{x(int(t[0]))},{y(float(value[0]))}"]
    for before, at, now in zip(value, t[1:], value[1:], strict=False):
        if now != before:  # a step: along, then up or down
            points += [f"{x(int(at))},{y(float(before))}", f"{x(int(at))},{y(float(now))}"]
    points.append(f"{x(end)},{y(float(value[-1]))}")
    seconds = (end - begin) / US
    bound = float(np.max(value)) if word == "at most" else float(np.min(value))
    across = tuple(
        (x(begin + round(part * (end - begin))), f"{part * seconds:.0f} s") for part in (0.0, 0.25, 0.5, 0.75)
    )
    return StepLine(title, " ".join(points), ((y(0), "0"), (y(most), f"{most:g}")), across, f"{word} {bound:g}")
