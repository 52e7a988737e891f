"""The change points of an existing history: those that its nights would have reported. Pure.

A `Judge` looks at the newest runs only and asks what changed tonight. Here every night is asked, from the first on:
`replay` over the whole history, the noise learned as it grows. The maths is in `docs/series.md`.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any, Literal, overload

import numpy as np
import numpy.typing as npt

from results.series.block import MOST_RUNS, Block, Floats, Ints
from results.series.calculator import FEWEST_RUNS_TO_JUDGE
from results.series.decision import ChangeRule, Kind, LevelChange, baseline_runs, continued_drift
from results.series.judge import Better, Judge, direction
from results.series.noise import Noise
from results.series.noise_estimation import learned_as_it_grows


@dataclass(frozen=True, slots=True)
class ReplayedChange:
    """A change, reported in that night (a row) for that series (a column)."""

    night: int
    series: int
    change: LevelChange


def replay(
    values: Floats,
    noise: Callable[[int, Block], Noise],
    judge: Judge | None = None,
    family: int | None = None,
    first: int = 0,
    each: int = 1,
) -> Iterator[list[ReplayedChange]]:
    """Yield for each night (row of `values`, a column a series, NaN where there was no run) what is reported; a single
    series, lists, and None are for `changes`. Where a night has several runs of a series, `each` rows are one: it is
    judged once, after its last run.

    `noise` is asked each night on which any series is long enough, with what all series have shown up to it. `family`
    is that of `Judge.look`. Nights before `first` are not judged. A drift that goes on is reported once.
    """
    judge = judge or Judge()
    series = values.shape[1]
    window = np.full((MOST_RUNS, series), np.nan)
    counts, seen = np.zeros(series, np.int64), np.zeros(series, np.int64)
    newest: dict[int, tuple[LevelChange, int]] = {}
    for night, row in enumerate(values):
        ran = np.flatnonzero(np.isfinite(row))
        window[:-1, ran] = window[1:, ran]
        window[-1, ran] = row[ran]
        counts[ran] = np.minimum(counts[ran] + 1, MOST_RUNS)
        seen[ran] += 1
        found: list[ReplayedChange] = []
        tonight = ran[counts[ran] >= FEWEST_RUNS_TO_JUDGE]
        if len(tonight) and night >= first and (night + 1) % each == 0:
            known = noise(night // each, Block(window, counts))
            for look in judge.look(Block(window[:, tonight], counts[tonight]), known, family):
                for i, change in judge.changes(look).items():
                    at, memory = int(tonight[look.members[i]]), float(look.prior.memory[i])
                    begun = int(seen[at]) - change.runs
                    longer = None
                    if at in newest:
                        earlier, first_bad = newest[at]
                        runs = window[-min(int(seen[at]), MOST_RUNS) :, at]
                        longer = continued_drift(earlier, runs, int(seen[at]) - first_bad, change, memory)
                        begun = begun if longer is None else first_bad
                    if longer is None:
                        found.append(ReplayedChange(night, at, change))
                    newest[at] = (longer or change, begun)
                    counts[at] = baseline_runs(longer or change)
        yield found


Values = Sequence[float | None] | npt.NDArray[Any]
"""The runs of one series, oldest first: a list, a tuple, a 1-D array. None, NaN or infinite: a run without a value."""
Meaning = Literal["better", "worse", "unknown"]
"""A change as better, worse, or unknown when the user did not say which way is better."""
LARGEST = 1e150
"""Values beyond could not be squared."""
_MEANING: Mapping[str, Meaning] = {"REGRESSED": "worse", "IMPROVED": "better"}
_ALONE = ""
_BY_NAME = "several series go in by name, {name: values, …}"
_TOO_LARGE = f"beyond ± {LARGEST:g}: give the series in a larger unit"


@dataclass(frozen=True, slots=True)
class ChangePoint:
    """A change, as it was reported.

    `first_bad`, `last_good` and `reported` are positions in the history as it was given, from 0, runs without a value
    counted: the first run of the new level (of a drift, the first on its way), the last value before it, and the run
    that reported it. `before` and `after` are levels in the series' own unit, of a drift where it begins and where it
    had come to; `difference` is the 95 % interval of `after` − `before`. `effect` and `interval` are both as fractions
    of `before` (0.05: 5 %), None where that is 0. `p` is adjusted: so many series would be expected to show so much in
    one night by luck.
    """

    kind: Kind
    first_bad: int
    last_good: int
    reported: int
    before: float
    after: float
    difference: tuple[float, float]
    effect: float | None
    interval: tuple[float, float] | None
    p: float
    meaning: Meaning


@dataclass(frozen=True, slots=True)
class SeriesChanges:
    """What one history shows: `runs` in all, `used` of them with a value, and the changes as they were reported."""

    runs: int
    used: int
    changes: tuple[ChangePoint, ...]

    @property
    def too_few(self) -> bool:
        """Return whether there was nothing to judge: the absence of changes then says nothing."""
        return self.used < FEWEST_RUNS_TO_JUDGE


@overload
def changes(
    values: Mapping[str, Values],
    *,
    better: Better | Mapping[str, Better] | None = None,
    seed: int = 1,
    rule: ChangeRule | None = None,
    noise: Noise | None = None,
) -> dict[str, SeriesChanges]: ...


@overload
def changes(
    values: Values,
    *,
    better: Better | None = None,
    seed: int = 1,
    rule: ChangeRule | None = None,
    noise: Noise | None = None,
) -> SeriesChanges: ...


def changes(
    values: Values | Mapping[str, Values],
    *,
    better: Better | Mapping[str, Better] | None = None,
    seed: int = 1,
    rule: ChangeRule | None = None,
    noise: Noise | None = None,
) -> SeriesChanges | dict[str, SeriesChanges]:
    """Return every change of a history, judged run by run as though that had been done each night.

    `values` is one series, or several by name; these are one family (`ChangeRule.night` is for all together), and a
    position is the same night in each. `better` says which way is better, of all or by name. `noise` is what was
    learned of a store before (`learn`); without it the history's own is learned as it grows: some tenths of a second of
    CPU for every 20 runs, more often among the first 60. Time and memory grow with the history's length; the same seed
    finds the same.

    Raise ValueError for what is no number (with its position), more than one dimension, series of different lengths, a
    `better` that names no series, a negative seed.
    """
    if isinstance(values, Mapping):
        return _several(values, better, seed, rule, noise)
    if isinstance(better, Mapping):
        raise ValueError("better: one series has one direction, lower or higher; those by name are of series by name")
    return _several({_ALONE: values}, better, seed, rule, noise)[_ALONE]


def _several(
    values: Mapping[str, Values],
    better: Better | Mapping[str, Better] | None,
    seed: int,
    rule: ChangeRule | None,
    noise: Noise | None,
) -> dict[str, SeriesChanges]:
    names = list(values)
    ways = _ways(better, names)
    if seed < 0:
        raise ValueError(f"seed {seed}: expected 0 or more")
    columns = [_numbers(name, values[name]) for name in names]
    there = [np.flatnonzero(np.isfinite(column)) for column in columns]
    judge = Judge(rule or ChangeRule())
    found: list[list[ChangePoint]] = [[] for _ in names]
    for night in replay(_matrix(names, columns), _teacher(noise, seed, judge.rule.night), judge):
        for each in night:
            found[each.series].append(_point(each, there[each.series], ways[each.series]))
    return {name: SeriesChanges(len(columns[at]), len(there[at]), tuple(found[at])) for at, name in enumerate(names)}


def _teacher(noise: Noise | None, seed: int, share: float) -> Callable[[int, Block], Noise]:
    return learned_as_it_grows(seed, share) if noise is None else lambda _night, _block: noise


def _point(found: ReplayedChange, there: Ints, better: Better | None) -> ChangePoint:
    """Return the change point; `there` are the positions of the series' values, which a change counts back."""
    change = found.change
    first = int(np.searchsorted(there, found.night, side="right")) - change.runs
    return ChangePoint(
        kind=change.kind,
        first_bad=int(there[first]),
        last_good=int(there[first - 1]),
        reported=found.night,
        before=change.before,
        after=change.after,
        difference=(change.low, change.high),
        effect=change.effect,
        interval=change.interval,
        p=change.chance,
        meaning="unknown" if better is None else _MEANING[direction(change, better)],
    )


