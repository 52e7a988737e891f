"""The decision whether a score is a change to report, its kind (step or drift), and its state later. Pure."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from results.series.block import SMALLEST, Floats, standardise
from results.series.calculator import FEWEST_AFTER, FEWEST_RUNS_TO_JUDGE, of_mean

Kind = Literal["step", "drift", "unclear"]
"""Unclear: it changed, but the first runs of a step and of a drift look alike. See `settled`."""


@dataclass(frozen=True, slots=True)
class ChangeRule:
    """What counts. Fractions: 0.05 is 5 %.

    `night` is the false-alarm rate: the share of nights, at most, in which anything is reported of all series together
    although nothing happened. The rest up to the promised 5 % covers errors of the learned noise. Changes of less than
    `least` of the level are not reported; `noisy`: see `judge.verdict`. From `large` on three runs that lie beyond all
    others are enough, however few there are to compare with.
    """

    night: float = 0.04
    least: float = 0.01
    noisy: float = 0.25
    large: float = 0.10

    def __post_init__(self) -> None:
        if not 0 < self.night <= 0.2:
            raise ValueError(f"night {self.night}: expected a fraction above 0, at most 0.2, as 0.05 for 5 % of nights")
        if not 0 <= self.least < 1:
            raise ValueError(f"least {self.least}: expected a fraction from 0 to below 1, as 0.01 for 1 %")


@dataclass(frozen=True, slots=True)
class LevelChange:
    """A change: `runs` are the newest runs, from the first bad one on; levels in the series' own unit.

    `low` to `high` is the 95 % interval of `after` − `before`. `chance` is how many series would be expected to show
    so much in one night by luck, all series counted: an adjusted p.
    """

    kind: Kind
    runs: int
    before: float
    after: float
    low: float
    high: float
    chance: float

    @property
    def effect(self) -> float | None:
        """Return the change as a fraction of the level before; None when that is 0."""
        return (self.after - self.before) / abs(self.before) if self.before else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Return the interval of `effect`, the level before taken as known."""
        return (self.low / abs(self.before), self.high / abs(self.before)) if self.before else None


Decision = Callable[[Floats, int, float, float, ChangeRule], LevelChange | None]
"""Runs (oldest first), how many of the newest are after the change, memory, chance, rule → the change; None: none."""
MARGIN = 2.0
"""One must be e² times as likely as the other to be called it."""
SLOPE = 8
"""A drift takes at least so many runs; what is quicker is a step."""
TWO_SIDED = 1.96
FEWEST_KNOWN = 5
"""From so many newest runs on a change whose own interval holds 0 is none: they scatter more than those before did."""


def step_or_drift(runs: Floats, since: int, memory: float, chance: float, rule: ChangeRule) -> LevelChange | None:
    """Return the change in `runs`, of which the `since` newest are after it; see `Decision`.

    A change needs most runs of both its sides on their own side of the middle, and an interval that does not hold 0. A
    drift fits better than any step.
    """
    old, new = runs[:-since], runs[-since:]
    before, after = float(np.median(old)), float(np.median(new))
    if not (_mostly(new, old) and _mostly(old, new)) or abs(after - before) < rule.least * abs(before):
        return None
    kind, begun = kinds(runs, since, memory)
    if begun is not None:
        before, after, half, since_begun = begun.level, begun.end, TWO_SIDED * begun.error, begun.runs
    else:
        half, since_begun = half_width(old, new, memory), since
    step = after - before
    found = LevelChange(kind, since_begun, before, after, step - half, step + half, chance)
    # The scatter of three or four runs is not known; that of more runs is in their own interval.
    return None if since >= FEWEST_KNOWN and found.low <= 0 <= found.high else found


def _mostly(some: Floats, others: Floats) -> bool:
    """Return whether more than half of `some` are nearer to their own mean than to the others' median.

    So one wild run is no level. Nor does it hide one: outliers are held in before the mean is taken.
    """
    own, other = float(np.mean(held(some))), float(np.median(others))
    beyond = (some - (own + other) / 2) * math.copysign(1.0, own - other) > 0
    return bool(2 * np.sum(beyond) > len(some))


