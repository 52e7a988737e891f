"""The broker direction that comes nearest to the quota is the one that the model says."""

from results.contract.move import Move
from results.contract.verdict import Finding, Verdict
from results.criteria.batching import open_in_steps, without_batch_model
from results.criteria.criterion import RATES, Criterion
from results.criteria.findings import finding, gap_text, times_power
from results.criteria.measures import MoveMeasures
from results.criteria.model import TIE, bottlenecks
from results.criteria.phase_directions import phase_directions
from results.criteria.quantities import percent, size


def judge_binding(measures: MoveMeasures, move: Move) -> list[Finding]:
    """Judge whether the broker and direction that came nearest to the quota is the one that the model says.

    A leak may end a move before its steady part has a window: then by the mean of all.
    """
    if move.fetch != "tuned" or not move.expected:
        return []
    return [_binding(measures, move)]


def _binding(measures: MoveMeasures, move: Move) -> Finding:
    predicted = bottlenecks(move, move.quota_bytes_per_s)
    rates = {(r.host, r.direction): r for r in measures.rates}
    carried = {place: mean for place, r in rates.items() if (mean := r.steady_bytes_per_s) is not None}
    if any(end.too_much(move) for end in phase_directions(measures)):
        carried = {place: mean for place, r in rates.items() if (mean := r.mean_bytes_per_s) is not None}
    missing = [f"{e.host} {e.direction}" for e in move.expected if e.bytes and (e.host, e.direction) not in carried]
    gaps = [gap for r in rates.values() if (gap := gap_text(r.longest_gap_s))]
    verdict: Verdict = "inconclusive"
    observed: str | None = None
    if not predicted or missing or gaps:
        few = f"the steady part of {', '.join(missing)} has no whole window of {move.window_s:g} s"
        why = gaps[0] if gaps else few if missing else "the model names none"
    else:
        nearest = max(carried, key=lambda end: carried[end])
        # An end that carries as much as the nearest but for what was under way is as near as that.
        near = {end for end, mean in carried.items() if mean >= (1 - TIE) * carried[nearest]}
        verdict = "pass" if near & predicted else "fail"
        observed = " ".join(nearest)
        shares = ", ".join(
            f"{host} {way} {mean / move.quota_bytes_per_s:.3f}" for (host, way), mean in sorted(carried.items())
        )
        why = f"steady, of the quota: {shares}"
    return finding(
        "bottleneck-as-modelled",
        " or ".join(" ".join(end) for end in sorted(predicted)) + " comes nearest to the quota",
        verdict,
        why,
        observed=observed,
        tolerance=f"within {percent(TIE)} is as near",
        power=times_power(1 + TIE, "the rate of the modelled end, at another end,"),
        series=("log.bytes", "manifest.move.expected"),
    )


def judge_binding_in_steps(measures: MoveMeasures, move: Move) -> list[Finding]:
    """Judge whether the end that carried most over the whole move is the one that the model says.

    In a batch it may be another.
    """
    if move.fetch != "tuned":
        return []
    expected = "the model's end carries most"
    predicted = bottlenecks(move, move.quota_bytes_per_s)
    carried = {(r.host, r.direction): r.total_bytes for r in measures.rates if r.total_bytes > 0}
    gaps = [gap for r in measures.rates if (gap := gap_text(r.longest_gap_s))]
    if not predicted or not carried or gaps:
        return [
            open_in_steps(
                "bottleneck-as-modelled",
                expected,
                gaps[0] if gaps else "no listed bytes were seen" if predicted else "no model",
            )
        ]
    most = max(carried, key=lambda end: carried[end])
    near = {end for end, total in carried.items() if total >= (1 - TIE) * carried[most]}
    amounts = ", ".join(f"{host} {way} {size(total)}" for (host, way), total in sorted(carried.items()))
    return [
        finding(
            "bottleneck-as-modelled",
            " or ".join(" ".join(end) for end in sorted(predicted)) + " carries most",
            "pass" if near & predicted else "fail",
            f"in all: {amounts}",
            observed=" ".join(most),
            tolerance=f"within {percent(TIE)} is as much",
            power=times_power(1 + TIE, "the bytes of the modelled end, at another end,"),
            series=("log.bytes", "manifest.move.expected"),
        )
    ]


CRITERION = Criterion(
    name="bottleneck-as-modelled",
    title="Where the quota is the bottleneck",
    section=RATES,
    judge=lambda run: (judge_binding_in_steps if run.batched else judge_binding)(run.measures, run.move),
    rests_on_preconditions=True,
    skips=without_batch_model,
    catches="A quota that is enforced on the wrong side.",
    smallest="2 % more at another end",
)
