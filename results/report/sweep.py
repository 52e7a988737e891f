"""A sweep as one HTML page: the results of each combination of settings, drawn and as a table.

The picture is an SVG element: nothing has to be zoomed, and it prints as it stands.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from results.render import NOTHING
from results.report import tradeoff
from results.report.charts import scale
from results.report.render import inline, template
from results.report.tradeoff import Combination, SizeScaling, formula_picture, growths

OBSERVED, LOWEST, HIGHEST, BOUND = "steady-mean", "lowest-11s", "highest-11s", "quota-bound-11s"
DRAWN = frozenset({OBSERVED, LOWEST, HIGHEST, BOUND})
COLOURS = ("mean", "bound", "band", "control", "mark", "inconclusive")
SHAPES = ("circle", "square", "diamond", "triangle", "ring", "cross")
WIDTH, HEIGHT, LEFT, TOP, BELOW = 960.0, 400.0, 56.0, 14.0, 52.0
STEP_PX = 26.0
"""Between two points of one group at most."""


@dataclass(frozen=True, slots=True)
class SweepPage:
    """A sweep that was made, as far as it was; `units` are of the measures."""

    id: str
    experiment: str
    profile: str
    axes: tuple[str, ...]
    combinations: tuple[Combination, ...]
    measures: tuple[str, ...]
    units: Mapping[str, str]
    ended: str
    complete: bool
    not_passed: tuple[str, ...]
    command: str


@dataclass(frozen=True, slots=True)
class Point:
    """A combination as it is drawn, in the picture's units; None where a value is not known."""

    x: float
    y: float | None
    low: float | None
    high: float | None
    bound: float | None
    style: int
    title: str


@dataclass(frozen=True, slots=True)
class Picture:
    """Groups along the bottom (the first axis), a point in each for every combination of the other axes."""

    groups: tuple[tuple[float, str], ...]
    ticks: tuple[tuple[float, str], ...]
    points: tuple[Point, ...]
    styles: tuple[str, ...]
    quota_y: float
    band: tuple[float, float]
    axis: str


def render_sweep(page: SweepPage) -> str:
    """Return the page as HTML text."""
    made = {verdict: sum(c.runs.get(verdict, 0) for c in page.combinations) for verdict in ("pass", "fail")}
    state = "fail" if made["fail"] else "pass" if page.complete and not page.not_passed else "inconclusive"
    return template("sweep.html.j2").render(
        page=page,
        state=state,
        word={"pass": "All passed", "fail": "Some failed", "inconclusive": "Not all passed"}[state],
        picture=picture(page),
        tradeoffs=tradeoffs(page),
        formulas=formula_picture(page.combinations),
        growths=growth(page),
        columns=columns(page),
        rows=[row(page, each) for each in page.combinations],
        colours=COLOURS,
        shapes=SHAPES,
        width=WIDTH,
        height=HEIGHT,
        left=LEFT,
        bottom=HEIGHT - BELOW,
        style=inline("templates/report.css") + inline("templates/sweep.css"),
    )


def columns(page: SweepPage) -> tuple[str, ...]:
    """Return the headings of the table: axes, runs, the rate against the quota, then what else was measured."""
    others = tuple(_heading(page, name) for name in page.measures if name not in DRAWN)
    rates = ("observed ÷ quota", "11 s windows ÷ quota", "bound") if DRAWN & {*page.measures} else ()
    return (*(page.axes or ("combination",)), "passed", *rates, *others)


def row(page: SweepPage, found: Combination) -> tuple[str, ...]:
    """Return the row of one combination."""
    runs = sum(found.runs.values())
    low, high = _span(found, LOWEST)[0], _span(found, HIGHEST)[1]
    windows = f"{_number(low)} to {_number(high)}" if low is not None or high is not None else NOTHING
    others = tuple(_ranged(found, name) for name in page.measures if name not in DRAWN)
    passed = f"{found.runs.get('pass', 0)} of {runs}"
    values = found.values if page.axes else (found.label,)
    rates = (_ranged(found, OBSERVED), windows, _number(found.medians.get(BOUND))) if DRAWN & {*page.measures} else ()
    return (*values, passed, *rates, *others)


def as_markdown(page: SweepPage) -> str:
    """Return the table for a document."""
    lines = [columns(page), *(row(page, each) for each in page.combinations)]
    rows = ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines]
    return "\n".join([rows[0], "|" + "---|" * len(lines[0]), *rows[1:]])


