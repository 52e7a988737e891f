"""Kinds of unexplained lines in the brokers' logs: those of a run, and the judgement of a new kind. Pure.

A kind is a line without the host, the numbers and the ids in it, so that runs of two releases have the same kinds.
The brokers' `logs-clean` judges errors. Here a candidate is held against a baseline, and a night against its past.
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from results.compare.effect import at_least
from results.compare.judgement import CriterionTally, Verdict
from results.contract.logs import HostLog, LogFinding
from results.contract.texts import plural
from results.render import JUnitCase
from results.series.calculator import FEWEST_RUNS_TO_JUDGE

LOG_LINES = "log-lines"
"""The name that stands in the place of a measure or a criterion."""
Kinds = frozenset[str]
"""The kinds of lines of one run."""

MOST_CHARACTERS = 160
_CUT = "…"
"""The end of a text, or of a message before what was thrown, that the manifest does not hold whole."""
_VARYING = re.compile(
    r"0x[0-9a-f]+|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    r"|(?<![\w-])(?=[\w-]*[a-z])(?=[\w-]*[A-Z])[\w-]{22}(?![\w-])"  # an id of Kafka
    r"|(?<![^\W_])(?=\d*[a-f])[0-9a-f]{6,}(?![^\W_])"  # the end of a topic's or a run's name
    r"|(?:(?<!\w)-)?\d+(?:[.,:]\d+)*"
)
_ITEM = r"[^\s,()\[\]{}]"
_REPEATED = re.compile(rf"(?<!{_ITEM})({_ITEM}+)(?:, ?\1(?!{_ITEM}))+")
"""A list whose items differed in what varies."""


MORE_KINDS = "(more kinds of lines on one host than a run records)"
"""A kind by itself, first in order. Whether such a run has a kind that is not recorded is not known."""


def line_kinds(logs: Sequence[HostLog] | None) -> tuple[str, ...] | None:
    """Return the kinds of a run's lines, in order; None where a log was not watched, or not read whole.

    `MORE_KINDS` is among them where a host had more than are recorded.
    """
    if not logs or any(log.problem is not None for log in logs):
        return None
    names = "|".join(re.escape(log.host) for log in logs)
    host = re.compile(rf"(?<![\w-])(?:{names})(?![\w-])")
    more = {MORE_KINDS} if any(log.more for log in logs) else set()
    return tuple(sorted({_kind(each, host) for log in logs for each in log.findings} | more))


def _kind(line: LogFinding, host: re.Pattern[str]) -> str:
    # A text may be cut in the middle of a number, whose length varies.
    message, cut, thrown = line.text.partition(_CUT)
    text = f"{message.rpartition(' ')[0]}{thrown}" if cut else message
    text = _REPEATED.sub(r"\1", _VARYING.sub("#", host.sub("HOST", text)))
    shown = text if len(text) <= MOST_CHARACTERS else f"{text[: MOST_CHARACTERS - 1]}{_CUT}"
    # A class may change its package between two releases.
    return f"{line.level} {line.logger.rpartition('.')[2]}: {shown}"


def in_words(kinds: Sequence[str]) -> str:
    """Return the first kind, and how many others there are."""
    others = f" (and {plural(len(kinds) - 1, 'more kind')} in the same runs)" if len(kinds) > 1 else ""
    return f"{kinds[0]}{others}"


Side = Literal["same", "worse", "better", "replaces", "replaced"]
"""What a pair says of a kind: both runs have it or lack it, or one may have it among many; the candidate alone has it;
the baseline alone has it; or one run alone has it, and the other has another line of the same class in its place."""
FEWEST_AGREED = 3
"""The fewest pairs that all agree, for the verdict to stay open."""
LIKELY = 0.05
"""The probability by chance up to which a result leaves the verdict open."""


@dataclass(frozen=True, slots=True)
class LineTally:
    """Kinds of lines of which every pair says the same. In `replaces` pairs they stand in the place of another one."""

    kinds: tuple[str, ...]
    counts: CriterionTally
    """Of pairs in which both runs' logs were read whole."""
    replaces: int

    @property
    def new(self) -> bool:
        """Return whether the candidate logs them in more pairs than the baseline."""
        return self.counts.worse + self.replaces > self.counts.better

    def verdict(self, *, rejected: bool) -> Verdict:
        """Return what may be said, `rejected` being what the test says among all that is judged with it.

        It is NOISY where the candidate alone has the line in every pair, and where this test alone excludes luck.
        """
        if rejected:
            return "REGRESSED"
        every = self.counts.worse == self.counts.pairs >= FEWEST_AGREED
        return "NOISY" if every or self.counts.p_worse <= LIKELY else "OK"