def held(some: Floats) -> Floats:
    """Return the runs of one level, outliers held in: one that is far too high moves their mean by little."""
    standard = standardise(some[:, None])
    scale = float(standard.scale[0])
    return float(standard.centre[0]) + scale * standard.x[:, 0] if scale > 0 else some


def half_width(old: Floats, new: Floats, memory: float) -> float:
    """Return half the width of Welch's 95 % interval of a difference of levels, outliers held in, memory counted."""
    errors, each = [], []
    for side in (old, new):
        standard = standardise(side[:, None])
        variance = float(np.var(standard.x[:, 0], ddof=1)) * float(standard.scale[0]) ** 2
        errors.append(variance * float(of_mean(len(side), np.array([memory]))[0]))
        each.append(len(side) - 1)
    total = sum(errors)
    if total == 0:
        return 0.0
    # Shares, not squares of the errors: those of very large or very small values have no float.
    dof = 1 / sum((error / total) ** 2 / d for error, d in zip(errors, each, strict=True))
    return student(dof) * math.sqrt(total)


def student(dof: float) -> float:
    """Return the 97.5 % point of Student's t."""
    # SciPy takes half a second to import, and few commands decide about a change.
    from scipy.special import stdtrit

    return float(stdtrit(dof, 0.975))


@dataclass(frozen=True, slots=True)
class _Drift:
    """Level until `runs` runs ago, then steadily to `end`; `error` is the standard error of their difference."""

    runs: int
    level: float
    end: float
    error: float


def kinds(runs: Floats, since: int, memory: float) -> tuple[Kind, _Drift | None]:
    """Return which explains the series better: the best step near `since`, or a drift (given if it is one)."""
    standard = standardise(runs[:, None])
    x, n = standard.x[:, 0], len(runs)
    if n < SLOPE + FEWEST_AFTER or standard.scale[0] == 0:
        return "step", None
    at = np.arange(n)
    near = [k for k in range(since - 2, since + 3) if FEWEST_AFTER <= k <= n - FEWEST_AFTER]
    step = min(fitted(x, (at >= n - k).astype(np.float64), memory)[0] for k in near)
    longest, (left, level, rise, error) = ramp(x, memory)
    likelier = n / 2 * math.log(max(step, TINY) / max(left, TINY))
    if likelier < MARGIN:
        return ("step" if likelier <= -MARGIN else "unclear"), None
    scale, centre = float(standard.scale[0]), float(standard.centre[0])
    return "drift", _Drift(longest, centre + scale * level, centre + scale * (level + rise), scale * error)


TINY = 1e-9


def settled(before: Floats, after: Floats, memory: float = 0.0) -> Kind:
    """Return the kind of a change that was reported earlier, now that there are more runs `after` its first bad one."""
    return kinds(np.concatenate([before, after]), len(after), memory)[0]


def ramp(x: Floats, memory: float, shortest: int = SLOPE) -> tuple[int, tuple[float, float, float, float]]:
    """Return the drift that explains x best: how many runs it takes, `shortest` or more, and its `fitted`."""
    n = len(x)
    at = np.arange(n)
    ramps = {k: fitted(x, np.clip((at - (n - 1 - k)) / k, 0, 1), memory) for k in range(shortest, n)}
    return min(ramps.items(), key=lambda each: each[1][0])


def fitted(x: Floats, shape: Floats, memory: float) -> tuple[float, float, float, float]:
    """Return (squares left over, level, rise, the rise's standard error) of x = level + rise × shape, memory taken out.

    `shape` may have several columns, each with a rise of its own; the rise is then the first one's.
    """
    first = math.sqrt(1 - memory**2)
    design = np.column_stack([np.ones(len(x)), shape])
    fresh = np.concatenate([x[:1] * first, x[1:] - memory * x[:-1]])
    whole = np.concatenate([design[:1] * first, design[1:] - memory * design[:-1]])
    inverse = np.linalg.pinv(whole.T @ whole)
    found = inverse @ (whole.T @ fresh)
    rest = fresh - whole @ found
    left = float(rest @ rest)
    return left, float(found[0]), float(found[1]), math.sqrt(max(left * inverse[1, 1], 0.0) / (len(x) - 2))


