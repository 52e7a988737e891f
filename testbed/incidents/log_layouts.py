"""Lines of brokers' logs in other layouts than Kafka's own, rewritten to Kafka's. Pure.

Read are: other patterns of log4j, JSON layouts, and what a container engine, Kubernetes, journald or grep writes before
a line. A time with a zone becomes UTC. A time without one stays as it is.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, tzinfo
from typing import Any

from results.contract.untrusted import parse_json

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_OWN = re.compile(r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\] [A-Z]+ ")
_LEVEL = r"(?P<level>TRACE|DEBUG|INFO|WARN|ERROR|FATAL)"
_HEAD = re.compile(
    r"\[?(?P<date>\d{4}-\d\d-\d\d|\d\d\.\d\d\.\d{4}|\d\d [A-Z][a-z]{2} \d{4})[T ](?P<time>\d\d:\d\d:\d\d)"
    r"(?:[.,](?P<fraction>\d{1,9}))?(?: ?(?P<zone>Z|UTC|GMT|[+-]\d\d(?::?\d\d)?))?\]?\s+"
    r"(?:\[(?!\d{4}-\d\d-)[^\]]+\]\s+)?" + rf"{_LEVEL}\s+(?P<rest>\S.*)"
)
"""A time with its level behind it, or a thread and the level; so the time that a container engine writes is none."""
_DATES = ("%Y-%m-%d", "%d.%m.%Y", "%d %b %Y")
_LOGGER = re.compile(r" \([A-Za-z_][\w.$-]*\)$")
_LOGGED = re.compile(r"(.* \([A-Za-z_][\w.$-]*\)) \[[^\]]*\]")
"""A message with its logger, and a thread behind it."""
_OWN_TAIL = re.compile(r"( \([A-Za-z_][\w.$-]*)(?::\d+)?\)(?: \[[^\]]*\])?$")
"""A logger at the end, with the number of its source line or with a thread behind it."""
_UNNAMED = "log"
"""The logger of a line whose layout has none at its end."""
_SEEN = re.compile(r"\d\d:\d\d:\d\d.{0,40}\b(?:INFO|WARN|ERROR)\b")
_LONGEST = 100_000
_LATEST_MS = 253_402_300_800_000
"""The year 10,000: no date has more digits."""


def kafka_line(raw: str) -> str:
    """Return a line in Kafka's own layout, `[time] LEVEL message (logger)`; the line itself when it is no such line."""
    if raw.startswith("{"):
        return _from_json(raw)
    line = _COLOUR.sub("", raw) if "\x1b" in raw else raw
    if own := _OWN.search(line[:400]):
        return _OWN_TAIL.sub(r"\1)", line[own.start() :])
    head = _HEAD.search(line)
    if head is None:
        return raw
    named = _LOGGED.fullmatch(head["rest"])
    message = named[1] if named else head["rest"]
    return _written(_time(head), head["level"], message, None if _LOGGER.search(message) else _UNNAMED) or raw


def has_log_lines(text: str) -> bool:
    """Return whether a text has lines with a time and a level, whatever their form."""
    return _SEEN.search(text[:_LONGEST]) is not None


def _time(head: re.Match[str]) -> datetime | None:
    micros = int(((head["fraction"] or "0") + "00000")[:6])
    for form in _DATES:
        try:
            moment = datetime.strptime(f"{head['date']} {head['time']}", f"{form} %H:%M:%S").replace(microsecond=micros)
            zone = UTC if head["zone"] in (None, "Z", "UTC", "GMT") else _zone(head["zone"])
        except ValueError:
            continue
        return moment.replace(tzinfo=zone)
    return None


def _zone(text: str) -> tzinfo | None:
    """Return the zone of `+0100`, `+01:00` or `+01`. Raise ValueError."""
    return datetime.strptime(text if len(text) > 3 else f"{text}00", "%z").tzinfo


def _written(moment: datetime | None, level: str, message: str, logger: str | None) -> str | None:
    if moment is None:
        return None
    try:
        at = moment.astimezone(UTC)
    except OverflowError:
        return None
    name = f" ({logger})" if logger else ""
    return f"[{at:%Y-%m-%d %H:%M:%S},{at.microsecond // 1000:03d}] {level} {message}{name}"


def _from_json(raw: str) -> str:
    """Return the line of a JSON layout, or the one that Docker's json-file wraps."""
    if len(raw) > _LONGEST:
        return raw
    try:
        entry = parse_json(raw)
    except (ValueError, RecursionError):
        return raw
    if not isinstance(entry, dict):
        return raw
    wrapped = entry.get("log")
    if isinstance(wrapped, str) and not wrapped.startswith("{"):
        return kafka_line(wrapped.rstrip("\n"))
    level, message = _text(entry, "level", "log.level").strip(), _text(entry, "message", "msg")
    line = _HEAD.fullmatch(f"{_text(entry, '@timestamp', 'time', 'timestamp') or _of_log4j(entry)} {level} x")
    logger = re.sub(r"[^\w.$-]", "-", _text(entry, "logger", "logger_name", "loggerName", "log.logger"))
    found = None if line is None else _written(_time(line), level, message, logger or _UNNAMED)
    return found if found is not None and "\n" not in found else raw


def _of_log4j(entry: Mapping[str, Any]) -> str:
    """Return the time of log4j's own JSON layout, which counts from the epoch; empty without one."""
    instant, millis = entry.get("instant"), entry.get("timeMillis")
    if isinstance(instant, dict):
        seconds, nanos = instant.get("epochSecond"), instant.get("nanoOfSecond", 0)
        if isinstance(seconds, int) and isinstance(nanos, int):
            millis = seconds * 1000 + nanos // 1_000_000
    if not isinstance(millis, int) or not 0 <= millis < _LATEST_MS:
        return ""
    return f"{datetime.fromtimestamp(millis // 1000, UTC):%Y-%m-%d %H:%M:%S},{millis % 1000:03d}"


def _text(entry: Mapping[str, Any], *keys: str) -> str:
    return next((entry[key] for key in keys if isinstance(entry.get(key), str)), "")
