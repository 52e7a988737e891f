"""Nothing is in flight; replicas are the target; the ISR holds the target; old replicas are gone."""

from results.contract.manifest import Done
from results.contract.verdict import Finding
from results.criteria.criterion import FACTS, NETWORK_CHANGED, Criterion, has_any_move
from results.criteria.findings import fact_finding


def judge_done(done: Done | None) -> Finding:
    """Return the finding of what the run established at the end of the move."""
    expected = "nothing in flight; replicas = target; ISR holds the target; old replicas gone"
    return fact_finding(
        "move-done", expected, None if done is None else done.ok, "" if done is None else done.why, "done"
    )


CRITERION: Criterion[Done | None] = Criterion(
    name="move-done",
    title="The move is done",
    section=FACTS,
    measure=lambda run: run.manifest.facts.done,
    judge=lambda _run, done: [judge_done(done)],
    needs=has_any_move,
    by_name=False,
    rests_on_preconditions=True,
    excused_by=(NETWORK_CHANGED,),
    catches="A reassignment that is reported done too early.",
)
