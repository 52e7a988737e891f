"""A night's judgement of many series: calculator, significance and decision put together. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from results.series.block import Block, Floats, Ints
from results.series.calculator import FEWEST_RUNS, Calculator, Ground, StepScan, of_mean
from results.series.decision import Change, Decision, Rule, StepOrDrift
from results.series.noise import Noise, ground_of
from results.series.shuffle import FEW_SERIES, prepare
from results.series.significance import Shuffled, Significance

Better = Literal["lower", "higher", "unknown"]
"""Which way is better. Where that is unknown, every change is told as one for the worse: somebody has to look."""
Verdict = Literal["OK", "IMPROVED", "REGRESSED", "NOISY", "NO-DATA"]
RUNS_TO_FIND = 10
"""What could be found is told for so many runs after a step."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What may be said of one series tonight.

    `runs` were judged (fewer than `FEWEST_RUNS`: nothing was); `chance` is an adjusted p, see `Change`; `detectable` is
    the step, as a fraction of the level, that is found within 10 runs as often as not (None without a level).
    """

    runs: int
    score: float = 0.0
    chance: float = 1.0
    detectable: float | None = None
    change: Change | None = None


@dataclass(frozen=True, slots=True)
class Judge:
    """The three parts, each replaceable, and the rule."""

    rule: Rule = field(default_factory=Rule)
    calculator: Calculator = field(default_factory=StepScan)
    significance: Significance = field(default_factory=Shuffled)
    decision: Decision = field(default_factory=StepOrDrift)

    def night(self, block: Block, noise: Noise, family: int | None = None) -> list[Judgement]:
        """A judgement for each series of the block.

        `family` is how many series are judged tonight, when the block is only a part of them; a family smaller than
        `FEW_SERIES` counts as that many.
        """
        found = [Judgement(int(count)) for count in block.counts]
        for look in self.look(block, noise, family):
            changes = self.changes(look)
            for i, at in enumerate(look.members):
                level = look.detectable[i]
                found[int(at)] = Judgement(
                    len(look.values),
                    float(look.scores[i]),
                    float(look.chances[i]),
                    float(level) if np.isfinite(level) else None,
                    changes.get(i),
                )
        return found

    def look(self, block: Block, noise: Noise, family: int | None = None) -> "Iterator[Look]":
        """The scores of the block, length by length; see `night`."""
        tonight = int(np.sum(block.counts >= FEWEST_RUNS)) if family is None else family
        tonight = max(tonight, FEW_SERIES)
        limit = noise.tail.score(self.rule.night / tonight)
        for members, values in block.groups(FEWEST_RUNS):
            group = prepare(values, self.calculator)
            memory = noise.memory.likely(group.memory, group.runs)
            ground = ground_of(group.standard, memory, group.variance, noise.spread)
            scores = self.calculator.scores(group.standard.x, ground)
            chances = np.minimum(tonight * self.significance.chances(scores, noise), 1.0)
            detectable = _detectable(values, group.standard.scale, group.variance, memory, limit)
            yield Look(members, values, group.standard.x, ground, scores, chances, detectable)

    def changes(self, look: "Look") -> dict[int, Change]:
        """What is to be reported of it: place in `look.members` → change."""
        clear = np.flatnonzero(look.chances <= self.rule.night)
        if len(clear) == 0:
            return {}
        places = self.calculator.places(look.x[:, clear], look.ground.take(clear))
        found = {}
        for i, place in zip(clear.tolist(), places.tolist(), strict=True):
            memory, chance = float(look.ground.memory[i]), float(look.chances[i])
            change = self.decision.decide(look.values[:, i], place, memory, chance, self.rule)
            if change is not None:
                found[i] = change
        return found


@dataclass(frozen=True, slots=True)
class Look:
    """The scores of series of one length; `x` are their standardised `values`, the rest has one entry a series."""

    members: Ints
    values: Floats
    x: Floats
    ground: Ground
    scores: Floats
    chances: Floats
    detectable: Floats


def _detectable(values: Floats, scale: Floats, variance: Floats, memory: Floats, limit: float) -> Floats:
    """The step, ÷ level, that has the score `limit` on average once there are `RUNS_TO_FIND` runs after it."""
    before = of_mean(max(len(values) - RUNS_TO_FIND, RUNS_TO_FIND), memory)
    error = scale * np.sqrt(variance * (before + of_mean(RUNS_TO_FIND, memory)))
    level = np.abs(np.median(values, axis=0))
    return np.asarray(np.divide(limit * error, level, out=np.full(len(level), np.nan), where=level > 0))


def direction(change: Change, better: Better) -> Verdict:
    """For the worse, or for the better."""
    if better == "unknown":
        return "REGRESSED"
    return "REGRESSED" if (change.after > change.before) == (better == "lower") else "IMPROVED"


def verdict(judgement: Judgement, better: Better, rule: Rule) -> Verdict:
    """One word. NOISY: nothing was found, and a step of `rule.noisy` would not have been."""
    change = judgement.change
    if judgement.runs < FEWEST_RUNS:
        return "NO-DATA"
    if change is not None:
        return direction(change, better)
    if judgement.detectable is not None and judgement.detectable > rule.noisy:
        return "NOISY"
    return "OK"
