"""Replaying an incident: bring up, fill, play the timeline, put everything back, judge, commit, report."""

import secrets
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from results.contract.manifest import Facts, IncidentRecord, new_run_id
from results.contract.schema import Finding, Verdict, events_table, overall, samples_table
from results.contract.store import RunData, Store
from testbed.errors import UsageError
from testbed.experiments.commits import commit
from testbed.experiments.experiment import Outcome
from testbed.experiments.record import Header, manifest
from testbed.experiments.reports import default_store, write_report
from testbed.faults.faults import Faults
from testbed.incidents.evidence import Evidence
from testbed.incidents.ground import judge_ground, on_ground
from testbed.incidents.judgement import as_foretold, judge_incident
from testbed.incidents.model import Incident
from testbed.incidents.stage import Stage
from testbed.probes.brokers import sampled_bps
from testbed.probes.recorder import Recorder
from testbed.provision.testbed import Testbed
from testbed.topology.model import Topology

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Request:
    """What somebody wants replayed. `on` names a testbed that is up; otherwise one is made, and removed afterwards."""

    incident: Incident
    seed: int = 0
    on: str | None = None
    store: str | None = None


@dataclass(frozen=True, slots=True)
class Replayed:
    """A replay that is in the store. `unlike` says how it differs from what the file foretells; None: it does not."""

    run_id: str
    experiment: str
    practice: str
    verdict: Verdict
    criteria: tuple[Finding, ...]
    unlike: str | None
    report: Path
    store: str


def replay(request: Request, progress: Progress) -> Replayed:
    """Replay one practice to its verdict. Raises `UsageError` before anything is made, `TestbedError` afterwards."""
    incident = request.incident
    experiment = f"incident-{incident.name}"
    store = Store.open(request.store or default_store())
    run_id = new_run_id(experiment, datetime.now(UTC), secrets.token_hex(3))
    with ExitStack() as stack:
        testbed = _testbed(request, run_id, stack, progress)
        started = datetime.now(UTC)
        recorder = Recorder()
        stage = Stage(testbed, incident, request.seed, recorder, progress)
        try:
            played = stage.play()
        finally:
            recorder.stop()
        samples, events = recorder.samples(), recorder.events()
        evidence = Evidence(
            samples,
            events,
            stage.started_us,
            stage.ended_us,
            stage.records,
            {host.name: sampled_bps(host) for host in testbed.topology.hosts},
            {rack: (link.tx_bps, link.rx_bps) for rack, link in testbed.topology.uplinks.items()},
        )
        brokers = [host.name for host in testbed.topology.brokers]
        ground = judge_ground(stage.nics, brokers, evidence)
        criteria = on_ground(judge_incident(incident, played, evidence), ground, stage.logs, brokers)
        settings: Mapping[str, str | int] = {
            "practice": incident.practice,
            "seed": request.seed,
            **incident.parameters,
        }
        facts = Facts(records=stage.records, logs=stage.logs)
        header = Header(run_id, experiment, incident.practice, started, datetime.now(UTC), settings)
        run = replace(
            manifest(header, testbed, Outcome(stage.nics, facts=facts), samples),
            incident=_record(request, criteria),
            verdict=overall(criteria),
        )
    commit(store, RunData(run, samples_table(samples), events_table(events), list(criteria)))
    progress(f"committed {run_id} to {store.location}")
    report = write_report(store, store.manifest(run_id))
    return Replayed(
        run_id,
        experiment,
        incident.practice,
        overall(criteria),
        criteria,
        as_foretold(incident, criteria),
        report,
        store.location,
    )


def _record(request: Request, criteria: tuple[Finding, ...]) -> IncidentRecord:
    incident = request.incident
    return IncidentRecord(
        incident.name,
        incident.practice,
        request.seed,
        incident.summary,
        incident.practice_summary,
        incident.fails,
        incident.document,
        criteria,
    )


def _testbed(request: Request, run_id: str, stack: ExitStack, progress: Progress) -> Testbed:
    incident = request.incident
    overlay = incident.state.properties
    if request.on is None:
        testbed = Testbed.up(
            incident.topology, name=f"run-{run_id[-6:]}", overlay=overlay, ephemeral=True, progress=progress
        )
        stack.callback(testbed.down)
        return testbed
    testbed = Testbed.attach(request.on)
    stack.callback(testbed.close)
    _require_like(testbed.topology, incident.topology, request.on)
    for healed in Faults(testbed).clear_dead():
        progress(f"healed a fault that a dead run left: {healed}")
    testbed.reconfigure(overlay, progress=progress)
    return testbed


def _require_like(there: Topology, wanted: Topology, name: str) -> None:
    if there.digest() != wanted.digest():
        raise UsageError(
            f"testbed {name} has the topology {there.name}, the incident is about {wanted.name}: "
            f"`testbed up {wanted.name}`, or leave --on out"
        )
