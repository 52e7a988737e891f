"""The judgement of a campaign: findings from its journal. Pure."""

import statistics
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from results.compare.compared_measures import find_measure
from results.compare.effect import Shift
from results.compare.judgement import (
    ComparisonResult,
    ComparisonRule,
    CriterionTally,
    PairedComparison,
    Verdict,
    judge_all,
    worst,
)
from results.compare.log_lines import Kinds, LineChange, LineTally, line_tallies
from results.report.tradeoff import Combination
from results.verdicts import rank
from testbed.runner.campaign import QUALIFY, Campaign, named_no_measure
from testbed.runner.journal import CampaignState, SlotRun
from testbed.runner.pairs import by_block, by_group, logged_pairs, pairs, sides_of, tallies, unended_pairs, value_of
from testbed.runner.qualification_plan import kind_of, version_of
from testbed.runner.variant import UPGRADE, differing

PAIRS_BEFORE_EARLY_END = 8
"""The fewest pairs before the width of an interval may end a campaign.

With fewer pairs an interval may be narrow by chance. Many comparisons need more pairs (`fewest_pairs`).
"""


def narrow_enough(findings: Sequence[ComparisonResult], threshold: float, fewest: int = 0) -> str | None:
    """Return why no more pairs are needed, or None.

    Every interval must be at most its measure's threshold wide, after `PAIRS_BEFORE_EARLY_END` pairs, and `fewest` at
    least: with fewer, a regression that all pairs show may be chance among all comparisons. Only the width
    decides, and not the position of an interval, so that stopping does not bias the effect.
    """
    if not findings:
        return None
    widest = 0.0
    for finding in findings:
        effect = finding.effect
        if effect is None or effect.pairs < max(PAIRS_BEFORE_EARLY_END, fewest):
            return None
        if isinstance(effect, Shift):
            limit, percent = effect.limit, 0.0  # its interval is in the measure's unit
        else:
            limit, percent = finding.comparison.measure.limit(threshold), effect.half_width * 100
        if effect.half_width > limit / 2:
            return None
        widest = max(widest, percent)
    return f"known well enough: the widest interval is ± {widest:.2g} %"


@dataclass(frozen=True, slots=True)
class VariantRow(Combination):
    """One variant: its runs' verdicts, and each measure's median and range over the judged runs."""

    ids: tuple[str, ...]
    """The ids of all its runs, in order."""
    not_passed: tuple[str, ...]
    """The id, the verdict and the failed criteria, in words, of each run that did not pass."""


@dataclass(frozen=True, slots=True)
class CriterionRegression:
    """A criterion that fails more often for the candidate: REGRESSED if that is significant, else NOISY.

    `of` counts the pairs in which both runs were judged on the criterion: unmoved ones, and of a criterion of records
    all. It failed in `runs` of them for the candidate alone, and in `reverse` for the baseline alone. `unpaired` counts
    failures of the candidate without a judged run of the baseline to compare with. `p` is the probability of such a
    result, or a worse one, by chance; `adjusted` is that among all comparisons and criteria, or None where too few
    pairs differ for a test.
    """

    baseline: str
    candidate: str
    criterion: str
    verdict: Verdict
    runs: int
    reverse: int
    unpaired: int
    of: int
    p: float
    adjusted: float | None

    @classmethod
    def of_tally(cls, t: CriterionTally, verdict: Verdict, adjusted: float | None) -> "CriterionRegression":
        """Return what a tally says."""
        counts = (t.worse, t.better, t.unpaired, t.pairs)
        return cls(t.baseline, t.candidate, t.criterion, verdict, *counts, t.p_worse, adjusted)


@dataclass(frozen=True, slots=True)
class CampaignOutcome:
    """The findings of a campaign so far."""

    rows: tuple[VariantRow, ...]
    findings: tuple[ComparisonResult, ...]
    broken: tuple[CriterionRegression, ...]
    lines: tuple[LineChange, ...] = ()
    """The kinds of log lines that are new, worst first."""

    @property
    def verdict(self) -> Verdict:
        """Return the verdict of all candidates together against the baseline."""
        # A line that says nothing is no reason for OK: without a measure the verdict is NO-DATA.
        lines = [each.verdict for each in self.lines if each.verdict != "OK"]
        return worst(self.findings, [*(each.verdict for each in self.broken), *lines])


def outcome(campaign: Campaign, state: CampaignState) -> CampaignOutcome:
    """Return the outcome of a campaign from its journal's state; the campaign may be incomplete."""
    return CampaignOutcome(_rows(campaign, state), *_judged(campaign, state))


def findings(campaign: Campaign, state: CampaignState) -> tuple[ComparisonResult, ...]:
    """Return each candidate's comparison with its baseline in each measure, judged as one family with all others."""
    return _judged(campaign, state)[0]


