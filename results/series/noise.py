"""What a store's series are like when nothing happens: learned from all of them together, used for each. Pure values.

It is small, of a fixed size whatever the history, and goes into a file as JSON: learned now and then, by whoever holds
all series; then every series is judged on its own, anywhere.
"""

import json
import math
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from results.series.block import Bools, Floats
from results.series.calculator import Ground
from results.series.memory import Memory
from results.series.standard import Standard


@dataclass(frozen=True, slots=True)
class Spread:
    """How wide the series spread, as the variance ÷ level²: what is likely, and how many runs that knowledge is worth.

    `weight` is 0 when the series differ too much for one to say anything of another.
    """

    variance: float = 0.0
    weight: float = 0.0


@dataclass(frozen=True, slots=True)
class Tail:
    """How often a score crosses b for the first time, for a series and a night: exp(`at` + `by` × b²) far out.

    `chances[i]` is that for b = `START` + i × `STEP`, counted; the curve takes over where counts are small.
    """

    chances: tuple[float, ...]
    at: float
    by: float

    def chance(self, scores: Floats) -> Floats:
        """The chance of so high a score, for each."""
        grid = START + STEP * np.arange(len(self.chances))
        counted = np.interp(scores, grid, np.log(self.chances))
        far = scores > grid[-1]
        return np.asarray(np.exp(np.where(far, self.at + self.by * scores * scores, counted)))

    def between(self, other: "Tail") -> "Tail":
        """The curve halfway between both (of the logarithms)."""
        grid: Floats = START + STEP * np.arange(max(len(self.chances), len(other.chances)), dtype=np.float64)
        both = np.exp((np.log(self.chance(grid)) + np.log(other.chance(grid))) / 2)
        at, by = (self.at + other.at) / 2, (self.by + other.by) / 2
        return Tail(tuple(float(chance) for chance in both), at, by)

    def score(self, chance: float) -> float:
        """The score that has that chance; raises ValueError for a chance that is not small."""
        found = np.flatnonzero(np.array(self.chances) > chance)
        if len(found) == len(self.chances):
            return math.sqrt((math.log(chance) - self.at) / self.by)
        if len(found) == 0 or found[-1] != len(found) - 1:
            raise ValueError(f"a chance of {chance:g}: expected a small one, below {min(self.chances):g}")
        last = int(found[-1])
        high, low = math.log(self.chances[last]), math.log(self.chances[last + 1])
        return START + STEP * (last + (high - math.log(chance)) / (high - low))


START, STEP, TOP = 2.0, 0.05, 6.0
NORMAL = -0.34
"""Where the curve lies for normal noise, simulated: exp(`NORMAL` − b² ÷ 2)."""


def score_grid() -> Floats:
    """The scores for which chances are counted, at most."""
    return np.asarray(START + STEP * np.arange(round((TOP - START) / STEP) + 1), np.float64)


def at_least_normal(tail: Tail) -> Tail:
    """The curve, but nowhere below that of normal noise.

    Series that are constant, or nearly, are counted and never score: the curve of a store that is mostly made of them
    falls so low that the first of them that begins to scatter would alarm within days.
    """
    scores = score_grid()
    found, normal = tail.chance(scores), np.exp(NORMAL - scores * scores / 2)
    if (found >= normal * ROUNDED).all():
        return tail
    at, by = (tail.at, tail.by) if found[-1] >= normal[-1] else (NORMAL, -0.5)
    return Tail(tuple(float(chance) for chance in np.maximum(found, normal)), at, by)


ROUNDED = 1 - 1e-9


@dataclass(frozen=True, slots=True)
class Noise:
    """The memory, the spread, and how high scores get by luck; from so many series."""

    memory: Memory
    spread: Spread
    tail: Tail
    series: int

    def after(self, before: "Noise") -> "Noise":
        """This one, just learned, with the luck of its shuffles evened out: half of the curve is that of before.

        A curve that jumps up and down lets scores through that neither would let through alone.
        """
        return replace(self, tail=self.tail.between(before.tail))

    def stricter(self, before: "Noise", night: float) -> "Noise":
        """This one, learned of series that have grown since, but with the curve of before when that asks for more.

        Of ten runs there are few orders, so that the curve of a young store's first nights is the least certain.
        """
        chance = night / max(self.series, 100)
        return self if self.tail.score(chance) >= before.tail.score(chance) else replace(self, tail=before.tail)

    def to_json(self) -> str:
        """One line."""
        return json.dumps({"version": 1, **asdict(self)})

    @classmethod
    def from_json(cls, text: str) -> "Noise":
        """Reads it back. Raises ValueError for a version that is not known.

        Earlier versions may have learned a curve that is too low; it is lifted here.
        """
        found: dict[str, Any] = json.loads(text)
        if found.get("version") != 1:
            raise ValueError(f"noise of version {found.get('version')}: expected 1; learn it again")
        tail = found["tail"]
        return cls(
            Memory(tuple(found["memory"]["shares"])),
            Spread(**found["spread"]),
            at_least_normal(Tail(tuple(tail["chances"]), tail["at"], tail["by"])),
            found["series"],
        )


LIKE = 3.0
"""A series whose variance is more than so many times another than the store's, either way, is judged by its own."""
WIDEST = 0.5
"""So is one whose scale is more than that fraction of its level: its runs lie around 0."""


def relative(standard: Standard) -> tuple[Floats, Bools]:
    """From a variance of `x` to one ÷ level², a factor each; and whether a series has a level to speak of."""
    level = np.abs(standard.centre)
    fits = (standard.scale > 0) & (standard.scale < WIDEST * level)
    return np.where(fits, standard.scale / np.where(fits, level, 1.0), 1.0) ** 2, fits


def ground_of(standard: Standard, memory: Floats, variance: Floats, spread: Spread) -> Ground:
    """What is known of those series; `variance` is their own, of `x`."""
    factor, fits = relative(standard)
    likely = spread.variance / factor
    alike = fits & (variance < LIKE * likely) & (variance * LIKE > likely)
    return Ground(memory, np.where(alike, likely, 1.0), np.where(alike, spread.weight, 0.0))
