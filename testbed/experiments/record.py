"""The record of a run: its manifest, and its commit to the store."""

import platform
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from results.contract.manifest import (
    ClockReading,
    DefectRecord,
    Load,
    Machine,
    Manifest,
    NetworkRecord,
    TopologyRecord,
    Versions,
)
from results.contract.schema import Sample
from results.contract.store import RunData, Store, StoreError
from testbed import __version__
from testbed.defects.agent import DefectNote, notes
from testbed.errors import TestbedError, os_error_text
from testbed.experiments.experiment import ExperimentResult, Value
from testbed.experiments.half_runs import noted
from testbed.hosts import SshHost
from testbed.hosts.clock import measure_offset
from testbed.probes.machine import MACHINE, fingerprint
from testbed.provision.state import TestbedState
from testbed.provision.testbed import MANAGER, Testbed


@dataclass(frozen=True, slots=True)
class Header:
    """The request for a run, and its times."""

    run_id: str
    experiment: str
    profile: str
    started: datetime
    ended: datetime
    settings: Mapping[str, Value]
    criteria: tuple[str, ...] | None = None
    """The criteria that the experiment names."""


def commit_of_checkout() -> str | None:
    """Return the commit of this checkout, with `+` after uncommitted changes; None outside a checkout."""
    root = Path(__file__).parents[2]
    if not (root / "pyproject.toml").exists():
        return None  # installed, perhaps within a checkout of another project
    try:
        command = ["git", "-C", str(root), "status", "--porcelain=v2", "--branch"]
        status = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout.splitlines()
    except (OSError, subprocess.SubprocessError):
        return None
    commit = next(line.removeprefix("# branch.oid ") for line in status if line.startswith("# branch.oid "))
    return commit + ("+" if any(not line.startswith("#") for line in status) else "")


def this_testbed() -> tuple[str, str | None]:
    """Return the version of the testbed and the commit of its checkout."""
    return __version__, commit_of_checkout()


def recorded_by(run: Manifest) -> tuple[str, str | None]:
    """Return the version of the testbed that recorded a run, and the commit of its checkout."""
    return run.versions.testbed, run.versions.commit


def own_versions(engine: str, kernel: str) -> Versions:
    """Return the versions of the testbed and of what it runs on; there is no Kafka and no image."""
    return Versions(
        testbed=__version__,
        commit=commit_of_checkout(),
        kafka={},
        jars_digest=None,
        image_digest=None,
        python=platform.python_version(),
        engine=engine,
        kernel=kernel,
    )


def load_of(samples: Sequence[Sample]) -> Load:
    """Return the machine's load over all samples."""
    busy = [sample.value for sample in samples if sample.host == MACHINE and sample.metric == "cpu.busy"]
    steal = [sample.value for sample in samples if sample.host == MACHINE and sample.metric == "cpu.steal"]
    return Load(
        cpu_busy_mean=sum(busy) / len(busy) if busy else None,
        cpu_busy_max=max(busy, default=None),
        steal_max=max(steal, default=None),
    )


def manifest(
    header: Header,
    testbed: Testbed,
    outcome: ExperimentResult,
    samples: Sequence[Sample],
    network: NetworkRecord,
    defects: tuple[DefectRecord, ...] = (),
    failure: str = "",
    clocks: tuple[ClockReading, ...] = (),
) -> Manifest:
    """Return the run's manifest before its judgement."""
    hosted = testbed.provider.platform()
    machine = fingerprint()
    topology = testbed.topology
    return Manifest(
        run_id=header.run_id,
        experiment=header.experiment,
        profile=header.profile,
        started=timestamp(header.started),
        ended=timestamp(header.ended),
        verdict="inconclusive",
        parameters=dict(header.settings),
        topology=TopologyRecord(topology.name, topology.digest(), topology.to_document()),
        versions=replace(
            own_versions(hosted.engine, machine["kernel"]),
            kafka=dict(testbed.state.kafka),
            jars_digest=jars_digest(testbed.state),
            image_digest=testbed.state.digests["image"],
        ),
        machine=Machine(**machine, engine=hosted.engine, storage_driver=hosted.storage_driver),
        nics=outcome.nics,
        load=load_of(samples),
        move=outcome.move,
        facts=outcome.facts,
        steps=outcome.steps,
        relocation=outcome.relocation,
        criteria=header.criteria,
        network=network,
        incident=outcome.incident,
        defects=defects,
        failure=failure,
        clocks=clocks,
    )


def jars_digest(state: TestbedState) -> str:
    """Return the digests of all jars that brokers run: of each Kafka, and of the remote storage manager. Pure."""
    names = {*state.kafka.values()} | ({MANAGER} & state.digests.keys())
    return ",".join(sorted({state.digests[name] for name in names}))


def defect_records(testbed: Testbed) -> tuple[DefectRecord, ...]:
    """Return each defect of the testbed, with the time at which its broker noted that it acted first.

    A host that has left took its notes with it.
    """
    return tuple(
        _record(host, option, notes(testbed.hosts[host]) if host in testbed.hosts else ())
        for host, options in testbed.state.defects.items()
        for option in options
    )


def clock_readings(testbed: Testbed, when: Literal["before", "after"]) -> tuple[ClockReading, ...]:
    """Return a reading of each other machine's clock; empty on one machine. A failure is a reading without offset."""
    return tuple(_clock(name, shell, when) for name, shell in testbed.machine_shells.items())


def _clock(name: str, shell: SshHost, when: Literal["before", "after"]) -> ClockReading:
    try:
        found = measure_offset(shell)
    except TestbedError as error:
        return ClockReading(name, when, None, 0.0, " ".join(str(error).split()))
    return ClockReading(name, when, found.offset_s, found.unsure_s)


def _record(host: str, option: str, found: Sequence[DefectNote]) -> DefectRecord:
    name, _comma, parameters = option.partition(",")
    first = next((note for note in found if note.name == name and note.what == "acted"), None)
    if first is None:
        return DefectRecord(host, name, parameters)
    acted = timestamp(datetime.fromtimestamp(first.at_ms / 1000, UTC))
    return DefectRecord(host, name, parameters, acted, first.detail)


def timestamp(when: datetime) -> str:
    """Return an instant as manifests have it, in UTC with microseconds."""
    return when.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def commit(store: Store, run: RunData) -> None:
    """Write a run to its store. Raise `TestbedError` on failure: then, and after a kill and `gc`, no part is stored."""
    run_id = run.manifest.run_id
    try:
        with noted(run_id, store.location):
            store.commit(run)
    except StoreError as error:
        raise TestbedError(str(error)) from error
    except OSError as error:  # of the note
        raise TestbedError(f"run {run_id} is not committed: {os_error_text(error) or error}") from error
