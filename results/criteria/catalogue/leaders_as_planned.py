"""Each partition is led by its planned broker before the move."""

from results.criteria.criterion import FACTS, Criterion, has_any_move
from results.criteria.findings import difference_finding

CRITERION = Criterion(
    name="leaders-as-planned",
    title="Leaders as planned",
    section=FACTS,
    judge=lambda run: [
        difference_finding(
            "leaders-as-planned",
            "each partition led by its planned broker before the move",
            run.manifest.facts.leaders,
            "leaders",
        )
    ],
    needs=has_any_move,
    by_name=False,
    catches="A run whose flows differ from the manifest's.",
)
