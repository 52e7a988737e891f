"""The controller's log, replayed, ends with what DescribeTopics says, and each state in it is a sound one.

A leader that was not in sync for a moment may have lost records, however the scenario ends.
"""

from collections.abc import Iterator

from results.contract.steps import StepsRecord
from results.contract.texts import shortened
from results.contract.verdict import Finding, Verdict
from results.criteria.criterion import BROKERS_UNRESTRAINED, FACTS, Criterion, has_steps
from results.criteria.findings import finding
from results.criteria.partition_rules import unsound
from results.criteria.run_view import RunView
from results.criteria.step_measures import LOG, timelines

SHOWN = 5


def _unsound(run: RunView) -> Iterator[str]:
    for (topic, partition), spans in sorted(timelines(run.series.events_of((LOG,))).items()):
        for span in spans:
            if why := unsound(span.state):
                yield f"{topic}-{partition} {why}"


def _judge(run: RunView) -> list[Finding]:
    steps = run.manifest.steps
    return [] if steps is None else [_whole(steps, list(_unsound(run)))]


def _whole(steps: StepsRecord, wrong: list[str]) -> Finding:
    verdicts: dict[bool | None, Verdict] = {True: "pass", False: "fail", None: "inconclusive"}
    shown = "; ".join([*shortened(wrong, SHOWN), *steps.differences]) or steps.problem
    return finding(
        "trace-whole",
        "the controller's log, replayed, ends with what DescribeTopics says; in each state the leader is in sync",
        "fail" if wrong else verdicts[steps.equal],
        shown or "the same replicas, ISR, leader and leader epoch of every partition",
        observed={True: "equal", False: "different", None: None}[steps.equal],
        series=(LOG, "manifest.steps"),
    )


CRITERION = Criterion(
    name="trace-whole",
    title="The controller's log is whole",
    section=FACTS,
    judge=_judge,
    needs=has_steps,
    rests_on_preconditions=True,
    # The log of a node that somebody stopped lacks its end. No such log has a state that breaks a rule.
    excused_by=(BROKERS_UNRESTRAINED,),
    excuses=lambda run, _precondition, _failed: not any(_unsound(run)),
    catches="A trace from which records are missing; a leader that is not in sync, even for a moment.",
)
