"""The controller had decided every state before a client saw it."""

from results.contract.verdict import Finding, Verdict
from results.criteria.criterion import BROKERS_UNRESTRAINED, CLOCKS, FACTS, Criterion, has_steps
from results.criteria.findings import finding
from results.criteria.measures import PollAgreement
from results.criteria.run_view import RunView
from results.criteria.step_measures import DESCRIBED, LISTED, LOG

_KINDS = {DESCRIBED: "DescribeTopics", LISTED: "ListPartitionReassignments"}


def _name(polled: PollAgreement) -> str:
    return f"polling-agrees.{_KINDS[polled.kind]}"


def _agrees(polled: PollAgreement, problem: str) -> Finding:
    verdict: Verdict = "inconclusive" if problem or not polled.answers else "fail" if polled.unlike else "pass"
    compared = (
        f"{polled.unlike} of {polled.answers} answers were never in the log" if polled.answers else "nothing was polled"
    )
    return finding(
        _name(polled),
        "the controller had decided each answer before a client had it",
        verdict,
        problem or compared,
        observed=float(polled.unlike) if polled.answers else None,
        unit="answers",
        series=(polled.kind, LOG),
    )


def _polled(run: RunView) -> tuple[PollAgreement, ...]:
    return run.measures.steps.polled if run.measures.steps else ()


def _agreements(run: RunView) -> list[Finding]:
    problem = "" if run.manifest.steps is None else run.manifest.steps.problem
    return [_agrees(each, problem) for each in _polled(run)]


def _excuses(run: RunView, precondition: str, failed: Finding) -> bool:
    """Return whether a failure may be explained: by a clock an answer too early, and none that the log never has.

    A node that was stopped has a log without its end. It explains those that the log never has, and none too early.
    """
    polled = [each for each in _polled(run) if _name(each) == failed.name]
    if precondition == BROKERS_UNRESTRAINED:
        return all(each.unlike == each.unknown for each in polled)
    return not any(each.unknown for each in polled)


CRITERION = Criterion(
    name="polling-agrees",
    title="Clients get only what the controller decided",
    section=FACTS,
    judge=_agreements,
    needs=has_steps,
    rests_on_preconditions=True,
    # The controller's clock says since when a state is in force, and the runner's when it asked. The log of a node that
    # somebody stopped lacks what others decided since.
    excused_by=(*CLOCKS, BROKERS_UNRESTRAINED),
    excuses=_excuses,
    catches="An Admin answer that the controller never decided.",
)
