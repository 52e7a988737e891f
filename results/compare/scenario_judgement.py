"""The judgement of a qualification's scenario, from how often each version failed in it. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from results.compare.effect import at_least
from results.compare.judgement import ANY, ComparisonRule, Verdict, doubtful_from, of_records, worst_of
from results.contract.texts import plural
from results.contract.verdict import Verdict as RunVerdict
from results.criteria.judgement import RUN_COMPLETE
from results.verdicts import rank

CERTAIN = 3
"""A criterion is said to fail when it does so in all runs, and in so many at least."""
ENOUGH = 2
"""A baseline is said to keep a criterion when it does so in so many runs, and never fails it."""
TO_DO = "read its report, or its log and its stacks, and qualify this scenario alone (--scenario)"
"""What the user does about runs without an end that decide nothing."""


@dataclass(frozen=True, slots=True)
class VersionResult:
    """One version in one scenario: its runs by verdict, and how often each criterion failed of how often it was judged.

    `missing` says why there is no run, where there is none. `doubts` has the criteria that made runs inconclusive: in
    how many runs, and why in the first of them. `stuck` says of each run that Kafka kept from its end, and that is in
    no store, why. `unended` counts all runs that Kafka kept from their end, and of how many: the machine explains none.
    """

    version: str
    runs: Mapping[RunVerdict, int]
    ids: tuple[str, ...]
    criteria: Mapping[str, tuple[int, int]]
    missing: str = ""
    doubts: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    stuck: tuple[str, ...] = ()
    unended: tuple[int, int] = (0, 0)

    @property
    def tried(self) -> int:
        """Return the number of runs, with those that Kafka kept from their end."""
        return len(self.ids) + len(self.stuck)

    @property
    def why_unended(self) -> str:
        """Return why the last such run, or the first of those in the store, had no end."""
        return self.stuck[-1] if self.stuck else self.doubts.get(RUN_COMPLETE, (0, "its report says why"))[1]

    @property
    def judged(self) -> int:
        """Return the number of runs that passed or failed."""
        return self.runs.get("pass", 0) + self.runs.get("fail", 0)

    @property
    def failing(self) -> Mapping[str, tuple[int, int]]:
        """Return the criteria that failed at all."""
        return {name: counts for name, counts in self.criteria.items() if counts[0]}

    def counts(self, criterion: str) -> tuple[int, int]:
        """Return (failures, runs judged on it)."""
        return self.criteria.get(criterion, (0, 0))


@dataclass(frozen=True, slots=True)
class QualificationVerdict:
    """A verdict and everything it rests on, in words; `notes` are worth knowing and change nothing."""

    verdict: Verdict
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def doubtful(candidate: VersionResult) -> bool:
    """Return whether a scenario's runs say too little: one failed or had no end, or all were inconclusive."""
    return not candidate.judged or failed_or_stuck(candidate)


def failed_or_stuck(one: VersionResult) -> bool:
    """Return whether a run failed, or Kafka kept it from its end."""
    return bool(one.runs.get("fail") or one.unended[0])


def judge_cells(candidate: VersionResult, baselines: Sequence[VersionResult]) -> QualificationVerdict:
    """Return what may be said of a scenario that is run once, and again where that is in doubt.

    REGRESSED takes a criterion that fails in every one of three runs or more and that a baseline keeps: with a flake
    in one run of twenty, and fifty scenarios, that happens by luck in one qualification of 160. What fails with every
    baseline as well is no regression of the candidate, and no pass either. A run that Kafka kept from its end counts as
    one that fails `run-complete`.
    """
    if not candidate.tried:
        return QualificationVerdict("NO-DATA", (candidate.missing or "it was not run",))
    if not candidate.judged and not candidate.unended[0]:
        return QualificationVerdict("NO-DATA", (f"{inconclusive(candidate)}: {', '.join(candidate.ids)}",))
    found = [
        _counted(name, counts, {cell.version: cell.counts(name) for cell in baselines})
        for name, counts in candidate.failing.items()
    ]
    found += without_end(candidate, baselines)
    if len(found) > 1 and worst_of([each.verdict for each in found]) != "REGRESSED":
        beside = {cell.version: _failed(cell) for cell in baselines}
        found.append(_counted(ANY, _failed(candidate), beside))
    if candidate.runs.get("fail") and not found:
        found.append(QualificationVerdict("NOISY", ("it failed, and no criterion says why",)))
    found.sort(key=lambda each: rank(each.verdict))  # the worst reason is the first one
    notes = [note for each in found for note in each.notes]
    for each in baselines:
        if not each.judged:
            notes.append(f"{each.version}: {inconclusive(each) if each.ids else each.missing or 'it was not run'}")
        elif not candidate.failing and each.failing:
            failures = ", ".join(f"{name} in {bad} of {of}" for name, (bad, of) in each.failing.items())
            notes.append(f"{each.version} failed {failures}")
    verdict = worst_of([each.verdict for each in found], "OK")
    return QualificationVerdict(verdict, tuple(reason for each in found for reason in each.reasons), tuple(notes))


