"""The brokers' logs: their entries, the allowances that explain some, and all others at WARN or above."""

import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from importlib import resources
from typing import Annotated

from pydantic import BeforeValidator, Field

from results.contract.document import refusal
from results.contract.logs import LEVELS, HostLog, Level, LogFinding, ProcessEnd
from testbed.errors import TestbedError
from testbed.form import Form, check, validate
from testbed.hosts import Shell
from testbed.kafka.node import ENDED, LOG
from testbed.provision.testbed import Testbed
from testbed.units import format_size
from testbed.yaml_document import FileKind, FormError, Violation, parse

Release = tuple[int, int, int]

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
        return None if head is None else (_us(head[1]), head[2], head[3])
    except ValueError:
        return None


def _us(text: str) -> int:
    """Return µs since the epoch. Hosts keep UTC, as the node image does."""
    moment = datetime.strptime(text, "%Y-%m-%d %H:%M:%S,%f").replace(tzinfo=UTC)
    return round(moment.timestamp() * 1_000_000)


FILE = "log-allowlist.yaml"
BEFORE_US = 1_000_000
"""The longest time in µs from the line with the reason to the entry: the two lines are neighbours in Kafka's code."""
_VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)")
_WRAPPER = re.compile(r"java\.util\.concurrent\.CompletionException: ")
"""The exception around one that a controller threw while writing, when another thread waited; it has no meaning."""
_ANYTHING = "Anything at all, for instance 12 of b1-c2."


@dataclass(frozen=True, slots=True)
class Allowance:
    """Entries of `logger` at `levels` are harmless when the whole message matches `pattern`; `why` has the reason.

    The first line of the stack trace must match `thrown`, too, without a CompletionException around it. The same logger
    must have logged `before` shortly earlier; named groups of both must have the same text. `during` are the faults
    that the allowance needs. `since` and `until` are the first and the last Kafka release that logs the entry. `hosts`
    are the allowed hosts (None: all of them).
    """

    logger: str
    pattern: re.Pattern[str]
    why: str
    levels: tuple[str, ...] = ("WARN",)
    since: Release | None = None
    until: Release | None = None
    hosts: frozenset[str] | None = None
    thrown: re.Pattern[str] | None = None
    before: re.Pattern[str] | None = None
    during: frozenset[str] = frozenset()

    def explains(self, entry: LogEntry, host: str, version: str, earlier: Sequence[LogEntry] = ()) -> bool:
        """Return whether this allowance explains the entry. Its host runs Kafka `version`."""
        return (
            entry.level in self.levels
            and entry.logger == self.logger
            and (self.hosts is None or host in self.hosts)
            and self._applies(version)
            and (said := self.pattern.fullmatch(entry.message)) is not None
            and (
                self.thrown is None or self.thrown.fullmatch(_WRAPPER.sub("", "".join(entry.trace[:1]), 1)) is not None
            )
            and (self.before is None or self._was_logged(self.before, said, earlier))
        )

    def _was_logged(self, before: re.Pattern[str], said: re.Match[str], earlier: Sequence[LogEntry]) -> bool:
        found = (before.fullmatch(entry.message) for entry in earlier if entry.logger == self.logger)
        return any(each is not None and all(each[name] == said[name] for name in before.groupindex) for each in found)

    def _applies(self, version: str) -> bool:
        release = _release(version)
        if release is None:  # a build that is no release counts as newer than every release
            return self.until is None
        return (self.since is None or self.since <= release) and (self.until is None or release <= self.until)


def new_replicas(topics: Collection[str], hosts: Collection[str]) -> Allowance:
    """Return the allowance for a reassignment of `topics` that adds replicas on `hosts`.

    A broker that receives a replica of an existing topic logs at ERROR that it should have had it (KAFKA-20118).
    For any other topic or broker the same line may report a lost replica.
    """
    names = "|".join(re.escape(topic) for topic in sorted(topics))
    return Allowance(
        logger="state.change.logger",
        pattern=re.compile(
            rf"\[Broker id=\d+\] Expected partition (?:{names})-\d+ with topic id [\w-]{{22}} to exist, "
            r"but it was missing\. Creating\.\.\."
        ),
        why="the replica is new on this broker because the experiment moves it there",
        levels=("ERROR",),
        hosts=frozenset(hosts),
    )


def overtaken_batches(topics: Collection[str], hosts: Collection[str]) -> Allowance:
    """Return the allowance for producers that write to `topics` while a broker of `hosts` becomes a leader.

    An idempotent producer has up to five requests in flight. The old leader refuses one (NOT_LEADER_OR_FOLLOWER) when
    the next one is on its way to the new leader already, which refuses it for its sequence number. The producer sends
    both again, in order (librdkafka: "skipped sequence numbers … recovering and retrying", its issue 4953). Whether
    a record was lost then is for `records-intact`: a broker that lost one may log the same line.
    """
    names = "|".join(re.escape(topic) for topic in sorted(topics))
    return Allowance(
        logger="kafka.server.ReplicaManager",
        pattern=re.compile(
            r"\[ReplicaManager broker=\d+\] Error processing append operation on partition "
            rf"(?:[\w-]{{22}}:)?(?:{names})-\d+"
        ),
        why="a producer's request has overtaken one that the old leader refused; the producer sends both again",
        levels=("ERROR",),
        hosts=frozenset(hosts),
        thrown=re.compile(
            r"org\.apache\.kafka\.common\.errors\.OutOfOrderSequenceException: Out of order sequence number "
            rf"for producer \d+ at offset \d+ in partition (?:{names})-\d+: \d+ \(incoming seq\. number\), "
            r"\d+ \(current end sequence number\)"
        ),
    )


