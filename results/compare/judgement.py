"""The judgement of a candidate against a baseline, from pairs of runs to a verdict. Pure."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from results.compare.compared_measures import Measure
from results.compare.effect import (
    CONFIDENCE,
    FEWEST_SEPARATED,
    Effect,
    Shift,
    effect_of,
    log_ratios,
    p_above,
    p_below,
    p_separated,
    shift_of,
    walsh_averages,
)
from results.contract.texts import digits, plural
from results.criteria.judgement import catalogue
from results.verdicts import rank

Verdict = Literal["OK", "IMPROVED", "REGRESSED", "NOISY", "ENV-CHANGED", "NO-DATA"]
"""Those of `results.verdicts` that a comparison may have."""


@dataclass(frozen=True, slots=True)
class ComparisonRule:
    """What counts. A fraction of 0.03 is a threshold of 3 %.

    `family` is the chance, over all comparisons judged together, that any of them is called REGRESSED although none
    is; the same for IMPROVED. Below `fewest_pairs` only a large effect counts (`FEWEST_SEPARATED` in `effect.py`).
    """

    threshold: float = 0.03
    confidence: float = CONFIDENCE
    family: float = 0.05
    fewest_pairs: int = 5

    def __post_init__(self) -> None:
        if not 0 < self.threshold < 1:
            raise ValueError(f"threshold {self.threshold}: expected a fraction above 0 and below 1, as 0.03 for 3 %")
        if self.fewest_pairs < 5:
            raise ValueError(f"{self.fewest_pairs} pairs: fewer than 5 carry no interval of about 95 %")


@dataclass(frozen=True, slots=True)
class Pair:
    """A pair of runs; a value is None when that run has none, `moved` says what else changed."""

    baseline: float | None
    candidate: float | None
    moved: str = ""


@dataclass(frozen=True, slots=True)
class PairedComparison:
    """A candidate against a baseline in one measure."""

    baseline: str
    candidate: str
    measure: Measure
    pairs: tuple[Pair, ...]


@dataclass(frozen=True, slots=True)
class ComparisonResult:
    """What may be said about a comparison, and why; `effect` is None when there are too few pairs for one."""

    comparison: PairedComparison
    verdict: Verdict
    effect: Effect | Shift | None
    why: str
    detectable: float | None = None
    """The slowdown, as a fraction, that would be found in 80 % of such series; None for a shift."""
    adjusted: float | None = None
    """The chance, by luck and among all comparisons of the family, of an effect so far beyond the threshold on the
    side it lies on; REGRESSED and IMPROVED have at most `ComparisonRule.family`."""


@dataclass(frozen=True, slots=True)
class _Sided:
    """A comparison that has an effect, turned so that up is worse: chances to be worse, or better, by luck."""

    effect: Effect | Shift
    limit: str
    """The change that counts, in words."""
    needed: int
    """As many pairs would give an interval narrow enough for that."""
    beyond: bool
    p_worse: float
    p_better: float
    not_worse: bool
    """A slowdown of the threshold is excluded."""
    on_worse_side: bool
    """Where the estimate itself lies."""
    otherwise: "ComparisonResult | None" = None
    """What is said of pairs that are too few for anything but a large effect, if there is none."""


def judge_all(
    comparisons: Sequence[PairedComparison], chances: Sequence[float], rule: ComparisonRule | None = None
) -> tuple[tuple[ComparisonResult, ...], tuple[float, ...]]:
    """Judge comparisons, and other tests for something worse, each given as its p; all of them are one family.

    The false alarms of a family are held down together (Holm). Return the findings, and the adjusted p of each of the
    other tests: it says *worse* up to `rule.family`.
    """
    rule = rule or ComparisonRule()
    sided = [_sided(comparison, rule) for comparison in comparisons]
    judged = [side for side in sided if isinstance(side, _Sided)]
    family = adjusted([*(side.p_worse for side in judged), *chances])
    worse = iter(family[: len(judged)])
    better = iter(adjusted([side.p_better for side in judged]))
    found = []
    for comparison, side in zip(comparisons, sided, strict=True):
        if isinstance(side, ComparisonResult):
            found.append(side)
        else:
            found.append(_finding(comparison, side, next(worse), next(better), rule))
    return tuple(found), tuple(family[len(judged) :])


def worst_of(verdicts: Iterable[Verdict], nothing: Verdict = "NO-DATA") -> Verdict:
    """Return the worst of some verdicts; `nothing` when there is none."""
    return min(verdicts, key=rank, default=nothing)


def worst(findings: Sequence[ComparisonResult], others: Sequence[Verdict] = ()) -> Verdict:
    """Return the verdict of all together, other verdicts included; nothing judged is NO-DATA."""
    return worst_of([*(finding.verdict for finding in findings), *others])


def _sided(comparison: PairedComparison, rule: ComparisonRule) -> "_Sided | ComparisonResult":
    """Return the comparison's chances, or why it has none."""
    measure = comparison.measure
    clean, changes, lost = [], [], 0
    for pair in comparison.pairs:
        if pair.moved:  # with a value or without: a machine that changes may keep a run from having one
            changes.append(pair.moved)
        elif _usable(pair.baseline, measure) and _usable(pair.candidate, measure):
            assert pair.baseline is not None and pair.candidate is not None
            clean.append((pair.baseline, pair.candidate))
        else:
            lost += 1
    too_few = None
    if len(clean) < len(changes) or len(clean) < rule.fewest_pairs:
        too_few = _too_few(comparison, clean, changes, lost, rule)
        # A value that is often 0 is 0 in some runs by chance: such distances say nothing of a large effect.
        if changes or measure.resolution is not None or len(clean) < FEWEST_SEPARATED:
            return too_few
    n, (averages, effect) = len(clean), _effect(measure, clean, rule)
    if isinstance(effect, Shift):
        worse, better, unit = effect.limit, -effect.limit, f" {measure.unit}" if measure.unit else ""
        above, below = p_above(averages, n, worse), p_below(averages, n, better)
        low, middle, high = effect.low, effect.difference, effect.high
        limit, half = f"{digits(effect.limit, 3)}{unit}", effect.limit / 2
    else:
        threshold = measure.limit(rule.threshold)
        worse, better = math.log1p(threshold), math.log1p(-threshold)
        baseline, candidate = np.log(np.asarray(clean, np.float64).T)
        above = min(p_above(averages, n, worse), p_separated(baseline, candidate, worse))
        below = min(p_below(averages, n, better), p_separated(candidate, baseline, -better))
        low, middle, high = math.log(effect.low), math.log(effect.ratio), math.log(effect.high)
        limit, half = f"{threshold * 100:.3g} %", worse / 2
    beyond, needed = low > worse or high < better, effect.pairs_for(half)
    if measure.better == "lower":
        return _Sided(effect, limit, needed, beyond, above, below, high < worse, middle > 0, too_few)
    return _Sided(effect, limit, needed, beyond, below, above, low > better, middle < 0, too_few)


