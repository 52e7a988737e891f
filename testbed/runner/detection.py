"""The detections of a self-test: the findings on each defect and on healthy brokers, from runs to a table. Pure."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from results.compare.effect import binomial_interval
from results.compare.log_lines import LOG_LINES
from results.compare.render import comparison_row
from results.compare.scenario_judgement import VersionResult, judge_cells
from results.contract.defect import DefectRecord
from results.criteria.judgement import RUN_COMPLETE
from testbed.defects.parse import parse_defect
from testbed.runner.campaign import Campaign, VariantGroup
from testbed.runner.comparison import outcome
from testbed.runner.journal import CampaignState, SlotRun
from testbed.runner.pairs import GroupRuns, by_group
from testbed.runner.replayed_nights import NightChange
from testbed.runner.variant import Variant
from testbed.runner.version_results import cells_of

Result = Literal["found", "missed", "inconclusive", "did not act", "not run"]
"""What one play of a defect came to. Of healthy brokers, `found` is a false alarm."""
DefectsOf = Callable[[str], Sequence[DefectRecord]]
"""The defects in the manifest of a run."""
Acted = Callable[[Sequence[str]], bool]
"""Whether a defect acted in one of the runs."""
ReportedChanges = Callable[[Sequence[Sequence[str]]], Sequence[NightChange]]
"""The changes that are reported when runs are judged night by night; one list of runs for each night."""
_STEP = re.compile(r"[0-9]+-[a-z0-9-]+\.")
"""The beginning of a finding of the criterion `scenario-steps`: the step's number and name."""
HISTORY = "history"
"""The group of healthy brokers whose runs are the history of all nights."""


@dataclass(frozen=True, slots=True)
class DefectTrial:
    """One play: the runs of one block. `by` names the criteria or measures that found it."""

    result: Result
    run_ids: tuple[str, ...]
    by: tuple[str, ...] = ()
    why: str = ""
    """Why it was not run, or what a comparison or the nights observed."""
    after: int = 1
    """The number of nights until it was found; one run, suite or comparison is one."""


@dataclass(frozen=True, slots=True)
class DefectDetection:
    """A defect, or healthy brokers, with every play. `expected` are the names that should find it."""

    name: str
    defects: tuple[str, ...]
    """The defects as text; empty for healthy brokers."""
    experiment: str
    settings: tuple[str, ...]
    trials: tuple[DefectTrial, ...]
    expected: tuple[str, ...] = ()

    @property
    def healthy(self) -> bool:
        """Return whether nothing was broken."""
        return not self.defects

    @property
    def played(self) -> tuple[DefectTrial, ...]:
        """Return the plays that say something of the testbed: those in which the defect acted."""
        return tuple(each for each in self.trials if each.result not in ("not run", "did not act"))

    @property
    def found(self) -> int:
        """Return in how many plays it was found."""
        return sum(each.result == "found" for each in self.played)

    @property
    def result(self) -> str:
        """Return `found` when every play found it, `sometimes` for some, otherwise the most frequent other result."""
        if self.found:
            return "found" if self.found == len(self.played) else "sometimes"
        results = [each.result for each in self.played or self.trials]
        return max(dict.fromkeys(results), key=results.count, default="not run")

    @property
    def missed(self) -> bool:
        """Return whether it was missed: mostly, or in a play where another one found it. What is open is no miss."""
        return self.result in ("missed", "sometimes") and any(each.result == "missed" for each in self.played)

    @property
    def after(self) -> int | None:
        """Return the number of plays, or nights, until it was found first; None when it never was."""
        before = (number + each.after for number, each in enumerate(self.played) if each.result == "found")
        return next(before, None)

    @property
    def interval(self) -> tuple[float, float] | None:
        """Return the exact 95 % interval of the probability that one play finds it; None without a play."""
        return binomial_interval(self.found, len(self.played)) if self.played else None

    @property
    def by(self) -> dict[str, int]:
        """Return criterion or measure → in how many plays it found the defect, the most frequent first."""
        names = [name for each in self.trials for name in each.by]
        return {name: names.count(name) for name in sorted(set(names), key=lambda name: (-names.count(name), name))}

    @property
    def as_expected(self) -> bool:
        """Return whether a name that should find it did."""
        return any(criterion_of(name) in self.expected for name in self.by)


