"""The brokers logged nothing at WARN or above that nothing explains."""

from collections.abc import Sequence

from results.contract.logs import LEVELS, HostLog, LogFinding
from results.contract.verdict import Finding, Verdict
from results.criteria.criterion import CLOCK_STEADY, FACTS, Criterion
from results.criteria.findings import finding

SHOWN, SHOWN_CHARACTERS = 3, 120


def judge_logs(logs: Sequence[HostLog] | None, brokers: Sequence[str]) -> list[Finding]:
    """Judge the log of each broker, and of every other host that was watched.

    ERROR and FATAL fail, unless `testbed/probes/log-allowlist.yaml` names them; WARN is attached and passes. A log that
    was not read whole is inconclusive, unless what was read of it fails already.
    """
    if logs is None:
        return [_criterion(host, "inconclusive", None, "the run did not watch the brokers' logs") for host in brokers]
    watched = {log.host: log for log in logs}
    missing = HostLog("", "its log was not watched")
    return [_judge(host, watched.get(host, missing)) for host in dict.fromkeys([*brokers, *watched])]


def _judge(host: str, log: HostLog) -> Finding:
    counts = {level: sum(f.count for f in log.findings if f.level == level) for level in LEVELS}
    observed = ", ".join(
        f"{counts[level]} {level}" for level in ("ERROR", "FATAL", "WARN") if counts[level] or level == "ERROR"
    )
    text = "; ".join(_line(finding) for finding in _worst_first(log.findings)[:SHOWN])
    left = len(log.findings) - SHOWN
    if (more := max(0, left) + log.more) > 0:
        text += f"; and {more} more kinds of lines"
    if counts["ERROR"] or counts["FATAL"]:
        return _criterion(host, "fail", observed, text)
    if log.problem is not None:
        why = f"{log.problem}; what was read: {text}" if text else log.problem
        return _criterion(host, "inconclusive", observed if text else None, why)
    return _criterion(host, "pass", observed, text or "every line at WARN or above is a known one, or there is none")


def _worst_first(findings: Sequence[LogFinding]) -> list[LogFinding]:
    return sorted(findings, key=lambda f: (-LEVELS.index(f.level), f.ts_us))


def _line(finding: LogFinding) -> str:
    times = f"{finding.count} × " if finding.count > 1 else ""
    text = finding.text
    shown = text if len(text) <= SHOWN_CHARACTERS else f"{text[: SHOWN_CHARACTERS - 1]}…"
    return f"{times}{finding.level} {shown} ({finding.logger.rpartition('.')[2]})"


def _criterion(host: str, verdict: Verdict, observed: str | None, why: str) -> Finding:
    return finding(
        "logs-clean",
        "no ERROR, and no WARN that is not known to be harmless",
        verdict,
        why,
        host=host,
        observed=observed,
        tolerance="WARN is attached, not judged",
        series=("manifest.facts.logs",),
    )


CRITERION: Criterion[tuple[HostLog, ...] | None] = Criterion(
    name="logs-clean",
    title="Nothing unexpected in the log",
    section=FACTS,
    measure=lambda run: run.manifest.facts.logs,
    judge=lambda run, logs: judge_logs(logs, run.brokers),
    needs=lambda _run: True,
    by_name=False,
    rests_on_preconditions=True,
    # A controller logs an ERROR for each event that lasted for seconds, by a clock that another process has set.
    excused_by=(CLOCK_STEADY,),
    catches="An error that a broker logs and no measure shows.",
)
