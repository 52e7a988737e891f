"""A throttle below the inbound rate is noticed in time, raised, and the move completes."""

from results.contract.verdict import Finding, Verdict
from results.criteria.criterion import FACTS, SLOW_CLIENTS, Criterion
from results.criteria.findings import finding
from results.criteria.measures import MoveMeasures, StallMeasures
from results.criteria.quantities import at, rate
from results.criteria.run_view import RunView

NOTICE_S = 3.0
"""How much longer than it says a move may have been stuck when that is noticed."""


def judge_stuck(measures: MoveMeasures, patience_s: float | None) -> Finding:
    """Judge whether a throttle below what comes in is noticed, no sooner than the lag has really stopped falling, and
    raised.

    Nor much later: of the time that the lag had not fallen for then nearly all was reported, and that is the patience.
    """
    stuck, done_s = measures.stuck, measures.done_s
    verdict: Verdict = "inconclusive"
    observed: str | None = None
    if stuck is None:
        why = "no notice says that the move was stuck"
        if done_s is not None:
            verdict, observed, why = "fail", f"done at {at(done_s)}", f"{why}; it was done at {at(done_s)} all the same"
    elif stuck.seconds is None or stuck.lag_before is None or stuck.lag_since is None:
        why = f"noticed at {at(stuck.noticed_s)}, but the lag before that was not recorded"
    else:
        observed = f"noticed at {at(stuck.noticed_s)}"
        lag = f"the lowest lag was {stuck.lag_before:g}, and {stuck.lag_since:g} in the {stuck.seconds:.1f} s since"
        if stuck.lag_since < stuck.lag_before:
            verdict, why = "fail", f"noticed too soon: {lag}"
        elif late := _late(stuck, patience_s):
            verdict, why = "fail", f"noticed too late: {late}; {lag}"
        elif stuck.raised_s is None:
            verdict, why = "fail", f"{lag}; the throttle was not raised"
        elif done_s is None or done_s < stuck.raised_s:
            verdict, why = "fail", f"{lag}; raised at {at(stuck.raised_s)}, but not done after that"
        else:
            verdict = "pass"
            to = f" to {rate(stuck.raised_to)}" if stuck.raised_to is not None else ""
            why = f"{lag}; raised{to} at {at(stuck.raised_s)}, done at {at(done_s)}"
    return finding(
        "stall-detected",
        "noticed once the lag has stopped falling; raised; done",
        verdict,
        why,
        observed=observed,
        series=("move.lag", "events"),
    )


def _late(stuck: StallMeasures, patience_s: float | None) -> str | None:
    """Return by how much the notice came too late; None when it did not. The lag is read and judged once a second."""
    reported_s = stuck.seconds or 0.0
    if patience_s is not None and reported_s > patience_s + NOTICE_S:
        return f"after {reported_s:.1f} s, with a patience of {patience_s:g} s"
    since = 0.0 if stuck.lowest_s is None else stuck.noticed_s - stuck.lowest_s
    return f"the lag was lowest {since:.1f} s before" if since > reported_s + NOTICE_S else None


def _patience_s(run: RunView) -> float | None:
    patience = run.manifest.parameters.get("patience")
    return patience if isinstance(patience, int | float) else None


CRITERION = Criterion(
    name="stall-detected",
    title="A stall is detected, and the throttle raised",
    section=FACTS,
    judge=lambda run: [judge_stuck(run.measures, _patience_s(run))],
    rests_on_preconditions=True,
    # The runner reads the lag, counts its time, and raises the throttle: on a machine that has the time for it.
    excused_by=SLOW_CLIENTS,
    catches="A move that never ends because its throttle is too low.",
)
