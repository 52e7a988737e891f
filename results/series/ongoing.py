"""What becomes of a change that was reported: its kind, once that can be told, and a drift that goes on. Pure.

Both are asked of a series' newest runs, those before the change included; `since` of them are those from its first bad
run on.
"""

import math
from dataclasses import replace

import numpy as np

from results.series.block import Floats
from results.series.calculator import FEWEST_AFTER, FEWEST_RUNS
from results.series.decision import MARGIN, SLOPE, TINY, TWO_SIDED, Change, fitted, ramp, settled
from results.series.standard import SMALLEST, standardise

LONGEST = 30
"""After so many runs nobody asks any more of which kind a change is: a drift may long have ended."""
NEAR = 2
"""To so many runs it is known where a change begins."""
MORE = 2.0
"""Two steps have a height and a place more than a drift: so much better they fit by that alone (Akaike)."""


def asked_again(change: Change, runs: Floats, since: int, memory: float) -> Change:
    """The change with its kind, if that can be told by now; as it was while it cannot, and once it is known."""
    if change.kind != "unclear" or since > LONGEST or not FEWEST_AFTER <= since <= len(runs) - FEWEST_RUNS:
        return change
    return replace(change, kind=settled(runs[:-since], runs[-since:], memory))


def gone_on(earlier: Change, runs: Floats, since: int, change: Change, memory: float) -> Change | None:
    """The `earlier` change as it stands by now, where `change` is only more of it: a drift goes on. None: it is new.

    Both have the same direction, and one drift that begins with the earlier change, or before it, explains all runs
    better than a step for each does. One that began before these runs (`since` is the number of all, or more) goes on
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
    return Change("drift", n - first, earlier.before, end, by - half, by + half, chance)


def _in_parts(runs: Floats, cuts: list[int]) -> tuple[Floats, float, float]:
    """(x, base, scale) of runs = base + scale × x, outliers held in against the part between cuts they lie in.

    The scale is 0 where the parts are constant. (Held in against all runs, the newest of a drift would be outliers.)
    """
    level = np.concatenate([np.full(len(part), np.median(part)) for part in np.split(runs, cuts)])
    rest = standardise((runs - level)[:, None])
    base, scale = float(level[0]), float(rest.scale[0])
    if scale <= SMALLEST * float(np.max(np.abs(level))):
        return runs, base, 0.0
    return (level - base + float(rest.centre[0])) / scale + rest.x[:, 0], base, scale


def _two_steps(x: Floats, first: int, second: int | None, memory: float) -> float:
    """What is left over by a step near `first` and one near `second` (None: anywhere after it), where they fit best; by
    the second alone where there is no room before the first."""
    n = len(x)
    at = np.arange(n)
    places = range(FEWEST_AFTER, n - FEWEST_AFTER + 1)
    later = [one for one in places if second is None or abs(one - second) <= NEAR]
    pairs = [(one, other) for one in places for other in later if abs(one - first) <= NEAR <= other - one - 1]
    shapes = [np.column_stack([at >= one, at >= other]) for one, other in pairs]
    shapes = shapes or [(at >= other)[:, None] for other in later or places]
    return min(fitted(x, shape.astype(np.float64), memory)[0] for shape in shapes)