def criterion_of(name: str) -> str:
    """Return the criterion's or measure's own name in `CASE: NAME HOST DIRECTION`."""
    own = name.rpartition(": ")[2].split(" ")[0]
    return "scenario-steps" if _STEP.match(own) else own


def runs_suite(group: VariantGroup) -> bool:
    """Return whether a play of the group is a run of each case of a suite."""
    return group.name not in group.labels


def qualifies(group: VariantGroup) -> bool:
    """Return whether the group holds a candidate against a baseline as a scenario of `testbed qualify`."""
    return not group.pairs and len(group.labels) > 1 and not runs_suite(group)


def detections(
    campaign: Campaign, state: CampaignState, defects_of: DefectsOf, reported: ReportedChanges | None = None
) -> list[DefectDetection]:
    """Return what was found in each group of a self-test's campaign so far; `reported` judges nights, if it has any."""
    found = []
    history: list[list[str]] | None = None
    for runs in by_group(campaign, state):
        group = runs.group
        if group.name == HISTORY:
            history = _run_ids(runs)
            continue
        for pair in group.pairs:
            variant = campaign.variant(pair[1])
            trial = _compared(campaign, state, runs, pair, _acts(variant, defects_of))
            found.append(_detection(variant.label, variant, [trial]))
        if group.pairs:
            continue
        variant = campaign.variant(group.labels[-1])
        acted = _acts(variant, defects_of)
        if qualifies(group):
            trials = [_qualified([*cells_of(campaign, state, runs).values()], acted)]
        elif history is not None:
            assert reported is not None
            trials = [_nights(runs, acted, history, reported)]
        else:
            trials = [_played(group, *each, acted) for each in zip(runs.blocks, runs.failures, strict=True)]
        found.append(_detection(group.name, variant, trials, suite=runs_suite(group)))
    return found


def with_causes(found: DefectDetection, causes_of: Callable[[str], Sequence[str]]) -> DefectDetection:
    """Return the detection with the causes of its inconclusive runs, each cause once."""
    trials = []
    for each in found.trials:
        causes = dict.fromkeys(cause for run_id in each.run_ids for cause in causes_of(run_id))
        why = "; ".join([*filter(None, [each.why]), *causes])
        trials.append(replace(each, why=why) if each.result == "inconclusive" else each)
    return replace(found, trials=tuple(trials))


def _detection(name: str, variant: Variant, trials: Sequence[DefectTrial], *, suite: bool = False) -> DefectDetection:
    requests = [parse_defect(each) for each in variant.defects]
    expected = tuple(dict.fromkeys(name for each in requests for name in each.defect.found_by))
    experiment, settings = ("suite brief", ()) if suite else (variant.experiment, variant.settings)
    return DefectDetection(name, variant.defects, experiment, settings, tuple(trials), expected)


def _acts(variant: Variant, defects_of: DefectsOf) -> Acted:
    """Return whether the variant's defect acted in one of some runs; always true of healthy brokers."""
    if not variant.defects:
        return lambda _run_ids: True
    return lambda run_ids: any(each.acted is not None for run_id in run_ids for each in defects_of(run_id))


def _says_nothing(ids: tuple[str, ...], broken: Sequence[str], acted: Acted, why: str) -> DefectTrial | None:
    """Return the trial if no broken broker ran, or if the defect did not act; otherwise None."""
    if not broken:
        return DefectTrial("not run", ids, why=why or "not reached")
    return None if acted(broken) else DefectTrial("did not act", ids)


def _not_found(ids: tuple[str, ...], ran: Iterable[SlotRun]) -> DefectTrial:
    unsure = ", ".join(each.done.run_id for each in ran if each.done.verdict != "pass")
    return DefectTrial("inconclusive" if unsure else "missed", ids, why=unsure)


def _run_ids(runs: GroupRuns) -> list[list[str]]:
    """Return the runs of each block."""
    return [[ran.done.run_id for ran in block.values()] for block in runs.blocks]