LONGEST = 30
"""After so many runs the kind of a change does not matter any more: a drift may long have ended."""
NEAR = 2
"""To so many runs it is known where a change begins."""
MORE = 2.0
"""Two steps have a height and a place more than a drift: so much better they fit by that alone (Akaike)."""


def with_kind(change: LevelChange, runs: Floats, since: int, memory: float) -> LevelChange:
    """Return the change with its kind, if that is known by now; as it was while it cannot, and once it is known."""
    if change.kind != "unclear" or since > LONGEST or not FEWEST_AFTER <= since <= len(runs) - FEWEST_RUNS_TO_JUDGE:
        return change
    return replace(change, kind=settled(runs[:-since], runs[-since:], memory))


def continued_drift(
    earlier: LevelChange, runs: Floats, since: int, change: LevelChange, memory: float
) -> LevelChange | None:
    """Return the `earlier` change as it stands by now, where `change` is only more of it: a drift goes on. None: new.

    Both have the same direction. One drift that begins with the earlier change, or before it, explains all runs better
    than a step for each does. One that began before these runs (`since` is the number of all, or more) goes on
    only if it is known to be a drift.
    """
    n = len(runs)
    if (change.after > change.before) != (earlier.after > earlier.before) or n < SLOPE + FEWEST_AFTER:
        return None
    if n - since < FEWEST_AFTER and earlier.kind != "drift":
        return None
    first, second = n - min(since, n), n - change.runs
    x, base, scale = _in_parts(runs, sorted(cut for cut in (first, second) if cut >= FEWEST_AFTER))
    if scale == 0:
        return None
    # Where a drift began is no place at which a step is to be looked for.
    steps = _two_steps(x, first, second if change.kind != "drift" else None, memory)
    _, (left, level, rise, error) = ramp(x, memory, max(SLOPE, min(since - NEAR, n - 1)))
    if n / 2 * math.log(max(steps, TINY) / max(left, TINY)) + MORE < MARGIN:
        return None
    end, half = base + scale * (level + rise), TWO_SIDED * scale * error
    by, chance = end - earlier.before, min(earlier.chance, change.chance)
    return LevelChange("drift", n - first, earlier.before, end, by - half, by + half, chance)


def _in_parts(runs: Floats, cuts: list[int]) -> tuple[Floats, float, float]:
    """Return (x, base, scale) of runs = base + scale × x, outliers held in against the part between cuts they lie in.

    The scale is 0 where the parts are constant. (Held in against all runs, the newest of a drift would be outliers.)
    """
    level = np.concatenate([np.full(len(part), np.median(part)) for part in np.split(runs, cuts)])
    rest = standardise((runs - level)[:, None])
    base, scale = float(level[0]), float(rest.scale[0])
    if scale <= SMALLEST * float(np.max(np.abs(level))):
        return runs, base, 0.0
    return (level - base + float(rest.centre[0])) / scale + rest.x[:, 0], base, scale


def _two_steps(x: Floats, first: int, second: int | None, memory: float) -> float:
    """Return what is left over by a step near `first` and one near `second` (None: anywhere after), as they fit best.

    Where too few runs lie before the first, it is what the second alone leaves over.
    """
    n = len(x)
    at = np.arange(n)
    places = range(FEWEST_AFTER, n - FEWEST_AFTER + 1)
    later = [one for one in places if second is None or abs(one - second) <= NEAR]
    pairs = [(one, other) for one in places for other in later if abs(one - first) <= NEAR <= other - one - 1]
    shapes = [np.column_stack([at >= one, at >= other]) for one, other in pairs]
    shapes = shapes or [(at >= other)[:, None] for other in later or places]
    return min(fitted(x, shape.astype(np.float64), memory)[0] for shape in shapes)


def baseline_runs(change: LevelChange) -> int:
    """Return how many of the newest runs are the new baseline: those after a step; a drift has not settled yet."""
    return 1 if change.kind == "drift" else change.runs
