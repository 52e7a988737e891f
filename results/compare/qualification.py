"""The verdict of a qualification: a release against others, over all scenarios. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from results.compare.judgement import ANY, ComparisonResult, ComparisonRule, CriterionTally, Verdict, worst_of
from results.compare.log_lines import LOG_LINES, LineChange
from results.compare.scenario_judgement import QualificationVerdict, VersionResult
from results.contract.texts import plural, shortened
from results.verdicts import rank

Kind = Literal["once", "paired", "upgrade"]
"""How a scenario is run: once with each version and again where that is in doubt; in pairs; or as an upgrade from a
baseline to the candidate, compared with mere restarts of the baseline."""
TOGETHER, SHOWN = "all-scenarios", 5
"""The name that stands in the place of a scenario, and how many scenarios its reason names."""
BY_CHANCE = 0.01
"""The largest share of qualifications of an unchanged Kafka that are REGRESSED by all scenarios together. By one of
them alone it is one in 160 (docs/qualifying.md)."""


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
