"""The JVM of a host's Kafka: its heap, its garbage collector, more of its flags. Immutable values, and their rules."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from results.contract.jvm import jvm_in_words
from testbed.suggestions import choices, show
from testbed.units import UnitError, format_size, parse_size

COLLECTORS = ("serial", "parallel", "g1", "zgc")
MIN_HEAP_BYTES, MAX_HEAP_BYTES = 128 << 20, 1 << 40
"""Kafka's own scripts use 1 GiB. With less than 128 MiB a broker does not start."""
HEAP_WORDS = r"-Xm[sx][0-9]+[kKmMgGtT]?( -Xm[sx][0-9]+[kKmMgGtT]?)?"
_HEAP_WORD = re.compile(r"-X(ms|mx)([0-9]{1,18})([kKmMgGtT]?)")
_HEAP_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
"""Of a JVM, all binary: `1G` is `1GiB`."""
MAX_FLAGS = 50
FLAG = r"-XX:[A-Za-z0-9+:=._/,%-]+|-Xlog:[A-Za-z0-9+:=._/,%*-]+|-D[A-Za-z0-9._-]+=[^\s]*"
_OWNED = {
    r"-XX:(?:Max|Min|Initial)(?:HeapSize|RAM).*": "heap",
    r"-XX:[+-]Use\w+GC": "gc",
    r"-XX:Flags=.*|-XX:VMOptionsFile=.*|-XX:(?:\w+)?SharedArchiveFile=.*|-XX:ArchiveClassesAtExit=.*": "nothing",
    r"-XX:On(?:OutOfMemory)?Error=.*": "nothing",
    r"-D(?:log4j|java\.class\.path).*": "nothing",
}
"""Flags that the testbed sets itself, and the field that sets them."""


@dataclass(frozen=True, slots=True)
class Jvm:
    """What a topology declares of a JVM. None: the testbed's own value (256 to 512 MiB, the serial collector)."""

    heap_bytes: int | None = None
    """Its first and its largest size: Kafka's own scripts set both, too."""
    gc: str | None = None
    """One of `COLLECTORS`."""
    flags: tuple[str, ...] = ()

    @property
    def in_force(self) -> str:
        """Return heap, garbage collector and flags as text, with the testbed's own values where nothing is declared."""
        return jvm_in_words(None if self.heap_bytes is None else format_size(self.heap_bytes), self.gc, self.flags)


OWN = Jvm()
"""Everything is the testbed's own."""


def parse_heap(value: object) -> int:
    """Return the bytes of `"1GiB"`, or of the words of Kafka's `KAFKA_HEAP_OPTS`, such as `"-Xms1G -Xmx1G"`.

    Raise UnitError for any other value, and for words with two sizes: a JVM is started with its largest heap.
    """
    if not isinstance(value, str) or not value.startswith("-X"):
        return parse_size(value)
    words = [_HEAP_WORD.fullmatch(word) for word in value.split()]
    found = {word[1]: int(word[2]) * _HEAP_UNITS[word[3].lower()] for word in words if word is not None}
    if len(found) < len(words) or "mx" not in found or len(set(found.values())) > 1:
        allowed = "a size such as 1GiB, or -Xms and -Xmx with the same size, such as -Xms1G -Xmx1G"
        raise UnitError(f"{show(value)} is no heap; allowed: {allowed}")
    return found["mx"]


def heap_problem(found: object) -> str | None:
    """Return why this is no heap, in bytes, or None."""
    if isinstance(found, int) and MIN_HEAP_BYTES <= found <= MAX_HEAP_BYTES:
        return None
    low, high = format_size(MIN_HEAP_BYTES), format_size(MAX_HEAP_BYTES)
    return f"{show(found)} is no heap; allowed: {low} to {high}, such as 1GB"


def collector_problem(found: object) -> str | None:
    """Return why this is no garbage collector, or None."""
    return None if found in COLLECTORS else f"{show(found)} is no collector; allowed: {choices(COLLECTORS)}"


def flag_problem(found: object) -> str | None:
    """Return why a topology may not give a JVM this flag, or None."""
    allowed = "allowed: a flag such as -XX:MaxGCPauseMillis=20, -Xlog:gc:/tmp/gc.log or -Dname=value"
    if isinstance(found, str) and re.match(r"-X(?:ms|mx|mn)", found):
        return f"{found} is not yours to set; instead: heap"
    if not isinstance(found, str) or re.fullmatch(FLAG, found, re.ASCII) is None:
        return f"{show(found)} is no flag of a JVM that may be set; {allowed}"
    for pattern, field in _OWNED.items():
        if re.fullmatch(pattern, found):
            instead = f"instead: {field}" if field != "nothing" else "the testbed sets it itself"
            return f"{found} is not yours to set; {instead}"
    return None


def problems(jvm: Jvm) -> Sequence[tuple[str, str]]:
    """Return field → problem for each value that is not allowed."""
    found = [
        ("heap", None if jvm.heap_bytes is None else heap_problem(jvm.heap_bytes)),
        ("gc", None if jvm.gc is None else collector_problem(jvm.gc)),
        ("flags", next(filter(None, map(flag_problem, jvm.flags)), None)),
        ("flags", f"{len(jvm.flags)} flags; allowed: {MAX_FLAGS}" if len(jvm.flags) > MAX_FLAGS else None),
    ]
    return [(field, problem) for field, problem in found if problem is not None]
