"""A release against others, scenario by scenario: what was seen, what may be said of it, and every reason. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from results.compare.judgement import Finding, Verdict, rank, worst_of
from results.compare.tally import ANY
from results.contract.verdict import Verdict as RunVerdict

Kind = Literal["once", "paired", "upgrade"]
"""How a scenario is run: once with each version and again where that is in doubt; in pairs; or as an upgrade from a
baseline to the candidate, beside mere restarts of the baseline."""
CERTAIN = 3
"""A criterion is said to fail when it does so in all runs, and in so many at least."""
ENOUGH = 2
"""A baseline is said to keep a criterion when it does so in so many runs, and never fails it."""
DOUBTFUL = 2
"""So many failures more than a baseline's, and nobody can tell yet."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One version in one scenario: its runs by verdict, and how often each criterion failed of how often it was judged.

    `missing` says why there is no run, where there is none.
    """

    version: str
    runs: Mapping[RunVerdict, int]
    ids: tuple[str, ...]
    criteria: Mapping[str, tuple[int, int]]
    missing: str = ""

    @property
    def judged(self) -> int:
        """Runs that passed or failed."""
        return self.runs.get("pass", 0) + self.runs.get("fail", 0)

    @property
    def failing(self) -> Mapping[str, tuple[int, int]]:
        """The criteria that failed at all."""
        return {name: counts for name, counts in self.criteria.items() if counts[0]}

    def counts(self, criterion: str) -> tuple[int, int]:
        """(failures, runs judged on it)."""
        return self.criteria.get(criterion, (0, 0))


@dataclass(frozen=True, slots=True)
class Said:
    """A verdict and everything it rests on, in words; `notes` are worth knowing and change nothing."""

    verdict: Verdict
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """A scenario: what is said of the candidate, and the cells it is said from, the candidate's last."""

    name: str
    experiment: str
    topology: str
    kind: Kind
    said: Said
    cells: tuple[Cell, ...]
    findings: tuple[Finding, ...] = ()

    @property
    def candidate(self) -> Cell:
        """What the release did."""
        return self.cells[-1]


@dataclass(frozen=True, slots=True)
class Qualification:
    """A release held against its baselines; `problems` are of the whole."""

    id: str
    candidate: str
    baselines: tuple[str, ...]
    profile: str
    threshold: float
    rows: tuple[Row, ...]
    ended: str
    complete: bool
    store: str
    command: str
    problems: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """The worst of all scenarios; nothing run is NO-DATA, and so is, at best, what is not complete."""
        found = [row.said.verdict for row in self.rows]
        if not found or not self.complete or self.problems:
            found.append("NO-DATA")
        return worst_of(found)

    @property
    def worst_first(self) -> tuple[Row, ...]:
        """The scenarios in the order in which somebody reads them."""
        return tuple(sorted(self.rows, key=lambda row: rank(row.said.verdict)))

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the verdict is not OK: one line for each reason, worst scenarios first."""
        own = [f"{row.said.verdict} {row.name}: {reason}" for row in self.worst_first for reason in row.said.reasons]
        unfinished = [] if self.complete else [f"NO-DATA: not all was run: {self.ended}"]
        return (*own, *unfinished, *self.problems)


def doubtful(candidate: Cell) -> bool:
    """Whether a scenario's one run says too little: it failed, or was inconclusive."""
    return not candidate.judged or bool(candidate.runs.get("fail"))


def judge_cells(candidate: Cell, baselines: Sequence[Cell]) -> Said:
    """What may be said of a scenario that is run once, and again where that is in doubt.

    REGRESSED takes a criterion that fails in every one of three runs or more and that a baseline keeps: with a flake
    in one run of twenty, and fifty scenarios, that happens by luck in one qualification of 160. What fails with every
    baseline as well is nobody's regression and no pass either.
    """
    if not candidate.ids:
        return Said("NO-DATA", (candidate.missing or "it was not run",))
    if not candidate.judged:
        return Said("NO-DATA", (f"inconclusive in {_runs(len(candidate.ids))}: {', '.join(candidate.ids)}",))
    found = [_criterion(name, candidate, baselines) for name in candidate.failing]
    if len(candidate.failing) > 1 and worst_of([each.verdict for each in found]) != "REGRESSED":
        beside = {cell.version: _failed(cell) for cell in baselines}
        found.append(_counted(ANY, _failed(candidate), beside))
    if candidate.runs.get("fail") and not found:
        found.append(Said("NOISY", ("it failed, and no criterion says why",)))
    notes = [note for each in found for note in each.notes]
    for cell in baselines:
        if not cell.judged:
            notes.append(f"{cell.version}: {cell.missing or 'no run could be judged'}")
        elif not candidate.failing and cell.failing:
            told = ", ".join(f"{name} in {bad} of {of}" for name, (bad, of) in cell.failing.items())
            notes.append(f"{cell.version} failed {told}")
    verdict = worst_of([each.verdict for each in found], "OK")
    return Said(verdict, tuple(reason for each in found for reason in each.reasons), tuple(notes))


def _criterion(name: str, candidate: Cell, baselines: Sequence[Cell]) -> Said:
    """What one criterion that failed at all says."""
    return _counted(name, candidate.counts(name), {cell.version: cell.counts(name) for cell in baselines})


def _failed(cell: Cell) -> tuple[int, int]:
    return cell.runs.get("fail", 0), cell.judged


def _counted(name: str, counts: tuple[int, int], beside: Mapping[str, tuple[int, int]]) -> Said:
    """What it says that something failed so often, of so many runs, and so often beside."""
    bad, of = counts
    told = f"{name} failed in {bad} of {_runs(of)}"
    others = ", ".join(f"{version} in {b} of {n}" for version, (b, n) in beside.items()) or "there is no baseline"
    seen = {version: counts for version, counts in beside.items() if counts[1]}
    if bad == of and of >= CERTAIN:
        keeps = [version for version, (b, n) in seen.items() if b == 0 and n >= ENOUGH]
        if keeps:
            return Said("REGRESSED", (f"{told}; {others}",))
        if not seen:
            return Said("NO-DATA", (f"{told}, and no baseline was judged on it",))
        if all(b == n for b, n in seen.values()):
            return Said("NOISY", (f"{told}, as with every baseline ({others}): not new, and not fulfilled",))
        return Said("NOISY", (f"{told}; {others}: that does not tell them apart",))
    if bad == of:
        return Said("NOISY", (f"{told}; {CERTAIN} would tell",))
    if any(bad - b >= DOUBTFUL for b, _n in seen.values()):
        return Said("NOISY", (f"{told}; {others}: luck does that, too",))
    return Said("OK", notes=(f"{told}; {others}",))


def never_kept(candidate: Cell, baselines: Sequence[Cell]) -> tuple[str, ...]:
    """Criteria that failed in every run of the candidate and of every baseline: no comparison tells of them."""
    return tuple(
        f"{name} failed in all {_runs(of)}, as with every baseline: not new, and not fulfilled"
        for name, (bad, of) in candidate.failing.items()
        if bad == of >= CERTAIN
        and any(cell.counts(name)[1] for cell in baselines)
        and all(b == n for b, n in (cell.counts(name) for cell in baselines))
    )


def _runs(count: int) -> str:
    return f"{count} run{'' if count == 1 else 's'}"
