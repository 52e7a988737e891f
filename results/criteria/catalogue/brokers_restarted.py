"""Every broker was restarted during the move, and came back."""

from results.contract.move import Move
from results.contract.verdict import Finding, Verdict
from results.criteria.criterion import FACTS, Criterion
from results.criteria.findings import finding
from results.criteria.measures import MoveMeasures


def judge_restarts(measures: MoveMeasures, move: Move) -> Finding:
    """Judge whether every broker was restarted during the move, and came back."""
    stayed = [host for host in move.brokers if host not in measures.left]
    away = [host for host in measures.left if host not in measures.back]
    verdict: Verdict = "inconclusive"
    if measures.started_us is None:
        why = "no move.started was recorded"
    elif stayed:
        why = f"not restarted during the move: {', '.join(stayed)}"
    elif away:
        why = f"not seen to come back during the move: {', '.join(away)}"
    else:
        verdict, why = "pass", f"restarted and back: {', '.join(measures.back)}"
    return finding(
        "brokers-restarted",
        "every broker left and came back during the move",
        verdict,
        why,
        observed=", ".join(measures.left) or None,
        series=("events",),
    )


CRITERION = Criterion(
    name="brokers-restarted",
    title="Every broker restarted",
    section=FACTS,
    judge=lambda run: [judge_restarts(run.measures, run.move)],
    catches="A run that does not contain the restarts that it is about.",
)
