"""The 99th percentile of acknowledgements is again what it was before the move.

It fails where every window of the first 20 s after the move is above, and so many were watched that chance is unlikely.
"""

from results.contract.verdict import Finding, Verdict
from results.criteria.criterion import RATES, Criterion, has_relocation
from results.criteria.findings import finding
from results.criteria.measures import P99_BACK, P99_WITHIN_S, MoveMeasures
from results.criteria.relocation_measures import NOTHING, measure_relocation


def judge_back(measures: MoveMeasures) -> Finding:
    """Judge `p99-recovery`: the 99th percentile of acknowledgements is seen to be again what it was before."""
    found = measures.relocation or NOTHING
    most = f"{P99_BACK * (found.p99_before_us or 0.0) / 1000:.1f} ms"
    verdict: Verdict = "inconclusive"
    if found.p99_before_us is None:
        why = "no acknowledgements were seen before the move"
    elif found.p99_back_s is None:
        why = f"it was still above {most} when the load was stopped; of the {P99_WITHIN_S} s after the move, a part "
        why += "was not above, or too little was watched"
    else:
        verdict, why = "pass", f"no more above {most}, {P99_BACK:g} times the highest before the move"
    if found.p99_never:
        verdict, why = "fail", f"above {most} in every 5 s of the {P99_WITHIN_S} s after the move"
    return finding(
        "p99-recovery",
        f"at most {P99_BACK:g} times the highest before the move, within {P99_WITHIN_S} s of its end",
        verdict,
        why,
        observed=found.p99_back_s,
        unit="s",
        series=("client.produce.latency",),
    )


CRITERION = Criterion(
    name="p99-recovery",
    title="Acknowledgements as quick as before",
    section=RATES,
    judge=lambda run: [judge_back(run.measures)],
    spared=lambda run: [judge_back(measure_relocation(run.manifest, run.series, run.unfit))],
    needs=has_relocation,
    skips=lambda run: None if run.loaded else "no client wrote, so no acknowledgement was late",
    rests_on_preconditions=True,
    catches="A cluster that stays slow after the move.",
    smallest="10 % slower for 20 s",
)
