"""JSON and files from others: bounded in size and depth, and every refusal is a ValueError.

`json.loads` raises RecursionError for a text that is nested too deeply. It reads any size.
"""

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

MOST_BYTES = 256 * 2**20
"""A plan of a million partitions has some 100 MB."""
_OTHER_FORMATS = {
    b"\x1f\x8b": "it is compressed with gzip; decompress it first",
    b"\xff\xfe": "it is UTF-16, as a redirection in PowerShell writes it; save it as UTF-8",
    b"\xfe\xff": "it is UTF-16; save it as UTF-8",
}
"""First bytes → what to do. No text in UTF-8 begins with them."""
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_SURROGATE_BYTES = re.compile(_SURROGATE.pattern.encode())


def parse_json(
    text: str | bytes,
    *,
    pairs: Callable[[list[tuple[str, Any]]], Any] | None = None,
    finite: bool = False,
) -> Any:
    """Return the value of a JSON text. Raise ValueError (JSONDecodeError for its syntax) when it is none.

    `pairs` makes an object of its members. With `finite`, refuse NaN, Infinity and numbers beyond the largest float.
    """
    if len(text) > MOST_BYTES:
        raise ValueError(f"larger than {MOST_BYTES} bytes")
    numbers: dict[str, Any] = {"parse_constant": _finite, "parse_float": _finite, "parse_int": _whole} if finite else {}
    try:
        found = json.loads(text, object_pairs_hook=pairs, **numbers)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    escapes = _SURROGATE.search(text) if isinstance(text, str) else _SURROGATE_BYTES.search(text)
    if escapes is not None:
        try:
            json.dumps(found, ensure_ascii=False, default=str).encode()
        except UnicodeEncodeError:
            raise ValueError("it has half of a surrogate pair, which is no character") from None
    return found


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text:.40} is not a JSON number, or too large for a float")
    return number


def _whole(text: str) -> int:
    _finite(text)
    return int(text)


def read_text(path: Path) -> str:
    """Return the text of a regular file in UTF-8. Raise OSError, or ValueError when it is too large or no such text."""
    if path.exists() and not path.is_file():
        raise ValueError("not a regular file")
    return read_any_text(path)


def read_any_text(path: Path) -> str:
    """Return the same of a file of any kind, such as a pipe."""
    with path.open("rb") as stream:
        content = stream.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise ValueError(f"larger than {MOST_BYTES} bytes")
    for start, what in _OTHER_FORMATS.items():
        if content.startswith(start):
            raise ValueError(what)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"byte {error.start} is not UTF-8") from error


def visible(text: str) -> str:
    r"""Return the text with every control character as `\x1b`, but tabs and ends of lines.

    A terminal acts on control characters: names and log lines of others may have some. The marks that reverse the
    direction of text are control characters here, too.
    """
    return text if text.isprintable() else "".join(_visible(each) for each in text)


def _visible(character: str) -> str:
    if character in "\n\t" or character.isprintable() or character == "\xa0":
        return character
    return character.encode("unicode_escape").decode("ascii")
