"""The verdicts of comparisons, nights, scenarios and series; worst first, with exit codes. Pure."""

from collections.abc import Iterable, Mapping
from typing import Literal, get_args

NightVerdict = Literal[
    "FAILED", "BELOW-FLOOR", "REGRESSED", "ENV-CHANGED", "NO-DATA", "NOISY", "MUTED", "LEARNING", "IMPROVED", "OK"
]
WORST_FIRST: tuple[NightVerdict, ...] = get_args(NightVerdict)
EXIT: Mapping[NightVerdict, int] = {
    **dict.fromkeys(WORST_FIRST, 0),
    **dict.fromkeys(("FAILED", "BELOW-FLOOR", "REGRESSED"), 1),
    **dict.fromkeys(("ENV-CHANGED", "NO-DATA", "NOISY"), 2),
}
"""Verdict → the exit code of a command."""
LISTED: tuple[NightVerdict, ...] = ("NOISY", "MUTED", "LEARNING")
"""A series with one of these is listed, with the reason. All others are judged, and the worst decides the scenario."""


def rank(verdict: str) -> int:
    """Return the place of a verdict in `WORST_FIRST`: 0 is worst."""
    return WORST_FIRST.index(known(verdict))


def known(word: str) -> NightVerdict:
    """Return the verdict that a word is. Raise ValueError for another word."""
    if word not in WORST_FIRST:
        raise ValueError(f"{word!r} is no verdict: expected one of {', '.join(WORST_FIRST)}")
    return WORST_FIRST[WORST_FIRST.index(word)]


def worst_of(verdicts: Iterable[str], nothing: NightVerdict = "NO-DATA") -> NightVerdict:
    """Return the worst of some verdicts; `nothing` when there is none."""
    return min(map(known, verdicts), key=rank, default=nothing)