def picture(page: SweepPage) -> Picture | None:
    """Return the picture, where everything goes; None when no combination has a rate. Pure."""
    drawn = [each for each in page.combinations if each.medians.get(OBSERVED) is not None]
    if not drawn:
        return None
    first = [each.values[0] if each.values else each.label for each in page.combinations]
    groups = list(dict.fromkeys(first))
    styles = list(dict.fromkeys(_style(page, each) for each in page.combinations))
    ticks = _ticks(drawn)
    y = scale(ticks[0], ticks[-1], HEIGHT - BELOW, TOP)
    wide = (WIDTH - LEFT) / len(groups)
    middle = {group: LEFT + wide * (index + 0.5) for index, group in enumerate(groups)}
    step = min(STEP_PX, wide * 0.8 / len(styles))
    points = []
    for each, group in zip(page.combinations, first, strict=True):
        style = styles.index(_style(page, each))
        known = {name: each.medians.get(name) for name in (OBSERVED, BOUND)}
        known |= {LOWEST: _span(each, LOWEST)[0], HIGHEST: _span(each, HIGHEST)[1]}
        at = {name: None if value is None else y(value) for name, value in known.items()}
        x = round(middle[group] + (style - (len(styles) - 1) / 2) * step, 1)
        points.append(Point(x, at[OBSERVED], at[LOWEST], at[HIGHEST], at[BOUND], style, _title(each)))
    return Picture(
        tuple((round(middle[group], 1), _fitted(group, wide)) for group in groups),
        tuple((y(tick), f"{tick:.2f}".rstrip("0").rstrip(".")) for tick in ticks),
        tuple(points),
        tuple(styles),
        y(1.0),
        (y(1.0), y(0.95)),
        page.axes[0] if page.axes else "",
    )


def _fitted(name: str, width: float) -> str:
    """Return the name of a group, or of a long one its end, such as of a path: the table has it whole."""
    most = max(2, int(width / tradeoff.CHARACTER))
    return name if len(name) <= most else f"…{name[1 - most :]}"


def tradeoffs(page: SweepPage) -> tuple[tradeoff.Tradeoff, ...]:
    """Return the time that each combination took against what it was to the cluster. Pure."""
    units = {name: page.units.get(name, "") for name in tradeoff.BURDENS}
    found = (tradeoff.tradeoff(page.combinations, name, units[name]) for name in tradeoff.BURDENS)
    return tuple(each for each in found if each is not None)


def growth(page: SweepPage) -> tuple[SizeScaling, ...]:
    """Return how the move's time grows with its size, where sizes were an axis. Pure."""
    return growths(page.axes, page.combinations)


def _ticks(drawn: Sequence[Combination]) -> list[float]:
    """Return round values that everything drawn, and the quota, lies between; 4 to 9 of them."""
    values = [1.0, 0.95]
    for each in drawn:
        values += [v for v in (*_span(each, LOWEST), *_span(each, HIGHEST), *_span(each, BOUND)) if v is not None]
        values.append(each.medians[OBSERVED])
    low, high = min(values), max(values)
    size = next(s for s in (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, math.inf) if (high - low) / s <= 7)
    size = size if math.isfinite(size) else (high - low) / 7
    first, last = math.floor(round(low / size, 6)), math.ceil(round(high / size, 6))
    return [round(size * n, 6) for n in range(first, max(last, first + 1) + 1)]


def _style(page: SweepPage, found: Combination) -> str:
    """Return what a combination is called within its group: the values of all axes but the first."""
    return ", ".join(f"{name}={value}" for name, value in list(zip(page.axes, found.values, strict=True))[1:])


def _span(found: Combination, name: str) -> tuple[float | None, float | None]:
    return found.ranges.get(name, (None, None))


def _title(found: Combination) -> str:
    low, high = _span(found, LOWEST)[0], _span(found, HIGHEST)[1]
    share = _ranged(found, OBSERVED)
    return f"{found.label}: {share} of the quota; 11 s windows {_number(low)} to {_number(high)}"


def _ranged(found: Combination, name: str) -> str:
    if name not in found.medians:
        return NOTHING
    low, high = found.ranges[name]
    median = _number(found.medians[name])
    return median if low == high else f"{median} ({_number(low)} to {_number(high)})"


def _number(value: float | None) -> str:
    if value is None:
        return NOTHING
    return f"{value:.3f}" if abs(value) < 10 else f"{value:.1f}"


def _heading(page: SweepPage, name: str) -> str:
    unit = page.units.get(name, "")
    return f"{name}, {unit}" if unit else name
