"""Hosts as containers that the testbed makes, connected by a fabric of its own."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from testbed.errors import TestbedError
from testbed.hosts.host import in_parallel
from testbed.network.addresses import AddressPlan
from testbed.network.apply import Place, make_fabric
from testbed.network.watch import ShapingWatch, TrafficControlWatch
from testbed.provision.containers import Engine, Labels
from testbed.provision.machine import make_disk, require_cpus, require_machine
from testbed.provision.plan import ClusterIdentity, host_spec
from testbed.provision.provider import Platform, Progress, Requirements
from testbed.provision.resources import allocate
from testbed.provision.software import SoftwareSet
from testbed.provision.state import TestbedState
from testbed.topology.model import Topology

if TYPE_CHECKING:
    from testbed.provision.testbed import Testbed


class ContainerProvider:
    """See `Provider`."""

    def __init__(self, engine: Engine, topology: Topology, software: SoftwareSet) -> None:
        self._engine, self._topology, self._software = engine, topology, software
        self._labels: Labels | None = None

    def require(self, testbed_name: str, progress: Progress) -> Requirements:
        """See `Provider.require`."""
        del testbed_name, progress
        require_machine(self._topology)
        return Requirements({"image": self._software.image.contents})

    def allocate(self, state: TestbedState) -> TestbedState:
        """See `Provider.allocate`."""
        self._labels = allocate(self._engine, state.name, self._software.image.tag)
        return replace(state, slot=self._labels.slot)

    def make(self, testbed: "Testbed", identity: ClusterIdentity, progress: Progress) -> None:
        """See `Provider.make`."""
        topology, labels, state = self._topology, self._labels, testbed.state
        assert labels is not None
        image = self._software.image.tag
        progress(f"addresses {AddressPlan(labels.slot, ()).data}")

        def make(host_name: str) -> None:
            host = topology.host(host_name)
            version = state.kafka.get(host_name)
            remote, versions = topology.remote_storage, state.kafka.values()
            software = self._software.member(version, versions, remote) if version else None
            disk = make_disk(self._engine, labels, host_name, host.disk) if host.disk else None
            minio = self._software.minio().binary if host in topology.objectstores else None
            self._engine.create(
                host_spec(host, topology, testbed.plan, identity, image, labels, software, state.overlay, disk, minio)
            )

        in_parallel(testbed.hosts, make)
        fabric, pids = testbed.pids()
        require_cpus(topology.hosts, pids)
        make_fabric(state.name, topology, testbed.plan, fabric, pids)
        progress(f"{len(pids)} hosts, NICs shaped and read back")

    def runs(self, state: TestbedState) -> bool:
        """See `Provider.runs`."""
        return any(found.running for found in self._engine.containers(state.name))

    def places(self, testbed: "Testbed") -> Mapping[str, Place]:
        """See `Provider.places`."""
        found: dict[str, Place] = {}
        for each in self._engine.containers(testbed.name):
            if each.role in ("host", "fabric"):
                with suppress(TestbedError):  # a container that does not run has no process
                    found[each.host] = self._engine.pid(each.id)
        return found

    def watch_shaping(self, testbed: "Testbed") -> ShapingWatch:
        """See `Provider.watch_shaping`."""
        fabric, hosts = testbed.pids()
        return TrafficControlWatch({"": fabric, **hosts})

    def platform(self) -> Platform:
        """See `Provider.platform`."""
        info = self._engine.info()
        return Platform(str(info["ServerVersion"]), str(info["Driver"]))
