"""Watches the brokers' logs: whatever they say at WARN or above, and nothing explains, is told."""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace

from results.contract.logs import LEVELS, HostLog, LogFinding
from testbed.errors import TestbedError
from testbed.hosts import Shell
from testbed.kafka.node import LOG
from testbed.probes.allowlist import Allowance, shipped, unexplained
from testbed.probes.loglines import Entry, entries
from testbed.provision.testbed import Testbed
from testbed.units import format_size

MOST_BYTES = 64_000_000
"""Read of one host's log at most. Tiered, a broker says some 2 kB of each segment: this is for thirty thousand."""
MOST_KINDS, MOST_CHARACTERS = 50, 400
_VARYING = re.compile(r"(?<![\w-])[\w-]{22}(?![\w-])|\d+")
"""Kafka's ids and numbers."""


@dataclass(frozen=True, slots=True)
class Mark:
    """Where a host's log ended at the start; or why that is not known."""

    offset: int
    problem: str | None = None


class LogWatch:
    """The logs of all Kafka hosts of a testbed, from `start` on.

    `allowances` are for what an experiment does on purpose, beside those that ship with the testbed.
    """

    def __init__(self, testbed: Testbed, allowances: Sequence[Allowance] = ()) -> None:
        self._hosts: dict[str, Shell] = {name: testbed.hosts[name] for name in testbed.state.kafka}
        self._testbed = testbed
        self._versions = dict(testbed.state.kafka)
        self._allowances = [*shipped(), *allowances]
        self._marks: dict[str, Mark] = {}

    def start(self) -> None:
        """From here on lines count. A host that cannot be asked now is told of at the end."""
        self._marks = {name: mark_end(host) for name, host in self._hosts.items()}

    def allow(self, *allowances: Allowance) -> None:
        """Explain more, also of what was said already."""
        self._allowances += allowances

    def logs(self) -> tuple[HostLog, ...]:
        """What each host said since `start` that nothing explains; a log that was not read says why."""
        return tuple(self._log(name) for name in self._hosts)

    def findings(self) -> tuple[LogFinding, ...]:
        """The findings of all hosts. Raises `TestbedError` when a log was not read whole: it may hide anything."""
        logs = self.logs()
        unread = [f"{log.host}: {log.problem}" for log in logs if log.problem is not None]
        if unread:
            raise TestbedError("; ".join(unread))
        return tuple(finding for log in logs for finding in log.findings)

    def _log(self, name: str) -> HostLog:
        mark = self._marks.get(name, Mark(0, "the watch was not started"))
        if mark.problem is not None:
            return HostLog(name, mark.problem)
        try:
            text, problem = read_since(self._hosts[name], mark.offset)
        except TestbedError as error:
            return HostLog(name, f"the log could not be read: {error}")
        left = list(entries(text))
        # After an upgrade a log has what both releases say: the one that was there, and the one that is there now.
        for version in dict.fromkeys((self._versions[name], self._testbed.state.kafka.get(name, self._versions[name]))):
            left = unexplained(left, name, version, self._allowances)
        found = kinds(name, left)
        return HostLog(name, problem, found[:MOST_KINDS], max(0, len(found) - MOST_KINDS))


def mark_end(host: Shell) -> Mark:
    """Where a host's log ends now. Raises nothing: why that cannot be seen is in the mark."""
    # Before Kafka's first start there is no log: then all of it will count.
    size = f"if [ -e {shlex.quote(LOG)} ]; then stat -c %s {shlex.quote(LOG)}; else echo 0; fi"
    try:
        return Mark(int(host.run(size).stdout))
    except (TestbedError, ValueError) as error:
        return Mark(0, f"where the log ended at the start could not be seen: {error}")


def read_since(host: Shell, offset: int, most_bytes: int = MOST_BYTES) -> tuple[str, str | None]:
    """The whole lines of a host's log from byte `offset` on, and why that is not all of them (None: it is).

    Raises `TestbedError` when there is no log, or the host does not answer.
    """
    log = shlex.quote(LOG)
    told = host.run(f"stat -c %s {log} && tail -c +{offset + 1} {log} | head -c {most_bytes}").stdout
    first, _newline, rest = told.partition("\n")
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


def kinds(host: str, found: Sequence[Entry]) -> tuple[LogFinding, ...]:
    """Entries that differ in numbers and ids at most are one finding, the most severe first. Pure."""
    merged: dict[tuple[str, str, str], LogFinding] = {}
    for entry in found:
        kind = (entry.level, entry.logger, _VARYING.sub("#", entry.told))
        if kind in merged:
            merged[kind] = replace(merged[kind], count=merged[kind].count + 1)
        else:
            level = next(level for level in LEVELS if level == entry.level)
            text = " ".join(entry.told.split())
            shown = text if len(text) <= MOST_CHARACTERS else f"{text[: MOST_CHARACTERS - 1]}…"
            merged[kind] = LogFinding(host, entry.ts_us, level, entry.logger, shown, 1)
    return tuple(sorted(merged.values(), key=lambda finding: (-LEVELS.index(finding.level), finding.ts_us)))
