"""The allow-list of brokers' logs: the allowances that explain entries, and the entries that none explains. Pure."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib import resources
from typing import Annotated

from pydantic import BeforeValidator, Field

from results.contract.document import refusal
from results.contract.logs import LEVELS, Level
from testbed.form import Form, check, validate
from testbed.probes.log_entries import LogEntry
from testbed.yaml_document import FileKind, FormError, Violation, parse

Release = tuple[int, int, int]

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

    def explains(
        self, entry: LogEntry, host: str, version: str, earlier: Callable[[], Iterable[LogEntry]] = tuple
    ) -> bool:
        """Return whether this allowance explains the entry. Its host runs Kafka `version`.

        `earlier` returns the entries that the host logged shortly before.
        """
        return (
            entry.level in self.levels
            and entry.logger == self.logger
            and (self.hosts is None or host in self.hosts)
            and self._applies(version)
            and (said := self.pattern.fullmatch(entry.message)) is not None
            and (
                self.thrown is None or self.thrown.fullmatch(_WRAPPER.sub("", "".join(entry.trace[:1]), 1)) is not None
            )
            and (self.before is None or self._was_logged(self.before, said, earlier()))
        )

    def _was_logged(self, before: re.Pattern[str], said: re.Match[str], earlier: Iterable[LogEntry]) -> bool:
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

    The old leader refuses one of a producer's requests when the next one is on its way to the new leader already. The
    new leader refuses that one for its sequence number; docs/workload.md says more. Whether a record was lost then is
    for `records-intact`: a broker that lost one may log the same line.
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
            earlier = partial(_just_before, found, number)
            if not any(
                allowed.explains(entry, host, version, earlier) for allowed in allowances for version in versions
            ):
                left.append(entry)
    return left


def _just_before(found: Sequence[LogEntry], number: int) -> Iterator[LogEntry]:
    """Yield the entries up to `BEFORE_US` before an entry, the last one first: a reason stands right before its line.

    A broker that gets thousands of replicas logs a line for each within a second.
    """
    for before in range(number - 1, -1, -1):
        if found[before].ts_us < found[number].ts_us - BEFORE_US:
            return
        yield found[before]
