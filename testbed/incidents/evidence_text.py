"""Files that were taken from a cluster, as texts with places. Only `read_texts` reads them; the rest is pure.

A text may be plain or gzip, UTF-8 with or without a mark, or UTF-16, with any ends of lines.
"""

import codecs
import gzip
import io
import json
import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from results.contract.texts import shortened
from results.contract.untrusted import MOST_BYTES, parse_json
from testbed.errors import UsageError
from testbed.kafka.types import TopicPartition
from testbed.reassignment.plan_file import GREATEST_ID

MOST_FILES = 1000
MOST_PROBLEMS = 20
"""Mistakes in one message."""
_GZIP = b"\x1f\x8b"
_TAR, _TAR_AT = b"ustar", 257
_PACKED = {b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"\x28\xb5\x2f\xfd": "zstd", b"PK\x03\x04": "a zip archive"}
"""First bytes of what is not unpacked here → its name. Programs that rotate logs write all of them."""
_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")
"""A topic's name, as Kafka allows it."""
_OBJECT = re.compile(r"^[ \t]*\{", re.MULTILINE)
_HEADING_CHARACTERS = 1000
_EXPECTED_KEYS = ('"partitions"', '"brokers"')


class EvidenceError(UsageError):
    """Files cannot be read, or contradict each other; each line is one mistake with its place and the remedy."""

    def __init__(self, problems: Iterable[str]) -> None:
        super().__init__("\n".join(shortened(list(problems), MOST_PROBLEMS)))


