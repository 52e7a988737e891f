"""The judgement of a campaign: findings from its journal. Pure."""

import statistics
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from results.compare import (
    ComparisonResult,
    ComparisonRule,
    CriterionTally,
    Pair,
    PairedComparison,
    Verdict,
    find_measure,
    judge_all,
    moved,
    worst,
)
from results.compare.judgement import ANY
from results.contract.verdict import Verdict as RunVerdict
from testbed.runner.campaign import Campaign, default_measures
from testbed.runner.journal import CampaignState, CanaryReading, SlotRun
from testbed.runner.variant import UPGRADE

PAIRS_BEFORE_EARLY_END = 8
"""The fewest pairs before the width of an interval may end a campaign.

With fewer pairs an interval may be narrow by chance.
"""


def narrow_enough(findings: Sequence[ComparisonResult], threshold: float) -> str | None:
    """Return why no more pairs are needed, or None.

    Every interval must be at most its measure's threshold wide, after `PAIRS_BEFORE_EARLY_END` pairs. Only the width
    decides, and not the position of an interval, so that stopping does not bias the effect.
    """
    if not findings:
        return None
    widest = 0.0
    for finding in findings:
        effect, limit = finding.effect, finding.comparison.measure.limit(threshold)
        if effect is None or effect.pairs < PAIRS_BEFORE_EARLY_END or effect.half_width > limit / 2:
            return None
        widest = max(widest, effect.half_width)
    return f"known well enough: the widest interval is ± {widest * 100:.2g} %"


@dataclass(frozen=True, slots=True)
class VariantRow:
    """One variant: its runs' verdicts, and each measure's median and range over the judged runs."""

    variant: str
    runs: Mapping[RunVerdict, int]
    medians: Mapping[str, float]
    ranges: Mapping[str, tuple[float, float]]
    """The lowest and the highest value of each measure over the judged runs."""
    ids: tuple[str, ...]
    """The ids of all its runs, in order."""
    not_passed: tuple[str, ...]
    """The id, the verdict and the failed criteria, in words, of each run that did not pass."""


@dataclass(frozen=True, slots=True)
class CriterionRegression:
    """A criterion that fails more often for the candidate: REGRESSED if that is significant, else NOISY.

    `of` counts the unmoved pairs in which both runs were judged on the criterion. It failed in `runs` of them for the
    candidate alone, and in `reverse` for the baseline alone. `p` is the probability of such a result, or a worse one,
    by chance.
    """

    candidate: str
    criterion: str
    verdict: Verdict
    runs: int
    reverse: int
    of: int
    p: float
    baseline: str = ""


@dataclass(frozen=True, slots=True)
class CampaignOutcome:
    """The findings of a campaign so far."""

    rows: tuple[VariantRow, ...]
    findings: tuple[ComparisonResult, ...]
    broken: tuple[CriterionRegression, ...]

    @property
    def verdict(self) -> Verdict:
        """Return the verdict of all candidates together against the baseline."""
        return worst(self.findings, [each.verdict for each in self.broken])

    def verdict_of(self, candidate: str) -> Verdict:
        """Return the verdict of one candidate against the baseline."""
        return worst(
            [finding for finding in self.findings if finding.comparison.candidate == candidate],
            [each.verdict for each in self.broken if each.candidate == candidate],
        )


def outcome(campaign: Campaign, state: CampaignState) -> CampaignOutcome:
    """Return the outcome of a campaign from its journal's state; the campaign may be incomplete."""
    return CampaignOutcome(_rows(campaign, state), *_judged(campaign, state))


def findings(campaign: Campaign, state: CampaignState) -> tuple[ComparisonResult, ...]:
    """Return each candidate's comparison with its baseline in each measure, judged as one family with the criteria."""
    return _judged(campaign, state)[0]


def _judged(
    campaign: Campaign, state: CampaignState
) -> tuple[tuple[ComparisonResult, ...], tuple[CriterionRegression, ...]]:
    runs = by_block(campaign, state)
    beside = [pair for group in campaign.variant_groups for pair in group.pairs]
    comparisons = [
        PairedComparison(
            baseline, candidate, find_measure(name), pairs(runs, baseline, candidate, name, state.canaries)
        )
        for baseline, candidate in beside
        for name in _had(campaign, runs, (baseline, candidate))
    ]
    rule = ComparisonRule(threshold=campaign.threshold)
    counted = [tally for pair in beside for tally in tallies(runs, *pair, state.canaries)]
    # Too few discordant pairs, on whichever side, are no test: such a criterion does not weaken the other tests.
    tested = [tally for tally in counted if tally.tellable(rule.family)]
    found, worse = judge_all(comparisons, [tally.p_worse for tally in tested], rule)
    verdicts = [(tally, tally.verdict(rejected)) for tally, rejected in zip(tested, worse, strict=True)]
    verdicts += [(tally, tally.verdict(False)) for tally in counted if tally not in tested]
    broken = [
        CriterionRegression(t.candidate, t.criterion, verdict, t.worse, t.better, t.pairs, t.p_worse, t.baseline)
        for t, verdict in verdicts
        if verdict != "OK"
    ]
    return found, tuple(sorted(broken, key=lambda each: (each.candidate, each.criterion)))


def _had(campaign: Campaign, runs: Sequence[Mapping[str, SlotRun]], labels: Sequence[str]) -> Sequence[str]:
    """Return the measures by which two variants are compared.

    If the user named none, omit measures that no run of either variant has, unless that omits all. For example, a move
    without a throttle has no throttled rate.
    """
    wanted = [name for name in campaign.measures if find_measure(name).compared]
    if campaign.measures != default_measures(campaign.command, campaign.variants):
        return wanted
    made = [block[label] for block in runs for label in labels if label in block]
    return [name for name in wanted if any(_value(ran, name) is not None for ran in made)] or wanted


