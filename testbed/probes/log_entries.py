"""The entries of a broker's log: time, level, logger, message and stack trace. Pure."""

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
"""The logger of the JVM's own messages."""


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One entry: the message without its logger, and the lines of the stack trace below it.

    `ts_us` is µs since the epoch. The JVM's messages have no time: they take that of the entry before them.
    """

    ts_us: int
    level: str
    logger: str
    message: str
    trace: tuple[str, ...] = ()

    @property
    def full_message(self) -> str:
        """Return the message, with the exception if there is one."""
        return f"{self.message}: {self.trace[0]}" if self.trace else self.message


def entries(text: str) -> Iterator[LogEntry]:
    """Yield the entries of a piece of a log. Lines before the first head belong to an earlier entry."""
    lines: list[str] = []
    ts_us, level = 0, ""
    for line in text.splitlines():
        head = _head(line)
        jvm = None if head else next((known for known, begins in _JVM if begins.match(line)), None)
        if not head and not jvm:
            lines.append(line)
            continue
        if level:
            yield _entry(ts_us, level, lines)
        if head:
            ts_us, level, lines = head[0], head[1], [head[2]]
        else:
            level, lines = str(jvm), [f"{line} ({JVM})"]
    if level:
        yield _entry(ts_us, level, lines)


def _entry(ts_us: int, level: str, lines: list[str]) -> LogEntry:
    """Return the entry of a head: its message ends with the first line that ends with a logger's name."""
    for index, line in enumerate(lines):
        if found := _LOGGER.fullmatch(line):
            message = "\n".join([*lines[:index], found[1]])
            return LogEntry(ts_us, level, found[2], message, tuple(lines[index + 1 :]))
    return LogEntry(ts_us, level, "", lines[0], tuple(lines[1:]))


def _head(line: str) -> tuple[int, str, str] | None:
    """Return time, level and rest of an entry's first line. A time that does not exist begins no entry."""
    head = _HEAD.fullmatch(line)
    try:
        return None if head is None else (logged_us(head[1]), head[2], head[3])
    except ValueError:
        return None


def logged_us(text: str) -> int:
    """Return the µs since the epoch of a log's time. Hosts keep UTC, as the node image does."""
    moment = datetime.strptime(text, "%Y-%m-%d %H:%M:%S,%f").replace(tzinfo=UTC)
    return round(moment.timestamp() * 1_000_000)