@dataclass(frozen=True, slots=True)
class LineChange:
    """Kinds of lines that a candidate logs in more pairs than its baseline.

    Of `of` pairs the candidate alone logged them in `runs`, the baseline alone in `reverse`; in `replaces` pairs the
    baseline logged another line of the same class instead. `adjusted` is the probability of such a result by chance
    among all comparisons; None where too few pairs differ for a test.
    """

    baseline: str
    candidate: str
    kinds: tuple[str, ...]
    verdict: Verdict
    runs: int
    reverse: int
    replaces: int
    of: int
    adjusted: float | None

    @classmethod
    def of_tally(cls, found: LineTally, adjusted: float | None, level: float) -> "LineChange":
        """Return what a tally says; its test rejects up to a probability of `level`."""
        each = found.counts
        verdict = found.verdict(rejected=adjusted is not None and adjusted <= level)
        counts = (each.worse, each.better, found.replaces, each.pairs)
        return cls(each.baseline, each.candidate, found.kinds, verdict, *counts, adjusted)

    def __str__(self) -> str:
        counts = f"of {plural(self.of, 'pair')}, {self.candidate} alone logs it in {self.runs}"
        counts += f", {self.baseline} alone in {self.reverse}"
        if self.replaces:
            counts += f"; in {self.replaces} it replaces another line of its class"
        return f"{counts}: {in_words(self.kinds)}"

    def as_case(self, group: str) -> JUnitCase:
        """Return the case of JUnit's XML."""
        detail = "\n".join((str(self), *self.kinds))
        name = f"{self.candidate} against {self.baseline}: {self.kinds[0]}"
        return JUnitCase.of_verdict(name, group, self.verdict, str(self), detail)


def line_tallies(baseline: str, candidate: str, pairs: Sequence[tuple[Kinds, Kinds]]) -> list[LineTally]:
    """Return the kinds that some run of these pairs, (baseline, candidate) each, has without the other one.

    Kinds of which every pair says the same are one tally: a second test of the same counts says nothing more.
    """
    found: dict[tuple[Side, ...], list[str]] = defaultdict(list)
    for kind in sorted(frozenset().union(*(old | new for old, new in pairs))):
        found[tuple(_side(kind, old, new) for old, new in pairs)].append(kind)
    return [
        LineTally(
            tuple(kinds),
            CriterionTally(baseline, candidate, LOG_LINES, len(pairs), sides.count("worse"), sides.count("better")),
            sides.count("replaces"),
        )
        for sides, kinds in found.items()
        if set(sides) != {"same"}
    ]


def _side(kind: str, baseline: Kinds, candidate: Kinds) -> Side:
    if (kind in baseline) == (kind in candidate):
        return "same"
    new = kind in candidate
    if MORE_KINDS in (baseline if new else candidate):
        return "same"  # the other run may have it, too
    others = baseline - candidate if new else candidate - baseline
    if _class_of(kind) in map(_class_of, others):
        return "replaces" if new else "replaced"
    return "worse" if new else "better"


def _class_of(kind: str) -> str:
    """Return the level and the class of a kind."""
    return kind.partition(": ")[0]


LINE_BY_CHANCE = 0.01
"""The largest probability, by chance, of the runs that make a kind of line a new one."""


@dataclass(frozen=True, slots=True)
class NewLines:
    """Kinds of lines that the newest `runs` runs of a scenario all have, and none of the `before` runs before them.

    `found` is true on the first judged night on which chance is excluded.
    """

    kinds: tuple[str, ...]
    runs: int
    before: int
    found: bool

    def __str__(self) -> str:
        counts = f"logged in the newest {plural(self.runs, 'run')}, in none of {self.before} before"
        return f"{counts}: {in_words(self.kinds)}"


def new_lines(earlier: Sequence[Kinds], tonight: Sequence[Kinds], unjudged: int = 0) -> tuple[NewLines, ...]:
    """Return the kinds of lines that are new, from the runs of earlier nights and of tonight, oldest first.

    Every run of tonight has such a kind, and every run before back to the first that had it. None of the runs before
    that has it, which are at least `FEWEST_RUNS_TO_JUDGE`. A run that may have it among `MORE_KINDS` does not count.
    The last `unjudged` runs of earlier nights were not judged in their nights.
    """
    found: dict[tuple[int, int, int], list[str]] = defaultdict(list)
    for kind in sorted(frozenset.intersection(*tonight)) if tonight else ():
        known = [number for number, each in enumerate(earlier) if kind in each or MORE_KINDS not in each]
        had = [kind in earlier[number] for number in known]
        lately = next((number for number, each in enumerate(reversed(had)) if not each), len(had))
        before = len(had) - lately
        if not any(had[:before]):
            late = sum(number >= len(earlier) - unjudged for number in known[before:])
            found[lately, lately - late, before].append(kind)
    new = []
    for (lately, judged, before), kinds in sorted(found.items()):
        if before >= FEWEST_RUNS_TO_JUDGE:
            runs = lately + len(tonight)
            certain = _chance(runs, before) <= LINE_BY_CHANCE < _chance(judged, before)
            new.append(NewLines(tuple(kinds), runs, before, certain))
    return tuple(new)


def _chance(runs: int, before: int) -> float:
    """Return the chance that all of `runs` cases among all runs are the newest ones."""
    return at_least(runs, runs, runs, runs + before)
