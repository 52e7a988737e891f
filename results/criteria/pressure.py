"""Pressure: the time in which every task that was not idle waited for memory, or for a disk (the kernel's PSI)."""

from dataclasses import dataclass

from results.contract.verdict import Finding, Verdict
from results.criteria.findings import finding, gap_text
from results.criteria.quantities import percent
from results.criteria.run_view import RunView
from results.criteria.series import RunSeries
from results.criteria.standstill import MOST, OVER_S, Span, highest_share, move_spans
from results.criteria.windows import longest_gap_s

MACHINE = "machine"


@dataclass(frozen=True, slots=True)
class Pressure:
    """The highest share of a move in which tasks waited, of windows of three quota windows; None: nothing was read.

    `too_short` says that no part of the move is as long as a quota window.
    """

    share: float | None
    longest_gap_s: float | None
    too_short: bool


def was_read(run: RunView, metric: str) -> bool:
    """Return whether the run has readings of a pressure."""
    return len(run.series.of_metric(metric)) > 0


def pressure(run: RunView, metric: str) -> Pressure:
    """Return the pressure of a run's move."""
    return _pressure(run.series, metric, move_spans(run))


def _pressure(run: RunSeries, metric: str, spans: list[Span]) -> Pressure:
    series = run.gauge(metric, MACHINE)
    gaps = [longest_gap_s(series.t, *span) for span in spans]
    share = highest_share(series, spans)
    seen = any(((series.t >= begin) & (series.t <= end)).sum() > 1 for begin, end in spans)
    return Pressure(share, max((gap for gap in gaps if gap is not None), default=None), share is None and seen)


def judge_pressure(name: str, metric: str, waits_for: str, found: Pressure) -> list[Finding]:
    """Return the finding of a pressure; none of a move that is too short to tell."""
    if found.too_short:
        return []
    verdict: Verdict = "inconclusive"
    if gap := gap_text(found.longest_gap_s):
        why = f"the pressure was not read: {gap}"
    elif found.share is None:
        why = "the pressure was not read during the move"
    elif found.share > MOST:
        why = f"for {percent(found.share)} of {OVER_S:g} s every task waited for {waits_for}, brokers too"
    else:
        verdict = "pass"
        why = f"tasks waited for {waits_for} for at most {percent(found.share)} of any {OVER_S:g} s"
    return [
        finding(
            name,
            f"every task waits for {waits_for} for at most {percent(MOST)} of any {OVER_S:g} s",
            verdict,
            why,
            observed=found.share,
            unit="fraction",
            host=MACHINE,
            series=(metric,),
        )
    ]
