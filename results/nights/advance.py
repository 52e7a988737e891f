"""Series of runs, judged night after night from where they were judged last. Pure, and many series at once.

What `results/series/replay.py` does for a matrix with a row a night, this does for runs as they come: several in one
night, none in others, each series from its own beginning.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from results.series.block import MOST_RUNS, Block, Bools, Floats, Ints
from results.series.calculator import FEWEST_RUNS
from results.series.decision import Change
from results.series.judge import Judge, Judgement
from results.series.noise import Noise
from results.series.replay import kept

DAY_US = 86_400_000_000
Teacher = Callable[[int, Block], Noise]
"""(night, what all series have shown up to it) → the noise to judge it by."""


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
    night: int
    change: Change
    first_bad: int
    last_good: int
    newest: int
    baseline: int


@dataclass(frozen=True, slots=True)
class Advanced:
    """What became of each series: everything found, the judgement of its newest night (None: no new run), the row of
    the oldest run that is still needed (-1: none)."""

    found: list[Found]
    judgements: list[Judgement | None]
    oldest: Ints


def advance(
    runs: Runs,
    baseline: Ints,
    judged: Ints,
    noise: Teacher,
    judge: Judge | None = None,
    family: int | None = None,
) -> Advanced:
    """Judge every night after `judged` (a time for each series), from runs since `baseline` (the same).

    `family` is that of `Judge.night`; `noise` is asked once for each night on which any series is long enough.
    """
    judge = judge or Judge()
    window = np.full((MOST_RUNS, runs.series), np.nan)
    rows = np.full((MOST_RUNS, runs.series), -1, np.int64)
    counts = np.zeros(runs.series, np.int64)
    owner = runs.owner
    usable = np.isfinite(runs.values) & (runs.at >= baseline[owner])
    new = usable & (runs.at > judged[owner])
    _fill(window, rows, counts, runs, usable & ~new)
    found: list[Found] = []
    last: list[Judgement | None] = [None] * runs.series
    for night, layers in _nights(runs, owner, new):
        ran = np.unique(np.concatenate([owner[layer] for layer in layers]))
        for layer in layers:
            mine = owner[layer]
            window[:-1, mine], rows[:-1, mine] = window[1:, mine], rows[1:, mine]
            window[-1, mine], rows[-1, mine] = runs.values[layer], layer
            counts[mine] = np.minimum(counts[mine] + 1, MOST_RUNS)
        for at in ran:
            last[at] = Judgement(int(counts[at]))
        tonight = ran[counts[ran] >= FEWEST_RUNS]
        if not len(tonight):
            continue
        known = noise(night, Block(window, counts))
        for look in judge.look(Block(window[:, tonight], counts[tonight]), known, family):
            changes = judge.changes(look)
            for i, member in enumerate(look.members):
                at = int(tonight[member])
                level = float(look.detectable[i])
                last[at] = Judgement(
                    len(look.values),
                    float(look.scores[i]),
                    float(look.chances[i]),
                    level if np.isfinite(level) else None,
                    changes.get(i),
                )
            for i, change in changes.items():
                at = int(tonight[look.members[i]])
                own = rows[:, at]
                before = int(own[-change.runs - 1])
                rest = kept(change)
                first = int(own[-change.runs])
                found.append(Found(at, night, change, first, before, int(own[-1]), int(own[-rest])))
                counts[at] = rest
    oldest = np.where(counts > 0, rows[MOST_RUNS - np.maximum(counts, 1), np.arange(runs.series)], -1)
    return Advanced(found, last, oldest)


def _fill(window: Floats, rows: Ints, counts: Ints, runs: Runs, old: Bools) -> None:
    """What was judged before: the newest of it is where a series goes on."""
    for at in range(runs.series):
        begin, end = int(runs.starts[at]), int(runs.starts[at + 1])
        mine = begin + np.flatnonzero(old[begin:end])[-MOST_RUNS:]
        if len(mine):
            window[-len(mine) :, at], rows[-len(mine) :, at] = runs.values[mine], mine
            counts[at] = len(mine)


def _nights(runs: Runs, owner: Ints, new: Bools) -> list[tuple[int, list[Ints]]]:
    """For each night the new runs, in layers: each has one run a series at most, the earlier ones first."""
    index = np.flatnonzero(new)
    if not len(index):
        return []
    night = night_of(runs.at[index])
    # Runs of a series lie together, in order of time: how many of the same night are before each is its layer.
    begins = np.flatnonzero((np.diff(owner[index], prepend=-1) != 0) | (np.diff(night, prepend=night[0] - 1) != 0))
    layer = np.arange(len(index)) - np.repeat(begins, np.diff(np.append(begins, len(index))))
    order = np.lexsort((layer, night))
    index, night, layer = index[order], night[order], layer[order]
    cuts = np.flatnonzero((np.diff(night) != 0) | (np.diff(layer) != 0)) + 1
    found: list[tuple[int, list[Ints]]] = []
    for part, first in zip(np.split(index, cuts), np.concatenate([[0], cuts]), strict=True):
        if not found or found[-1][0] != int(night[first]):
            found.append((int(night[first]), []))
        found[-1][1].append(part)
    return found
