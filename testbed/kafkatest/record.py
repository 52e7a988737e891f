"""The runs of system tests in the result store: one for each test that ducktape ran, with its duration and its end."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from results.contract.manifest import Manifest, new_run_id
from results.contract.network import NetworkRecord
from results.contract.schema import Event, Sample, events_table, samples_table
from results.contract.store import RunData, Store
from results.criteria import judge
from results.criteria.catalogue.system_test import DURATION, ENDED
from results.criteria.catalogue.system_test import NAME as CRITERION
from results.criteria.quantities import DRIVER
from testbed.experiments.experiment import ExperimentResult
from testbed.experiments.record import Header, commit, manifest
from testbed.kafkatest.selection import SystemTest, argument_text
from testbed.kafkatest.session import TestReport
from testbed.probes.recorder import Recorder
from testbed.provision.testbed import Testbed

EXPERIMENT = "kafkatest"
MOST_SUMMARY = 4000
"""Characters of a failure's summary that are stored."""


def parameters_of(test: SystemTest, hosts: Mapping[str, str]) -> dict[str, str | int | float]:
    """Return what a run's series is known by: the test, each of its arguments, and the `hosts`' settings. Pure."""
    arguments = {
        f"argument.{name}": value
        if isinstance(value, int | float) and not isinstance(value, bool)
        else argument_text(value)
        for name, value in sorted(test.arguments.items())
    }
    return {"test": test.name, **arguments, **hosts}


def samples_of(report: TestReport, machine: Sequence[Sample]) -> list[Sample]:
    """Return the machine's samples during the test and, of a test that passed, its duration in seconds. Pure.

    A failed test's duration says how long its time limits are.
    """
    first, last = (int(at * 1e6) for at in (report.started, report.ended))
    found = [sample for sample in machine if first <= sample.ts_us <= last]
    if report.status == "PASS":
        found.append(Sample(last, DRIVER, DURATION, report.seconds))
    return found


def ended_event(report: TestReport) -> Event:
    """Return the event of the test's end. Pure."""
    detail = {
        "status": report.status,
        "seconds": round(report.seconds, 3),
        "summary": report.summary[:MOST_SUMMARY],
        "nodes": report.test.nodes,
    }
    return Event(int(report.ended * 1e6), ENDED, report.test.id, DRIVER, detail)


def record(
    report: TestReport, testbed: Testbed, recorder: Recorder, store: Store, version: str, hosts: Mapping[str, str]
) -> Manifest:
    """Judge one test, commit its run and return the run's manifest. Raise `TestbedError` when that fails.

    `version` is that of the build under test; `hosts` are the hosts' settings, such as the NICs' rate.
    """
    started, ended = (datetime.fromtimestamp(at, UTC) for at in (report.started, report.ended))
    header = Header(
        new_run_id(EXPERIMENT, started),
        EXPERIMENT,
        "ci",
        started,
        ended,
        parameters_of(report.test, hosts),
        (CRITERION,),
    )
    samples = samples_of(report, recorder.samples())
    made = manifest(header, testbed, ExperimentResult(), samples, NetworkRecord(()))
    made = replace(made, versions=replace(made.versions, kafka=dict.fromkeys(testbed.hosts, version)))
    tables = samples_table(samples), events_table([ended_event(report)])
    judgement = judge(made, *tables)
    made = replace(made, verdict=judgement.verdict)
    commit(store, RunData(made, *tables, list(judgement.criteria)))
    return made
