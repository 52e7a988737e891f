"""Hosts as containers that the testbed makes, connected by a fabric of its own."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from testbed.errors import TestbedError
from testbed.hosts.host import in_parallel
from testbed.network.addresses import AddressPlan
from testbed.network.apply import Place, make_fabric
from testbed.network.overlay import HERE, Overlay
from testbed.network.shaping_watch import ShapingWatch, TrafficControlWatch
from testbed.network.underlay import measure_paths, require_packets, require_paths
from testbed.provision.containers import ContainerSpec, Engine, Labels
from testbed.provision.copied_files import CopiedFiles
from testbed.provision.engines import EngineGroup
from testbed.provision.fleet import copy_image, require_machines
from testbed.provision.machine import (
    make_disk,
    require_cpus,
    require_engine,
    require_machine,
    require_own_processes,
)
from testbed.provision.plan import ClusterIdentity, Equipment, host_spec
from testbed.provision.provider import HostPlatform, Progress, Requirements
from testbed.provision.resources import allocate
from testbed.provision.software import SoftwareSet
from testbed.provision.state import TestbedState
from testbed.software.image import ImageRef
from testbed.topology.host import DeclaredHost
from testbed.topology.model import Topology

if TYPE_CHECKING:
    from testbed.provision.testbed import Testbed


class ContainerProvider:
    """How hosts come to be as containers, and how the kernel's network of each is reached."""

    def __init__(
        self, engine: Engine, topology: Topology, software: SoftwareSet, equipment: Equipment | None = None
    ) -> None:
        self._engine, self._topology, self._software = engine, topology, software
        self._equipment = equipment
        self._labels: Labels | None = None
        self._overlay: Overlay | None = None

    def require(self, testbed_name: str, progress: Progress) -> Requirements:
        """Check everything that the topology needs. Raise `TestbedError`; nothing is made or changed then."""
        del testbed_name
        require_machine(self._topology)
        require_engine(self._topology, self._engine.members[HERE])
        if isinstance(self._engine, EngineGroup):
            self._overlay = require_machines(self._topology, self._engine)
            for machine in copy_image(self._engine, self._image):
                progress(f"the node image is copied to {machine}")
        return Requirements({"image": self._image.contents})

    @property
    def _image(self) -> ImageRef:
        return self._equipment.image if self._equipment else self._software.image

    def allocate(self, state: TestbedState) -> TestbedState:
        """Reserve what identifies the testbed, such as its addresses, and return the state with it."""
        self._labels = allocate(self._engine, state.name, self._image.tag)
        if self._overlay is not None:
            state = replace(state, machine_addresses=self._overlay.addresses, mtu=self._overlay.mtu)
        return replace(state, slot=self._labels.slot)

    def make(self, testbed: "Testbed", identity: ClusterIdentity, progress: Progress) -> None:
        """Make the hosts: files, software and shaped NICs, ready to start servers. Raise `TestbedError`."""
        topology, labels, state = self._topology, self._labels, testbed.state
        assert labels is not None
        progress(f"addresses {AddressPlan(labels.slot, ()).data}")

        def make(name: str) -> None:
            spec = host_container(testbed, topology.host(name), labels, identity, self._image, self._equipment)
            if copied is not None and spec.machine:
                spec = replace(spec, read_only_mounts=copied.mounts(spec.machine, spec.read_only_mounts))
            self._engine.create(spec)

        copied = None
        if isinstance(self._engine, EngineGroup):
            used = [each for version in set(state.kafka.values()) for each in self._software.kafka(version).artefacts]
            copied = CopiedFiles(self._engine, used)
        in_parallel(testbed.hosts, make)
        require_own_processes(self._engine.members[HERE], testbed.name)
        require_cpus(self._engine, testbed.name, topology.hosts)
        make_fabric(state.name, topology, testbed.plan, testbed.places(), self._overlay, self._engine.shells)
        progress(f"{len(topology.hosts)} hosts, NICs shaped and read back")
        if self._overlay is not None:
            self._require_paths(testbed, self._overlay, progress)

    def _require_paths(self, testbed: "Testbed", overlay: Overlay, progress: Progress) -> None:
        fabrics = testbed.fabrics()
        require_packets(self._topology, testbed.plan, fabrics, overlay.mtu)
        rates = measure_paths(self._topology, testbed.plan, fabrics, overlay)
        require_paths(rates)
        for rate in rates:
            progress(rate.in_words())

    def runs(self, state: TestbedState) -> bool:
        """Return whether any host of a testbed that is up still runs."""
        return any(found.running for found in self._engine.containers(state.name))

    def places(self, testbed: "Testbed") -> Mapping[str, Place]:
        """Return the network namespace of each host that runs, and of the fabric (named by the empty text)."""
        found: dict[str, Place] = {}
        for each in self._engine.containers(testbed.name):
            if each.role in ("host", "fabric"):
                with suppress(TestbedError):  # a container that does not run has no process
                    found[each.host] = self._engine.place(each)
        return found

    def watch_shaping(self, testbed: "Testbed") -> ShapingWatch:
        """Return a watch of every change of the traffic control of all places."""
        # The kernel announces a change on its own machine only. Other machines are compared before and after a run.
        return TrafficControlWatch({place: pid for place, pid in testbed.places().items() if isinstance(pid, int)})

    def platform(self) -> HostPlatform:
        """Return what the hosts run on."""
        info = self._engine.info()
        return HostPlatform(str(info["ServerVersion"]), str(info["Driver"]))


def host_container(
    testbed: "Testbed",
    host: DeclaredHost,
    labels: Labels,
    identity: ClusterIdentity,
    image: ImageRef,
    equipment: Equipment | None = None,
) -> ContainerSpec:
    """Make the disk of a host, if it has one, and return the host's container."""
    state, topology, software = testbed.state, testbed.topology, testbed.software
    version = state.kafka.get(host.name)
    member = software.member(version, state.kafka.values(), topology.remote_storage) if version else None
    disk = make_disk(testbed.engine, labels, host.name, host.disk) if host.disk else None
    minio = software.minio().binary if host in topology.objectstores else None
    plan, overlay = testbed.plan, state.overlay
    return host_spec(
        host, topology, plan, identity, image.tag, labels, member, overlay, disk=disk, minio=minio, equipment=equipment
    )
