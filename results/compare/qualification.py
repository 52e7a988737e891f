"""The verdict of a qualification: a release against others, by scenario; as text, JSON, Markdown and JUnit. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from results.compare.effect import at_least
from results.compare.judgement import (
    ANY,
    ComparisonResult,
    ComparisonRule,
    CriterionTally,
    Verdict,
    doubtful_from,
    of_records,
    worst_of,
)
from results.compare.log_lines import LOG_LINES, LineChange
from results.compare.render import COLUMNS, comparison_document, comparison_row
from results.contract.texts import plural, shortened
from results.contract.verdict import Verdict as RunVerdict
from results.criteria.judgement import RUN_COMPLETE
from results.render import NOTHING, JUnitCase, bold, escaped, junit, markdown_table
from results.verdicts import rank

Kind = Literal["once", "paired", "upgrade"]
"""How a scenario is run: once with each version and again where that is in doubt; in pairs; or as an upgrade from a
baseline to the candidate, compared with mere restarts of the baseline."""
CERTAIN = 3
"""A criterion is said to fail when it does so in all runs, and in so many at least."""
ENOUGH = 2
"""A baseline is said to keep a criterion when it does so in so many runs, and never fails it."""
TOGETHER, SHOWN = "all-scenarios", 5
"""The name that stands in the place of a scenario, and how many scenarios its reason names."""
BY_CHANCE = 0.01
"""The largest share of qualifications of an unchanged Kafka that are REGRESSED by all scenarios together. By one of
them alone it is one in 160 (docs/qualifying.md)."""
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


@dataclass(frozen=True, slots=True)
class ScenarioQualification:
    """A scenario: what is said of the candidate, and the cells it is said from, the candidate's last."""

    name: str
    experiment: str
    topology: str
    kind: Kind
    said: QualificationVerdict
    cells: tuple[VersionResult, ...]
    findings: tuple[ComparisonResult, ...] = ()

    @property
    def candidate(self) -> VersionResult:
        """Return what the release did."""
        return self.cells[-1]


@dataclass(frozen=True, slots=True)
class FailingScenarios:
    """The candidate fails now and then: in more of the scenarios that are run once than chance explains.

    `counts` are those in which both were judged, with an adjusted `p`; `where` names those that fail with the candidate
    alone, and the criteria.
    """

    counts: CriterionTally
    p: float
    where: tuple[str, ...]

    @property
    def verdict(self) -> Verdict:
        """Return REGRESSED; NOISY where so many qualifications of an unchanged Kafka would be that."""
        return "REGRESSED" if self.p <= BY_CHANCE else "NOISY"

    def __str__(self) -> str:
        each = self.counts
        text = f"of {plural(each.pairs, 'scenario')}, a run failed with {each.candidate} alone in {each.worse}, "
        text += f"with {each.baseline} alone in {each.better} (adjusted p = {self.p:.2g}): "
        return text + "; ".join(shortened(self.where, SHOWN))


def failing_scenarios(rows: Sequence[ScenarioQualification]) -> tuple[FailingScenarios, ...]:
    """Return for each baseline against which the candidate fails in too many of the scenarios that are run once.

    Where the candidate's first run fails, a baseline has as many runs as the candidate. So without a difference a
    scenario fails with the baseline alone at least as often, and the test of `CriterionTally` holds.
    """
    sides: dict[str, list[tuple[bool, bool, str]]] = {}
    for row in rows:
        new = row.candidate
        for old in row.cells[:-1] if row.kind == "once" and new.judged else ():
            if old.judged:
                failed = bool(old.runs.get("fail")), bool(new.runs.get("fail"))
                sides.setdefault(old.version, []).append((*failed, f"{row.name} ({', '.join(new.failing)})"))
    found = []
    for version, each in sides.items():
        worse = tuple(where for old, new, where in each if new and not old)
        better = sum(old and not new for old, new, _where in each)
        counts = CriterionTally(version, rows[0].candidate.version, ANY, len(each), len(worse), better)
        found.append(FailingScenarios(counts, min(1.0, counts.p_worse * len(sides)), worse))
    return tuple(each for each in found if each.p <= ComparisonRule().family)


