"""The results of each version in a scenario of a qualification, and the runs that they make needless. Pure.

If the candidate fails a *once* scenario, does not let it end or is inconclusive in it, the scenario is run again, up to
three times.
"""

from collections.abc import Callable, Sequence

from results.compare.judgement import ComparisonResult
from results.compare.scenario_judgement import ENOUGH, VersionResult, doubtful, failed_or_stuck
from results.contract.verdict import Finding
from testbed.runner.campaign import Campaign, VariantGroup, fewest_pairs
from testbed.runner.comparison import findings, narrow_enough
from testbed.runner.journal import CampaignState, RunFailed, SlotRun
from testbed.runner.pairs import GroupRuns, by_group, of_use
from testbed.runner.qualification_plan import version_of
from testbed.runner.schedule import Slot

Causes = Callable[[str], Sequence[Finding]]
"""A function that returns the findings that make a run inconclusive; its argument is the run's id."""


def cells_of(
    campaign: Campaign, state: CampaignState, runs: GroupRuns, causes: Causes = lambda _run_id: ()
) -> dict[str, VersionResult]:
    """Return for each variant of a group its result so far."""
    labels = {slot.index: slot.variant for slot in campaign.slots}
    failures = {label: [each for each in state.failures if labels[each.slot] == label] for label in runs.group.labels}
    return {
        label: cell(label, [block[label] for block in runs.blocks if label in block], failed, causes)
        for label, failed in failures.items()
    }


def cell(variant: str, ran: Sequence[SlotRun], failed: Sequence[RunFailed], causes: Causes) -> VersionResult:
    """Return a variant's result; `failed` are runs in no store. An inconclusive run counts for no criterion."""
    verdicts = [each.done.verdict for each in ran]
    stuck = tuple(each.why for each in failed if each.stuck)
    ended = [each.done.ended for each in ran if each.done.ended is not None]
    counts: dict[str, tuple[int, int]] = {}
    for each in ran:
        if each.done.verdict == "inconclusive":
            continue
        for name in (*each.done.failed, *each.done.kept):
            bad, of = counts.get(name, (0, 0))
            counts[name] = (bad + (name in each.done.failed), of + 1)
    return VersionResult(
        version_of(variant),
        {verdict: verdicts.count(verdict) for verdict in dict.fromkeys(verdicts)},
        tuple(each.done.run_id for each in ran),
        counts,
        "" if ran or not failed else f"it could not be run: {failed[-1].why}",
        _doubts([each.done.run_id for each in ran if each.done.verdict == "inconclusive"], causes),
        stuck,
        (len(stuck) + ended.count(False), len(stuck) + len(ended)),
    )


def _doubts(run_ids: Sequence[str], causes: Causes) -> dict[str, tuple[int, str]]:
    """Return the criteria that made runs inconclusive: in how many of them, and why in the first."""
    found: dict[str, dict[str, str]] = {}
    for run_id in run_ids:
        for each in causes(run_id):
            found.setdefault(each.name, {}).setdefault(run_id, each.why)  # one of each host
    return {name: (len(why), next(iter(why.values()))) for name, why in found.items()}


def needless_slot(campaign: Campaign, slot: Slot, state: CampaignState, *, all_pairs: bool) -> bool:
    """Return whether a slot's run is needless.

    The second and the third run of a scenario are needless where the first run decides. Pairs are needless once as many
    are of use as were asked for, and spares unless they replace one. Unless `all_pairs`, pairs are also needless once
    every interval of their scenario is narrow enough.
    """
    group, first = campaign.group_of(slot)
    [runs] = [each for each in by_group(campaign, state) if each.group == group]
    if group.pairs:
        number, useful = slot.block - first, of_use(campaign, state, runs, first)
        if useful.count(True) >= group.repeats or number >= group.repeats + useful.count(False):
            return True
        if all_pairs or runs.blocks[number]:
            return False
        found = of_group(findings(campaign, state), group)
        return narrow_enough(found, campaign.threshold, fewest_pairs(campaign)) is not None
    cells, (baselines, candidates) = cells_of(campaign, state, runs), group.sides
    own, new = cells[slot.variant], [cells[each] for each in candidates]
    in_doubt = any(map(failed_or_stuck, new))
    if own.tried >= group.repeats:
        return True
    if slot.block == first and (in_doubt or not own.tried or slot.variant in candidates):
        return False  # what hung is run again, but a baseline only where the candidate is in doubt
    if not any(each.ids for each in cells.values()):
        return True  # it ends with no version
    if slot.variant in baselines:
        decided = own.tried >= ENOUGH and all(len(each.stuck) >= group.repeats for each in new)
        return decided or not in_doubt
    # Where the first run could not be made, and Kafka was not the cause, only that run is tried again.
    return not own.tried or not doubtful(own)


def of_group(found: Sequence[ComparisonResult], group: VariantGroup) -> tuple[ComparisonResult, ...]:
    """Return the comparisons of a group."""
    return tuple(each for each in found if (each.comparison.baseline, each.comparison.candidate) in group.pairs)
