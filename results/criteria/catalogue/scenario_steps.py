"""Each step's answer, and each state that it leads to.

A step whose *before* was not in force when it was asked for proves nothing: it is inconclusive, as is one that was
never taken.
"""

from results.contract.steps import ACCEPTED, Expectation, StepRecord
from results.contract.verdict import Finding, Verdict
from results.criteria.criterion import BROKERS_UNRESTRAINED, CLOCKS, FACTS, NETWORK_CHANGED, Criterion, has_steps
from results.criteria.findings import finding
from results.criteria.measures import StepObservation
from results.criteria.restraint import held_since_us
from results.criteria.run_view import RunView
from results.criteria.step_measures import LOG

ANSWER = ".answer"
"""The end of the name of a finding about a step's answer."""


def _judge(run: RunView) -> list[Finding]:
    steps, measured = run.manifest.steps, run.measures.steps
    if steps is None or measured is None:
        return []
    found = {(each.step, each.expectation): each for each in measured.found}
    criteria = []
    for place, step in enumerate(steps.steps):
        mine = {number: found.get((place, number)) for number in range(len(step.expectations))}
        criteria += _step(f"{place + 1}-{step.name}", step, mine, steps.problem)
    return criteria


def _step(name: str, step: StepRecord, found: dict[int, StepObservation | None], problem: str) -> list[Finding]:
    open_why = _open(step, found, problem)
    criteria = [_answer(name, step, open_why)]
    for number, expectation in enumerate(step.expectations):
        if expectation.when != "before":
            criteria.append(_expected(name, step, expectation, found[number], open_why))
    return criteria


def _open(step: StepRecord, found: dict[int, StepObservation | None], problem: str) -> str:
    """Return why nothing can be said of a step; empty when something can."""
    if step.from_us is None:
        return f"not observed: the step was not taken: {step.why}"
    if problem:
        return f"not observed: {problem}"
    for number, expectation in enumerate(step.expectations):
        seen = found[number]
        if expectation.when == "before" and (seen is None or seen.us is None):
            there = "nothing is known of it" if seen is None or seen.last is None else str(seen.last)
            return (
                f"not observed: when it was asked for, {expectation.topic}-{expectation.partition} was not as the step "
                f"needs it ({expectation.wanted}); it was: {there}"
            )
    return ""


def _answer(name: str, step: StepRecord, open_why: str) -> Finding:
    verdict: Verdict = "pass" if step.answer == step.wanted_answer else "fail"
    return finding(
        f"{name}{ANSWER}",
        f"{step.did}: {step.wanted_answer}",
        "inconclusive" if open_why else verdict,
        open_why or f"the answer was: {step.answer}",
        observed=None if step.from_us is None else step.answer,
        series=("manifest.steps",),
    )


def _expected(name: str, step: StepRecord, e: Expectation, seen: StepObservation | None, open_why: str) -> Finding:
    observed = None if seen is None or seen.last is None else str(seen.last)
    verdict: Verdict
    if open_why or seen is None or observed is None:
        verdict, why = "inconclusive", open_why or f"the log has nothing of {e.topic}-{e.partition}"
    elif e.when == "never":
        verdict = "pass" if seen.us is None else "fail"
        why = "it was never so" if seen.us is None else f"it was so {_after(step, seen.us)}"
    else:
        verdict = "pass" if seen.us is not None else "fail"
        so = "it was so then" if e.when == "end" else f"it was so {_after(step, seen.us or 0)}"
        why = so if seen.us is not None else step.why or "it was never so"
    words = {"seen": "at some time", "never": "never", "end": "at the end"}
    return finding(
        f"{name}.{e.name}",
        f"partition {e.partition} {words[e.when]}: {e.wanted}",
        verdict,
        why + (f"; KIP-455: {e.kip}" if e.kip else ""),
        observed=observed,
        tolerance="sets, but for *in this order*",
        series=(LOG,),
    )


def _excuses(run: RunView, precondition: str, failed: Finding) -> bool:
    """Return whether a failure may be explained: by a network or a broker that was held back, every wrong state.

    What holds a broker back explains no step that was over before. A clock explains no state that never came. Without a
    broker an action is late or refused, and never accepted.
    """
    answer, held_back = failed.name.endswith(ANSWER), precondition == BROKERS_UNRESTRAINED
    if held_back and _over_before(run, failed, held_since_us(run)):
        return False
    if answer or run.measures.steps is None or run.manifest.steps is None:
        return answer and held_back and failed.observed != ACCEPTED
    if held_back or precondition == NETWORK_CHANGED:
        return True
    steps = run.manifest.steps.steps
    never_came = {
        f"{each.step + 1}-{steps[each.step].name}.{steps[each.step].expectations[each.expectation].name}"
        for each in run.measures.steps.found
        if each.never_came
    }
    return failed.name not in never_came


def _over_before(run: RunView, failed: Finding, us: int | None) -> bool:
    """Return whether the step of a finding was over before an instant."""
    if run.manifest.steps is None or us is None:
        return False
    over = run.manifest.steps.steps[int(failed.name.partition("-")[0]) - 1].to_us
    return over is not None and over < us


def _after(step: StepRecord, us: int) -> str:
    return f"{max(0, us - (step.from_us or 0)) / 1e6:.2f} s after it was asked for"


CRITERION = Criterion(
    name="scenario-steps",
    title="Answers and states of KIP-455's steps",
    section=FACTS,
    judge=_judge,
    needs=has_steps,
    rests_on_preconditions=True,
    # The controller's clock says since when a state is in force, and the runner's when it asked. A broker that is cut
    # off, or stopped, reaches no state. Answers need no clock and no data network.
    excused_by=(*CLOCKS, NETWORK_CHANGED, BROKERS_UNRESTRAINED),
    excuses=_excuses,
    catches="A reassignment API that answers or acts otherwise than KIP-455 says.",
)
