"""Series of runs, judged night after night from where they were judged last. Pure, and many series at once.

What `results/series/replay.py` does for a matrix with a row a night, this does for runs as they come: several in one
night, none in others, each series from its own beginning.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from results.series.block import MOST_RUNS, Block, Bools, Floats, Ints
from results.series.calculator import FEWEST_RUNS
from results.series.decision import Change
from results.series.judge import Judge, Judgement
from results.series.noise import Noise
from results.series.ongoing import asked_again, gone_on
from results.series.replay import kept

DAY_US = 86_400_000_000
HISTORY = 10
"""A night that has so many runs of a series, or more, is a history that was begun in one go: it is looked at as though
it had been nights of `MOST` runs each. Else a change in the middle of it would be older than what is looked for."""
MOST = 3
"""So often a night runs what is noisy."""
LOOKS = 1 << 20
"""More looks than one night has: the second look of night 7 is 7 + 1 ÷ `LOOKS`."""
Teacher = Callable[[float, Block], Noise]
"""(night, what all series have shown up to it) → the noise to judge it by. Further looks of a night are fractions."""


def night_of(at: Ints) -> Ints:
    """The number of the night a time (microseconds since the epoch) belongs to: nights change at noon, UTC."""
    return np.asarray((at - DAY_US // 2) // DAY_US)


@dataclass(frozen=True, slots=True)
class Runs:
    """Runs of many series, one series after the other, oldest first: those of series i from `starts[i]` to
    `starts[i + 1]`. `at` is in microseconds; `values` are NaN where a run has none."""

    starts: Ints
    at: Ints
    values: Floats

    @property
    def series(self) -> int:
        """How many there are."""
        return len(self.starts) - 1

    @property
    def owner(self) -> Ints:
        """The series of each run."""
        return np.repeat(np.arange(self.series), np.diff(self.starts))


@dataclass(frozen=True, slots=True)
class Found:
    """A change reported on `night`; the others are rows of the runs. The new baseline begins at `baseline`."""

    series: int
    night: float
    change: Change
    first_bad: int
    last_good: int
    newest: int
    baseline: int


@dataclass(frozen=True, slots=True)
class Open:
    """The newest change that was reported of a series, which nobody has acknowledged; `first_bad` is a row."""

    change: Change
    first_bad: int


@dataclass(frozen=True, slots=True)
class Grown:
    """What became of a change of a series: of the one that was open before (`report` 0), or of the first, second, …
    that was found. Its kind is known by now, or it is a drift that went on; then the baseline begins anew, at a row."""

    series: int
    report: int
    change: Change
    baseline: int | None = None


@dataclass(frozen=True, slots=True)
class Advanced:
    """What became of each series: everything found, what became of it, the judgement of its newest night (None: no new
    run), the row of the oldest run that is still needed (-1: none)."""

    found: list[Found]
    grown: list[Grown]
    judgements: list[Judgement | None]
    oldest: Ints


def advance(
    runs: Runs,
    baseline: Ints,
    judged: Ints,
    noise: Teacher,
    judge: Judge | None = None,
    family: int | None = None,
    newest: Mapping[int, Open] | None = None,
) -> Advanced:
    """Judge every night after `judged` (a time for each series), from runs since `baseline` (the same).

    `family` is that of `Judge.night`; `noise` is asked once for each look at which any series is long enough: one a
    night, or several (`HISTORY`). `newest` are changes that are open (series → change): a drift that goes on is not
    reported again.
    """
    judge = judge or Judge()
    windows = _Windows(runs, baseline, judged)
    told = _Told(windows, newest or {})
    last: list[Judgement | None] = [None] * runs.series
    for night, layers in _nights(runs, windows.owner, windows.new):
        for layer in layers:
            windows.add(layer)
        ran = np.unique(np.concatenate([windows.owner[layer] for layer in layers]))
        for at in ran:
            last[at] = Judgement(int(windows.counts[at]))
        tonight = ran[windows.counts[ran] >= FEWEST_RUNS]
        if not len(tonight):
            continue
        known = noise(night, Block(windows.values, windows.counts))
        for look in judge.look(Block(windows.values[:, tonight], windows.counts[tonight]), known, family):
            changes = judge.changes(look)
            for i, member in enumerate(look.members):
                at, level = int(tonight[member]), float(look.detectable[i])
                last[at] = Judgement(
                    len(look.values),
                    float(look.scores[i]),
                    float(look.chances[i]),
                    level if np.isfinite(level) else None,
                    told.new(at, night, changes.get(i), float(look.ground.memory[i])),
                )
    return Advanced(told.found, told.grown, last, windows.oldest())


class _Windows:
    """The newest runs of every series, those before its baseline included; `counts` says how many are since then."""

    def __init__(self, runs: Runs, baseline: Ints, judged: Ints) -> None:
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
        """What was judged before: the newest of it is where a series goes on."""
        for at in range(self._runs.series):
            begin, end = int(self._runs.starts[at]), int(self._runs.starts[at + 1])
            mine = begin + np.flatnonzero(old[begin:end])[-MOST_RUNS:]
            if len(mine):
                self.values[-len(mine) :, at], self.rows[-len(mine) :, at] = self._runs.values[mine], mine
                self.counts[at] = int(np.sum(since[mine]))

    def add(self, layer: Ints) -> None:
        """One more run of some series."""
        mine = self.owner[layer]
        self.values[:-1, mine], self.rows[:-1, mine] = self.values[1:, mine], self.rows[1:, mine]
        self.values[-1, mine], self.rows[-1, mine] = self._runs.values[layer], layer
        self.counts[mine] = np.minimum(self.counts[mine] + 1, MOST_RUNS)

    def of(self, at: int) -> tuple[Floats, Ints]:
        """(values, rows) of a series."""
        there = self.rows[:, at] >= 0
        return self.values[there, at], self.rows[there, at]

    def oldest(self) -> Ints:
        """The row of each series' oldest run that is here; -1 where there is none."""
        there = self.rows >= 0
        first = self.rows[np.argmax(there, axis=0), np.arange(self.rows.shape[1])]
        return np.where(there.any(axis=0), first, -1)