def _effect(
    measure: Measure, pairs: Sequence[tuple[float, float]], rule: ComparisonRule
) -> tuple[npt.NDArray[np.float64], Effect | Shift]:
    """Return the Walsh averages of the pairs' differences, and the effect: a shift where a value may be 0."""
    if measure.resolution is None:
        averages = walsh_averages(log_ratios(pairs))
        return averages, effect_of(averages, len(pairs), rule.confidence)
    baseline, candidate = np.asarray(pairs, np.float64).T
    averages = walsh_averages(candidate - baseline)
    limit = max(measure.resolution, measure.limit(rule.threshold) * float(np.median(baseline)))
    return averages, shift_of(averages, len(pairs), limit, rule.confidence)


def _too_few(
    comparison: PairedComparison,
    clean: Sequence[tuple[float, float]],
    changes: Sequence[str],
    lost: int,
    rule: ComparisonRule,
) -> ComparisonResult:
    """Return what is said of too few unmoved pairs: there are no more, or the machine changed in the others."""
    complete = len(clean) + len(changes)
    if complete < rule.fewest_pairs:
        without = f"; {lost} of {len(comparison.pairs)} have no value on one side" if lost else ""
        why = f"{plural(complete, 'pair')}, at least {rule.fewest_pairs} are needed{without}"
        return ComparisonResult(comparison, "NO-DATA", None, why)
    effect = _effect(comparison.measure, clean, rule)[1] if clean else None
    why = f"the machine changed in {len(changes)} of {plural(complete, 'pair')}: {changes[0]}"
    return ComparisonResult(comparison, "ENV-CHANGED", effect, why)


