"""A broker's log as text → its entries. Pure.

The layout is `[%d] %p %m (%c)%n`; a message may have several lines, and a stack trace follows it. What the JVM itself
says has no layout, and is found by how it begins.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

_HEAD = re.compile(r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3})\] (TRACE|DEBUG|INFO|WARN|ERROR|FATAL) (.*)")
_LOGGER = re.compile(r"(.*) \(([A-Za-z_][\w.$-]*)\)")
_JVM = (
    (
        "FATAL",
        re.compile(r"Exception in thread \"|Exception: \S+ thrown from|Terminating due to |# A fatal error has been"),
    ),
    ("WARN", re.compile(r"OpenJDK .* VM warning: ")),
)
JVM = "jvm"
"""The logger of what the JVM said."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry: the message without its logger, and the lines of the stack trace below it.

    `ts_us` is µs since the epoch; for what the JVM said, which carries no time, that of the entry before it.
    """

    ts_us: int
    level: str
    logger: str
    message: str
    trace: tuple[str, ...] = ()

    @property
    def told(self) -> str:
        """The message, and what was thrown, if anything."""
        return f"{self.message}: {self.trace[0]}" if self.trace else self.message


def entries(text: str) -> Iterator[Entry]:
    """The entries of a piece of a log. Lines before the first head belong to an entry before the piece."""
    lines: list[str] = []
    ts_us, level = 0, ""
    for line in text.splitlines():
        head = _HEAD.fullmatch(line)
        jvm = None if head else next((known for known, begins in _JVM if begins.match(line)), None)
        if not head and not jvm:
            lines.append(line)
            continue
        if level:
            yield _entry(ts_us, level, lines)
        if head:
            ts_us, level, lines = _us(head[1]), head[2], [head[3]]
        else:
            level, lines = str(jvm), [f"{line} ({JVM})"]
    if level:
        yield _entry(ts_us, level, lines)


def _entry(ts_us: int, level: str, lines: list[str]) -> Entry:
    """The message ends with the first line that ends with a logger's name."""
    for index, line in enumerate(lines):
        if found := _LOGGER.fullmatch(line):
            message = "\n".join([*lines[:index], found[1]])
            return Entry(ts_us, level, found[2], message, tuple(lines[index + 1 :]))
    return Entry(ts_us, level, "", lines[0], tuple(lines[1:]))


def _us(text: str) -> int:
    """Hosts keep UTC, as the node image does."""
    moment = datetime.strptime(text, "%Y-%m-%d %H:%M:%S,%f").replace(tzinfo=UTC)
    return round(moment.timestamp() * 1_000_000)
