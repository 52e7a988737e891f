"""What a night says of a series, of a scenario and of itself; worst first, with exit codes. Pure."""

from collections.abc import Iterable, Mapping
from typing import Literal

NightVerdict = Literal[
    "FAILED", "BELOW-FLOOR", "REGRESSED", "ENV-CHANGED", "NO-DATA", "NOISY", "MUTED", "LEARNING", "IMPROVED", "OK"
]
WORST_FIRST: tuple[NightVerdict, ...] = (
    "FAILED",
    "BELOW-FLOOR",
    "REGRESSED",
    "ENV-CHANGED",
    "NO-DATA",
    "NOISY",
    "MUTED",
    "LEARNING",
    "IMPROVED",
    "OK",
)
EXIT: Mapping[NightVerdict, int] = {
    "FAILED": 1,
    "BELOW-FLOOR": 1,
    "REGRESSED": 1,
    "ENV-CHANGED": 2,
    "NO-DATA": 2,
    "NOISY": 2,
    "MUTED": 0,
    "LEARNING": 0,
    "IMPROVED": 0,
    "OK": 0,
}
"""Verdict → the exit code of a command."""
LISTED: tuple[NightVerdict, ...] = ("NOISY", "MUTED", "LEARNING")
"""A series with one of these is listed, with the reason. All others are judged, and the worst decides the scenario."""


def rank(verdict: str) -> int:
    """Return the place of a verdict in `WORST_FIRST`: 0 is worst."""
    return WORST_FIRST.index(known(verdict))


def known(word: str) -> NightVerdict:
    """Return the verdict that a word is. Raise ValueError for another word."""
    for verdict in WORST_FIRST:
        if verdict == word:
            return verdict
    raise ValueError(f"{word!r} is no verdict of a night: expected one of {', '.join(WORST_FIRST)}")


def worst_of(verdicts: Iterable[str], nothing: NightVerdict = "NO-DATA") -> NightVerdict:
    """Return the worst of some verdicts; `nothing` when there is none."""
    return min(map(known, verdicts), key=rank, default=nothing)
