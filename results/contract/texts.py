"""Numbers of things, changes and cut lists as text: `2 runs`, `2 runs are`, `+9.3 %`, `t-0, t-1, and 3 more`.

Only the standard library is imported here: the set-up uses this module before anything is installed.
"""

from collections.abc import Collection
from itertools import islice

_OF_MORE = {"is": "are", "was": "were", "has": "have"}


def plural(count: int, word: str) -> str:
    """Return a number of things: `1 run`, `2 runs`, `2 copies`, `2 batches`."""
    return f"{count} {word if count == 1 else _several(word)}"


def _several(word: str) -> str:
    if word.endswith("y") and not word.endswith(("ay", "ey", "oy")):
        return f"{word[:-1]}ies"
    return f"{word}{'es' if word.endswith(('ch', 'sh', 's', 'x')) else 's'}"


def counted(count: int, word: str, verb: str) -> str:
    """Return a number of things and a verb, which is given as of one: `1 run is`, `2 runs are`."""
    of_more = _OF_MORE.get(verb, verb.removesuffix("s"))
    return f"{plural(count, word)} {verb if count == 1 else of_more}"


def shortened(items: Collection[object], most: int) -> list[str]:
    """Return the first `most` items as texts, and `and 3 more` for the rest; the caller joins them."""
    return [*map(str, islice(items, most)), *and_more(len(items) - most)]


def and_more(left: int, thing: str = "") -> list[str]:
    """Return the text for what a list leaves out: `and 3 more`, or `and 3 more changes`; nothing unless `left` > 0."""
    return [f"and {plural(left, f'more {thing}') if thing else f'{left} more'}"] if left > 0 else []


def digits(value: float, significant: int = 4, sign: str = "") -> str:
    """Return a number in so many digits; one below 10¹² as 12350, which `.4g` writes as 1.235e+04."""
    text = f"{value:{sign}.{significant}g}"
    return f"{float(text):{sign}.0f}" if "e+" in text and abs(value) < 1e12 else text


def percent_change(ratio: float) -> str:
    """Return the change that a ratio is: `+9.3 %` for 1.093."""
    return f"{(ratio - 1) * 100:+.1f} %"
