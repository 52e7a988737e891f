"""The noise of a store: learned from surrogates of its own series, and learned again as they grow. Pure.

Autocorrelation is removed before surrogates are drawn, and added again afterwards. The scores of surrogates are those
of chance. Of the curves of both kinds of surrogates the higher one counts. The seed is an argument.
"""

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from results.series.block import Block, Floats, Ints, Standard, standardise
from results.series.calculator import FEWEST_RUNS_TO_JUDGE, Calculator, Prior, StepScan
from results.series.noise import (
    GRID,
    NORMAL,
    SPLIT_WITH,
    START,
    Autocorrelation,
    Noise,
    Spread,
    Tail,
    at_least_normal,
    autocorrelations,
    highest,
    pooled,
    prior_of,
    relative,
    score_grid,
)
from results.series.surrogates import reordered, sign_flipped

NIGHTS = 3
"""The first night of a change is one that is beyond, after so many less one that were not."""
FEW_SERIES = 100
"""A store with fewer series is judged as though it had so many: a single one may not cry wolf every 20th night."""
EVENTS = 15
"""So many nights are drawn that the chance of interest is seen about so often."""
FEWEST_DRAWN = 100_000
WIDE = 4_000
"""The number of columns that are computed at once."""
RARER = 1.3
"""Sign-flipped surrogates that end earlier are shorter than the series, and score so many times more rarely.

Of 1,000 series whose scatter comes and goes, in 80 nights, 101 crossed a score where 80 were expected, and 31 where 24.
"""
PLAIN = 6.0
"""A step with a score beyond this is no luck: it is taken out before surrogates are drawn."""
FIT_FROM, FIT_TO = 400, 8
"""The far curve is fitted where counts are between these."""
Drawing = Callable[[Floats, np.random.Generator, int], Floats]
"""A way to draw surrogates; see `results.series.surrogates`."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """Series of one length, and what is known of them before any is judged."""

    standard: Standard
    split: npt.NDArray[np.int64]
    """The newest runs since the likeliest change, with `SPLIT_WITH` as memory."""
    variance: Floats
    """That of `x`, the means before and after taken off."""
    memory: Floats

    @property
    def runs(self) -> int:
        """Return the number of runs of each series."""
        return len(self.standard.x)


def prepare(values: Floats, calculator: Calculator) -> Prepared:
    """Look at series of one length, each by itself."""
    standard = standardise(values)
    x = standard.x
    split = calculator.places(x, Prior.blank(x.shape[1], SPLIT_WITH), fine=False)
    rest = x - steps(x, split)
    variance = np.sum(rest * rest, axis=0) / (len(x) - 2)
    return Prepared(standard, split, variance, autocorrelations(x, split))


def steps(x: Floats, split: npt.NDArray[np.int64]) -> Floats:
    """Return the mean before, and after, that split, a column a series."""
    newest = np.arange(len(x))[:, None] >= len(x) - split
    after = np.sum(x * newest, axis=0) / split
    before = np.sum(x * ~newest, axis=0) / (len(x) - split)
    return np.asarray(np.where(newest, after, before))


def learn(block: Block, seed: int, night: float = 0.05, each: Ints | None = None) -> Noise:
    """Return the noise of a store from its series' newest runs; `night` is the most nights with a false alarm.

    `each` is how many runs a night each series has (None: one): so many lie between two looks. Raise ValueError when
    no series has `FEWEST_RUNS_TO_JUDGE` runs.
    """
    scan = StepScan()
    parts = list(_alike(block, each))
    groups = [prepare(values, scan) for _, values in parts]
    count = sum(len(group.memory) for group in groups)
    if count == 0:
        raise ValueError(f"no series has {FEWEST_RUNS_TO_JUDGE} runs: there is no noise to learn from yet")
    memory = pooled(
        np.concatenate([group.memory for group in groups]),
        np.concatenate([np.full(len(group.memory), group.runs) for group in groups]),
    )
    spread = _spread(groups)
    looks = max(FEWEST_DRAWN, math.ceil(EVENTS * max(count, FEW_SERIES) / night))
    rng = np.random.default_rng(seed)
    share = math.ceil(looks / count)
    priors = [
        prior_of(group.standard, memory.likely(group.memory, group.runs), group.variance, spread) for group in groups
    ]
    fresh = [_fresh(group, prior, scan) for group, prior in zip(groups, priors, strict=True)]
    kinds: list[tuple[Drawing, float]] = [(reordered, 1.0)]
    if count >= LEAST_ALIKE:  # of few series, one that has just changed would be taken for chance
        kinds.append((sign_flipped, RARER))
    tails = []
    for draw, rarer in kinds:
        low, high = [], []
        for group, prior, distances, (apart, _) in zip(groups, priors, fresh, parts, strict=True):
            drawn = partial(draw, distances, rng)
            for before, tonight in _scores(group, prior, drawn, memory, share, scan, rng, apart):
                crossed = (tonight > before) & (tonight > START)
                low.append(before[crossed])
                high.append(tonight[crossed])
        tails.append(_tail(np.concatenate(low), np.concatenate(high), count * share / rarer))
    return Noise(memory, spread, highest(tails), count)


def _alike(block: Block, each: Ints | None) -> Iterator[tuple[int, Floats]]:
    """Yield (runs a night, runs) of series of one length that have as many runs a night."""
    for members, values in block.groups(FEWEST_RUNS_TO_JUDGE):
        often = np.ones(len(members), np.int64) if each is None else each[members]
        for apart in np.unique(often):
            yield int(apart), np.ascontiguousarray(values[:, often == apart])


def _fresh(group: Prepared, prior: Prior, scan: Calculator) -> Floats:
    """Return the distances of a group's runs from their level, without autocorrelation and plain steps."""
    x = group.standard.x
    fixed = prior.memory[None, :]
    x = np.where(scan.scores(x, prior) > PLAIN, x - steps(x, group.split), x)
    return np.asarray(_fast(np.concatenate([x[:1] * np.sqrt(1 - fixed**2), x[1:] - fixed * x[:-1]])))


