"""How likely so high a score is by luck, for a series and a night. Pure, and replaceable."""

from typing import Protocol

from results.series.block import Floats
from results.series.noise import Noise


class Significance(Protocol):
    """From scores to chances."""

    def chances(self, scores: Floats, noise: Noise) -> Floats:
        """The chance that one series, in one night in which nothing happens, first reaches that score; for each."""
        ...


class Shuffled:
    """As often as the store's own series do when their runs are shuffled."""

    def chances(self, scores: Floats, noise: Noise) -> Floats:
        """See `Significance`."""
        return noise.tail.chance(scores)