@dataclass(frozen=True, slots=True)
class Qualification:
    """A release held against its baselines."""

    id: str
    candidate: str
    baselines: tuple[str, ...]
    profile: str
    threshold: float
    rows: tuple[ScenarioQualification, ...]
    ended: str
    complete: bool
    store: str
    command: str
    log_lines: tuple[LineChange, ...] = ()
    """The kinds of log lines that are new, over the runs of all scenarios, worst first."""

    @property
    def verdict(self) -> Verdict:
        """Return the worst of all scenarios, alone and together, and log lines; not all run is NO-DATA at best."""
        lacking: tuple[Verdict, ...] = () if self.complete and self.rows else ("NO-DATA",)
        return worst_of([*self.verdicts, *lacking])

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """Return the verdict of each scenario, of all together where they have one, and of each kind of log line."""
        alone = (row.said.verdict for row in self.rows)
        return (*alone, *(each.verdict for each in self.together), *(each.verdict for each in self.log_lines))

    @property
    def together(self) -> tuple[FailingScenarios, ...]:
        """Return what the scenarios say together, and none of them alone."""
        return failing_scenarios(self.rows)

    @property
    def worst_first(self) -> tuple[ScenarioQualification, ...]:
        """Return the scenarios in the order of a reader."""
        return tuple(sorted(self.rows, key=lambda row: rank(row.said.verdict)))

    @property
    def named_reasons(self) -> list[tuple[Verdict, str, tuple[str, ...]]]:
        """Return (verdict, name, reasons) of everything that has reasons, worst scenarios first."""
        found = [(row.said.verdict, row.name, row.said.reasons) for row in self.worst_first if row.said.reasons]
        found += [(each.verdict, TOGETHER, (str(each),)) for each in self.together]
        return found + [(each.verdict, LOG_LINES, (str(each),)) for each in self.log_lines if each.verdict != "OK"]

    @property
    def reasons(self) -> tuple[str, ...]:
        """Return why the verdict is not OK: one line for each reason, worst scenarios first."""
        own = [f"{verdict} {name}: {reason}" for verdict, name, reasons in self.named_reasons for reason in reasons]
        unfinished = [] if self.complete else [f"NO-DATA: not all was run: {self.ended}"]
        return (*own, *unfinished)


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


def headline(found: Qualification) -> str:
    """Return what was held against what."""
    return f"Kafka {found.candidate} against {' and '.join(found.baselines)}"


def cell_text(one: VersionResult) -> str:
    """Return the cell of a version in a scenario: its runs by verdict, and those that Kafka kept from their end."""
    counts: list[tuple[str, int]] = [*one.runs.items()]
    counts += [("without an end", len(one.stuck))] if one.stuck else []
    return ", ".join(f"{count} {name}" if one.tried > 1 else name for name, count in counts) or "not run"


def by_version(row: ScenarioQualification, found: Qualification) -> list[str]:
    """Return a cell for each version, baselines first; where a scenario is not of a version, a dash."""
    cells = {each.version: cell_text(each) for each in row.cells}
    return [cells.get(version, NOTHING) for version in (*found.baselines, found.candidate)]


def lines(found: Qualification) -> list[str]:
    """Return a line a scenario, worst first; below it every reason, and what is worth knowing; then new log lines."""
    width = max((len(row.name) for row in found.rows), default=0)
    rows = []
    for row in found.worst_first:
        seen = "; ".join(f"{each.version}: {cell_text(each)}" for each in row.cells)
        rows.append(f"{row.said.verdict:<11}  {row.name:<{width}}  {seen}")
        rows += [f"{'':13}{reason}" for reason in row.said.reasons]
        rows += [f"{'':13}({note})" for note in row.said.notes]
    rows += [f"{each.verdict:<11}  {TOGETHER:<{width}}  {each}" for each in found.together]
    return rows + [f"{each.verdict:<11}  {LOG_LINES:<{width}}  {each}" for each in found.log_lines]


