"""Each partition takes the steps that the plan and the limit R give, as the controller logged them."""

from collections.abc import Sequence

from results.contract.texts import plural, shortened
from results.contract.verdict import Finding, Verdict
from results.criteria.catalogue.move_done import CRITERION as MOVE_DONE
from results.criteria.criterion import FACTS, Criterion
from results.criteria.findings import finding
from results.criteria.planned_steps import PLANNED, PlannedSteps, measure_steps_taken
from results.criteria.step_measures import LOG

SHOWN = 3


def judge_steps_taken(steps: PlannedSteps) -> list[Finding]:
    """Judge the sequence of each partition's replicas; return nothing for a run that recorded no planned steps."""
    if not steps.planned:
        return []
    verdict: Verdict = "pass"
    most = plural(max(map(len, steps.planned.values())) - 1, "step")
    why = f"{plural(len(steps.planned), 'partition')}, in at most {most} each"
    if steps.different:
        verdict = "fail"
        wrong = [f"{_name(tp)}: {_path(steps.logged[tp])}, not {_path(steps.planned[tp])}" for tp in steps.different]
        why = "; ".join(shortened(wrong, SHOWN))
    elif steps.open:
        verdict = "inconclusive"
        names = ", ".join(shortened([*map(_name, steps.open)], SHOWN))
        why = f"a replica left the ISR of {names}, and the steps after that follow from the replicas in sync"
    elif steps.unknown:
        verdict = "inconclusive"
        why = f"the metadata log has nothing of {', '.join(shortened([*map(_name, steps.unknown)], SHOWN))}"
    return [
        finding(
            "steps-as-planned",
            "each partition takes the planned steps, in the metadata log",
            verdict,
            why,
            observed=float(len(steps.different)),
            unit="partitions",
            tolerance="the same replicas in the same order",
            series=(LOG, PLANNED),
        )
    ]


def _name(tp: tuple[str, int]) -> str:
    return f"{tp[0]}-{tp[1]}"


def _path(states: Sequence[tuple[int, ...]]) -> str:
    return " → ".join(f"({','.join(map(str, state))})" for state in states)


CRITERION = Criterion(
    name="steps-as-planned",
    title="The planned steps, in the metadata log",
    section=FACTS,
    judge=lambda run: judge_steps_taken(measure_steps_taken(run.series)),
    by_name=False,
    rests_on_preconditions=True,
    # A move that is not done lacks steps, and a step goes without a broker that is down or cut off.
    excused_by=MOVE_DONE.excused_by,
    excuses=MOVE_DONE.excuses,
    catches="A driver that takes other steps than KIP-435's rules give, or a controller that carries out others.",
)
