"""From what was gathered to a run: the manifest, with everything that tells this run from another."""

import platform
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from results.contract.manifest import Load, Machine, Manifest, TopologyRecord, Versions
from results.contract.schema import Sample
from testbed import __version__
from testbed.experiments.experiment import Outcome, Value
from testbed.probes.machine import MACHINE, fingerprint
from testbed.provision.testbed import Testbed


@dataclass(frozen=True, slots=True)
class Header:
    """What was asked for, and when."""

    run_id: str
    experiment: str
    profile: str
    started: datetime
    ended: datetime
    settings: Mapping[str, Value]
    criteria: tuple[str, ...] | None = None
    """The criteria that the experiment names."""


def commit_of_checkout() -> str | None:
    """The commit this code is at, with `+` when it was changed since; None outside a checkout."""
    root = Path(__file__).parents[2]
    try:
        head = subprocess.run(
            ["git", "-C", str(root), "rev-parse", "HEAD"], capture_output=True, text=True, timeout=10, check=True
        )
        changed = subprocess.run(
            ["git", "-C", str(root), "status", "--porcelain"], capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return head.stdout.strip() + ("+" if changed.stdout.strip() else "")


def load_of(samples: Sequence[Sample]) -> Load:
    """The machine's load over everything that was sampled."""
    busy = [sample.value for sample in samples if sample.host == MACHINE and sample.metric == "cpu.busy"]
    steal = [sample.value for sample in samples if sample.host == MACHINE and sample.metric == "cpu.steal"]
    return Load(
        cpu_busy_mean=sum(busy) / len(busy) if busy else None,
        cpu_busy_max=max(busy, default=None),
        steal_max=max(steal, default=None),
    )


def manifest(header: Header, testbed: Testbed, outcome: Outcome, samples: Sequence[Sample]) -> Manifest:
    """The run's manifest, not judged yet."""
    engine = testbed.engine.info()
    machine = fingerprint()
    topology = testbed.topology
    jars = {testbed.state.digests[version] for version in set(testbed.state.kafka.values())}
    return Manifest(
        run_id=header.run_id,
        experiment=header.experiment,
        profile=header.profile,
        started=_utc(header.started),
        ended=_utc(header.ended),
        verdict="inconclusive",
        parameters=dict(header.settings),
        topology=TopologyRecord(topology.name, topology.digest(), topology.to_document()),
        versions=Versions(
            testbed=__version__,
            commit=commit_of_checkout(),
            kafka=dict(testbed.state.kafka),
            jars_digest=",".join(sorted(jars)),
            image_digest=testbed.state.digests["image"],
            python=platform.python_version(),
            engine=str(engine["ServerVersion"]),
            kernel=machine["kernel"],
        ),
        machine=Machine(**machine, engine=str(engine["ServerVersion"]), storage_driver=str(engine["Driver"])),
        nics=outcome.nics,
        load=load_of(samples),
        move=outcome.move,
        facts=outcome.facts,
        steps=outcome.steps,
        relocation=outcome.relocation,
        criteria=header.criteria,
        incident=outcome.incident,
    )


def _utc(when: datetime) -> str:
    return when.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