def inconclusive(one: VersionResult) -> str:
    """Return in how many of a version's runs nothing could be said, and why."""
    count = one.runs.get("inconclusive", 0)
    runs = plural(count, "run") if count == len(one.ids) else f"{count} of {plural(len(one.ids), 'run')}"
    causes = "; ".join(f"{name} in {plural(of, 'run')}: {why}" for name, (of, why) in one.doubts.items())
    return f"inconclusive in {runs}{f' ({causes})' if causes else ''}"


def without_end(candidate: VersionResult, baselines: Sequence[VersionResult]) -> list[QualificationVerdict]:
    """Return what it says that Kafka kept the candidate's runs from their end: undecided at best; nothing without one.

    A criterion that fails once may be luck. A run without an end is rare: the user has to read why.
    """
    if not candidate.unended[0]:
        return []
    said = _counted(RUN_COMPLETE, candidate.unended, {cell.version: cell.unended for cell in baselines})
    why = f"{'; '.join((*said.reasons, *said.notes))}; {candidate.why_unended}"
    if said.verdict == "REGRESSED":
        return [QualificationVerdict(said.verdict, (why,))]
    return [QualificationVerdict("NOISY" if said.verdict == "OK" else said.verdict, (f"{why}: {TO_DO}",))]


def _failed(cell: VersionResult) -> tuple[int, int]:
    unended, _of = cell.unended
    return cell.runs.get("fail", 0) + unended, cell.judged + unended


def _counted(name: str, counts: tuple[int, int], beside: Mapping[str, tuple[int, int]]) -> QualificationVerdict:
    """Return what it says that something failed so often, of so many runs, and so often beside."""
    bad, of = counts
    count = f"{name} failed in {bad} of {plural(of, 'run')}"
    others = _others(beside)
    seen = {version: counts for version, counts in beside.items() if counts[1]}
    always = bad == of and of >= CERTAIN
    if always and _is_held(seen.values()):
        return QualificationVerdict("REGRESSED", (f"{count}; {others}",))
    # Of three runs each, only 3 against 0 has such a p (0.05): this test is for runs without an end in pairs. If both
    # sides hang in one run of twenty, ten pairs have such a p with probability 0.0006. Three scenarios of twelve pairs
    # against four baselines have one with less than 0.01, so p is not adjusted.
    chances = [(at_least(bad, of, bad + b, of + n), version) for version, (b, n) in seen.items()]
    p, rarer = min(chances, default=(1.0, ""))
    if p <= ComparisonRule().family:
        why = f"more often than with {rarer} (Fisher's exact test, p = {p:.2g})"
        return QualificationVerdict("REGRESSED", (f"{count}; {others}: {why}",))
    if always:
        if not seen:
            return QualificationVerdict("NO-DATA", (f"{count}, and no baseline was judged on it",))
        if all(b == n for b, n in seen.values()):
            return QualificationVerdict(
                "NOISY", (f"{count}, as with every baseline ({others}): not new, and not fulfilled",)
            )
        return QualificationVerdict("NOISY", (f"{count}; {others}: too few runs to show a difference",))
    if bad == of:
        return QualificationVerdict("NOISY", (f"{count}; {CERTAIN} runs would decide",))
    if not seen and bad >= doubtful_from(name):
        return QualificationVerdict("NO-DATA", (f"{count}, and no baseline was judged on it",))
    if any(bad - b >= doubtful_from(name) for b, _n in seen.values()):
        luck = "chance explains that, too" + (", but no machine loses a record: read its report" * of_records(name))
        return QualificationVerdict("NOISY", (f"{count}; {others}: {luck}",))
    return QualificationVerdict("OK", notes=(f"{count}; {others}",))


def always_failed(candidate: VersionResult, baselines: Sequence[VersionResult]) -> dict[str, QualificationVerdict]:
    """Return the criteria that failed in every run of the candidate, each with what that says.

    Without one, return `ANY` where every run failed. Such a scenario does not pass, however often a baseline failed it.
    A comparison says nothing where both fail. As where scenarios run once, it is REGRESSED where a baseline holds it.
    """
    found = {
        name: _always(name, of, {each.version: each.counts(name) for each in baselines})
        for name, (bad, of) in candidate.failing.items()
        if bad == of >= CERTAIN
    }
    bad, of = _failed(candidate)
    if not found and candidate.judged and bad == of >= CERTAIN:
        found[ANY] = _always(ANY, of, {each.version: _failed(each) for each in baselines})
    return found


def _always(name: str, of: int, beside: Mapping[str, tuple[int, int]]) -> QualificationVerdict:
    text = f"{name} failed in all {plural(of, 'run')}; {_others(beside)}"
    if _is_held(beside.values()):
        return QualificationVerdict("REGRESSED", (text,))
    new = "not new, and " if all(b == n > 0 for b, n in beside.values()) else ""
    return QualificationVerdict("NOISY", (f"{text}: {new}not fulfilled",))


def _is_held(counts: Iterable[tuple[int, int]]) -> bool:
    """Return whether a baseline holds a criterion, from how often it failed of how many runs with each."""
    return any(bad == 0 and of >= ENOUGH for bad, of in counts)


def _others(beside: Mapping[str, tuple[int, int]]) -> str:
    """Return in words how often something failed with each baseline."""
    return ", ".join(f"{version} in {b} of {n}" for version, (b, n) in beside.items()) or "there is no baseline"