def _played(group: VariantGroup, block: Mapping[str, SlotRun], failure: str, acted: Acted) -> DefectTrial:
    """Return the trial of a block whose runs are judged one by one."""
    ran = {label: block[label] for label in group.labels if label in block}
    ids = tuple(each.done.run_id for each in ran.values())
    if trial := _says_nothing(ids, ids, acted, failure):
        return trial
    by = tuple(
        f"{label.rpartition(', ')[2]}: {name}" if runs_suite(group) else name
        for label, each in ran.items()
        for name in each.done.failed
    )
    return DefectTrial("found", ids, by) if by else _not_found(ids, ran.values())


def _qualified(cells: Sequence[VersionResult], acted: Acted) -> DefectTrial:
    """Return the trial of a scenario that `testbed qualify` runs once with each version, and again when in doubt."""
    *baselines, candidate = cells
    ids = tuple(run_id for each in cells for run_id in each.ids)
    # A run that hung is in no store: nothing says whether the defect acted, and its verdict stands.
    if not candidate.stuck and (trial := _says_nothing(ids, candidate.ids, acted, candidate.missing)):
        return trial
    said = judge_cells(candidate, baselines)
    why = "; ".join(said.reasons)
    if said.verdict == "REGRESSED":
        return DefectTrial("found", ids, tuple(candidate.failing) or (RUN_COMPLETE,), why)
    return DefectTrial("missed" if said.verdict == "OK" else "inconclusive", ids, why=why)


def _nights(runs: GroupRuns, acted: Acted, history: list[list[str]], reported: ReportedChanges) -> DefectTrial:
    """Return the trial of the nights of a group, after the nights of the history."""
    nights = [night for night in _run_ids(runs) if night]
    ids = tuple(run_id for night in nights for run_id in night)
    if trial := _says_nothing(ids, ids, acted, _first(runs.failures)):
        return trial
    before = len(history)
    changes = [replace(each, night=each.night - before) for each in reported([*history, *nights])]
    changes = [each for each in changes if each.night > 0]
    if changes:
        by = tuple(dict.fromkeys(f"{each.scenario}: {each.metric}" for each in changes))
        return DefectTrial("found", ids, by, "; ".join(map(str, changes)), min(each.night for each in changes))
    ran = [each for block in runs.blocks for each in block.values()]
    return _not_found(ids, [each for each in ran if each.done.verdict == "inconclusive"])


def _first(failures: Iterable[str]) -> str:
    return next(filter(None, failures), "")


def _compared(
    campaign: Campaign, state: CampaignState, runs: GroupRuns, compared: tuple[str, str], acted: Acted
) -> DefectTrial:
    """Return the trial of a comparison: judged as `testbed compare` judges these two variants alone."""
    baseline, candidate = compared
    ids = tuple(block[label].done.run_id for block in runs.blocks for label in (baseline, candidate) if label in block)
    broken = [block[candidate].done.run_id for block in runs.blocks if candidate in block]
    if trial := _says_nothing(ids, broken, acted, _first(runs.failures)):
        return trial
    groups = tuple(replace(each, pairs=(compared,) if each == runs.group else ()) for each in campaign.variant_groups)
    pair = tuple(campaign.variant(label) for label in compared)
    judged = outcome(replace(campaign, command="compare", variants=pair, groups=groups), state)
    different = [each for each in judged.findings if each.verdict in ("REGRESSED", "IMPROVED")]
    worse = [each.criterion for each in judged.broken if each.verdict == "REGRESSED"]
    worse += [LOG_LINES] if any(each.verdict == "REGRESSED" for each in judged.lines) else []
    if different or worse:
        by = (*(each.comparison.measure.name for each in different), *worse)
        return DefectTrial("found", ids, by, "; ".join(str(comparison_row(each, candidate)) for each in different))
    unsure = [f"{each.comparison.measure.name} {each.verdict}" for each in judged.findings if each.verdict != "OK"]
    unsure += [f"{each.criterion} {each.verdict}" for each in judged.broken]
    unsure += [f"{LOG_LINES} {each.verdict}" for each in judged.lines if each.verdict != "OK"]
    return DefectTrial("inconclusive" if unsure or not judged.findings else "missed", ids, why="; ".join(unsure))
