"""The controller's log, replayed, ends with what DescribeTopics says."""

from results.contract.steps import StepsRecord
from results.contract.verdict import Finding, Verdict
from results.criteria.criterion import FACTS, Criterion, has_steps
from results.criteria.findings import finding
from results.criteria.step_measures import LOG


def _whole(steps: StepsRecord) -> Finding:
    verdicts: dict[bool | None, Verdict] = {True: "pass", False: "fail", None: "inconclusive"}
    shown = "; ".join(steps.differences) or steps.problem
    return finding(
        "trace-whole",
        "the controller's log, replayed, ends with what DescribeTopics says",
        verdicts[steps.equal],
        shown or "the same replicas, ISR, leader and leader epoch of every partition",
        observed={True: "equal", False: "different", None: None}[steps.equal],
        series=(LOG, "manifest.steps"),
    )


CRITERION: Criterion[StepsRecord | None] = Criterion(
    name="trace-whole",
    title="The controller's log is whole",
    section=FACTS,
    measure=lambda run: run.manifest.steps,
    judge=lambda _run, steps: [] if steps is None else [_whole(steps)],
    needs=has_steps,
    catches="A trace from which records are missing.",
)
