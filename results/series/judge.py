"""The judgement of many series of a night: calculator, significance and decision in one. Pure."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from results.series.block import Block, Floats, Ints
from results.series.calculator import FEWEST_AFTER, FEWEST_RUNS_TO_JUDGE, Calculator, Prior, StepScan, of_mean
from results.series.decision import ChangeRule, Decision, LevelChange, step_or_drift
from results.series.noise import Noise, prior_of
from results.series.noise_estimation import FEW_SERIES, prepare
from results.series.separation import separation

Significance = Callable[[Floats, Noise], Floats]
"""Scores, noise → the chance of each that one series first reaches it in one night in which nothing happens."""


def by_surrogates(scores: Floats, noise: Noise) -> Floats:
    """Return the chances by how often surrogates of the store's series reach a score."""
    return noise.tail.chance(scores)


Better = Literal["lower", "higher", "unknown"]
"""Which way is better. Where that is unknown, every change is reported as one for the worse: a user has to decide."""
Verdict = Literal["OK", "IMPROVED", "REGRESSED", "NOISY", "NO-DATA"]
SCAN_SHARE = 0.75
"""The scan's share of the false alarms that `ChangeRule.night` allows; the test for a large change has the rest."""
RUNS_TO_FIND = 10
"""The number of runs after a step for which the detectable step is reported."""


@dataclass(frozen=True, slots=True)
class SeriesJudgement:
    """The judgement of one series in one night.

    `runs` were judged; with fewer than `FEWEST_RUNS_TO_JUDGE` nothing was. `chance` is an adjusted p (see
    `LevelChange`). `detectable` is the step, as a fraction of the level, that is found within 10 runs in half of all
    cases. It is None without a level.
    """

    runs: int
    score: float = 0.0
    chance: float = 1.0
    detectable: float | None = None
    change: LevelChange | None = None


@dataclass(frozen=True, slots=True)
class Judge:
    """The three parts, each replaceable, and the rule."""

    rule: ChangeRule = field(default_factory=ChangeRule)
    calculator: Calculator = field(default_factory=StepScan)
    significance: Significance = by_surrogates
    decision: Decision = step_or_drift

    def look(self, block: Block, noise: Noise, family: int | None = None) -> "Iterator[Scores]":
        """Return the scores of the block, length by length.

        `family` is how many series are judged tonight, when the block is only a part of them. A family smaller than
        `FEW_SERIES` counts as that many.
        """
        tonight = int(np.sum(block.counts >= FEWEST_RUNS_TO_JUDGE)) if family is None else family
        tonight = max(tonight, FEW_SERIES)
        limit = noise.tail.score(SCAN_SHARE * self.rule.night / tonight)
        for members, values in block.groups(FEWEST_RUNS_TO_JUDGE):
            group = prepare(values, self.calculator)
            memory = noise.memory.likely(group.memory, group.runs)
            prior = prior_of(group.standard, memory, group.variance, noise.spread)
            scores = self.calculator.scores(group.standard.x, prior)
            scanned = np.minimum(tonight * self.significance(scores, noise) / SCAN_SHARE, 1.0)
            large = np.minimum(tonight * separation(values, memory) / (1 - SCAN_SHARE), 1.0)
            detectable = _detectable(values, group.standard.scale, group.variance, memory, limit)
            yield Scores(members, values, group.standard.x, prior, scores, scanned, large, detectable)

    def changes(self, look: "Scores") -> dict[int, LevelChange]:
        """Return the changes to report: place in `look.members` → change."""
        clear = np.flatnonzero(look.chances <= self.rule.night)
        if len(clear) == 0:
            return {}
        places = self.calculator.places(look.x[:, clear], look.prior.take(clear))
        found = {}
        for i, place in zip(clear.tolist(), places.tolist(), strict=True):
            memory, chance = float(look.prior.memory[i]), float(look.chances[i])
            change = None
            if look.scanned[i] <= self.rule.night:
                change = self.decision(look.values[:, i], place, memory, chance, self.rule)
            if change is None and look.large[i] <= self.rule.night:
                change = self._large(look.values[:, i], memory, chance)
            if change is not None:
                found[i] = change
        return found

    def _large(self, runs: Floats, memory: float, chance: float) -> LevelChange | None:
        change = self.decision(runs, FEWEST_AFTER, memory, chance, self.rule)
        far = change is not None and abs(change.after - change.before) >= self.rule.large * abs(change.before)
        return change if far else None


@dataclass(frozen=True, slots=True)
class Scores:
    """The scores of series of one length; `x` are their standardised `values`, the rest has one entry a series."""

    members: Ints
    values: Floats
    x: Floats
    prior: Prior
    scores: Floats
    scanned: Floats
    """The adjusted p by the scan over all lengths."""
    large: Floats
    """The adjusted p by `separation`, which looks for a large change alone."""
    detectable: Floats

    @property
    def chances(self) -> Floats:
        """Return the smaller adjusted p of the two tests, which counts both of them."""
        return np.minimum(self.scanned, self.large)

    def judgement(self, i: int, change: LevelChange | None) -> SeriesJudgement:
        """Return what is said of one series, and of the change that is reported of it."""
        level = float(self.detectable[i]) if np.isfinite(self.detectable[i]) else None
        return SeriesJudgement(len(self.values), float(self.scores[i]), float(self.chances[i]), level, change)


def _detectable(values: Floats, scale: Floats, variance: Floats, memory: Floats, limit: float) -> Floats:
    """Return the step, ÷ level, that has the score `limit` on average once there are `RUNS_TO_FIND` runs after it."""
    before = of_mean(max(len(values) - RUNS_TO_FIND, RUNS_TO_FIND), memory)
    error = scale * np.sqrt(variance * (before + of_mean(RUNS_TO_FIND, memory)))
    level = np.abs(np.median(values, axis=0))
    return np.asarray(np.divide(limit * error, level, out=np.full(len(level), np.nan), where=level > 0))


def direction(change: LevelChange, better: Better) -> Verdict:
    """Return whether the change is for the worse or for the better."""
    if better == "unknown":
        return "REGRESSED"
    return "REGRESSED" if (change.after > change.before) == (better == "lower") else "IMPROVED"


def verdict(judgement: SeriesJudgement, better: Better, rule: ChangeRule) -> Verdict:
    """Return one word. NOISY: no change was found, and a step of `rule.noisy` would not have been found."""
    change = judgement.change
    if judgement.runs < FEWEST_RUNS_TO_JUDGE:
        return "NO-DATA"
    if change is not None:
        return direction(change, better)
    if judgement.detectable is not None and judgement.detectable > rule.noisy:
        return "NOISY"
    return "OK"
