"""No quota window has more bytes than the bound allows."""

from collections.abc import Sequence

from results.contract.move import Move
from results.contract.network import payload_rates
from results.contract.verdict import Finding, Verdict
from results.criteria.batching import where_sent
from results.criteria.criterion import BROKERS_UNRESTRAINED, RATES, UNCERTAIN_BYTES, Criterion
from results.criteria.findings import finding, gap_text, missing_data, times_power
from results.criteria.measures import MoveMeasures
from results.criteria.model import allowed, bound_of, written_past
from results.criteria.phase_directions import ABOVE_NICS, PayloadRates, PhaseDirection, informative_directions
from results.criteria.quantities import at, size
from results.criteria.run_view import RunView
from results.criteria.unfit import MACHINE_LOAD


def judge_windows(measures: MoveMeasures, move: Move, carries: PayloadRates, *, late: bool = False) -> list[Finding]:
    """Judge whether no quota window has more listed bytes than the bound; one fails even with a gap elsewhere.

    Nothing is said where the NIC, by what it `carries`, lets no window have more than the bound.

    With `late` a busy machine may have made a reading long after its instant, though before the next one's: a window
    may be longer then by up to the longest gap, and is held against what two may have.
    """
    return [_window(end, move, carries, 2 if late else 1) for end in informative_directions(measures, move)] or [
        missing_data("throttled-window", "throttled bytes within the bound of any window", measures, ("log.bytes",))
    ]


def _window(end: PhaseDirection, move: Move, carries: PayloadRates, windows: int) -> Finding:
    rates, quota = end.rates, end.quota
    worst, highest = rates.worst_window, rates.highest_window_bytes_per_s
    bound = bound_of(move, rates.host, rates.direction, quota)
    bound = None if bound is None else windows * bound
    most = bound
    verdict: Verdict = "inconclusive"
    if rates.longest_gap_s is None or rates.total_bytes <= 0 or worst is None:
        why = "no throttled bytes were seen"
    elif bound is None:
        why = f"the manifest names no fetcher of {rates.host} that could {rates.direction}"
    else:
        # Of partitions that arrive in this window, what producers write next is not checked any more.
        most = allowed(bound, worst.in_sync_bytes) + written_past(move)
        why = f"{size(worst.bytes)} in {worst.elapsed_s:.2f} s from {at(worst.start_s)}"
        if worst.in_sync_bytes:
            why += f", {size(worst.in_sync_bytes)} of them to replicas in sync"
        if highest is not None:
            why += f"; highest {move.window_s:g} s rate {highest / quota:.3f} of the strict quota"
        if worst.bytes > most:
            verdict = "fail"
        elif gap := gap_text(rates.longest_gap_s):
            why = f"{gap}: the run would not show a burst in it"
        elif highest is None and (early := end.too_much(move)):
            verdict, why = "fail", early
        elif highest is None and not (end.number and end.phase.end_s - end.phase.begin_s >= move.window_s):
            # Of a phase the readings at its edges lie inside: one of just a window has readings of a little less.
            why = f"the {'phase' if end.number else 'move'} took less than {move.window_s:g} s"
        elif never := end.never_above(bound + written_past(move), windows * move.window_s, carries):
            why = f"{never}; {why}"
        else:
            verdict = "pass"
    within = f"at most {size(most)} in any {move.window_s:g} s" if most else "within the bound of any window"
    within += ", a busy machine's late readings allowed for" if windows > 1 else ""
    return finding(
        "throttled-window",
        end.words + within,
        verdict,
        why,
        host=rates.host,
        direction=rates.direction,
        observed=worst.bytes if worst else None,
        unit="bytes",
        tolerance="none beyond the bound",
        power=times_power(most / worst.bytes, "the bytes of the worst window") if most and worst else None,
        series=("log.bytes",),
    )


def _over_for_sure(run: RunView, shaky: Sequence[Finding]) -> list[Finding | None]:
    """Return the windows that are over the bound on any machine; a busy machine may have made readings late."""
    if any(each.name in UNCERTAIN_BYTES for each in shaky):
        return []
    late = any(each.name in (MACHINE_LOAD, BROKERS_UNRESTRAINED) for each in shaky)
    found = where_sent(judge_windows(run.measures, run.move, payload_rates(run.manifest.nics), late=late), run)
    return [each if each.verdict == "fail" else None for each in found]


CRITERION = Criterion(
    name="throttled-window",
    title="Throttled bytes in any quota window",
    section=RATES,
    judge=lambda run: where_sent(judge_windows(run.measures, run.move, payload_rates(run.manifest.nics)), run),
    rests_on_preconditions=True,
    holds_anyway=_over_for_sure,
    skips=lambda run: ABOVE_NICS if run.move.nic_bound else None,
    catches="A quota that is not enforced, or a burst beyond one response per fetcher.",
    smallest="20 % more in one window",
)
