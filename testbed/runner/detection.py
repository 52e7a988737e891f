"""What was found of each defect, and what was found where there was none: from a campaign's runs to a table. Pure."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from results.compare.effect import binomial_interval
from results.compare.qualification import judge_cells
from results.compare.render import comparison_row
from results.contract.defect import DefectRecord
from testbed.defects.parse import parse_defect
from testbed.runner.campaign import Campaign, VariantGroup
from testbed.runner.comparison import outcome
from testbed.runner.journal import CampaignState, SlotRun
from testbed.runner.pairing import by_block
from testbed.runner.qualification import cells_of
from testbed.runner.replayed_nights import NightChange

Result = Literal["found", "missed", "inconclusive", "did not act", "not run"]
"""What one play of a defect came to. Of healthy brokers, `found` is a false alarm."""
DefectsOf = Callable[[str], Sequence[DefectRecord]]
"""The defects in the manifest of a run."""
ReportedChanges = Callable[[Sequence[Sequence[str]]], Sequence[NightChange]]
"""The changes that are reported when runs are judged night by night; one list of runs for each night."""
_STEP = re.compile(r"[0-9]+-[a-z0-9-]+\.")
"""The beginning of a finding of the criterion `scenario-steps`: the step's number and name."""
HISTORY = "history"
"""The group of healthy brokers whose runs are the history of all nights."""


def _no_nights(_nights: Sequence[Sequence[str]]) -> Sequence[NightChange]:
    raise ValueError("a campaign with a history needs a judge of its nights")


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
    campaign: Campaign, state: CampaignState, defects_of: DefectsOf, reported: ReportedChanges = _no_nights
) -> list[DefectDetection]:
    """Return what was found in each group of a self-test's campaign, which may be incomplete.

    `reported` judges nights; only a campaign with a history needs it.
    """
    found, first = [], 0
    history: Sequence[Mapping[str, SlotRun]] | None = None
    for group in campaign.variant_groups:
        if group.name == HISTORY:
            history = by_block(campaign, state)[first : first + group.repeats]
            first += group.repeats
            continue
        variant = campaign.variant(group.labels[-1])
        requests = [parse_defect(each) for each in variant.defects]
        expected = tuple(dict.fromkeys(name for each in requests for name in each.defect.found_by))
        if group.pairs:
            trials: tuple[DefectTrial, ...] = (_compared(campaign, state, group, first, defects_of),)
        elif qualifies(group):
            trials = (_qualified(campaign, state, group, first, defects_of),)
        elif history is not None:
            trials = (_nights(campaign, state, group, first, defects_of, history, reported),)
        else:
            trials = _runs(campaign, state, group, first, defects_of)
        suite = runs_suite(group)
        experiment, shown = ("suite brief", ()) if suite else (variant.experiment, variant.settings)
        found.append(DefectDetection(group.name, variant.defects, experiment, shown, trials, expected))
        first += group.repeats
    return found


def with_causes(found: DefectDetection, causes_of: Callable[[str], Sequence[str]]) -> DefectDetection:
    """Return the detection with the causes of its inconclusive runs, each cause once."""
    trials = []
    for each in found.trials:
        causes = dict.fromkeys(cause for run_id in each.run_ids for cause in causes_of(run_id))
        why = "; ".join([*filter(None, [each.why]), *causes])
        trials.append(replace(each, why=why) if each.result == "inconclusive" else each)
    return replace(found, trials=tuple(trials))


def _runs(
    campaign: Campaign, state: CampaignState, group: VariantGroup, first: int, defects_of: DefectsOf
) -> tuple[DefectTrial, ...]:
    """Return a trial for each block of a group whose runs are judged one by one."""
    blocks = by_block(campaign, state)[first : first + group.repeats]
    why = _why_by_block(campaign, state)
    several = runs_suite(group)
    found = []
    for number, runs in enumerate(blocks, first):
        ran = [
            (f"{label.rpartition(', ')[2]}: " if several else "", runs[label])
            for label in group.labels
            if label in runs
        ]
        broken = any(campaign.variant(label).defects for label in group.labels)
        found.append(_trial(ran, why.get(number, "not reached"), defects_of if broken else None))
    return tuple(found)


def _qualified(
    campaign: Campaign, state: CampaignState, group: VariantGroup, first: int, defects_of: DefectsOf
) -> DefectTrial:
    """Return the trial of a scenario that `testbed qualify` runs once with each version, and again when in doubt."""
    *baselines, candidate = cells_of(campaign, state, group, first, by_block(campaign, state))
    ids = tuple(run_id for each in (*baselines, candidate) for run_id in each.ids)
    if not candidate.ids:
        return DefectTrial("not run", ids, why=candidate.missing or "not reached")
    if campaign.variant(group.labels[-1]).defects and not _acted(candidate.ids, defects_of):
        return DefectTrial("did not act", ids)
    said = judge_cells(candidate, baselines)
    why = "; ".join(said.reasons)
    if said.verdict == "REGRESSED":
        return DefectTrial("found", ids, tuple(candidate.failing), why)
    return DefectTrial("missed" if said.verdict == "OK" else "inconclusive", ids, why=why)