def _scores(
    group: Prepared,
    prior: Prior,
    surrogates: Callable[[int], Floats],
    memory: Autocorrelation,
    share: int,
    scan: Calculator,
    rng: np.random.Generator,
    apart: int,
) -> "list[tuple[Floats, Floats]]":
    """Return (the highest score of the nights before, tonight's) of each series, drawn `share` times.

    Two nights are so many runs `apart`.
    """
    count = len(group.memory)
    drawn = _drawn(memory.chances(group.memory, group.runs))
    at_once = max(1, min(share, WIDE // count))
    prior = Prior(_fast(prior.memory), _fast(prior.variance), _fast(prior.weight))
    tiled: dict[int, Prior] = {}
    found = []
    while share > 0:
        times = min(at_once, share)
        share -= times
        if times not in tiled:
            tiled[times] = prior.take(np.tile(np.arange(count), times))
        wide = tiled[times]
        mixed = surrogates(times)
        n = len(mixed)
        true = drawn[rng.integers(len(drawn), size=(times, count)), np.arange(count)].ravel()
        if true.any():
            mixed *= _fast(np.sqrt((1 - true**2) / (1 - wide.memory**2)))
            coupling = _fast(true)
            mixed[0] /= np.sqrt(1 - coupling**2)
            for row in range(1, n):
                mixed[row] += coupling * mixed[row - 1]
        if not memory.certain(n):
            split = scan.places(mixed, Prior.blank(times * count, SPLIT_WITH), fine=False)
            wide = replace(wide, memory=_fast(memory.likely(autocorrelations(mixed, split), n)))
        tonight = scan.scores(mixed, wide)
        before = np.zeros_like(tonight)
        for back in range(1, min(NIGHTS, (n - FEWEST_RUNS_TO_JUDGE) // apart + 1)):
            np.maximum(before, scan.scores(mixed, wide, back * apart), out=before)
        found.append((before, tonight))
    return found


def _fast(values: Floats) -> Any:
    # 32 bits are enough for a score, and half the work.
    return np.asarray(values, np.float32)


def _drawn(chances: Floats) -> Floats:
    """Return for each series (a column) `DRAWN` memories, each of `GRID` as often as its row of `chances` says."""
    upto = np.cumsum(chances, axis=0)[:-1]
    at = ((np.arange(DRAWN) + 0.5) / DRAWN)[:, None, None]
    return np.asarray(np.array(GRID)[np.sum(at > upto, axis=1)])


DRAWN = 128


def _spread(groups: "list[Prepared]") -> Spread:
    """Return how alike the series' variances are, in runs' worth of knowledge: an inverse χ² prior's weight."""
    logs, errors = [], []
    for group in groups:
        factor, fits = relative(group.standard)
        variance = group.variance * factor
        fits = fits & (variance > 0)
        logs.append(np.log(variance[fits]))
        errors.append(np.full(int(fits.sum()), 2 / (group.runs - 3)))
    log, error = np.concatenate(logs), np.concatenate(errors)
    if len(log) < LEAST_ALIKE:
        return Spread()
    between = float(np.var(log, ddof=1) - np.mean(error))
    weight = min(2 / between, MOST_WEIGHT) if between > 0 else MOST_WEIGHT
    return Spread(math.exp(float(np.mean(log)) + float(np.mean(error)) / 2), weight if weight >= 1 else 0.0)


LEAST_ALIKE = 20
"""From fewer series nothing is said of how alike they are."""
MOST_WEIGHT = 200.0


def _tail(low: Floats, high: Floats, total: float) -> Tail:
    """Return the share of nights on which a score crossed b, for each b: before it was at most b, tonight above."""
    scores = score_grid()
    below = np.searchsorted(np.sort(low), scores, side="right")
    counts = below - np.searchsorted(np.sort(high), scores, side="right")
    counts = np.minimum.accumulate(counts)
    fit = (counts <= FIT_FROM) & (counts >= FIT_TO)
    if fit.sum() < 2 or counts[fit][0] == counts[fit][-1]:
        # Series that never score, as constant ones, or only in jumps, as those of two values: what was seen counts.
        at, by, least = NORMAL, -0.5, FIT_TO
    else:
        by, at = np.polyfit(scores[fit] ** 2, np.log(counts[fit] / total), 1, w=np.sqrt(counts[fit]))
        least = FIT_FROM
    last = int(np.flatnonzero(counts >= least)[-1]) if (counts >= least).any() else 0
    curve = np.exp(at + by * scores[last] ** 2)
    chances = [*(counts[:last] / total), curve]
    return at_least_normal(Tail(tuple(float(chance) for chance in chances), float(at), float(by)))


AGAIN = 20
"""The number of nights after which the noise is learned again, …"""
GROWN = 1.12
"""… and when the series have become so many times as long: in a young store that is nearly every night."""


@dataclass(frozen=True, slots=True)
class LearnedNoise:
    """The noise, as it was learned on a night (a number) from series of so many runs (their median).

    Where a night is judged several times, the later judgements are fractions of it.
    """

    night: float
    length: float
    noise: Noise

    def to_json(self) -> str:
        """Return the noise as one line."""
        return json.dumps({"night": self.night, "length": self.length, "noise": json.loads(self.noise.to_json())})

    @classmethod
    def from_json(cls, text: str) -> "LearnedNoise":
        """Read the noise back. Raise ValueError, KeyError or TypeError when the text is none."""
        found = json.loads(text)
        return cls(found["night"], found["length"], Noise.from_json(json.dumps(found["noise"])))


def typical_length(block: Block) -> float:
    """Return the median length of the series that are learned from, which have begun."""
    begun = block.counts[block.counts >= FEWEST_RUNS_TO_JUDGE]
    return float(np.median(begun)) if len(begun) else 0.0


def due(known: LearnedNoise | None, night: float, length: float) -> bool:
    """Return whether it is time to learn again: after `AGAIN` nights, or when series have grown to that `length`."""
    return known is None or night - known.night >= AGAIN or _grown(known, length)


def _grown(known: LearnedNoise, length: float) -> bool:
    return length >= GROWN * known.length


def learned_for(
    known: LearnedNoise | None, night: float, block: Block, seed: int, share: float, each: Ints | None = None
) -> LearnedNoise:
    """Return what is known on that night; the same as before when it is not time yet.

    `share` is `Rule.night`, `each` that of `learn`.
    """
    length = typical_length(block)
    if known is not None and not due(known, night, length):
        return known
    noise = learn(block, seed + int(night), share, each=each)
    if known is not None:
        noise = noise.stricter(known.noise, share) if _grown(known, length) else noise.after(known.noise)
    return LearnedNoise(night, length, noise)


def learned_as_it_grows(seed: int, rule_night: float, each: int = 1) -> Callable[[int, Block], Noise]:
    """Return what `replay` asks for its noise: it learns on the first night, and again when it is `due`.

    `rule_night` is `Rule.night`; a series has `each` runs a night; each call begins a history of its own.
    """
    known: LearnedNoise | None = None

    def known_by(night: int, block: Block) -> Noise:
        nonlocal known
        known = learned_for(known, night, block, seed, rule_night, np.full(len(block.counts), each))
        return known.noise

    return known_by
