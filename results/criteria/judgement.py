"""The judgement of a run by the criteria of the catalogue; what it skips, and why a run is inconclusive. Pure.

A run whose experiment ended early has findings of its own: why, and the brokers that stood still meanwhile.
"""

import difflib
import importlib
import pkgutil
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from results.contract.aliases import known_experiments
from results.contract.manifest import Manifest
from results.contract.verdict import Finding, Verdict, overall
from results.criteria import other_clients
from results.criteria.catalogue.jvm_pauses import judge_jvms
from results.criteria.criterion import CLOCK_STEADY, CLUSTER_CHANGED, NETWORK_CHANGED, PRECONDITIONS, Criterion
from results.criteria.findings import finding, not_judged
from results.criteria.incident import judge_incident
from results.criteria.measures import MoveMeasures
from results.criteria.phase_directions import NEVER_ABOVE
from results.criteria.run_view import RunView
from results.criteria.sample_series import RunSeries
from results.criteria.standstill import METRICS, jvm_measures
from results.criteria.unfit import MACHINE_LOAD, left_open, mostly_unfit, with_unfit_load


class UnknownExperimentError(ValueError):
    """No criteria are known for an experiment; the message lists the experiments that have some."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """A run's findings and the measures they came from."""

    criteria: tuple[Finding, ...]
    measures: MoveMeasures
    kafkas_own: tuple[str, ...] = ()
    """The preconditions that do not hold because of what brokers did themselves."""

    @property
    def verdict(self) -> Verdict:
        """Return the run's verdict."""
        return overall(self.criteria)


@dataclass(frozen=True, slots=True)
class Skipped:
    """One criterion by its name, and why nothing can be said by it."""

    name: str
    why: str


@cache
def catalogue() -> Mapping[str, Criterion]:
    """Return every criterion by name: each module of `results.criteria.catalogue` has one, `CRITERION`."""
    package = importlib.import_module("results.criteria.catalogue")
    names = sorted(module.name for module in pkgutil.iter_modules(package.__path__))
    found = [importlib.import_module(f"{package.__name__}.{name}").CRITERION for name in names]
    return {criterion.name: criterion for criterion in found}


@cache
def machine_criteria() -> frozenset[str]:
    """Return the names of the criteria that are about the machine and other clients, and not about Kafka."""
    return frozenset({CLUSTER_CHANGED, *(name for name, each in catalogue().items() if each.about_machine)})


