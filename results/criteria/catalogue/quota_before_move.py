"""Every broker reports the quota before the move starts."""

from results.contract.manifest import InForce
from results.contract.verdict import Finding
from results.criteria.criterion import FACTS, Criterion
from results.criteria.findings import fact_finding


def judge_order(in_force: InForce | None) -> Finding:
    """Return the finding of when the quota was in force."""
    why = "" if in_force is None else f"in force {in_force.seconds:.2f} s after it was set"
    expected = "every broker reports the quota before the move starts"
    return fact_finding("quota-before-move", expected, None if in_force is None else in_force.ok, why, "in_force")


CRITERION = Criterion(
    name="quota-before-move",
    title="Quota first, then the move",
    section=FACTS,
    judge=lambda run: [judge_order(run.manifest.facts.in_force)],
    by_name=False,
    catches="A move whose first bytes no quota holds back.",
)
