"""Which lines of a broker's log are known, and why they are harmless. Pure, but for reading the file that ships."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from testbed.errors import TestbedError
from testbed.probes.loglines import Entry
from testbed.topology import TopologyError
from testbed.topology.locate import Located, locate
from testbed.topology.problems import Path, Problem

Release = tuple[int, int, int]

FILE = "log-allowlist.yaml"
LEVELS = ("WARN", "ERROR", "FATAL")
_FIELDS = ("logger", "pattern", "why", "levels", "thrown", "before", "during", "since", "until")
_TEXTS = ("logger", "pattern", "why", "thrown", "before")
_PATTERNS = ("pattern", "thrown", "before")
_OPTIONAL = ("thrown", "before")
BEFORE_US = 1_000_000
"""How much earlier the same thread says why at most: the two lines are neighbours in its code."""
_VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)")
_WRAPPER = re.compile(r"java\.util\.concurrent\.CompletionException: ")
"""Around what a controller threw while it was writing, if somebody else had begun to wait for that; says nothing."""
_ANYTHING = "Anything at all, for instance 12 of b1-c2."


class AllowListError(TestbedError):
    """An allow-list cannot be used; one line per mistake, each with its place."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """Entries of `logger` at `levels` whose whole message matches `pattern` are harmless, and `why` says why.

    `thrown` is what the first line of the stack trace below it must match, too, a CompletionException around it left
    out. `before` is what the same logger must have said just before; groups that have a name in both must be the same
    there. `during` are the kinds of faults (put in on purpose) that it belongs to: without one of them it is not
    allowed. `since` and `until` are the first and the last Kafka release that says so; `hosts` are those it is allowed
    on (None: all of them).
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

    def explains(self, entry: Entry, host: str, version: str, earlier: Sequence[Entry] = ()) -> bool:
        """Whether it explains this entry of a host that runs Kafka `version`, `earlier` the ones just before it."""
        return (
            entry.level in self.levels
            and entry.logger == self.logger
            and (self.hosts is None or host in self.hosts)
            and self._applies(version)
            and (said := self.pattern.fullmatch(entry.message)) is not None
            and (
                self.thrown is None or self.thrown.fullmatch(_WRAPPER.sub("", "".join(entry.trace[:1]), 1)) is not None
            )
            and (self.before is None or self._was_told(self.before, said, earlier))
        )

    def _was_told(self, before: re.Pattern[str], said: re.Match[str], earlier: Sequence[Entry]) -> bool:
        found = (before.fullmatch(entry.message) for entry in earlier if entry.logger == self.logger)
        return any(told is not None and all(told[name] == said[name] for name in before.groupindex) for told in found)

    def _applies(self, version: str) -> bool:
        release = _release(version)
        if release is None:  # a build that is no release is taken for newer than all of them
            return self.until is None
        return (self.since is None or self.since <= release) and (self.until is None or release <= self.until)


