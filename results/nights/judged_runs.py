"""Series of runs, judged night after night from where they were judged last. Pure, and many series at once.

What `results/series/changes.py` does for a matrix with a row a night, this does for runs as they come: several in one
night, none in others, each series from its own beginning.
"""

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from results.series.block import MOST_RUNS, Block, Bools, Floats, Ints
from results.series.calculator import FEWEST_RUNS_TO_JUDGE
from results.series.decision import LevelChange, baseline_runs, continued_drift, with_kind
from results.series.judge import Judge, SeriesJudgement
from results.series.noise import Noise
from results.series.noise_estimation import LearnedNoise, learned_for

DAY_US = 86_400_000_000
HISTORY = 10
"""A night that has so many runs of a series, or more, is a history that was begun in one go: it is judged as though
it had been nights of `MOST` runs each. Else a change in the middle of it would be older than what is looked for."""
MOST = 3
"""So often a night runs what is noisy."""
LOOKS = 1 << 20
"""More looks than one night has: the second look of night 7 is 7 + 1 ÷ `LOOKS`."""
Teacher = Callable[[float, Block], Noise]
"""(night, what all series have shown up to it) → the noise to judge it by. Further looks of a night are fractions."""


def night_of(at: Ints) -> Ints:
    """Return the number of the night a time (microseconds since the epoch) belongs to: nights change at noon, UTC."""
    return np.asarray((at - DAY_US // 2) // DAY_US)


@dataclass(frozen=True, slots=True)
class SeriesRuns:
    """Runs of many series, one series after the other, oldest first: those of series i from `starts[i]` to
    `starts[i + 1]`. `at` is in microseconds; `values` are NaN where a run has none."""

    starts: Ints
    at: Ints
    values: Floats

    @property
    def series(self) -> int:
        """Return the number of series."""
        return len(self.starts) - 1

    @property
    def owner(self) -> Ints:
        """Return the series of each run."""
        return np.repeat(np.arange(self.series), np.diff(self.starts))


@dataclass(frozen=True, slots=True)
class DetectedChange:
    """A change reported on `night`; the others are rows of the runs. The new baseline begins at `baseline`."""

    series: int
    night: float
    change: LevelChange
    first_bad: int
    last_good: int
    newest: int
    baseline: int


@dataclass(frozen=True, slots=True)
class OpenChange:
    """The newest change that was reported of a series, which no user has acknowledged; `first_bad` is a row."""

    change: LevelChange
    first_bad: int


@dataclass(frozen=True, slots=True)
class ChangeUpdate:
    """What became of a change of a series: of the one that was open before (`report` 0), or of the first, second, …
    that was found. Its kind is known by now, or it is a drift that went on; then the baseline begins again at a row."""

    series: int
    report: int
    change: LevelChange
    baseline: int | None = None


@dataclass(frozen=True, slots=True)
class JudgedRuns:
    """What became of each series: everything found, what became of it, the judgement of its newest night (None: no new
    run), the row of the oldest run that is still needed (-1: none)."""

    found: list[DetectedChange]
    grown: list[ChangeUpdate]
    judgements: list[SeriesJudgement | None]
    oldest: Ints


def judge_runs(
    runs: SeriesRuns,
    baseline: Ints,
    judged: Ints,
    noise: Teacher,
    judge: Judge | None = None,
    family: int | None = None,
    newest: Mapping[int, OpenChange] | None = None,
) -> JudgedRuns:
    """Judge every night after `judged` (a time for each series), from runs since `baseline` (the same).

    `family` is that of `Judge.look`; `noise` is asked once for each look at which any series is long enough: one a
    night, or several (`HISTORY`). `newest` are changes that are open (series → change): a drift that goes on is not
    reported again.
    """
    judge = judge or Judge()
    windows = _Windows(runs, baseline, judged)
    reports = _Reports(windows, newest or {})
    last: list[SeriesJudgement | None] = [None] * runs.series
    for night, layers in _nights(runs, windows.owner, windows.new):
        for layer in layers:
            windows.add(layer)
        ran = np.unique(np.concatenate([windows.owner[layer] for layer in layers]))
        for at in ran:
            last[at] = SeriesJudgement(int(windows.counts[at]))
        tonight = ran[windows.counts[ran] >= FEWEST_RUNS_TO_JUDGE]
        if not len(tonight):
            continue
        known = noise(night, Block(windows.values, windows.counts))
        for look in judge.look(Block(windows.values[:, tonight], windows.counts[tonight]), known, family):
            changes = judge.changes(look)
            for i, member in enumerate(look.members):
                at = int(tonight[member])
                last[at] = look.judgement(i, reports.new(at, night, changes.get(i), float(look.prior.memory[i])))
    return JudgedRuns(reports.found, reports.grown, last, windows.oldest())


class _Windows:
    """The newest runs of every series, those before its baseline included; `counts` says how many are since then."""

    def __init__(self, runs: SeriesRuns, baseline: Ints, judged: Ints) -> None:
        self.owner = runs.owner
        finite = np.isfinite(runs.values)
        since = finite & (runs.at >= baseline[self.owner])
        self.new: Bools = since & (runs.at > judged[self.owner])
        self.values = np.full((MOST_RUNS, runs.series), np.nan)
        self.rows = np.full((MOST_RUNS, runs.series), -1, np.int64)
        self.counts = np.zeros(runs.series, np.int64)
        self._runs = runs
        self._fill(finite & ~self.new, since)

    def _fill(self, old: Bools, since: Bools) -> None:
        """Fill in what was judged before: the newest of it is where a series goes on."""
        for at in range(self._runs.series):
            begin, end = int(self._runs.starts[at]), int(self._runs.starts[at + 1])
            mine = begin + np.flatnonzero(old[begin:end])[-MOST_RUNS:]
            if len(mine):
                self.values[-len(mine) :, at], self.rows[-len(mine) :, at] = self._runs.values[mine], mine
                self.counts[at] = int(np.sum(since[mine]))

    def add(self, layer: Ints) -> None:
        """Append one more run of some series."""
        mine = self.owner[layer]
        self.values[:-1, mine], self.rows[:-1, mine] = self.values[1:, mine], self.rows[1:, mine]
        self.values[-1, mine], self.rows[-1, mine] = self._runs.values[layer], layer
        self.counts[mine] = np.minimum(self.counts[mine] + 1, MOST_RUNS)

    def of(self, at: int) -> tuple[Floats, Ints]:
        """Return (values, rows) of a series."""
        there = self.rows[:, at] >= 0
        return self.values[there, at], self.rows[there, at]

    def oldest(self) -> Ints:
        """Return the row of each series' oldest run in the window; -1 where there is none."""
        there = self.rows >= 0
        first = self.rows[np.argmax(there, axis=0), np.arange(self.rows.shape[1])]
        return np.where(there.any(axis=0), first, -1)


class _Reports:
    """What was found, night by night, and what became of it."""

    def __init__(self, windows: _Windows, newest: Mapping[int, OpenChange]) -> None:
        self.found: list[DetectedChange] = []
        self.grown: list[ChangeUpdate] = []
        self._windows = windows
        self._newest = dict(newest)
        self._count = np.zeros(len(windows.counts), np.int64)

    def new(self, at: int, night: float, change: LevelChange | None, memory: float) -> LevelChange | None:
        """Return what is to be reported of a change that was found in a series tonight, or of None."""
        earlier = self._newest.get(at)
        if change is None:
            if earlier is not None and earlier.change.kind == "unclear":
                self._ask_again(at, earlier, memory)
            return None
        values, rows = self._windows.of(at)
        if earlier is not None:
            since = int(np.sum(rows >= earlier.first_bad))
            longer = continued_drift(earlier.change, values, since, change, memory)
            if longer is not None:
                begin = baseline_runs(longer)
                self._grow(at, OpenChange(longer, earlier.first_bad), int(rows[-begin]))
                self._windows.counts[at] = begin
                return None
        begin, first_bad = baseline_runs(change), int(rows[-change.runs])
        last_good = int(rows[-change.runs - 1])
        self.found.append(DetectedChange(at, night, change, first_bad, last_good, int(rows[-1]), int(rows[-begin])))
        self._newest[at] = OpenChange(change, first_bad)
        self._count[at] += 1
        self._windows.counts[at] = begin
        return change

    def _ask_again(self, at: int, earlier: OpenChange, memory: float) -> None:
        values, rows = self._windows.of(at)
        now = with_kind(earlier.change, values, int(np.sum(rows >= earlier.first_bad)), memory)
        if now.kind != earlier.change.kind:
            self._grow(at, OpenChange(now, earlier.first_bad))

    def _grow(self, at: int, now: OpenChange, baseline: int | None = None) -> None:
        self._newest[at] = now
        self.grown.append(ChangeUpdate(at, int(self._count[at]), now.change, baseline))


def of_a_night(owner: Ints, night: Ints) -> tuple[Ints, Ints]:
    """Return where the runs of one series and night begin, and how many there are.

    A series' runs lie together, in order.
    """
    begins = np.flatnonzero((np.diff(owner, prepend=-1) != 0) | (np.diff(night, prepend=night[:1] - 1) != 0))
    return begins, np.diff(np.append(begins, len(owner)))


def _nights(runs: SeriesRuns, owner: Ints, new: Bools) -> list[tuple[float, list[Ints]]]:
    """Return for each look the new runs, in layers: each has one run a series at most, the earlier ones first."""
    index = np.flatnonzero(new)
    if not len(index):
        return []
    night = night_of(runs.at[index])
    # Runs of a series lie together, in order of time: how many of the same night are before each is its layer.
    begins, lengths = of_a_night(owner[index], night)
    layer = np.arange(len(index)) - np.repeat(begins, lengths)
    look = np.where(np.repeat(lengths >= HISTORY, lengths), layer // MOST, 0)
    order = np.lexsort((layer, look, night))
    index, night, layer, look = index[order], night[order], layer[order], look[order]
    cuts = np.flatnonzero((np.diff(night) != 0) | (np.diff(look) != 0) | (np.diff(layer) != 0)) + 1
    found: list[tuple[float, list[Ints]]] = []
    for part, first in zip(np.split(index, cuts), np.concatenate([[0], cuts]).tolist(), strict=True):
        at = int(night[first]) + int(look[first]) / LOOKS
        if not found or found[-1][0] != at:
            found.append((at, []))
        found[-1][1].append(part)
    return found


LEARN_FROM = 1000
"""So many series at most tell what all are like."""


def usual(runs: SeriesRuns) -> Ints:
    """Return how many runs each series has a night, `MOST` at most: the median of the nights on which it has any."""
    there = np.isfinite(runs.values)
    owner = runs.owner[there]
    begins, counts = of_a_night(owner, night_of(runs.at[there]))
    bounds = np.searchsorted(owner[begins], np.arange(runs.series + 1))
    found = [counts[a:b] for a, b in itertools.pairwise(bounds)]
    return np.array([min(math.ceil(np.median(each)), MOST) if len(each) else 1 for each in found], np.int64)


def lessons(
    runs: SeriesRuns, baseline: Ints, judged: Ints, known: LearnedNoise | None, seed: int, judge: Judge, family: int
) -> list[LearnedNoise]:
    """Return what was learned over the nights after `judged`, `known` first: from some series, for all."""
    found = [known] if known is not None else []
    each = usual(runs)

    def teacher(night: float, block: Block) -> Noise:
        now = learned_for(found[-1] if found else None, night, block, seed, judge.rule.night, each)
        if not found or now is not found[-1]:
            found.append(now)
        return now.noise

    judge_runs(runs, baseline, judged, teacher, judge, family)
    return found


def noise_by_night(lessons: list[LearnedNoise]) -> Teacher:
    """Return the noise of each night, as it was known then; before anything was, what was learned first."""
    nights = np.array([each.night for each in lessons])

    def teacher(night: float, _block: Block) -> Noise:
        if not lessons:
            raise ValueError("nothing was learned: no series is long enough")
        return lessons[max(0, int(np.searchsorted(nights, night, side="right")) - 1)].noise

    return teacher
