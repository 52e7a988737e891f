"""Each partition is led by its planned broker before the move."""

from results.contract.manifest import Differences
from results.criteria.criterion import FACTS, Criterion, has_any_move
from results.criteria.findings import difference_finding

CRITERION: Criterion[Differences | None] = Criterion(
    name="leaders-as-planned",
    title="Leaders as planned",
    section=FACTS,
    measure=lambda run: run.manifest.facts.leaders,
    judge=lambda _run, found: [
        difference_finding(
            "leaders-as-planned", "each partition led by its planned broker before the move", found, "leaders"
        )
    ],
    needs=has_any_move,
    by_name=False,
    catches="A run whose flows differ from the manifest's.",
)