def new_replicas(topics: Collection[str], hosts: Collection[str]) -> Allowance:
    """For a reassignment of `topics` that makes replicas on `hosts`.

    A broker that is given a replica of a topic that exists says at ERROR that it should have had it (KAFKA-20118).
    For any other topic or broker the same line may tell of a replica that was lost.
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


def shipped() -> tuple[Allowance, ...]:
    """The allow-list that comes with the testbed: what is harmless whatever happens."""
    return tuple(allowance for allowance in _shipped() if not allowance.during)


def during(faults: Collection[str]) -> tuple[Allowance, ...]:
    """What brokers may say, beside that, while faults of these kinds are put in on purpose."""
    return tuple(allowance for allowance in _shipped() if not allowance.during.isdisjoint(faults))


@cache
def _shipped() -> tuple[Allowance, ...]:
    return loads(resources.files("testbed.probes").joinpath(FILE).read_text(encoding="utf-8"), FILE)


def loads(text: str, source: str) -> tuple[Allowance, ...]:
    """The allowances of a YAML list. Raises `AllowListError` with every mistake, its line and its column."""
    try:
        located = locate(text, source)
    except TopologyError as error:
        raise AllowListError(str(error)) from error
    problems = list(located.problems)
    found = []
    if not isinstance(located.values, list):
        problems.append(located.problem((), "expected a list of entries, each with logger, pattern and why"))
    for index, value in enumerate(located.values if isinstance(located.values, list) else ()):
        wrong = _problems(located, (index,), value)
        problems += wrong
        if not wrong:
            found.append(_allowance(value))
    if problems:
        raise AllowListError("\n".join(map(str, problems)))
    return tuple(found)


def _allowance(value: dict[str, Any]) -> Allowance:
    return Allowance(
        logger=value["logger"],
        pattern=re.compile(value["pattern"]),
        why=" ".join(value["why"].split()),
        levels=tuple(value.get("levels", ("WARN",))),
        since=_release(value.get("since", "")),
        until=_release(value.get("until", "")),
        thrown=re.compile(value["thrown"]) if "thrown" in value else None,
        before=re.compile(value["before"]) if "before" in value else None,
        during=frozenset(value.get("during", ())),
    )


def _problems(located: Located, path: Path, value: Any) -> list[Problem]:
    if not isinstance(value, dict):
        return [located.problem(path, "expected an entry with logger, pattern and why")]
    found = [
        located.problem((*path, name), f"unknown field; known: {', '.join(_FIELDS)}", at_key=True)
        for name in value
        if name not in _FIELDS
    ]
    for name in _TEXTS:
        if name not in value:
            if name not in _OPTIONAL:
                found.append(located.problem(path, f"{name} is missing: every entry says what is allowed, and why"))
        elif not isinstance(value[name], str) or not value[name].strip():
            found.append(located.problem((*path, name), "expected text"))
        elif name in _PATTERNS and (wrong := _wrong_pattern(value[name])):
            found.append(located.problem((*path, name), wrong))
    if not found and "before" in value and (wrong := _unnamed(value["before"], value["pattern"])):
        found.append(located.problem((*path, "before"), wrong))
    kinds = value.get("during", ["a fault"])
    if not isinstance(kinds, list) or not kinds or any(not isinstance(kind, str) for kind in kinds):
        found.append(located.problem((*path, "during"), "expected a list of kinds of faults"))
    levels = value.get("levels", ["WARN"])
    if not isinstance(levels, list) or not levels or any(level not in LEVELS for level in levels):
        found.append(located.problem((*path, "levels"), f"expected a list of {', '.join(LEVELS)}"))
    bounds = [name for name in ("since", "until") if name in value]
    wrong_bounds = [name for name in bounds if not isinstance(value[name], str) or not _VERSION.fullmatch(value[name])]
    found += [
        located.problem((*path, name), "expected a Kafka release with three numbers, such as 4.3.1")
        for name in wrong_bounds
    ]
    return found


def _wrong_pattern(pattern: str) -> str | None:
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        return f"not a regular expression: {error}"
    if compiled.fullmatch(_ANYTHING):
        return "it matches anything; a pattern is as narrow as it can be"
    return None


def _unnamed(before: str, pattern: str) -> str | None:
    named = re.compile(before).groupindex
    lacking = [name for name in named if name not in re.compile(pattern).groupindex]
    if not named:
        return "it has no named group: nothing says that both lines are about the same thing"
    return f"pattern has no group named {', '.join(lacking)}" if lacking else None


def _release(version: str) -> Release | None:
    found = _VERSION.match(version)  # a build of a release has more after it: 4.3.1+0123456789ab
    return (int(found[1]), int(found[2]), int(found[3])) if found else None


def unexplained(found: Sequence[Entry], host: str, version: str, allowances: Sequence[Allowance]) -> list[Entry]:
    """The entries at WARN or above that no allowance explains, of a piece of a log in its order."""
    left = []
    for number, entry in enumerate(found):
        if entry.level in LEVELS:
            earlier = _just_before(found, number)
            if not any(allowed.explains(entry, host, version, earlier) for allowed in allowances):
                left.append(entry)
    return left


def _just_before(found: Sequence[Entry], number: int) -> list[Entry]:
    begin = number
    while begin > 0 and found[begin - 1].ts_us >= found[number].ts_us - BEFORE_US:
        begin -= 1
    return list(found[begin:number])
