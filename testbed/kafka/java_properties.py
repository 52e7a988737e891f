"""Java's ``.properties`` format, as `java.util.Properties.load` reads it, with the line of every entry. Pure."""

import re
from collections.abc import Iterator
from typing import NamedTuple

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_BLANK = " \t\f"


class Entry(NamedTuple):
    """One key with its value, and the line (from 1) on which it begins."""

    line: int
    key: str
    value: str


class PropertiesError(ValueError):
    """Something that is not a properties file; ``line`` says where."""

    def __init__(self, line: int, why: str) -> None:
        self.line = line
        super().__init__(why)


def parse(text: str) -> Iterator[Entry]:
    r"""Read the entries in order, a key that comes twice included.

    Comments (``#``, ``!``), continued lines, the three separators (``=``, ``:``, blank) and escapes (``\n``,
    ``\u0041``, …) are as in Java. Raises `PropertiesError`.
    """
    for line, logical in _logical_lines(text):
        end = _end_of_key(logical)
        rest = logical[end:].lstrip(_BLANK)
        if rest[:1] in ("=", ":"):
            rest = rest[1:].lstrip(_BLANK)
        yield Entry(line, _unescape(logical[:end], line), _unescape(rest, line))


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Each line that says something, joined with those that continue it."""
    begun, parts = 0, list[str]()
    # Not splitlines: Java knows no other ends of lines.
    for number, natural in enumerate(re.split(r"\r\n|\r|\n", text), start=1):
        stripped = natural.lstrip(_BLANK)
        if not parts:
            if not stripped or stripped[0] in "#!":
                continue
            begun = number
        slashes = len(stripped) - len(stripped.rstrip("\\"))
        if slashes % 2:
            parts.append(stripped[:-1])
            continue
        yield begun, "".join([*parts, stripped])
        parts = []
    if parts:
        yield begun, "".join(parts)


def _end_of_key(logical: str) -> int:
    index = 0
    while index < len(logical) and logical[index] not in f"=:{_BLANK}":
        index += 2 if logical[index] == "\\" else 1
    return min(index, len(logical))


def _unescape(text: str, line: int) -> str:
    def one(match: re.Match[str]) -> str:
        escaped = match[1]
        if escaped[0] != "u":
            return _ESCAPES.get(escaped, escaped)
        if len(escaped) != 5:
            raise PropertiesError(line, "\\u must be followed by four hexadecimal digits")
        return chr(int(escaped[1:], 16))

    # A surrogate pair is written as two escapes.
    text = re.sub(r"\\(u[0-9a-fA-F]{4}|.)", one, text, flags=re.DOTALL)
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
