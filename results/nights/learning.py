"""What a store's series are like when nothing happens, learned anew as the nights go by. Pure: the seed is given."""

import itertools
import math

import numpy as np

from results.nights.advance import MOST, Runs, Teacher, advance, night_of, of_a_night
from results.series.block import Block, Ints
from results.series.judge import Judge
from results.series.learned import Learned, again
from results.series.noise import Noise

LEARN_FROM = 1000
"""So many series at most tell what all are like."""


def usual(runs: Runs) -> Ints:
    """How many runs each series has a night, `MOST` at most: half of the nights on which it has any have no more."""
    there = np.isfinite(runs.values)
    owner = runs.owner[there]
    begins, counts = of_a_night(owner, night_of(runs.at[there]))
    bounds = np.searchsorted(owner[begins], np.arange(runs.series + 1))
    found = [counts[a:b] for a, b in itertools.pairwise(bounds)]
    return np.array([min(math.ceil(np.median(each)), MOST) if len(each) else 1 for each in found], np.int64)


def lessons(
    runs: Runs, baseline: Ints, judged: Ints, known: Learned | None, seed: int, judge: Judge, family: int
) -> list[Learned]:
    """What was learned over the nights after `judged`, `known` first: from some series, for all."""
    found = [known] if known is not None else []
    each = usual(runs)

    def teacher(night: float, block: Block) -> Noise:
        now = again(found[-1] if found else None, night, block, seed, judge.rule.night, each)
        if not found or now is not found[-1]:
            found.append(now)
        return now.noise

    advance(runs, baseline, judged, teacher, judge, family)
    return found


def taught(lessons: list[Learned]) -> Teacher:
    """The noise of each night, as it was known then; before anything was, what was learned first."""
    nights = np.array([each.night for each in lessons])

    def teacher(night: float, _block: Block) -> Noise:
        if not lessons:
            raise ValueError("nothing was learned: no series is long enough")
        return lessons[max(0, int(np.searchsorted(nights, night, side="right")) - 1)].noise

    return teacher
