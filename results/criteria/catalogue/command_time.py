"""One of the testbed's own commands, timed by `testbed bench`."""

from results.contract.verdict import Finding, Verdict
from results.criteria.criterion import FACTS, Criterion
from results.criteria.findings import finding
from results.criteria.run_view import RunView

NAME = "command-time"
ENDED = "command.ended"
"""The event of a command's end: `exit_code`, `seconds`, `limit_s` (None: no limit) and the last line of its errors."""
SECONDS, CPU_SECONDS = "command.seconds", "command.cpu_seconds"
"""The samples of a command that ended well: seconds by the clock, and CPU seconds of it and its children."""


def judge_command(run: RunView) -> Finding:
    """Return the finding: pass when the command ended well, and within its limit if it has one."""
    ended = run.series.events_of((ENDED,))
    if not ended:
        why = "no event says that the command ended"
        return finding(NAME, "exit code 0", "inconclusive", why, observed=None, series=("events",))
    detail = ended[-1].detail
    seconds, limit_s = float(detail["seconds"]), detail["limit_s"]
    allowed = "exit code 0" if limit_s is None else f"exit code 0 within {limit_s:g} s"
    if detail["exit_code"]:
        why, observed = f"exit code {detail['exit_code']}: {detail['message'] or 'without a message'}", None
    else:
        why, observed = f"it took {seconds:.1f} s", seconds
    well = not detail["exit_code"] and (limit_s is None or seconds <= limit_s)
    verdict: Verdict = "pass" if well else "fail"
    return finding(NAME, allowed, verdict, why, observed=observed, unit="s", series=("events",))


CRITERION = Criterion(
    name=NAME,
    title="The command ends well, and within its limit",
    section=FACTS,
    judge=lambda run: [judge_command(run)],
    needs=lambda run: NAME in (run.criteria or ()),
    catches="A version of the testbed whose own commands fail, or take longer than their limit.",
)
