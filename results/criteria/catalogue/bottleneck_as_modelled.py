"""The broker direction that comes nearest to the quota is the one that the model says."""

from collections.abc import Mapping, Set

from results.contract.move import Move
from results.contract.verdict import Direction, Finding, Verdict
from results.criteria.batching import open_in_steps, without_batch_model
from results.criteria.criterion import RATES, Criterion
from results.criteria.findings import finding, gap_text, times_power
from results.criteria.measures import MoveMeasures
from results.criteria.model import TIE, bottlenecks
from results.criteria.phase_directions import phase_directions
from results.criteria.quantities import percent, size

NAME = "bottleneck-as-modelled"
End = tuple[str, Direction]


def _judge(measures: MoveMeasures, move: Move) -> list[Finding]:
    """Return the finding of the end that came nearest to the quota.

    A leak may end a move before its steady part has a window: then by the mean of all.
    """
    if move.fetch != "tuned" or not move.expected:
        return []
    predicted = bottlenecks(move, move.quota_bytes_per_s)
    rates = {(r.host, r.direction): r for r in measures.rates}
    carried = {place: mean for place, r in rates.items() if (mean := r.steady_bytes_per_s) is not None}
    if any(end.too_much(move) for end in phase_directions(measures)):
        carried = {place: mean for place, r in rates.items() if (mean := r.mean_bytes_per_s) is not None}
    missing = [f"{e.host} {e.direction}" for e in move.expected if e.bytes and (e.host, e.direction) not in carried]
    gaps = [gap for r in rates.values() if (gap := gap_text(r.longest_gap_s))]
    open_why = ""
    if not predicted or missing or gaps:
        few = f"the steady part of {', '.join(missing)} has no whole window of {move.window_s:g} s"
        open_why = gaps[0] if gaps else few if missing else "the model names none"
    shares = ", ".join(
        f"{host} {way} {mean / move.quota_bytes_per_s:.3f}" for (host, way), mean in sorted(carried.items())
    )
    why = f"steady, of the quota: {shares}"
    return [_compared(predicted, carried, "comes nearest to the quota", "near", "rate", why, open_why)]


def _judge_in_steps(measures: MoveMeasures, move: Move) -> list[Finding]:
    """Return the finding of the end that carried most over the whole move: in a batch it may be another."""
    if move.fetch != "tuned":
        return []
    predicted = bottlenecks(move, move.quota_bytes_per_s)
    carried = {(r.host, r.direction): r.total_bytes for r in measures.rates if r.total_bytes > 0}
    gaps = [gap for r in measures.rates if (gap := gap_text(r.longest_gap_s))]
    if not predicted or not carried or gaps:
        why = gaps[0] if gaps else "no throttled bytes were seen" if predicted else "no model"
        return [open_in_steps(NAME, "the model's end carries most", why)]
    amounts = ", ".join(f"{host} {way} {size(total)}" for (host, way), total in sorted(carried.items()))
    return [_compared(predicted, carried, "carries most", "much", "bytes", f"in all: {amounts}")]


def _compared(
    predicted: Set[End], carried: Mapping[End, float], does: str, as_: str, unit: str, why: str, open_why: str = ""
) -> Finding:
    """Return the finding of the end with the most: whether the model predicts it."""
    verdict: Verdict = "inconclusive"
    observed: str | None = None
    if not open_why:
        most = max(carried, key=lambda end: carried[end])
        # An end that carries as much as the most but for what was under way is as near as that.
        near = {end for end, amount in carried.items() if amount >= (1 - TIE) * carried[most]}
        verdict, observed = "pass" if near & predicted else "fail", " ".join(most)
    return finding(
        NAME,
        f"{' or '.join(' '.join(end) for end in sorted(predicted))} {does}",
        verdict,
        open_why or why,
        observed=observed,
        tolerance=f"within {percent(TIE)} is as {as_}",
        power=times_power(1 + TIE, f"the {unit} of the modelled end, at another end,"),
        series=("log.bytes", "manifest.move.expected"),
    )


CRITERION = Criterion(
    name=NAME,
    title="Where the quota is the bottleneck",
    section=RATES,
    judge=lambda run: (_judge_in_steps if run.batched else _judge)(run.measures, run.move),
    rests_on_preconditions=True,
    skips=without_batch_model,
    catches="A quota that is enforced on the wrong side.",
    smallest="2 % more at another end",
)
