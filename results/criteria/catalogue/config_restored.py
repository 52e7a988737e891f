"""Every broker and topic setting is as before the move."""

from results.criteria.criterion import BROKERS_UNRESTRAINED, FACTS, Criterion
from results.criteria.findings import difference_finding

CRITERION = Criterion(
    name="config-restored",
    title="Configuration put back",
    section=FACTS,
    judge=lambda run: [
        difference_finding(
            "config-restored",
            "every broker and topic setting as before the move",
            run.manifest.facts.restored,
            "restored",
        )
    ],
    by_name=False,
    rests_on_preconditions=True,
    # A broker alone accepts its own configuration: one that somebody ended or stopped takes none back.
    excused_by=(BROKERS_UNRESTRAINED,),
    catches="A throttle that stays after the move.",
)
