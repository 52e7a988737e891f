"""A comparison as a row: for a terminal's table, a comment, a page. Pure."""

import statistics
from dataclasses import dataclass
from typing import Any

from results.compare.effect import Effect, Shift
from results.compare.judgement import ComparisonResult, Verdict
from results.contract.texts import digits
from results.criteria.quantities import change_percent
from results.render import NOTHING

COLUMNS = ("", "scenario", "measure", "before", "after", "change", "95 %", "adjusted p", "pairs", "why")


@dataclass(frozen=True, slots=True)
class ComparisonRow:
    """One comparison as text; before and after are medians over the pairs that the change is computed from.

    Without a change, they are medians over all pairs in which both sides have a value.
    """

    verdict: Verdict
    scenario: str
    measure: str
    before: str
    after: str
    change: str
    interval: str
    p: str
    pairs: str
    why: str

    @property
    def cells(self) -> tuple[str, ...]:
        """Return the cells, as COLUMNS has them."""
        columns = (self.scenario, self.measure, self.before, self.after, self.change, self.interval, self.p, self.pairs)
        return (self.verdict, *columns, self.why)

    def __str__(self) -> str:
        if self.change == NOTHING:
            return f"{self.measure}: {self.why}"
        figures = f"{self.before} \N{RIGHTWARDS ARROW} {self.after} ({self.change}, {self.interval})"
        return f"{self.measure}: {figures}, adjusted p {self.p}, {self.pairs} pairs: {self.why}"


def comparison_row(finding: ComparisonResult, scenario: str) -> ComparisonRow:
    """Return the row of a comparison."""
    comparison, effect = finding.comparison, finding.effect
    values = [(pair.baseline, pair.candidate) for pair in comparison.pairs if effect is None or not pair.moved]
    both = [(old, new) for old, new in values if old is not None and new is not None]
    unit = f" {comparison.measure.unit}" if comparison.measure.unit else ""
    before, after = (
        (f"{digits(statistics.median(values))}{unit}" for values in zip(*both, strict=True)) if both else (NOTHING,) * 2
    )
    change, interval = _change(effect, unit)
    return ComparisonRow(
        finding.verdict,
        scenario,
        comparison.measure.name,
        before,
        after,
        change,
        interval,
        NOTHING if finding.adjusted is None else f"{finding.adjusted:.2g}",
        str(len(both) if effect is None else effect.pairs),
        finding.why,
    )


def _change(effect: Effect | Shift | None, unit: str) -> tuple[str, str]:
    """Return the change and its interval: in percent, or in the measure's unit where there is no ratio."""
    if effect is None:
        return NOTHING, NOTHING
    if isinstance(effect, Shift):
        difference, low, high = (digits(value, 3, "+") for value in (effect.difference, effect.low, effect.high))
        return f"{difference}{unit}", f"{low} to {high}{unit}"
    return change_percent(effect.ratio), f"{change_percent(effect.low)} to {change_percent(effect.high)}"


def effect_document(effect: Effect | Shift | None) -> dict[str, Any]:
    """Return an effect as JSON values: the ratio and its interval, or the difference and its interval in the unit."""
    ratio = effect if isinstance(effect, Effect) else None
    shift = effect if isinstance(effect, Shift) else None
    return {
        "ratio": ratio and ratio.ratio,
        "interval": ratio and [ratio.low, ratio.high],
        "difference": shift and shift.difference,
        "difference_interval": shift and [shift.low, shift.high],
        "confidence": effect and effect.confidence,
        "p": effect and effect.p,
    }


def comparison_document(finding: ComparisonResult) -> dict[str, Any]:
    """Return a comparison as JSON values, without its two variants and its pairs."""
    measure, shown = finding.comparison.measure, comparison_row(finding, "")
    return {
        "measure": measure.name,
        "unit": measure.unit,
        "better": measure.better,
        "verdict": finding.verdict,
        "why": finding.why,
        "before": shown.before,
        "after": shown.after,
        **effect_document(finding.effect),
        "adjusted_p": finding.adjusted,
        "detectable": finding.detectable,
    }