def shipped() -> tuple[Allowance, ...]:
    """Return the testbed's own allow-list: entries that are harmless in every run."""
    return tuple(allowance for allowance in _shipped() if not allowance.during)


def during(faults: Collection[str]) -> tuple[Allowance, ...]:
    """Return the allowances for entries that brokers log while faults of these kinds are injected."""
    return tuple(allowance for allowance in _shipped() if not allowance.during.isdisjoint(faults))


@cache
def _shipped() -> tuple[Allowance, ...]:
    return loads(resources.files("testbed.probes").joinpath(FILE).read_text(encoding="utf-8"), FILE)


class AllowListError(FormError):
    """An unusable allow-list; one line per mistake, each with its place."""


KIND = FileKind("log allow-list", "entries", error=AllowListError)


def _not_text(value: object) -> str | None:
    return None if isinstance(value, str) and value.strip() else "expected text"


def _narrow(value: object) -> re.Pattern[str]:
    if wrong := _not_text(value):
        raise refusal(wrong)
    try:
        pattern = re.compile(str(value))
    except re.error as error:
        raise refusal(f"not a regular expression: {error}") from None
    if pattern.fullmatch(_ANYTHING):
        raise refusal("it matches anything; a pattern is as narrow as it can be")
    return pattern


def _a_release(value: object) -> Release:
    if not isinstance(value, str) or not _VERSION.fullmatch(value):
        raise refusal("expected a Kafka release with three numbers, such as 4.3.1")
    major, minor, patch = map(int, value.split("."))
    return major, minor, patch


NarrowPattern = Annotated[re.Pattern[str], BeforeValidator(_narrow)]
KafkaReleaseText = Annotated[Release, BeforeValidator(_a_release)]


class AllowanceForm(Form):
    """One entry of the file; its fields are those of `Allowance`."""

    logger: Annotated[str, check(_not_text)]
    pattern: NarrowPattern
    why: Annotated[str, check(_not_text)]
    levels: Annotated[list[Level], Field(min_length=1)] | None = None
    since: KafkaReleaseText | None = None
    until: KafkaReleaseText | None = None
    thrown: NarrowPattern | None = None
    before: NarrowPattern | None = None
    during: Annotated[list[str], Field(min_length=1)] | None = None


class AllowListForm(Form):
    """The whole file."""

    entries: list[AllowanceForm]


def loads(text: str, source: str) -> tuple[Allowance, ...]:
    """Return the allowances of a YAML text. Raise `AllowListError` with every mistake, its line and its column."""
    document = parse(text, source, KIND)
    form = validate(document, AllowListForm)
    document.raise_violations(
        Violation(("entries", number, "before"), wrong)
        for number, entry in enumerate(form.entries)
        if entry.before is not None and (wrong := _unnamed(entry.before, entry.pattern))
    )
    return tuple(
        Allowance(
            logger=entry.logger,
            pattern=entry.pattern,
            why=" ".join(entry.why.split()),
            levels=tuple(entry.levels or ("WARN",)),
            since=entry.since,
            until=entry.until,
            thrown=entry.thrown,
            before=entry.before,
            during=frozenset(entry.during or ()),
        )
        for entry in form.entries
    )


def _unnamed(before: re.Pattern[str], pattern: re.Pattern[str]) -> str | None:
    lacking = [name for name in before.groupindex if name not in pattern.groupindex]
    if not before.groupindex:
        return "it has no named group: nothing says that both lines are about the same thing"
    return f"pattern has no group named {', '.join(lacking)}" if lacking else None


def _release(version: str) -> Release | None:
    found = _VERSION.match(version)  # a build's version continues after the release's: 4.3.1+0123456789ab
    return (int(found[1]), int(found[2]), int(found[3])) if found else None


def unexplained(
    found: Sequence[LogEntry], host: str, version: str, allowances: Sequence[Allowance], *, upgraded_to: str = ""
) -> list[LogEntry]:
    """Return the entries at WARN or above of a piece of a log, in order, that no allowance explains.

    After an upgrade a log has entries of two releases: of `version` and of `upgraded_to`.
    """
    versions = {version, upgraded_to or version}
    left = []
    for number, entry in enumerate(found):
        if entry.level in LEVELS:
            earlier = _just_before(found, number)
            if not any(
                allowed.explains(entry, host, version, earlier) for allowed in allowances for version in versions
            ):
                left.append(entry)
    return left


def _just_before(found: Sequence[LogEntry], number: int) -> list[LogEntry]:
    begin = number
    while begin > 0 and found[begin - 1].ts_us >= found[number].ts_us - BEFORE_US:
        begin -= 1
    return list(found[begin:number])


MOST_BYTES = 64_000_000
"""The most bytes read of one host's log. A tiered broker logs some 2 kB per segment: enough for 30,000 segments."""
MOST_KINDS, MOST_CHARACTERS = 50, 400
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
    return tuple(ProcessEnd(_us(found[1]), int(found[2])) for found in _ENDED.finditer(text))


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
            text = " ".join(entry.full_message.split())
            shown = text if len(text) <= MOST_CHARACTERS else f"{text[: MOST_CHARACTERS - 1]}…"
            merged[kind] = LogFinding(host, entry.ts_us, level, entry.logger, shown, 1)
    return tuple(sorted(merged.values(), key=lambda finding: (-LEVELS.index(finding.level), finding.ts_us)))
