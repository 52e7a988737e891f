"""A store's nights one after the other, as they would have been judged: to calibrate, and for a whole history. Pure."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from results.series.block import MOST_RUNS, Block, Floats
from results.series.calculator import FEWEST_RUNS
from results.series.decision import Change
from results.series.judge import Judge
from results.series.noise import Noise
from results.series.ongoing import gone_on


@dataclass(frozen=True, slots=True)
class Found:
    """A change, reported in that night (a row) for that series (a column)."""

    night: int
    series: int
    change: Change


def replay(
    values: Floats,
    noise: Callable[[int, Block], Noise],
    judge: Judge | None = None,
    family: int | None = None,
    first: int = 0,
    each: int = 1,
) -> Iterator[list[Found]]:
    """For each night (row of `values`, a column a series, NaN where there was no run) what is reported; a single
    series, lists, and None are for `changes`. Where a night has several runs of a series, `each` rows are one: it is
    judged once, after its last run.

    `noise` is asked each night on which any series is long enough, with what all series have shown up to it. `family`
    is that of `Judge.night`. Nights before `first` are not judged. A drift that goes on is reported once.
    """
    judge = judge or Judge()
    series = values.shape[1]
    window = np.full((MOST_RUNS, series), np.nan)
    counts, seen = np.zeros(series, np.int64), np.zeros(series, np.int64)
    newest: dict[int, tuple[Change, int]] = {}
    for night, row in enumerate(values):
        ran = np.flatnonzero(np.isfinite(row))
        window[:-1, ran] = window[1:, ran]
        window[-1, ran] = row[ran]
        counts[ran] = np.minimum(counts[ran] + 1, MOST_RUNS)
        seen[ran] += 1
        found: list[Found] = []
        tonight = ran[counts[ran] >= FEWEST_RUNS]
        if len(tonight) and night >= first and (night + 1) % each == 0:
            known = noise(night // each, Block(window, counts))
            for look in judge.look(Block(window[:, tonight], counts[tonight]), known, family):
                for i, change in judge.changes(look).items():
                    at, memory = int(tonight[look.members[i]]), float(look.ground.memory[i])
                    begun = int(seen[at]) - change.runs
                    longer = None
                    if at in newest:
                        earlier, first_bad = newest[at]
                        runs = window[-min(int(seen[at]), MOST_RUNS) :, at]
                        longer = gone_on(earlier, runs, int(seen[at]) - first_bad, change, memory)
                        begun = begun if longer is None else first_bad
                    if longer is None:
                        found.append(Found(night, at, change))
                    newest[at] = (longer or change, begun)
                    counts[at] = kept(longer or change)
        yield found


def kept(change: Change) -> int:
    """How many of the newest runs are the new baseline: those after a step; a drift has not settled yet."""
    return 1 if change.kind == "drift" else change.runs
