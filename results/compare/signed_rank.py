"""Exactly how likely a sum of signed ranks is when every difference may have either sign. Pure.

Under the hypothesis that two variants do not differ, each pair's difference is as likely to be positive as negative,
whatever its size: all 2ⁿ assignments of signs are equally likely. The sum of the ranks of the positive ones then has a
distribution that depends on n alone. It is counted here, not sampled.
"""

from functools import lru_cache

import numpy as np
import numpy.typing as npt

MOST_PAIRS = 1000
"""Beyond that the chances leave the range of a double."""


@lru_cache(maxsize=128)
def cumulative(n: int) -> npt.NDArray[np.float64]:
    """P(T ≤ t) for t = 0 … n(n+1)/2, T being the sum of a random subset of the ranks 1 … n."""
    if not 0 <= n <= MOST_PAIRS:
        raise ValueError(f"{n} pairs: expected 0 to {MOST_PAIRS}")
    chance = np.ones(1)
    for rank in range(1, n + 1):
        grown = np.zeros(len(chance) + rank)
        grown[: len(chance)] += chance / 2
        grown[rank:] += chance / 2
        chance = grown
    found = np.minimum(np.cumsum(chance), 1.0)
    found.setflags(write=False)
    return found


def tail(n: int, t: int) -> float:
    """P(T ≤ t)."""
    table = cumulative(n)
    return 0.0 if t < 0 else float(table[min(t, len(table) - 1)])


def cut(n: int, alpha: float) -> int:
    """The largest k with 2 P(T ≤ k) ≤ `alpha`; 0 when there is none, as with few pairs."""
    return max(int(np.searchsorted(cumulative(n), alpha / 2, side="right")) - 1, 0)


def confidence(n: int, k: int) -> float:
    """The exact confidence of an interval that leaves out `k` Walsh averages at each end."""
    return 1.0 - 2.0 * tail(n, k)
