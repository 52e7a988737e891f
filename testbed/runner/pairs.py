"""Pairs of two variants' runs in the blocks of a campaign, and what else differed between the two runs. Pure."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from results.compare.canaries import moved
from results.compare.compared_measures import find_measure
from results.compare.judgement import ANY, CriterionTally, Pair, doubtful_from, of_records
from results.compare.log_lines import Kinds
from results.criteria.judgement import RUN_COMPLETE
from testbed.runner.campaign import Campaign, VariantGroup
from testbed.runner.journal import CampaignState, CanaryReading, SlotRun


def by_block(campaign: Campaign, state: CampaignState) -> tuple[Mapping[str, SlotRun], ...]:
    """Return for each block its finished runs by variant."""
    blocks: list[dict[str, SlotRun]] = [{} for _ in range(sum(group.blocks for group in campaign.variant_groups))]
    for slot in campaign.slots:
        if slot.index in state.ran:
            blocks[slot.block][slot.variant] = state.ran[slot.index]
    return tuple(blocks)


@dataclass(frozen=True, slots=True)
class GroupRuns:
    """The runs of a group so far: each block's by variant, and each block's last failure; empty without one."""

    group: VariantGroup
    blocks: tuple[Mapping[str, SlotRun], ...]
    failures: tuple[str, ...]


def by_group(campaign: Campaign, state: CampaignState) -> tuple[GroupRuns, ...]:
    """Return the runs of each group, in order."""
    blocks, block_of = by_block(campaign, state), {slot.index: slot.block for slot in campaign.slots}
    why = {block_of[failure.slot]: failure.why for failure in state.failures}
    found, first = [], 0
    for group in campaign.variant_groups:
        own = range(first, first + group.blocks)
        found.append(GroupRuns(group, tuple(blocks[n] for n in own), tuple(why.get(n, "") for n in own)))
        first += group.blocks
    return tuple(found)


def of_use(campaign: Campaign, state: CampaignState, runs: GroupRuns, first: int) -> list[bool | None]:
    """Return whether each block of a group of pairs is of use; None where a run of it was not tried.

    It is of none when a run is missing or inconclusive, or the machine changed: what runs measured plays no part. A run
    that Kafka kept from its end is a result. Runs count until the canary after them is read. The group begins with
    block `first`.
    """
    stuck: dict[int, bool] = {}
    for failure in state.failures:
        stuck[failure.slot] = failure.stuck or stuck.get(failure.slot, False)
    missing: list[list[bool | None]] = [[] for _ in runs.blocks]
    for slot in campaign.slots:
        if slot.index not in state.ran and first <= slot.block < first + len(missing):
            missing[slot.block - first].append(stuck.get(slot.index))
    pairs_of = runs.group.pairs
    return [
        None if None in lacking else _of_use(pairs_of, block, lacking, state.canaries)
        for block, lacking in zip(runs.blocks, missing, strict=True)
    ]


def _of_use(
    compared: Sequence[tuple[str, str]],
    block: Mapping[str, SlotRun],
    lacking: Sequence[bool | None],
    canaries: Sequence[CanaryReading],
) -> bool:
    ran = block.values()
    if any(lacking) or any(each.done.ended is False for each in ran):
        return True
    if lacking or any(each.done.verdict == "inconclusive" and not each.done.sound for each in ran):
        return False
    if not all(each.after for each in ran):
        return True
    return not any(changed for pair in compared for *_runs, changed in sides_of([block], *pair, canaries))


Sides = tuple[SlotRun, SlotRun, str]
"""The runs of two variants in one block, and the other changes between them; empty text without any."""


def sides_of(
    blocks: Sequence[Mapping[str, SlotRun]], baseline: str, candidate: str, canaries: Sequence[CanaryReading]
) -> list[Sides]:
    """Return the two runs of each block that has both, and the other changes between them."""
    readings = [canary.reading for canary in canaries]
    found = []
    for runs in blocks:
        if baseline in runs and candidate in runs:
            first, second = runs[baseline], runs[candidate]
            changes = [str(each) for each in moved([c.reading for c in _around(first, second)], readings)]
            found.append((first, second, "; ".join([*changes, *_differences(first, second)])))
    return found


def pairs(sides: Sequence[Sides], measure: str) -> tuple[Pair, ...]:
    """Return the pairs of two variants in one measure, block by block.

    The values of an inconclusive run are not used, because its environment was not as declared.
    """
    standing = find_measure(measure).standing

    def stands(ran: SlotRun) -> float | None:
        value = value_of(ran, measure)
        return None if value is None else standing(value)

    return tuple(Pair(stands(first), stands(second), changed) for first, second, changed in sides)


def tallies(
    sides: Sequence[Sides], baseline: str, candidate: str, alone: Sequence[SlotRun] = ()
) -> tuple[CriterionTally, ...]:
    """Return how often each criterion failed on one side alone, over unmoved pairs in which both runs were judged.

    No machine loses a record. So the criteria of records count in moved pairs as well, and as `unpaired` where the
    baseline was not judged on them or has no run in the block: those runs of the candidate are `alone`.
    """
    found: dict[str, dict[int, tuple[bool, bool]]] = {}
    at_all: dict[int, tuple[bool, bool]] = {}
    unpaired = Counter(name for ran in alone for name in filter(of_records, ran.done.failed))
    for number, (first, second, changed) in enumerate(sides):
        old, new = first.done, second.done
        common = {*old.failed, *old.kept} & {*new.failed, *new.kept}
        if not changed and "inconclusive" not in (old.verdict, new.verdict):
            at_all[number] = bool(common & {*old.failed}), bool(common & {*new.failed})
        for name in sorted(common):
            if not changed or of_records(name):
                found.setdefault(name, {})[number] = name in old.failed, name in new.failed
        unpaired.update(filter(of_records, {*new.failed} - common))
    if sum(any(map(any, each.values())) for each in found.values()) > 1:
        found[ANY] = at_all
    for name in unpaired:
        found.setdefault(name, {})
    counted = []
    for name, each in found.items():
        worse = tuple(number for number, failed in each.items() if failed == (False, True))
        better = tuple(number for number, failed in each.items() if failed == (True, False))
        counts = len(each), len(worse), len(better), unpaired[name], doubtful_from(name)
        counted.append(CriterionTally(baseline, candidate, name, *counts, (worse, better)))
    return tuple(counted)


def unended_pairs(campaign: Campaign, state: CampaignState, baseline: str, candidate: str) -> CriterionTally:
    """Return how often Kafka kept the run of one side alone from its end, over the blocks in which both are known.

    Such a run has no values, so no measure shows it. It counts after a resume, too, and whatever the canaries read: a
    machine that explains it makes it unknown. It is rare, so a single one leaves the verdict open, as in a
    qualification.
    """
    stuck = {failure.slot for failure in state.failures if failure.stuck}
    ended: dict[int, dict[str, bool]] = defaultdict(dict)
    for slot in campaign.slots:
        ran = state.ran.get(slot.index)
        if slot.index in stuck:
            ended[slot.block][slot.variant] = False
        elif ran is not None and ran.done.ended is not None:
            ended[slot.block][slot.variant] = ran.done.ended
    sides = Counter((runs.get(baseline), runs.get(candidate)) for runs in ended.values())
    known = sum(count for sides_ended, count in sides.items() if None not in sides_ended)
    worse, better, unpaired = sides[True, False], sides[False, True], sides[None, False]
    return CriterionTally(baseline, candidate, RUN_COMPLETE, known, worse, better, unpaired, doubtful=1)


def logged_pairs(sides: Sequence[Sides]) -> list[tuple[Kinds, Kinds]]:
    """Return the kinds of lines of both runs, over unmoved pairs in which both runs' logs were read whole."""
    return [
        (frozenset(first.done.logged), frozenset(second.done.logged))
        for first, second, changed in sides
        if not changed and first.done.logged is not None and second.done.logged is not None
    ]


def value_of(ran: SlotRun, measure: str) -> float | None:
    """Return the value of a measure in a run; None without one, or if an inconclusive run is not sound."""
    return ran.done.values.get(measure) if ran.done.verdict != "inconclusive" or ran.done.sound else None


def _around(*runs: SlotRun) -> list[CanaryReading]:
    return [canary for ran in runs for canary in (*ran.before, *ran.after)]


def _differences(first: SlotRun, second: SlotRun) -> list[str]:
    """Return the differences of two runs other than their variant and the canaries' readings."""
    found = []
    classes = sorted({canary.environment for canary in _around(first, second)})
    if len(classes) > 1:
        found.append(f"environment {' and '.join(classes)}")
    if not all((first.before, first.after, second.before, second.after)):
        found.append("no look at the machine before and after each run")
    return found