def by_block(campaign: Campaign, state: CampaignState) -> tuple[Mapping[str, SlotRun], ...]:
    """Return for each block its finished runs by variant."""
    blocks: list[dict[str, SlotRun]] = [{} for _ in range(sum(group.repeats for group in campaign.variant_groups))]
    for slot in campaign.slots:
        if slot.index in state.ran:
            blocks[slot.block][slot.variant] = state.ran[slot.index]
    return tuple(blocks)


def pairs(
    blocks: Sequence[Mapping[str, SlotRun]],
    baseline: str,
    candidate: str,
    measure: str,
    canaries: Sequence[CanaryReading],
) -> tuple[Pair, ...]:
    """Return the pairs of two variants in one measure, block by block. A block without both runs has no pair.

    The values of an inconclusive run are not used, because its environment was not as declared.
    """
    standing = find_measure(measure).standing

    def stands(ran: SlotRun) -> float | None:
        value = _value(ran, measure)
        return None if value is None else standing(value)

    return tuple(
        Pair(stands(first), stands(second), changed)
        for first, second, changed in _side_by_side(blocks, baseline, candidate, canaries)
    )


def tallies(
    blocks: Sequence[Mapping[str, SlotRun]], baseline: str, candidate: str, canaries: Sequence[CanaryReading]
) -> tuple[CriterionTally, ...]:
    """Return how often each criterion failed on one side alone, over unmoved pairs in which both runs were judged."""
    found: dict[str, list[tuple[bool, bool]]] = {}
    at_all: list[tuple[bool, bool]] = []
    for first, second, changed in _side_by_side(blocks, baseline, candidate, canaries):
        old, new = first.done, second.done
        common = {*old.failed, *old.kept} & {*new.failed, *new.kept}
        if not changed and "inconclusive" not in (old.verdict, new.verdict):
            at_all.append((bool(common & {*old.failed}), bool(common & {*new.failed})))
        for name in sorted(common) if not changed else ():
            found.setdefault(name, []).append((name in old.failed, name in new.failed))
    if sum(any(map(any, pairs)) for pairs in found.values()) > 1:
        found[ANY] = at_all
    return tuple(
        CriterionTally(baseline, candidate, name, len(pairs), pairs.count((False, True)), pairs.count((True, False)))
        for name, pairs in found.items()
    )


def _side_by_side(
    blocks: Sequence[Mapping[str, SlotRun]], baseline: str, candidate: str, canaries: Sequence[CanaryReading]
) -> list[tuple[SlotRun, SlotRun, str]]:
    """Return the two runs of each block that has both, and the other changes between them; empty text without any."""
    readings = [canary.reading for canary in canaries]
    found = []
    for runs in blocks:
        if baseline in runs and candidate in runs:
            first, second = runs[baseline], runs[candidate]
            changes = [str(each) for each in moved([c.reading for c in _around(first, second)], readings)]
            found.append((first, second, "; ".join([*changes, *_differences(first, second)])))
    return found


def _value(ran: SlotRun, measure: str) -> float | None:
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


def _rows(campaign: Campaign, state: CampaignState) -> tuple[VariantRow, ...]:
    rows = []
    for variant in campaign.variants:
        runs = [state.ran[s.index] for s in campaign.slots if s.variant == variant.label and s.index in state.ran]
        verdicts = Counter(ran.done.verdict for ran in runs)
        values = {name: [v for ran in runs if (v := _value(ran, name)) is not None] for name in campaign.measures}
        known = {name: found for name, found in values.items() if found}
        rows.append(
            VariantRow(
                variant.label,
                dict(verdicts),
                {name: statistics.median(found) for name, found in known.items()},
                {name: (min(found), max(found)) for name, found in known.items()},
                tuple(ran.done.run_id for ran in runs),
                tuple(_in_words(ran) for ran in runs if _bad(ran)),
            )
        )
    return tuple(rows)


def _bad(ran: SlotRun) -> bool:
    return ran.done.verdict != "pass"


def _in_words(ran: SlotRun) -> str:
    failed = f": {', '.join(ran.done.failed)}" if ran.done.failed else ""
    return f"{ran.done.run_id} {ran.done.verdict}{failed}"


def not_made(
    campaign: Campaign, state: CampaignState, otherwise: str | None = None, needless: Collection[int] = ()
) -> tuple[str, ...]:
    """Return the variants with a failed run, and the reason of its last failure.

    With `otherwise`, also return the variants that were not tried, for that reason, except `needless` slots.
    """
    last = {failure.slot: failure.why for failure in state.failures}
    missing = Counter(
        (slot.variant, why)
        for slot in campaign.slots
        if slot.index not in state.ran
        and slot.index not in needless
        and (why := last.get(slot.index, otherwise)) is not None
    )
    return tuple(
        f"{label} was not run{f' {count} times' if count > 1 else ''}: {why}" for (label, why), count in missing.items()
    )


def mixed_software(campaign: Campaign, state: CampaignState) -> list[str]:
    """Return the variants whose runs did not all have the same Kafka, byte for byte, as after a rebuild of a folder.

    Of upgrades only completed ones count. A reverted upgrade, or one that the move did not wait for, ends with the old
    Kafka.
    """
    found = []
    for variant in campaign.variants:
        slots = [slot for slot in campaign.slots if slot.variant == variant.label and slot.index in state.ran]
        ended = [state.ran[slot.index].done for slot in slots]
        whole = [done for done in ended if variant.experiment != UPGRADE or done.verdict == "pass"]
        if len({done.software for done in whole}) > 1:
            found.append(variant.label)
    return found