class _Told:
    """What was found, night by night, and what became of it."""

    def __init__(self, windows: _Windows, newest: Mapping[int, Open]) -> None:
        self.found: list[Found] = []
        self.grown: list[Grown] = []
        self._windows = windows
        self._newest = dict(newest)
        self._count = np.zeros(len(windows.counts), np.int64)

    def new(self, at: int, night: float, change: Change | None, memory: float) -> Change | None:
        """Of a change that was found in a series tonight, or of None, what is to be reported."""
        earlier = self._newest.get(at)
        if change is None:
            if earlier is not None and earlier.change.kind == "unclear":
                self._ask_again(at, earlier, memory)
            return None
        values, rows = self._windows.of(at)
        if earlier is not None:
            since = int(np.sum(rows >= earlier.first_bad))
            longer = gone_on(earlier.change, values, since, change, memory)
            if longer is not None:
                begin = kept(longer)
                self._grow(at, Open(longer, earlier.first_bad), int(rows[-begin]))
                self._windows.counts[at] = begin
                return None
        begin, first_bad = kept(change), int(rows[-change.runs])
        last_good = int(rows[-change.runs - 1])
        self.found.append(Found(at, night, change, first_bad, last_good, int(rows[-1]), int(rows[-begin])))
        self._newest[at] = Open(change, first_bad)
        self._count[at] += 1
        self._windows.counts[at] = begin
        return change

    def _ask_again(self, at: int, earlier: Open, memory: float) -> None:
        values, rows = self._windows.of(at)
        now = asked_again(earlier.change, values, int(np.sum(rows >= earlier.first_bad)), memory)
        if now.kind != earlier.change.kind:
            self._grow(at, Open(now, earlier.first_bad))

    def _grow(self, at: int, now: Open, baseline: int | None = None) -> None:
        self._newest[at] = now
        self.grown.append(Grown(at, int(self._count[at]), now.change, baseline))


def of_a_night(owner: Ints, night: Ints) -> tuple[Ints, Ints]:
    """Where the runs of one series and night begin, and how many there are; a series' runs lie together, in order."""
    begins = np.flatnonzero((np.diff(owner, prepend=-1) != 0) | (np.diff(night, prepend=night[:1] - 1) != 0))
    return begins, np.diff(np.append(begins, len(owner)))


def _nights(runs: Runs, owner: Ints, new: Bools) -> list[tuple[float, list[Ints]]]:
    """For each look the new runs, in layers: each has one run a series at most, the earlier ones first."""
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
