"""A criterion in pairs of runs: does it fail more often for one of two variants? Pure."""

import math
from dataclasses import dataclass

from results.compare.judgement import Verdict

ANY = "one criterion or another"
"""What fails, where several do: another one each time, on another broker perhaps."""
DOUBTFUL = 2
"""So many pairs more in which it failed for the candidate alone, and it is said that nobody can tell yet."""


@dataclass(frozen=True, slots=True)
class Tally:
    """Of `pairs` pairs both runs were judged on the criterion, and nothing else changed between the two.

    In `worse` of them it failed for the candidate alone, in `better` for the baseline alone.
    """

    baseline: str
    candidate: str
    criterion: str
    pairs: int
    worse: int
    better: int

    @property
    def discordant(self) -> int:
        """The pairs that tell the variants apart."""
        return self.worse + self.better

    @property
    def p_worse(self) -> float:
        """How likely so many of the discordant pairs are the candidate's when each is as likely to be either's.

        McNemar's test, exact: the tail of a binomial distribution. How often the criterion fails plays no part.
        """
        n = self.discordant
        return math.ldexp(sum(math.comb(n, k) for k in range(self.worse, n + 1)), -n)

    def tellable(self, level: float) -> bool:
        """Whether so many discordant pairs can be beyond luck at all. Says nothing of which side they are on."""
        return 0.5**self.discordant <= level

    def verdict(self, rejected: bool) -> Verdict:
        """What may be said, `rejected` being what the test says among all that is judged with it."""
        if rejected:
            return "REGRESSED"
        return "NOISY" if self.worse - self.better >= DOUBTFUL else "OK"