@dataclass(frozen=True, slots=True, order=True)
class SourceLine:
    """A line of a file, counted from 1."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class EvidenceText:
    """One file's text, its lines ended by a line feed. `named`: the user gave the file itself, not its folder.

    `problem` says why the file has no text.
    """

    file: str
    text: str
    named: bool = True
    problem: str | None = None

    def lines_with(self, *markers: str) -> Iterator[tuple[SourceLine, str]]:
        """Yield the lines that have one of the markers, with their places."""
        if not any(marker in self.text for marker in markers):
            return
        for number, line in enumerate(self.text.split("\n"), 1):
            if any(marker in line for marker in markers):
                yield SourceLine(self.file, number), line


@dataclass(frozen=True, slots=True)
class JsonBlock:
    """A JSON object in a text: the value, the lines that it takes, and the last line with text before it."""

    value: dict[str, Any]
    text: str
    heading: str
    place: SourceLine


def read_texts(paths: Iterable[Path]) -> Iterator[EvidenceText]:
    """Yield the text of each file, and of the files in each folder; a folder in it has a `problem` instead.

    Raise `EvidenceError` for a path that does not exist, an empty folder or too many files.
    """
    count = 0
    for path in paths:
        for file, named in _files(path):
            count += 1
            if count > MOST_FILES:
                raise EvidenceError([f"{path}: more than {MOST_FILES} files; give those of the incident alone"])
            yield _read(file, named)


def _files(path: Path) -> list[tuple[Path, bool]]:
    try:
        if not path.is_dir():
            path.stat()
            return [(path, True)]
        inside = sorted(path.iterdir())
        has_files = not all(each.is_dir() for each in inside)
    except (OSError, ValueError) as error:
        raise EvidenceError([f"{path}: it cannot be read: {_why(error)}; give a file or a folder"]) from error
    if not has_files:
        raise EvidenceError(
            [f"{path}: the folder has no files; folders in it are not read: give them with --from, too"]
        )
    return [(each, False) for each in inside]


def _why(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _read(path: Path, named: bool) -> EvidenceText:
    try:
        if path.is_dir():
            raise ValueError("a folder; give it with --from, too")
        if not path.is_file():
            raise ValueError("not a regular file")
        with path.open("rb") as stream:
            content = stream.read(MOST_BYTES + 1)
        return EvidenceText(str(path), decoded(content), named)
    except (OSError, ValueError) as error:
        return EvidenceText(str(path), "", named, _why(error))


def decoded(content: bytes, most_bytes: int = MOST_BYTES) -> str:
    """Return the text of a file's bytes. Raise ValueError for an archive, too many bytes, or gzip that is damaged.

    Other bytes than characters become U+FFFD: a log may have some, and a name with one is no name.
    """
    if len(content) > most_bytes:
        raise ValueError(f"larger than {most_bytes} bytes; cut out the time of the incident")
    if content.startswith(_GZIP):
        content = _unzipped(content, most_bytes)
    if packed := next((name for begin, name in _PACKED.items() if content.startswith(begin)), None):
        raise ValueError(f"{packed}; unpack it")
    if content.startswith(_TAR, _TAR_AT):
        raise ValueError("a tar archive; unpack it, and give its folder")
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        text = content.decode("utf-16", "replace")
    else:
        text = content.decode("utf-8-sig", "replace")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _unzipped(content: bytes, most_bytes: int) -> bytes:
    try:
        found = gzip.GzipFile(fileobj=io.BytesIO(content)).read(most_bytes + 1)
    except EOFError:
        raise ValueError("the gzip ends too early: copy all of it") from None
    except (OSError, zlib.error) as error:
        raise ValueError(f"gzip that cannot be read: {error}") from error
    if len(found) > most_bytes:
        raise ValueError(f"larger than {most_bytes} bytes when decompressed; cut out the time of the incident")
    return found


def json_blocks(text: EvidenceText, problems: list[str]) -> Iterator[JsonBlock]:
    """Yield the JSON objects that begin a line. One that is cut off ends the search, and is a problem."""
    decoder = json.JSONDecoder()
    position, counted, line = 0, 0, 1
    while begin := _OBJECT.search(text.text, position):
        start = begin.end() - 1
        line += text.text.count("\n", counted, start)
        counted, place = start, SourceLine(text.file, line)
        try:
            _value, end = decoder.raw_decode(text.text, start)
            value = parse_json(text.text[start:end])
        except (ValueError, RecursionError) as error:
            if any(key in text.text[start:] for key in _EXPECTED_KEYS):
                # Only `raw_decode` raises this one, and it counts the lines of the whole text.
                where = SourceLine(text.file, error.lineno) if isinstance(error, json.JSONDecodeError) else place
                why = error.msg if isinstance(error, json.JSONDecodeError) else str(error)[:80]
                problems.append(f"{where}: not JSON: {why}; copy the whole output, from its first to its last line")
            return
        before = text.text[max(0, start - _HEADING_CHARACTERS) : start].strip().rpartition("\n")[2]
        yield JsonBlock(value, text.text[start:end], before.strip().rstrip(":"), place)
        position = end


def broker_ids(text: str) -> tuple[int, ...]:
    """Return the broker ids of a list such as `1,2` or `[1, 2]`; empty for nothing, `none` and `N/A`.

    Raise ValueError for anything else, and for an id that is there twice.
    """
    inner = text.strip().strip("[]").strip()
    if inner in ("", "N/A", "none"):
        return ()
    ids = tuple(whole(each) for each in inner.split(","))
    if len(set(ids)) < len(ids):
        raise ValueError(f"{inner[:40]!r} has a broker twice")
    return ids


def id_list(ids: Iterable[int]) -> str:
    """Return broker ids as Kafka's tools print them: `1,2`."""
    return ",".join(map(str, ids))


def whole(text: str) -> int:
    """Return an id: a whole number from 0 to 2^31 - 1. Raise ValueError."""
    digits = text.strip()
    if not re.fullmatch(r"[0-9]{1,10}", digits) or int(digits) > GREATEST_ID:
        raise ValueError(f"{digits[:40]!r} is not an id, which is a whole number")
    return int(digits)


def topic_name(text: str) -> str:
    """Return a topic's name. Raise ValueError when Kafka allows no such name."""
    if not _NAME.fullmatch(text) or text in (".", ".."):
        raise ValueError(f"{text[:40]!r} is not a topic's name")
    return text


def partition_name(text: str) -> TopicPartition:
    """Return the partition of `orders-0` or `[orders,0]`. Raise ValueError."""
    if text.startswith("[") and text.endswith("]"):
        topic, _comma, number = text[1:-1].rpartition(",")
    else:
        topic, _hyphen, number = text.rpartition("-")
    return TopicPartition(topic_name(topic.strip()), whole(number))