def _judged(
    campaign: Campaign, state: CampaignState
) -> tuple[tuple[ComparisonResult, ...], tuple[CriterionRegression, ...], tuple[LineChange, ...]]:
    runs = by_block(campaign, state)
    beside = [pair for group in campaign.variant_groups for pair in group.pairs]
    sides = {pair: sides_of(runs, *pair, state.canaries) for pair in beside}
    comparisons = [
        PairedComparison(*pair, find_measure(name), pairs(sides[pair], name))
        for pair in beside
        for name in _had(campaign, runs, pair)
    ]
    rule = ComparisonRule(threshold=campaign.threshold)
    counted: list[CriterionTally] = []
    for old, new in beside:
        alone = [block[new] for block in runs if new in block and old not in block]
        counted += tallies(sides[old, new], old, new, alone)
    if campaign.command != QUALIFY:  # a qualification counts runs without an end over all runs of a version
        counted += [unended_pairs(campaign, state, *pair) for pair in beside]
    logged = _line_tallies(campaign, state)
    every = [*counted, *(each.counts for each in logged)]
    # Too few discordant pairs, on whichever side, are no test: such a criterion does not weaken the other tests.
    tests: dict[object, list[int]] = {}
    for number, tally in enumerate(every):
        if tally.decidable(rule.family):
            same = number if tally.where is None else (tally.baseline, tally.candidate, tally.where)
            tests.setdefault(same, []).append(number)
    found, worse = judge_all(comparisons, [every[first].p_worse for first, *_ in tests.values()], rule)
    adjusted = {number: p for numbers, p in zip(tests.values(), worse, strict=True) for number in numbers}
    broken = [
        CriterionRegression.of_tally(t, verdict, p)
        for number, t in enumerate(counted)
        if (verdict := t.verdict((p := adjusted.get(number)) is not None and p <= rule.family)) != "OK"
    ]
    lines = [
        LineChange.of_tally(each, adjusted.get(number), rule.family)
        for number, each in enumerate(logged, len(counted))
        if each.new
    ]
    return (
        found,
        tuple(sorted(broken, key=lambda each: (each.candidate, each.criterion))),
        tuple(sorted(lines, key=lambda each: (rank(each.verdict), each.candidate, each.kinds))),
    )


def _line_tallies(campaign: Campaign, state: CampaignState) -> list[LineTally]:
    """Return the log lines of each pair of variants; of a qualification, those of each pair of versions.

    A scenario of a qualification has few runs of each version, but a release logs most lines in many scenarios.
    In an upgrade the candidate's brokers do something else than the baseline's, which only restart.
    """
    found: dict[tuple[str, str], list[tuple[Kinds, Kinds]]] = {}
    by_version = campaign.command == QUALIFY
    for runs in by_group(campaign, state):
        if not by_version:
            compared = {pair: pair for pair in runs.group.pairs}
        elif kind_of(runs.group) != "upgrade":
            *baselines, new = runs.group.labels
            compared = {(old, new): (version_of(old), version_of(new)) for old in baselines}
        else:
            continue
        for pair, names in compared.items():
            found.setdefault(names, []).extend(logged_pairs(sides_of(runs.blocks, *pair, state.canaries)))
    return [tally for names, logged in found.items() for tally in line_tallies(*names, logged)]


def _had(campaign: Campaign, runs: Sequence[Mapping[str, SlotRun]], labels: Sequence[str]) -> Sequence[str]:
    """Return the measures by which two variants are compared.

    If the user named none, omit measures that no run of either variant has, unless that omits all. For example, a move
    without a throttle has no throttled rate.
    """
    wanted = [name for name in campaign.measures if find_measure(name).compared]
    if not named_no_measure(campaign):
        return wanted
    made = [block[label] for block in runs for label in labels if label in block]
    return [name for name in wanted if any(value_of(ran, name) is not None for ran in made)] or wanted


def _rows(campaign: Campaign, state: CampaignState) -> tuple[VariantRow, ...]:
    rows = []
    _axes, settings = differing(campaign.variants)
    for variant in campaign.variants:
        runs = [state.ran[s.index] for s in campaign.slots if s.variant == variant.label and s.index in state.ran]
        verdicts = Counter[str](ran.done.verdict for ran in runs)
        values = {name: [v for ran in runs if (v := value_of(ran, name)) is not None] for name in campaign.measures}
        known = {name: found for name, found in values.items() if found}
        rows.append(
            VariantRow(
                variant.label,
                settings[variant.label],
                dict(verdicts),
                {name: statistics.median(found) for name, found in known.items()},
                {name: (min(found), max(found)) for name, found in known.items()},
                tuple(ran.done.run_id for ran in runs),
                tuple(_in_words(ran) for ran in runs if ran.done.verdict != "pass"),
            )
        )
    return tuple(rows)


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
