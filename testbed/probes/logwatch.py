"""The watch over brokers' logs during a run: every entry at WARN or above that no allowance explains."""

import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from results.contract.logs import LEVELS, HostLog, LogFinding, ProcessEnd
from testbed.errors import TestbedError
from testbed.hosts import Shell
from testbed.kafka.node import ENDED, LOG
from testbed.probes.allow_list import Allowance, shipped, unexplained
from testbed.probes.log_entries import LogEntry, entries, logged_us
from testbed.provision.testbed import Testbed
from testbed.units import format_size

MOST_BYTES = 64_000_000
"""The most bytes read of one host's log. A tiered broker logs some 2 kB per segment: enough for 30,000 segments."""
MOST_KINDS, MOST_CHARACTERS = 50, 400
THROWN_CHARACTERS = 100
"""Of these, at least so many are of what was thrown: it says more than the end of a long message."""
_VARYING = re.compile(r"(?<![\w-])[\w-]{22}(?![\w-])|\d+")
"""Kafka's ids and numbers."""


@dataclass(frozen=True, slots=True)
class LogPosition:
    """The end of a host's log at the start, or the reason why it is unknown."""

    offset: int
    problem: str | None = None


class LogWatch:
    """The logs of all Kafka hosts of a testbed, from `start` on.

    `allowances` are for an experiment's deliberate actions, in addition to the testbed's own.
    """

    def __init__(self, testbed: Testbed, allowances: Sequence[Allowance] = ()) -> None:
        self._versions = dict(testbed.kafka_versions)
        self._hosts = {name: testbed.hosts[name] for name in self._versions}
        self._testbed = testbed
        self._allowances = [*shipped(), *allowances]
        self._marks: dict[str, LogPosition] = {}
        self._left: dict[str, HostLog] = {}
        """The logs of removed hosts."""

    def start(self) -> None:
        """Begin to count lines. A host that does not answer now is reported at the end."""
        self._marks = {name: mark_end(host) for name, host in self._hosts.items()}

    def allow(self, *allowances: Allowance) -> None:
        """Add allowances, also for entries logged already."""
        self._allowances += allowances

    def join(self, name: str) -> None:
        """Watch the whole log of a host that has joined the testbed."""
        self._versions[name], self._hosts[name] = self._testbed.kafka_versions[name], self._testbed.hosts[name]
        self._marks[name] = LogPosition(0)

    def leave(self, name: str) -> None:
        """Read the log of a host that is going to be removed."""
        self._left[name] = self._log(name)

    def logs(self) -> tuple[HostLog, ...]:
        """Return the unexplained entries of each host since `start`; an unread log has the reason."""
        return tuple(self._left.get(name) or self._log(name) for name in self._hosts)

    def findings(self) -> tuple[LogFinding, ...]:
        """Return the findings of all hosts. Raise `TestbedError` when a log was not read whole."""
        logs = self.logs()
        unread = [f"{log.host}: {log.problem}" for log in logs if log.problem is not None]
        if unread:
            raise TestbedError("; ".join(unread))
        return tuple(finding for log in logs for finding in log.findings)

    def _log(self, name: str) -> HostLog:
        mark = self._marks.get(name, LogPosition(0, "the watch was not started"))
        if mark.problem is not None:
            return HostLog(name, mark.problem)
        try:
            text, problem = read_since(self._hosts[name], mark.offset)
        except TestbedError as error:
            return HostLog(name, f"the log could not be read: {error}")
        after = self._testbed.kafka_versions.get(name, "")
        every = list(entries(text))
        left = unexplained(every, name, self._versions[name], self._allowances, upgraded_to=after)
        found = kinds(name, left)
        more = max(0, len(found) - MOST_KINDS)
        return HostLog(name, problem, found[:MOST_KINDS], more, terminations(every), process_ends(text))


_TERMINATES = re.compile(r"Terminating process due to signal SIG\w+")


def terminations(found: Iterable[LogEntry]) -> tuple[int, ...]:
    """Return when Kafka logged that a signal ends its process (µs since the epoch). Pure.

    It logs SIGTERM, SIGINT and SIGHUP before it shuts down. A process that ends by itself logs no such line.
    """
    return tuple(each.ts_us for each in found if _TERMINATES.fullmatch(each.message))


_ENDED = re.compile(rf"\[([-\d]+ [\d:]+,\d{{3}})\] INFO {ENDED} (\d+) \(testbed\)$", re.MULTILINE)


def process_ends(text: str) -> tuple[ProcessEnd, ...]:
    """Return when and how Kafka's process ended, as the shell that waits for it wrote into the log. Pure.

    The line may follow one that Kafka did not write to its end.
    """
    return tuple(ProcessEnd(logged_us(found[1]), int(found[2])) for found in _ENDED.finditer(text))


def mark_end(host: Shell) -> LogPosition:
    """Return the end of a host's log. Raise nothing: the result has the reason of a failure."""
    # Before Kafka's first start there is no log: then all of it counts.
    size = f"if [ -e {shlex.quote(LOG)} ]; then stat -c %s {shlex.quote(LOG)}; else echo 0; fi"
    try:
        return LogPosition(int(host.run(size).stdout))
    except (TestbedError, ValueError) as error:
        return LogPosition(0, f"where the log ended at the start could not be seen: {error}")


def read_since(host: Shell, offset: int, most_bytes: int = MOST_BYTES) -> tuple[str, str | None]:
    """Return the whole lines of a host's log from byte `offset` on, and why they are incomplete (None: complete).

    Raise `TestbedError` when there is no log, or the host does not answer.
    """
    log = shlex.quote(LOG)
    output = host.run(f"stat -c %s {log} && tail -c +{offset + 1} {log} | head -c {most_bytes}").stdout
    first, _newline, rest = output.partition("\n")
    size = int(first)
    if size < offset:
        return (
            "",
            f"the log is shorter than at the start ({format_size(size)}, was {format_size(offset)}): it was replaced",
        )
    # The last line may be half written, or half read.
    whole = rest[: rest.rfind("\n") + 1]
    if size - offset > most_bytes:
        return whole, f"only the first {format_size(most_bytes)} of {format_size(size - offset)} of the log were read"
    return whole, None


def kinds(host: str, found: Sequence[LogEntry]) -> tuple[LogFinding, ...]:
    """Return the findings, the most severe first. Entries that differ only in numbers and ids are one finding. Pure."""
    merged: dict[tuple[str, str, str], LogFinding] = {}
    for entry in found:
        kind = (entry.level, entry.logger, _VARYING.sub("#", entry.full_message))
        if kind in merged:
            merged[kind] = replace(merged[kind], count=merged[kind].count + 1)
        else:
            level = next(level for level in LEVELS if level == entry.level)
            merged[kind] = LogFinding(host, entry.ts_us, level, entry.logger, _shown(entry), 1)
    return tuple(sorted(merged.values(), key=lambda finding: (-LEVELS.index(finding.level), finding.ts_us)))


def _shown(entry: LogEntry) -> str:
    text = " ".join(entry.full_message.split())
    if entry.trace and len(text) > MOST_CHARACTERS:
        message = _cut(" ".join(entry.message.split()), MOST_CHARACTERS - THROWN_CHARACTERS)
        text = f"{message}: {' '.join(entry.trace[0].split())}"
    return _cut(text, MOST_CHARACTERS)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
