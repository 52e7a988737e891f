"""What a store's series are like when nothing happens, learned anew as they grow. Pure: the seed is given."""

import json
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from results.series.block import Block, Ints
from results.series.calculator import FEWEST_RUNS
from results.series.noise import Noise
from results.series.shuffle import learn

AGAIN = 20
"""The noise is learned anew after so many nights, …"""
GROWN = 1.12
"""… and when the series have become so many times as long: in a young store that is nearly every night."""


@dataclass(frozen=True, slots=True)
class Learned:
    """The noise, as it was learned on a night (a number) from series of so many runs (their median).

    Where a night is looked at several times, the later looks are fractions of it.
    """

    night: float
    length: float
    noise: Noise

    def to_json(self) -> str:
        """One line."""
        return json.dumps({"night": self.night, "length": self.length, "noise": json.loads(self.noise.to_json())})

    @classmethod
    def from_json(cls, text: str) -> "Learned":
        """Reads it back. Raises ValueError, KeyError or TypeError for what is none."""
        found = json.loads(text)
        return cls(found["night"], found["length"], Noise.from_json(json.dumps(found["noise"])))


def typical_length(block: Block) -> float:
    """The median of the series that are learned from: where most have not begun, all would be as short each night."""
    begun = block.counts[block.counts >= FEWEST_RUNS]
    return float(np.median(begun)) if len(begun) else 0.0


def due(known: Learned | None, night: float, length: float) -> bool:
    """Whether it is time to learn again: after `AGAIN` nights, or when series of that `length` have grown enough."""
    return known is None or night - known.night >= AGAIN or _grown(known, length)


def _grown(known: Learned, length: float) -> bool:
    return length >= GROWN * known.length


def again(
    known: Learned | None, night: float, block: Block, seed: int, share: float, each: Ints | None = None
) -> Learned:
    """What is known on that night; the same as before when it is not time yet. `share` is `Rule.night`, `each` that of
    `learn`.
    """
    length = typical_length(block)
    if known is not None and not due(known, night, length):
        return known
    noise = learn(block, seed + int(night), share, each=each)
    if known is not None:
        noise = noise.stricter(known.noise, share) if _grown(known, length) else noise.after(known.noise)
    return Learned(night, length, noise)


def learning(seed: int, rule_night: float, each: int = 1) -> Callable[[int, Block], Noise]:
    """What `replay` asks for its noise: learns from what is there on the first night, anew after `AGAIN` nights and as
    the series grow, and gives the same in between. `rule_night` is `Rule.night`; a series has `each` runs a night; each
    call begins a history of its own.
    """
    known: Learned | None = None

    def known_by(night: int, block: Block) -> Noise:
        nonlocal known
        known = again(known, night, block, seed, rule_night, np.full(len(block.counts), each))
        return known.noise

    return known_by
