"""Which failed criteria count tonight: all, except criteria that failed here before as often by chance. Pure."""

import math
from collections.abc import Sequence

from results.series.calculator import FEWEST_RUNS

Failures = frozenset[str]
"""The criteria that failed in one run."""
CRITERION_BY_CHANCE = 0.01
"""So unlikely a share of tonight's runs fails a criterion that fails now and then, and it counts again."""
UNNAMED = "a criterion"
"""Of runs that an earlier version took in, only the number of failed criteria is known."""


def parse_failures(names: str | None, count: float) -> Failures:
    """Return the failures of a run from the names in its row; without names, that some criterion failed."""
    return frozenset(names.split("; ")) if names else frozenset({UNNAMED} if count > 0 else ())


def counting(earlier: Sequence[Failures], tonight: Sequence[Failures]) -> list[str]:
    """Return the criteria whose failure tonight counts, of runs in order.

    A failure counts, unless the criterion failed in some of `FEWEST_RUNS` or more earlier runs, and that many failures
    fall on tonight's runs with a chance of more than `CRITERION_BY_CHANCE`. Runs directly before, in which it failed,
    too, are counted as tonight's: what goes on failing is no chance.
    """
    return sorted(name for name in frozenset().union(*tonight) if not _by_chance(name, earlier, tonight))


def _by_chance(name: str, earlier: Sequence[Failures], tonight: Sequence[Failures]) -> bool:
    failed = [name in each for each in earlier]
    streak = next((number for number, each in enumerate(reversed(failed)) if not each), len(failed))
    runs = len(failed) - streak
    before, now = sum(failed[:runs]), streak + sum(name in each for each in tonight)
    if runs < FEWEST_RUNS or not before:
        return False
    new = streak + len(tonight)
    return at_least(now, new, before + now, runs + new) > CRITERION_BY_CHANCE


def at_least(now: int, of: int, failures: int, runs: int) -> float:
    """Return the chance that `now` or more of `failures` among `runs` lie in `of` of them (Fisher's exact test)."""
    ways = sum(math.comb(failures, k) * math.comb(runs - failures, of - k) for k in range(now, min(of, failures) + 1))
    return ways / math.comb(runs, of)
