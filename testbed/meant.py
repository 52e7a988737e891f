"""Guessing what was meant by a word that is none of those there are."""

import difflib
from collections.abc import Callable, Iterable


def did_you_mean(found: object, names: Iterable[str], written: Callable[[str], object] = str) -> str:
    """`; did you mean broker?` for the nearest valid name, or nothing when none is near.

    `written` is how that name is to be typed.
    """
    if not isinstance(found, str):
        return ""
    by_folded = {name.lower(): name for name in names}
    close = difflib.get_close_matches(found[:100].lower(), by_folded, n=1, cutoff=0.6)
    return f"; did you mean {written(by_folded[close[0]])}?" if close else ""
