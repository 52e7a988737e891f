"""One of Apache's own system tests, as ducktape ended it."""

from results.contract.verdict import Finding, Verdict
from results.criteria.criterion import FACTS, Criterion
from results.criteria.findings import finding
from results.criteria.run_view import RunView

NAME = "system-test"
ENDED = "system_test.ended"
"""The event of a test's end: `status` is ducktape's, `seconds` its duration, `summary` the reason of a failure."""
DURATION = "system_test.seconds"
"""The sample with the duration of a test that passed."""


def judge_test(run: RunView) -> Finding:
    """Return the finding: ducktape's PASS is a pass, its FAIL and FLAKY fail, and without an end nothing is known."""
    ended = run.series.events_of((ENDED,))
    detail = ended[-1].detail if ended else {}
    status, summary = str(detail.get("status", "")), str(detail.get("summary", ""))
    verdict: Verdict = "inconclusive"
    if status == "PASS":
        verdict, why = "pass", f"it passed in {detail['seconds']:.1f} s"
    elif status in ("FAIL", "FLAKY"):
        first = next((line for line in summary.splitlines() if line.strip()), "ducktape gives no reason")
        verdict, why = "fail", f"{'it passed only when repeated: ' if status == 'FLAKY' else ''}{first}"
    else:
        why = f"ducktape reports {status}" if status else "ducktape reports no end of it"
    return finding(NAME, "PASS", verdict, why, observed=status or None, series=("events",))


CRITERION = Criterion(
    name=NAME,
    title="Apache's system test passes",
    section=FACTS,
    judge=lambda run: [judge_test(run)],
    needs=lambda run: NAME in (run.criteria or ()),
    catches="A release, or a machine, on which a test of Apache Kafka's own fails.",
)