def _nights(
    campaign: Campaign,
    state: CampaignState,
    group: VariantGroup,
    first: int,
    defects_of: DefectsOf,
    history: Sequence[Mapping[str, SlotRun]],
    reported: ReportedChanges,
) -> DefectTrial:
    """Return the trial of the nights of a group, after the nights of the history."""
    blocks = by_block(campaign, state)[first : first + group.repeats]
    before = [[ran.done.run_id for ran in runs.values()] for runs in history]
    nights = [[ran.done.run_id for ran in runs.values()] for runs in blocks if runs]
    ids = tuple(run_id for runs in nights for run_id in runs)
    if not ids:
        why = _why_by_block(campaign, state)
        reason = next((why[block] for block in range(first, first + group.repeats) if block in why), "not reached")
        return DefectTrial("not run", ids, why=reason)
    if campaign.variant(group.labels[-1]).defects and not _acted(ids, defects_of):
        return DefectTrial("did not act", ids)
    changes = [replace(c, night=c.night - len(before)) for c in reported([*before, *nights]) if c.night > len(before)]
    if changes:
        by = tuple(dict.fromkeys(f"{each.scenario}: {each.metric}" for each in changes))
        return DefectTrial("found", ids, by, "; ".join(map(str, changes)), min(each.night for each in changes))
    unsure = [ran.done.run_id for runs in blocks for ran in runs.values() if ran.done.verdict == "inconclusive"]
    return DefectTrial("inconclusive", ids, why=", ".join(unsure)) if unsure else DefectTrial("missed", ids)


def _why_by_block(campaign: Campaign, state: CampaignState) -> dict[int, str]:
    """Return for each block with a failed run the reason of its last failure."""
    block = {slot.index: slot.block for slot in campaign.slots}
    return {block[failure.slot]: failure.why for failure in state.failures}


def _trial(ran: Sequence[tuple[str, SlotRun]], why: str, defects_of: DefectsOf | None) -> DefectTrial:
    """Return the trial of some runs, each with the prefix of its criteria; `defects_of` None for healthy brokers."""
    ids = tuple(each.done.run_id for _prefix, each in ran)
    if not ran:
        return DefectTrial("not run", ids, why=why)
    if defects_of is not None and not _acted(ids, defects_of):
        return DefectTrial("did not act", ids)
    by = tuple(f"{prefix}{name}" for prefix, each in ran for name in each.done.failed)
    if by:
        return DefectTrial("found", ids, by)
    unsure = [each.done.run_id for _prefix, each in ran if each.done.verdict != "pass"]
    return DefectTrial("inconclusive", ids, why=", ".join(unsure)) if unsure else DefectTrial("missed", ids)


def _acted(run_ids: Sequence[str], defects_of: DefectsOf) -> bool:
    return any(each.acted is not None for run_id in run_ids for each in defects_of(run_id))


def _compared(
    campaign: Campaign, state: CampaignState, group: VariantGroup, first: int, defects_of: DefectsOf
) -> DefectTrial:
    """Return the trial of a comparison: judged as `testbed compare` judges these two variants alone."""
    baseline, candidate = group.pairs[0]
    blocks = by_block(campaign, state)[first : first + group.repeats]
    ran = [runs[label] for runs in blocks for label in (baseline, candidate) if label in runs]
    broken = tuple(runs[candidate].done.run_id for runs in blocks if candidate in runs)
    ids = tuple(each.done.run_id for each in ran)
    if not broken:
        why = _why_by_block(campaign, state)
        reason = next((why[block] for block in range(first, first + group.repeats) if block in why), "not reached")
        return DefectTrial("not run", ids, why=reason)
    if campaign.variant(candidate).defects and not _acted(broken, defects_of):
        return DefectTrial("did not act", ids)
    others = tuple(group if each == group else replace(each, pairs=()) for each in campaign.variant_groups)
    pair = tuple(campaign.variant(label) for label in (baseline, candidate))
    judged = outcome(replace(campaign, command="compare", variants=pair, groups=others), state)
    different = [each for each in judged.findings if each.verdict in ("REGRESSED", "IMPROVED")]
    worse = [each.criterion for each in judged.broken if each.verdict == "REGRESSED"]
    reason = "; ".join(str(comparison_row(each, candidate)) for each in different)
    if different or worse:
        by = (*(each.comparison.measure.name for each in different), *worse)
        return DefectTrial("found", ids, by, reason)
    unsure = [each for each in judged.findings if each.verdict != "OK"]
    doubts = "; ".join(f"{each.comparison.measure.name} {each.verdict}" for each in unsure)
    return DefectTrial("inconclusive" if unsure or not judged.findings else "missed", ids, why=doubts)
