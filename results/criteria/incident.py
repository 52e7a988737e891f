"""A replayed incident, judged from its stored timeline, samples and events.

The first criterion says whether the timeline happened as written; then come the expectations in the file's order, and
last what every experiment is judged by: the logs, the NICs and the machine.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from results.contract.incident import IncidentRecord
from results.contract.manifest import Manifest
from results.contract.texts import plural
from results.contract.verdict import Finding
from results.criteria.catalogue.clock_steady import METRIC as CLOCK
from results.criteria.catalogue.clock_steady import clocks, judge_clocks
from results.criteria.catalogue.clocks_agree import judge_agreement
from results.criteria.catalogue.logs_clean import certain, judge_logs, without_slow_events
from results.criteria.catalogue.machine_load import machine_idle
from results.criteria.catalogue.nic_measured import nics_as_declared
from results.criteria.catalogue.nic_unchanged import nics_unchanged
from results.criteria.cluster_measures import machine_load
from results.criteria.expectations import EXPECTATIONS
from results.criteria.findings import finding, not_judged
from results.criteria.quantities import QUOTA_WINDOW_S, US
from results.criteria.replayed_run import ReplayedRun
from results.criteria.timeline_expectation import TimelineExpectation
from results.criteria.unfit import left_open, with_unfit_load

LATE_S = 0.1
"""An entry with a fixed time that acts later than this did not happen as the file says."""
ALWAYS = ("logs-clean",)
"""Criteria that every replay has without an expectation, and that a variant may be expected to fail."""


def judge_incident(manifest: Manifest, samples: Any, events: Any) -> tuple[Finding, ...]:
    """Return the findings of a replayed incident. Raise ValueError for another run, and for one without a timeline.

    A run of before schema 3 has the findings in its manifest.
    """
    record = manifest.incident
    if record is None:
        raise ValueError(f"run {manifest.run_id}: its manifest has no incident to judge")
    return record.criteria if not record.entries else _judge_replay(ReplayedRun(manifest, samples, events), record)


def _judge_replay(run: ReplayedRun, record: IncidentRecord) -> tuple[Finding, ...]:
    """Return all criteria of a replay.

    When the timeline did not happen as written no expectation is judged. When a NIC or the machine was not as it
    should be no rate and no time is judged; records and replicas are judged all the same.
    """
    timeline = judge_timeline(run, record)
    load = machine_load(run.series, run.started_us, run.ended_us, QUOTA_WINDOW_S)
    network = run.manifest.network
    nics = [
        *nics_as_declared(run.manifest.nics, record.brokers),
        *(nics_unchanged(network) if network is not None else ()),
    ]
    machine = [
        machine_idle(load, QUOTA_WINDOW_S),
        *(judge_clocks(clocks(run.series)) if len(run.series.of_metric(CLOCK)) else ()),
        *(judge_agreement(run.manifest.clocks) if run.manifest.clocks else ()),
    ]
    conditions = [*nics, *machine]
    expected = []
    for expectation, found in _expected(run, record):
        judged = found
        if timeline.verdict != "pass":
            judged = replace(found, verdict="inconclusive", why=f"not judged: {timeline.why}; {found.why}")
        needed = (conditions if expectation.shaped else machine) if expectation.timed else []
        unsound = [each for each in needed if each.verdict == "inconclusive"]
        expected.append(not_judged(judged, unsound) if unsound else judged)
    logs = _judged_logs(run, record, [each for each in machine if each.verdict == "inconclusive"])
    if run.unfit:
        conditions = with_unfit_load(conditions, [*expected, *logs], run.unfit.finding(run.started_us))
    return (timeline, *expected, *logs, *conditions)


def judge_timeline(run: ReplayedRun, record: IncidentRecord) -> Finding:
    """Judge whether every entry acted, in time, and every action succeeded."""
    acted = {event["name"]: event["detail"] for event in run.events("incident.entry")}
    failed = {event["name"]: event["detail"]["error"] for event in run.events("incident.failed")}
    problems, latest_s = [], 0.0
    for entry in record.entries:
        detail = acted.get(entry.name)
        if detail is None:
            problems += [] if entry.optional else [f"{entry.name}: its trigger did not occur"]
            continue
        if entry.loose:
            continue
        late_s = detail["actual_s"] - detail["planned_s"]
        latest_s = max(latest_s, late_s)
        if entry.name in failed:
            problems.append(f"{entry.name}: {failed[entry.name]}")
        elif entry.at_time and late_s > LATE_S:
            problems.append(f"{entry.name}: {late_s * 1000:.0f} ms late")
    series = ("incident.entry", "incident.failed")
    expected = f"every entry acts, at most {LATE_S * 1000:.0f} ms late, and every action succeeds"
    if problems:
        return finding("timeline", expected, "inconclusive", "; ".join(problems), observed=None, series=series)
    why = f"{plural(len(acted), 'entry')} acted, the latest {latest_s * 1000:.0f} ms after its time"
    observed = round(latest_s * 1000, 1)
    return finding("timeline", expected, "pass", why, observed=observed, unit="ms late", series=series)


def deviation(record: IncidentRecord, criteria: Sequence[Finding]) -> str | None:
    """Return how the verdicts differ from what the file expects of the variant; None when they do not."""
    failed, unknown = (
        {each.name for each in criteria if each.verdict == verdict} for verdict in ("fail", "inconclusive")
    )
    wanted, found = set(record.expected_failures), []
    if unknown:
        found.append(f"could not be judged: {', '.join(sorted(unknown))}")
    if wanted - failed - unknown:
        found.append(f"should have failed and did not: {', '.join(sorted(wanted - failed))}")
    if failed - wanted:
        found.append(f"failed and should not have: {', '.join(sorted(failed - wanted))}")
    return "; ".join(found) or None


def _judged_logs(run: ReplayedRun, record: IncidentRecord, unsound: list[Finding]) -> list[Finding]:
    """Return `logs-clean` of each host; what a machine that was not as it should be may have caused is left open."""
    logs, brokers = run.manifest.facts.logs, list(record.brokers)
    found = judge_logs(logs, brokers)
    if unsound:
        known = certain(logs, brokers, unsound)
        return [sure or not_judged(each, unsound) for each, sure in zip(found, known, strict=True)]
    if run.unfit:
        return left_open(found, judge_logs(without_slow_events(logs, run.unfit), brokers), run.unfit, run.started_us)
    return found


def _judged(expectation: TimelineExpectation, run: ReplayedRun, since_us: int) -> Finding:
    """Return the finding; one that fails by the time alone in which the machine was unfit is left open."""
    found = expectation.judge(run, since_us)
    if not expectation.timed or found.verdict != "fail" or not run.unfit:
        return found
    (judged,) = left_open([found], [expectation.judge(run.sparing(), since_us)], run.unfit, run.started_us)
    return judged


def _expected(run: ReplayedRun, record: IncidentRecord) -> list[tuple[TimelineExpectation, Finding]]:
    acted = {event["name"]: event["detail"]["actual_s"] for event in run.events("incident.entry")}
    found = []
    for entry in record.entries:
        for given in entry.expectations:
            ((key, parameters),) = given.items()
            expectation = EXPECTATIONS[key].model_validate(parameters)
            if entry.name in acted:
                since_us = run.started_us + round(acted[entry.name] * US)
                found.append((expectation, _judged(expectation, run, since_us)))
            else:
                why = f"{entry.name} never acted: its trigger did not occur"
                missing = expectation.found("inconclusive", why, series=("incident.entry",))
                found.append((expectation, missing))
    return found