def as_json(found: Qualification) -> dict[str, Any]:
    """Return one document."""
    return {
        "qualification": found.id,
        "candidate": found.candidate,
        "against": list(found.baselines),
        "profile": found.profile,
        "threshold": found.threshold,
        "verdict": found.verdict,
        "reasons": list(found.reasons),
        "complete": found.complete,
        "ended": found.ended,
        "store": found.store,
        "command": found.command,
        "scenarios": [_row(row) for row in found.worst_first],
        "log_lines": [asdict(each) for each in found.log_lines],
        "problems": [],  # always; as in the documents of `compare` and `nightly`
    }


def _row(row: ScenarioQualification) -> dict[str, Any]:
    return {
        "scenario": row.name,
        "experiment": row.experiment,
        "topology": row.topology,
        "run": row.kind,
        "verdict": row.said.verdict,
        "reasons": list(row.said.reasons),
        "notes": list(row.said.notes),
        "versions": [
            {
                "kafka": each.version,
                "runs": dict(each.runs),
                "run_ids": list(each.ids),
                "failed": {name: {"runs": bad, "of": of} for name, (bad, of) in each.failing.items()},
                "missing": each.missing or None,
                "unended": {"runs": each.unended[0], "of": each.unended[1], "not_stored": list(each.stuck)},
                "inconclusive": {name: {"runs": runs, "why": why} for name, (runs, why) in each.doubts.items()},
            }
            for each in row.cells
        ],
        "measures": [
            {
                "against": each.comparison.baseline.rpartition(", ")[2],
                "pairs": int(comparison_row(each, row.name).pairs),
                **comparison_document(each),
            }
            for each in row.findings
        ],
    }


def markdown(found: Qualification) -> str:
    """Return a comment: the reasons, the matrix, every measure that was compared, log lines that chance explains."""
    rows = [f"### {found.verdict}: {escaped(headline(found))}", ""]
    rows += [f"- {escaped(reason)}" for reason in found.reasons]
    versions = (*found.baselines, found.candidate)
    matrix = [
        (row.said.verdict, row.name, *by_version(row, found), "; ".join(row.said.reasons)) for row in found.worst_first
    ]
    rows += ["", *markdown_table(("", "scenario", *(escaped(each) for each in versions), "why"), matrix)]
    measured = [
        comparison_row(each, _against(row, found, each.comparison.baseline))
        for row in found.worst_first
        for each in row.findings
    ]
    if measured:
        rows += ["", *markdown_table(COLUMNS, [each.cells for each in measured])]
    by_chance = [each for each in found.log_lines if each.verdict == "OK"]
    rows += [""] * bool(by_chance) + [f"- {LOG_LINES}, explained by chance: {escaped(str(each))}" for each in by_chance]
    if not found.complete:
        rows += ["", f"{bold('not complete')}: {escaped(found.ended)}"]
    return "\n".join(rows) + "\n"


def _against(row: ScenarioQualification, found: Qualification, baseline: str) -> str:
    """Return the name of a scenario; where there are several baselines, also against which one."""
    return row.name if len(found.baselines) == 1 else f"{row.name}, against {baseline.rpartition(', ')[2]}"


def as_junit(found: Qualification) -> str:
    """Return a case for each scenario, and for each new log line."""
    cases = [
        JUnitCase.of_verdict(
            row.name,
            row.experiment,
            row.said.verdict,
            row.said.reasons[0] if row.said.reasons else "",
            "\n".join((*row.said.reasons, *row.said.notes, *(_version_runs(each) for each in row.cells if each.tried))),
        )
        for row in found.rows
    ]
    cases += [
        JUnitCase.of_verdict(
            f"against {each.counts.baseline}", TOGETHER, each.verdict, str(each), "\n".join(each.where)
        )
        for each in found.together
    ]
    cases += [each.as_case(LOG_LINES) for each in found.log_lines]
    unfinished = () if found.complete else (f"not all was run: {found.ended}",)
    return junit(f"qualify {found.candidate}", cases, unfinished)


def _version_runs(one: VersionResult) -> str:
    return f"{one.version}: {cell_text(one)}: {', '.join((*one.ids, *one.stuck))}"
