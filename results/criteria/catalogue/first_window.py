"""The first window carries what the size of a response against quota × window predicts."""

from results.contract.move import Move
from results.contract.verdict import Finding, Power, Verdict
from results.criteria.batching import in_steps
from results.criteria.criterion import RATES, Criterion
from results.criteria.findings import finding, gap_text, missing_data, times_power
from results.criteria.host_rates import ByteWindow, HostRates
from results.criteria.measures import MoveMeasures
from results.criteria.model import responses
from results.criteria.phase_directions import BACKOFF_S, PhaseDirection, phase_directions
from results.criteria.quantities import size

FIRST_LEAST = 0.9
"""Part of what the first window has at least: the replicas' logs have to be made first, some tenths of a second."""


def _judge(measures: MoveMeasures, move: Move) -> list[Finding]:
    return [_first(end, move) for end in phase_directions(measures) if end.phase is measures.phases[0]] or [
        missing_data("first-window", "the first window as predicted", measures, ("log.bytes",))
    ]


def first_window_range(move: Move, rates: HostRates, quota: float, seconds: float) -> tuple[float, float]:
    """Return least and most bytes that the first so many seconds of a move can have through one host and direction.

    The first fetch of each fetcher finds an empty window and is answered whole. The next one is let through as soon
    as the bytes so far are below quota × time. So responses that are larger than quota × window go beyond it: that is
    KIP-73's burst. With Kafka's own settings a fetcher's last look may lie a pause before the window's end.
    """
    burst = responses(move, rates.host, rates.direction)
    looked_s = seconds - (BACKOFF_S if move.fetch == "default" else 0.0)
    least, most = max(burst, quota * looked_s), quota * seconds + burst
    return FIRST_LEAST * min(least, rates.total_bytes), min(most, rates.total_bytes)


def _first(end: PhaseDirection, move: Move) -> Finding:
    rates, first = end.rates, end.rates.first_window
    seconds = first.elapsed_s if first else move.window_s
    least, most = first_window_range(move, rates, end.quota, seconds)
    burst = responses(move, rates.host, rates.direction)
    in_window = end.quota * seconds
    verdict: Verdict = "inconclusive"
    if gap := gap_text(rates.longest_gap_s):
        why = gap
    elif burst <= 0:
        why = f"the manifest names no fetcher of {rates.host} that could {rates.direction}"
    elif first is None and (early := end.too_much(move)):
        verdict, why = "fail", early
    elif first is None:
        why = f"the move took less than {move.window_s:g} s"
    else:
        verdict = "pass" if least <= first.bytes <= most else "fail"
        larger = "more" if burst > in_window else "less"
        why = (
            f"one response per fetcher is {size(burst)}, {larger} than quota × {seconds:.2f} s, {size(in_window)}; "
            f"that time had {first.bytes / in_window:.3f} of quota × time"
        )
        if first.bytes < least and (slower := end.slower_than_quota(move)):
            verdict, why = "inconclusive", f"{slower}; {why}"
    return finding(
        "first-window",
        f"{size(least)} to {size(most)} in the first {seconds:.2f} s",
        verdict,
        why,
        host=rates.host,
        direction=rates.direction,
        observed=first.bytes if first else rates.total_bytes if verdict == "fail" else None,
        unit="bytes",
        power=_power(first, most, rates),
        tolerance=f"{FIRST_LEAST:g} of the larger of response and quota × window, up to their sum",
        series=("log.bytes",),
    )


def _power(first: ByteWindow | None, most: float, rates: HostRates) -> Power | None:
    """Return the power; None where all bytes of the move may be in the first window: no more can be."""
    if first is None or not first.bytes or most >= rates.total_bytes:
        return None
    return times_power(most / first.bytes, "the bytes of the first window")


CRITERION = Criterion(
    name="first-window",
    title="The first window as predicted",
    section=RATES,
    judge=lambda run: _judge(run.measures, run.move),
    rests_on_preconditions=True,
    quota_binds=True,
    skips=in_steps("the first 11 s are of the first batches, however many those are"),
    catches="A first burst of another size than the fetch settings explain.",
    smallest="10 % more, at first",
)
