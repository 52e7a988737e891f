"""A fuzzer of every reader, for a time: valid inputs are damaged, and nothing but a refusal may come of it."""

import random
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.hostile.readers import ROOT, Reader

SLOW_S = 5.0
TOKENS = (
    b"\x00", b"\xff\xfe", b"\x1b[2J\x1b]0;x\x07", b"../../../../tmp/x", b"/etc/passwd", b"\r\n", b"\n", b"\t", b"'",
    b"\\", b"\\u0000", b"\\ud800", b"{", b"}", b"[" * 50, b"[" * 3000, b'{"a":' * 3000, b"- " * 400, b"&a [*a]", b"*a",
    b"<<: *a", b"!!python/object/apply:os.system ['x']", b"!!binary x", b"---\n", b"%TAG ! x", b"-1", b"0", b"1e999",
    b"-1e999", b"NaN", b"Infinity", b"9" * 30, b"9" * 5000, b"0x1f", b"1_000", b"\xd9\xa3", b"null", b"true",
    b"2026-13-99T99:99:99Z", b"<script>alert(1)</script>", b"$(touch x)", b"`x`", b";x", b"|x", b"%s%n", b"{{7*7}}",
    b"\xe2\x80\xae", b"\xf0\x9f\x98\x80", b"A" * 70000, b"=", b":", b",", b" ",
)  # fmt: skip


@dataclass(frozen=True)
class FuzzFinding:
    """An input with which a reader did something else than read or refuse."""

    reader: str
    what: str
    where: str
    data: bytes

    def __str__(self) -> str:
        return f"{self.reader}: {self.what} at {self.where}; input: {self.data[:300]!r}"


def damaged(seeds: Sequence[bytes], draw: random.Random) -> bytes:
    """A seed after one to eight changes."""
    data = bytearray(draw.choice(seeds))
    for _ in range(draw.choice((1, 1, 1, 2, 2, 4, 8))):
        at = draw.randrange(len(data) + 1)
        end = min(len(data), at + draw.choice((1, 1, 2, 4, 16, 200)))
        match draw.randrange(7):
            case 0:
                data[at:at] = draw.choice(TOKENS)
            case 1:
                data[at:end] = draw.choice(TOKENS)
            case 2:
                del data[at:end]
            case 3 if at < len(data):
                data[at] ^= 1 << draw.randrange(8)
            case 4:
                data[at:at] = data[at:end] * draw.choice((1, 2, 50))
            case 5:
                other = draw.choice(seeds)
                start = draw.randrange(len(other) + 1)
                data[at:end] = other[start : start + draw.choice((4, 40, 400))]
            case 6:
                _number(data, at, draw)
    return bytes(data)


def _number(data: bytearray, at: int, draw: random.Random) -> None:
    """Replace the next number by another."""
    start = next((i for i in range(at, len(data)) if chr(data[i]).isdigit()), None)
    if start is None:
        return
    end = start
    while end < len(data) and chr(data[end]).isdigit():
        end += 1
    other = (b"0", b"-1", b"1.5", b"1e400", b"99999999999999999999", b"2147483648", b'"x"', b"null", b"[]")
    data[start:end] = draw.choice(other)


def tried(reader: Reader, data: bytes) -> FuzzFinding | None:
    """Give a reader an input; return what it did wrong."""
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        try:
            reader.read(data, Path(folder))
        except reader.refuses as error:
            if not str(error).strip():
                return FuzzFinding(reader.name, f"{type(error).__name__} without a message", _where(error), data)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the finding
            return FuzzFinding(reader.name, f"{type(error).__name__}: {str(error)[:200]}", _where(error), data)
    took_s = time.monotonic() - begun
    return FuzzFinding(reader.name, f"it took {took_s:.1f} s", "", data) if took_s > SLOW_S else None


def _where(error: BaseException) -> str:
    """The deepest line of the project's own code."""
    frames = [
        f"{Path(frame.filename).relative_to(ROOT)}:{frame.lineno}"
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename).is_relative_to(ROOT) and "tests" not in Path(frame.filename).parts
    ]
    return frames[-1] if frames else "no line of the project"


def fuzz(chosen: Sequence[Reader], seconds: float, seed: int) -> tuple[list[FuzzFinding], Counter[str]]:
    """Damage inputs of these readers in turn for so long. Return one finding a place, and how many inputs each had."""
    draw, found, counts = random.Random(seed), {}, Counter()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for reader in chosen:
            data = damaged(reader.seeds, draw)
            finding = tried(reader, data)
            counts[reader.name] += 1
            if finding is not None:
                key = (finding.reader, finding.what.partition(":")[0], finding.where)
                known = found.get(key)
                if known is None or len(finding.data) < len(known.data):
                    found[key] = finding
    return list(found.values()), counts
