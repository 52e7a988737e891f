"""The brokers logged no ERROR and no FATAL that nothing explains."""

import re
from collections.abc import Sequence
from dataclasses import replace

from results.contract.logs import LEVELS, HostLog, LogFinding
from results.contract.texts import and_more
from results.contract.verdict import Finding, Verdict
from results.criteria.criterion import (
    BROKERS_UNRESTRAINED,
    CLOCK_STEADY,
    DISK_PRESSURE,
    FACTS,
    MEMORY_PRESSURE,
    Criterion,
)
from results.criteria.findings import finding
from results.criteria.quantities import US
from results.criteria.restraint import FREE
from results.criteria.unfit import MACHINE_LOAD, UnfitTime

SHOWN, SHOWN_CHARACTERS, SHOWN_OF_THROWN = 3, 120, 60
SLOW_EVENT = "org.apache.kafka.controller.EventPerformanceMonitor"
"""Logs an ERROR for each event of a controller that lasted for 2 s and more, by the machine's clock."""
SLOW_S = 2.0
_TOOK = re.compile(r" took (\d+) ms")
_THROWN = re.compile(r"(?<=: )(?:\w+\.)+\w*(?:Error|Exception)\b.*")
"""What was thrown, after the message."""
SLOW_MACHINE = frozenset({CLOCK_STEADY, BROKERS_UNRESTRAINED, MACHINE_LOAD, MEMORY_PRESSURE, DISK_PRESSURE})
"""The preconditions without which an event may last so long, whatever the controller does."""


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
    worst_first = sorted(log.findings, key=lambda f: (-LEVELS.index(f.level), f.ts_us))
    shown = [_line(finding) for finding in worst_first[:SHOWN]]
    text = "; ".join([*shown, *and_more(len(log.findings) - len(shown) + log.more)])
    if counts["ERROR"] or counts["FATAL"]:
        return _criterion(host, "fail", observed, text)
    if log.problem is not None:
        why = f"{log.problem}; what was read: {text}" if text else log.problem
        return _criterion(host, "inconclusive", observed if text else None, why)
    return _criterion(host, "pass", observed, text or "every line at WARN or above is a known one, or there is none")


def certain(logs: Sequence[HostLog] | None, brokers: Sequence[str], shaky: Sequence[Finding]) -> list[Finding | None]:
    """Return each finding, or None where the clock, the machine or a silent object store may have caused it."""
    names = {each.name for each in shaky}
    slow = {log.host for log in logs or () if {f.logger for f in log.findings if f.level != "WARN"} <= {SLOW_EVENT}}
    held = [each for each in shaky if each.name == BROKERS_UNRESTRAINED]
    full, silent = {each.host for each in held if FREE in each.series}, any(each.host not in brokers for each in held)

    def open_for(found: Finding) -> bool:
        causes = names & (SLOW_MACHINE if found.host in slow else {CLOCK_STEADY})
        return found.verdict == "fail" and (bool(causes) or found.host in full or silent)

    return [None if open_for(each) else each for each in judge_logs(logs, brokers)]


def without_slow_events(logs: Sequence[HostLog] | None, unfit: UnfitTime) -> list[HostLog] | None:
    """Return the logs without events of a controller that are slow by the time alone in which the machine was unfit."""
    if logs is None:
        return None
    return [replace(log, findings=tuple(each for each in log.findings if not _slow_by(each, unfit))) for log in logs]


def _slow_by(line: LogFinding, unfit: UnfitTime) -> bool:
    took = _TOOK.search(line.text)
    if line.logger != SLOW_EVENT or line.count > 1 or took is None:  # of several the time of the first is known
        return False
    took_us = int(took[1]) * 1000
    return took_us / US - unfit.seconds(line.ts_us - took_us, line.ts_us) < SLOW_S


def _line(finding: LogFinding) -> str:
    times = f"{finding.count} × " if finding.count > 1 else ""
    shown = text = finding.text
    if len(text) > SHOWN_CHARACTERS:
        thrown = _THROWN.search(text, SHOWN_CHARACTERS - SHOWN_OF_THROWN)
        end = thrown[0][:SHOWN_OF_THROWN] if thrown else ""
        shown = f"{text[: SHOWN_CHARACTERS - len(end) - 1]}…{end}"
    return f"{times}{finding.level} {shown} ({finding.logger.rpartition('.')[2]})"


def _criterion(host: str, verdict: Verdict, observed: str | None, why: str) -> Finding:
    return finding(
        "logs-clean",
        "no ERROR or FATAL that is not known to be harmless",
        verdict,
        why,
        host=host,
        observed=observed,
        tolerance="WARN is attached, not judged",
        series=("manifest.facts.logs",),
    )


CRITERION = Criterion(
    name="logs-clean",
    title="Nothing unexpected in the log",
    section=FACTS,
    judge=lambda run: judge_logs(run.manifest.facts.logs, run.brokers),
    needs=lambda _run: True,
    by_name=False,
    rests_on_preconditions=True,
    holds_anyway=lambda run, shaky: certain(run.manifest.facts.logs, run.brokers, shaky),
    spared=lambda run: judge_logs(without_slow_events(run.manifest.facts.logs, run.unfit), run.brokers),
    catches="An error that a broker logs and no measure shows.",
)