def _ways(better: Better | Mapping[str, Better] | None, names: Sequence[str]) -> list[Better | None]:
    """Return which way is better for each series."""
    each: list[Better | None]
    if isinstance(better, Mapping):
        if unknown := [name for name in better if name not in names]:
            existing = f"there are: {', '.join(map(repr, names)) or 'none'}"
            raise ValueError(f"better: there is no series {', '.join(map(repr, unknown))}; {existing}")
        each = [better.get(name) for name in names]
    else:
        each = [better for _ in names]
    for way in each:
        if way not in (None, "lower", "higher"):
            raise ValueError(f"better {way!r}: expected lower or higher; leave it out where it is not known")
    return each


def _matrix(names: Sequence[str], columns: Sequence[Floats]) -> Floats:
    """Return the values with a row a night and a column a series."""
    for name, column in zip(names, columns, strict=True):
        if len(column) != len(columns[0]):
            raise ValueError(
                f"series {name!r} has {len(column)} runs, {names[0]!r} has {len(columns[0])}: a position is the same "
                "night in all; put None where a series has no value, or judge what does not belong together by itself"
            )
    return np.column_stack(columns) if columns else np.zeros((0, 0))


def _numbers(name: str, runs: Values) -> Floats:
    """Return a series as floats; NaN, or infinite, where a run has no value."""
    where = f"series {name!r}" if name else "values"
    if isinstance(runs, np.ndarray) and runs.ndim != 1:
        raise ValueError(f"{where}: an array of {runs.ndim} dimensions: expected 1; {_BY_NAME}")
    if isinstance(runs, str | bytes | Mapping) or not hasattr(runs, "__iter__"):
        raise ValueError(f"{where}: {type(runs).__name__}: expected a list, a tuple or a 1-D array, oldest run first")
    # What is masked in an array, its list has as None.
    listed = runs.tolist() if isinstance(runs, np.ndarray) else runs
    return np.array([_number(value, where, at) for at, value in enumerate(listed)], np.float64)


def _number(value: object, where: str, at: int) -> float:
    if value is None:
        return math.nan
    # Truth values are numbers in Python, and no measurements.
    if isinstance(value, bool) or not isinstance(value, Real | Decimal):
        more = f"; {_BY_NAME}" if isinstance(value, Sequence | np.ndarray) and not isinstance(value, str) else ""
        raise ValueError(f"{where}, position {at}: {value!r:.40} is no number; None where a run has no value{more}")
    try:
        number = float(value)
    except OverflowError as error:
        raise ValueError(f"{where}, position {at}: {_TOO_LARGE}") from error
    if LARGEST < abs(number) < math.inf:
        raise ValueError(f"{where}, position {at}: {number:g}: {_TOO_LARGE}")
    return number
