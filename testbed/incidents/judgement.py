"""From what was recorded to the verdict on each expectation. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from results.contract.schema import Finding
from results.criteria.findings import finding as criterion
from testbed.incidents.engine import Played
from testbed.incidents.evidence import US, Evidence
from testbed.incidents.model import Incident
from testbed.incidents.trigger import At

LATE_S = 0.1
"""An `at` entry that acts later than this did not happen as the file says."""


def judge_incident(incident: Incident, played: Played, evidence: Evidence) -> tuple[Finding, ...]:
    """The timeline first, then every expectation, in the file's order.

    When the timeline did not happen as written, this was another incident: no expectation is judged.
    """
    timeline = judge_timeline(played)
    acted_us = {each.due.entry.name: evidence.started_us + round(each.actual_s * US) for each in played.acted}
    judged: list[Finding] = []
    for entry in incident.entries:
        for expectation in entry.expectations:
            since_us = acted_us.get(entry.name)
            if since_us is None:
                why = f"{entry.name} never acted: its trigger did not come"
                found = criterion(
                    expectation.name, expectation, "inconclusive", why, observed=None, series=("incident.entry",)
                )
            else:
                found = expectation.judge(evidence, since_us)
            judged.append(found)
    if timeline.verdict != "pass":
        judged = [replace(c, verdict="inconclusive", why=f"not judged: {timeline.why}; {c.why}") for c in judged]
    return (timeline, *judged)


def judge_timeline(played: Played) -> Finding:
    """Whether every entry acted, in time, and every action could be done."""
    problems = [f"{name}: its trigger never came" for name in played.missed]
    for each in played.acted:
        late_s = each.actual_s - each.due.planned_s
        if each.error is not None:
            problems.append(f"{each.due.entry.name}: {each.error}")
        elif isinstance(each.due.entry.trigger, At) and late_s > LATE_S:
            problems.append(f"{each.due.entry.name}: {late_s * 1000:.0f} ms late")
    latest_s = max((each.actual_s - each.due.planned_s for each in played.acted), default=0.0)
    series = ("incident.entry",)
    expected = f"every entry acts, at most {LATE_S * 1000:.0f} ms late, and every action is done"
    if problems:
        return criterion("timeline", expected, "inconclusive", "; ".join(problems), observed=None, series=series)
    why = f"{len(played.acted)} entries acted, the latest {latest_s * 1000:.0f} ms after its time"
    return criterion(
        "timeline",
        expected,
        "pass",
        why,
        observed=round(latest_s * 1000, 1),
        unit="ms late",
        series=("incident.entry",),
    )


def as_foretold(incident: Incident, criteria: Sequence[Finding]) -> str | None:
    """None when exactly the expectations failed that the file says this practice fails; else what differs."""
    by_verdict: Mapping[str, set[str]] = {
        verdict: {c.name for c in criteria if c.verdict == verdict} for verdict in ("fail", "inconclusive")
    }
    wanted, failed = set(incident.fails), by_verdict["fail"]
    differences = []
    if by_verdict["inconclusive"]:
        differences.append(f"could not be judged: {', '.join(sorted(by_verdict['inconclusive']))}")
    if wanted - failed - by_verdict["inconclusive"]:
        differences.append(f"should have failed and did not: {', '.join(sorted(wanted - failed))}")
    if failed - wanted:
        differences.append(f"failed and should not have: {', '.join(sorted(failed - wanted))}")
    return "; ".join(differences) or None