def criteria_of(run: RunView) -> tuple[Criterion, ...]:
    """Return the criteria that a run's experiment names, then the criteria of every run that has what they need.

    Raise UnknownExperimentError for an experiment that names none, ValueError for a criterion that does not exist.
    """
    named = run.criteria
    if named is None:
        known = ", ".join(known_experiments())
        raise UnknownExperimentError(f"no judgement for experiment {run.manifest.experiment!r}; known: {known}")
    every = catalogue()
    for name in named:
        if name not in every:
            near = difflib.get_close_matches(name, every, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise ValueError(f"run {run.manifest.run_id}: there is no criterion {name!r}{hint}")
    by_name = [every[name] for name in named if every[name].by_name]
    return (*by_name, *(each for each in every.values() if not each.by_name))


def judge(manifest: Manifest, samples: Any, events: Any) -> Judgement:
    """Measure and judge a run; take `samples` and `events` as Arrow tables or pandas DataFrames.

    An incident's findings are those of its expectations. Raise ValueError for a run without anything to judge.
    """
    if manifest.failure:
        return Judgement(judge_failed(manifest, samples, events), MoveMeasures())
    if manifest.incident is not None:
        return Judgement(judge_incident(manifest, samples, events), MoveMeasures())
    run = RunView(manifest, samples, events)
    criteria = criteria_of(run)
    measures = run.measures
    preconditions = [
        finding
        for criterion in criteria
        if criterion.section == PRECONDITIONS and criterion.needs(run)
        for finding in criterion.findings(run)
    ]
    others, logs = other_clients.finding_of(manifest.cluster, measures.started_us), manifest.facts.logs or ()
    shaky = [finding for finding in preconditions if finding.verdict == "inconclusive"]
    left = {finding.name for finding in shaky}
    own = {each.name: each for each in criteria if each.name in left and each.kafkas_own(run)}
    shaky = [finding for finding in shaky if finding.name not in own or own[finding.name].excuses_brokers]
    shaky.sort(key=lambda finding: finding.name != NETWORK_CHANGED)  # the first is named: a change says most
    found = [
        finding
        for criterion in criteria
        if criterion.section != PRECONDITIONS and criterion.needs(run) and criterion.skips(run) is None
        for finding in other_clients.left_open(
            criterion, _findings(criterion, run, shaky), manifest.cluster, others, logs
        )
    ]
    if run.unfit:
        preconditions = with_unfit_load(preconditions, found, run.unfit.finding(measures.started_us or 0))
    return Judgement((*found, *preconditions, *others), measures, tuple(own))


def _findings(criterion: Criterion, run: RunView, shaky: Sequence[Finding]) -> list[Finding]:
    found = despite(criterion, run, criterion.findings(run), shaky)
    if criterion.spared is None or not run.unfit or not any(each.verdict == "fail" for each in found):
        return found
    return left_open(found, criterion.spared(run), run.unfit, run.measures.started_us or 0)


def despite(criterion: Criterion, run: RunView, found: list[Finding], shaky: Sequence[Finding]) -> list[Finding]:
    """Return the findings, and leave open those that rest on preconditions which do not hold."""
    if not shaky or not criterion.rests_on_preconditions:
        return found
    if criterion.excused_by:
        return [_excused(criterion, run, each, shaky) if each.verdict == "fail" else each for each in found]
    certain = criterion.holds_anyway(run, shaky) or [None] * len(found)
    return [sure or not_judged(each, shaky) for each, sure in zip(found, certain, strict=True)]


def _excused(criterion: Criterion, run: RunView, failed: Finding, shaky: Sequence[Finding]) -> Finding:
    """Return a failed finding, left open when preconditions that do not hold explain it."""
    causes = [each for each in shaky if each.name in criterion.excused_by]
    causes = [each for each in causes if criterion.excuses(run, each.name, failed)]
    return not_judged(failed, causes) if causes else failed


def skipped(manifest: Manifest) -> tuple[Skipped, ...]:
    """Return the criteria that its experiment names and that say nothing of this run, and why.

    Raise `UnknownExperimentError`.
    """
    if manifest.incident is not None or manifest.failure:
        return ()
    run = RunView(manifest)
    reasons = [(each.name, each.skips(run)) for each in criteria_of(run) if each.by_name]
    return tuple(Skipped(name, why) for name, why in reasons if why is not None)


def skipped_lines(found: Iterable[Skipped]) -> list[str]:
    """Return a line for each criterion that was skipped."""
    return [f"{'NOT JUDGED':<12}  {each.name}: {each.why}" for each in found]


def rates_failed(judgement: Judgement) -> bool:
    """Return whether a criterion failed that a changed network would leave open."""
    failed = {each.name for each in judgement.criteria if each.verdict == "fail"}
    return any(
        each.rests_on_preconditions and NETWORK_CHANGED in (each.excused_by or (NETWORK_CHANGED,))
        for name, each in catalogue().items()
        if name in failed
    )


def by_machine(judgement: Judgement) -> bool:
    """Return whether a run is inconclusive by the machine alone, whatever kept it busy: another run may tell more."""
    return _only(_causes(judgement), machine_criteria())


def noisy(judgement: Judgement) -> bool:
    """Return whether a run is inconclusive by other work on the machine: nothing else is a cause of its own."""
    return by_machine(judgement) and not sound(judgement)


def sound(judgement: Judgement) -> bool:
    """Return whether an inconclusive run was measured all the same: only what would explain it says nothing.

    What brokers themselves made of the machine is such a run: its times and costs are Kafka's. So is a run whose
    throttle lies above what its NICs carry: the throttle's bound says nothing of it, and nothing disturbed it.
    """
    causes = _causes(judgement)
    explaining = {name for name, each in catalogue().items() if each.explains_time} | {*judgement.kafkas_own}
    never = {each.name for each in causes if NEVER_ABOVE in each.why}
    never -= {each.name for each in causes if NEVER_ABOVE not in each.why}
    return _only(causes, explaining | never)


def _causes(judgement: Judgement) -> list[Finding]:
    """Return the findings that make a run inconclusive by themselves; none of a run that is not inconclusive."""
    if judgement.verdict != "inconclusive":
        return []
    return [c for c in judgement.criteria if c.verdict == "inconclusive" and not c.why.startswith("not judged")]


def _only(causes: Sequence[Finding], names: Collection[str]) -> bool:
    found = {each.name for each in causes}
    if CLOCK_STEADY in found:  # a clock that was set is seen as a gap in readings, too
        found = {CLOCK_STEADY}
    return bool(found) and found <= set(names)


@dataclass(frozen=True, slots=True)
class Changed:
    """A criterion that is judged otherwise; None: not judged at all. `why` is today's, or of then if there is none."""

    criterion: str
    then: Verdict | None
    now: Verdict | None
    why: str

    def __str__(self) -> str:
        then, now = (verdict or "not judged" for verdict in (self.then, self.now))
        return f"{self.criterion}: {then} when it was recorded, {now} now: {self.why}"


def changes(recorded: Iterable[Finding], again: Iterable[Finding]) -> tuple[Changed, ...]:
    """Return what is judged otherwise than it was recorded, in today's order; then what is not judged any more."""
    then, now = ({each.label: each for each in criteria} for criteria in (recorded, again))
    found = []
    for key in dict.fromkeys([*now, *then]):
        before, after = then.get(key), now.get(key)
        was, is_now = before.verdict if before else None, after.verdict if after else None
        if was != is_now:
            why = after.why if after else before.why if before else ""
            found.append(Changed(key, was, is_now, why))
    return tuple(found)


RUN_COMPLETE = "run-complete"
OWN_ERROR = "the testbed's own error: "
"""How the manifest's `failure` begins where the testbed is the cause: a defect of its code, or a lack of software."""


def judge_failed(manifest: Manifest, samples: Any, events: Any) -> tuple[Finding, ...]:
    """Return `run-complete`, which is inconclusive, `jvm-pauses` of each broker and `machine-load` that explain it.

    Take samples and events as Arrow tables or pandas DataFrames.
    """
    series = RunSeries(samples, events)
    expected = "the experiment runs to its end"
    ended = finding(RUN_COMPLETE, expected, "inconclusive", manifest.failure, observed=None, series=("events",))
    return (ended, *_stood_still(series), *mostly_unfit(series, manifest.machine.cores))


def has_ended(judgement: Judgement) -> bool | None:
    """Return whether a run came to its end; None where the machine or the testbed explains that it did not."""
    doubts = {each.name: each.why for each in judgement.criteria if each.verdict == "inconclusive"}
    if RUN_COMPLETE not in doubts:
        return True
    return None if MACHINE_LOAD in doubts or doubts[RUN_COMPLETE].startswith(OWN_ERROR) else False


def _stood_still(run: RunSeries) -> list[Finding]:
    hosts = sorted({host for metric in METRICS for host in run.of_metric(metric)["host"].to_pylist()})
    instants = [us for metric in METRICS for us in run.of_metric(metric)["us"].to_pylist()]
    if not instants:
        return []
    found = judge_jvms(jvm_measures(run, hosts, [(min(instants), max(instants))]), None)
    return [each for each in found if each.verdict != "pass"]
