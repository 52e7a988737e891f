"""The mean of each phase is within what its quota allows of a time of any length.

Where the quota's sensor begins with the move, so is the mean of each time from the start. A quota that lets a whole
window pass at once, and then nothing, is right on average: only the first seconds show it.
"""

from collections.abc import Sequence

from results.contract.move import Move
from results.contract.network import payload_rates
from results.contract.verdict import Finding, Verdict
from results.criteria.batching import where_sent
from results.criteria.criterion import RATES, UNCERTAIN_BYTES, Criterion
from results.criteria.findings import finding, gap_text, missing_data, times_power
from results.criteria.measures import MoveMeasures
from results.criteria.model import allowed
from results.criteria.phase_directions import ABOVE_NICS, PayloadRates, PhaseDirection, informative_directions
from results.criteria.quantities import READING_S, size
from results.criteria.run_view import RunView


def judge_phases(measures: MoveMeasures, move: Move, carries: PayloadRates, *, late: bool = False) -> list[Finding]:
    """Judge whether no phase has more listed bytes than the bound of its time.

    Nothing is said where the NIC, by what it `carries`, lets the phase have no more than the bound.
    Such a phase is left out where another one of the same end and quota can have more.

    With `late` the last reading may have been made after its instant, though before the next one's: the phase is held
    against what a time may have that is longer by the longest gap.
    """
    ends = [(end, _never(end, move, carries)) for end in informative_directions(measures, move)]
    shown = {end.place for end, never in ends if end.rates.all is not None and not never}
    return [_mean(end, move, carries, late) for end, never in ends if not never or end.place not in shown] or [
        missing_data("long-window-bound", "the mean within the bound of a long time", measures, ("log.bytes",))
    ]


def _never(end: PhaseDirection, move: Move, carries: PayloadRates) -> bool:
    """Return whether a phase that was watched without a gap is within its bound, and cannot have more."""
    found, bound = end.rates.all, end.long_bound(move)
    if found is None or bound is None or gap_text(end.rates.longest_gap_s) or end.too_early(move):
        return False
    within = found.bytes <= allowed(bound, found.in_sync_bytes)
    return within and bool(end.never_above(bound, found.elapsed_s + READING_S, carries))


def _mean(end: PhaseDirection, move: Move, carries: PayloadRates, late: bool) -> Finding:
    rates, found = end.rates, end.rates.all
    late_s = (rates.longest_gap_s or 0.0) if late else 0.0
    verdict: Verdict = "inconclusive"
    most: float | None = None
    if found is None or rates.total_bytes <= 0:
        why = "no throttled bytes were seen"
    elif (bound := end.long_bound(move, late_s)) is None:
        why = f"the manifest names no fetcher of {rates.host} that could {rates.direction}"
    else:
        most = allowed(bound, found.in_sync_bytes)
        share = found.bytes / found.elapsed_s / end.quota
        why = f"{size(found.bytes)} in {found.elapsed_s:.1f} s, {share:.3f} of the quota"
        if found.in_sync_bytes:
            why += f", {size(found.in_sync_bytes)} of them to replicas in sync"
        early = end.too_early(move, late_s)
        if early or found.bytes > most:
            verdict, why = "fail", f"{early}; {why}" if early else why
        elif gap := gap_text(rates.longest_gap_s):
            why = gap
        elif never := end.never_above(bound, found.elapsed_s + READING_S + late_s, carries):
            why = f"{never}; {why}"
        else:
            verdict = "pass"
    return finding(
        "long-window-bound",
        f"{end.words}at most {size(most)} in all" if most else f"{end.words}within the bound of a long time",
        verdict,
        why,
        host=rates.host,
        direction=rates.direction,
        observed=found.bytes if found else None,
        unit="bytes",
        tolerance="none beyond the bound",
        power=times_power(most / found.bytes, "the bytes of that time") if most and found and found.bytes else None,
        series=("log.bytes",),
    )


def _over_for_sure(run: RunView, shaky: Sequence[Finding]) -> list[Finding | None]:
    """Return the phases with too many bytes for any machine: a slow one lets fewer pass, and reads late at most."""
    if any(each.name in UNCERTAIN_BYTES for each in shaky):
        return []
    found = where_sent(judge_phases(run.measures, run.move, payload_rates(run.manifest.nics), late=True), run)
    return [each if each.verdict == "fail" else None for each in found]


CRITERION = Criterion(
    name="long-window-bound",
    title="Mean within the bound of a long time",
    section=RATES,
    judge=lambda run: where_sent(judge_phases(run.measures, run.move, payload_rates(run.manifest.nics)), run),
    rests_on_preconditions=True,
    holds_anyway=_over_for_sure,
    skips=lambda run: ABOVE_NICS if run.move.nic_bound else None,
    catches="A quota that lets slightly more pass in every window, or more at first and less later.",
    smallest="4 % more over the whole move",
)