def _finding(
    comparison: PairedComparison, side: _Sided, p_worse: float, p_better: float, rule: ComparisonRule
) -> ComparisonResult:
    worse, better = p_worse <= rule.family, p_better <= rule.family
    limit, effect = side.limit, side.effect
    dropped = sum(1 for pair in comparison.pairs if pair.moved)
    lost = len(comparison.pairs) - dropped - effect.pairs
    note = f"; {plural(lost, 'pair')} left out: no value on one side" if lost else ""
    note += f"; {plural(dropped, 'pair')} left out: the machine changed" if dropped else ""
    threshold = comparison.measure.limit(rule.threshold)
    detectable = None if isinstance(effect, Shift) else effect.detectable(threshold)
    verdict: Verdict
    if side.beyond and worse:
        verdict, why = "REGRESSED", f"worse by more than {limit}"
    elif side.beyond and better:
        verdict, why = "IMPROVED", f"better by more than {limit}"
    elif side.otherwise is not None:
        return side.otherwise
    elif side.not_worse:
        verdict, why = "OK", f"not worse by {limit} or more"
    elif side.beyond:
        verdict = "NOISY"
        why = f"beyond {limit}, but among so many comparisons chance explains that, too: make more pairs"
    else:
        needed = max(side.needed, effect.pairs + 1)
        verdict, why = "NOISY", f"the interval contains {limit}; about {plural(needed, 'pair')} would decide"
    if verdict in ("OK", "NOISY") and detectable is not None:
        why += f"; {detectable * 100:.1f} % worse would be found in 80 % of such comparisons"
    return ComparisonResult(
        comparison, verdict, effect, why + note, detectable, p_worse if side.on_worse_side else p_better
    )


def adjusted(chances: Sequence[float]) -> list[float]:
    """Return each chance among all of them (Holm): to reject those up to a level is wrong with at most that chance."""
    order = sorted(range(len(chances)), key=lambda index: chances[index])
    found = [0.0] * len(chances)
    highest = 0.0
    for before, index in enumerate(order):
        highest = max(highest, min(1.0, chances[index] * (len(chances) - before)))
        found[index] = highest
    return found


def _usable(value: float | None, measure: Measure) -> bool:
    if value == 0:
        return measure.resolution is not None
    return value is not None and 0 < value < math.inf


ANY = "one criterion or another"
"""What fails, where several do: another one each time, on another broker perhaps."""
DOUBTFUL = 2
"""The failures above a baseline's from which the verdict stays open."""


def of_records(criterion: str) -> bool:
    """Return whether a criterion is about records; its name may have a place, as in `live-records producer-1`."""
    known = catalogue().get(criterion.partition(" ")[0])
    return known is not None and known.of_records


def doubtful_from(criterion: str) -> int:
    """Return from how many failures above a baseline's the verdict stays open: a lost record is one too many."""
    return 1 if of_records(criterion) else DOUBTFUL


@dataclass(frozen=True, slots=True)
class CriterionTally:
    """Of `pairs` pairs both runs were judged on the criterion, and nothing else changed between the two.

    In `worse` of them it failed for the candidate alone, in `better` for the baseline alone. `unpaired` failures of the
    candidate have no run of the baseline to compare with: they are no test, but leave the verdict open. It is open from
    `doubtful` more failures than the baseline's.
    """

    baseline: str
    candidate: str
    criterion: str
    pairs: int
    worse: int
    better: int
    unpaired: int = 0
    doubtful: int = DOUBTFUL
    where: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    """The numbers of the pairs of `worse` and of `better`. Tallies with the same ones are one test."""

    @property
    def discordant(self) -> int:
        """Return the number of pairs that tell the variants apart."""
        return self.worse + self.better

    @property
    def p_worse(self) -> float:
        """Return the chance of so many discordant pairs against the candidate when either side is as likely.

        This is McNemar's exact test: the tail of a binomial distribution. Concordant pairs play no part.
        """
        # SciPy takes half a second to import, and few commands compare variants.
        from scipy.special import bdtrc

        return float(bdtrc(self.worse - 1, self.discordant, 0.5))

    def decidable(self, level: float) -> bool:
        """Return whether so many discordant pairs can be beyond luck at all. Says nothing of which side they are on."""
        return 0.5**self.discordant <= level

    def verdict(self, rejected: bool) -> Verdict:
        """Return what may be said, `rejected` being what the test says among all that is judged with it."""
        if rejected:
            return "REGRESSED"
        return "NOISY" if self.worse + self.unpaired - self.better >= self.doubtful else "OK"
