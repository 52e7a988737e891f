"""Texts for refusals: the value found, the allowed values, and the nearest allowed value."""

import difflib
from collections.abc import Callable, Collection, Iterable, Sequence

from testbed.errors import UsageError


def nearest(found: object, names: Iterable[str]) -> str | None:
    """Return the name most similar to `found`, or None when no name is near."""
    if not isinstance(found, str):
        return None
    by_folded = {name.lower(): name for name in names}
    close = difflib.get_close_matches(found[:100].lower(), by_folded, n=1, cutoff=0.6)
    return by_folded[close[0]] if close else None


def did_you_mean(found: object, names: Iterable[str], written: Callable[[str], object] = str) -> str:
    """Return `; did you mean broker?` for the nearest name, as `written` returns it; empty when no name is near."""
    name = nearest(found, names)
    return f"; did you mean {written(name)}?" if name is not None else ""


def existing(kind: str, name: str, names: Collection[str]) -> str:
    """Return the name. Raise `UsageError`, with the names that exist and the nearest one, when it is none of them."""
    if name not in names:
        raise UsageError(f"no {kind} {name!r}; there are {', '.join(names)}{did_you_mean(name, names)}")
    return name


def choices(names: Sequence[str]) -> str:
    """Return `a, b or c`."""
    once = list(dict.fromkeys(names))
    return once[0] if len(once) == 1 else f"{', '.join(once[:-1])} or {once[-1]}"


def show(value: object) -> str:
    """Return a value as the user wrote it, short and safe to print on a terminal."""
    if value is None or isinstance(value, bool):
        return {None: "nothing", True: "true", False: "false"}[value]
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    if isinstance(value, str):
        plain = value and value == value.strip() and value.isprintable()
        text = value[:61] if plain else repr(value[:61])
    else:
        text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
