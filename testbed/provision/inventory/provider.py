"""Hosts that exist: machines that the testbed did not make and reaches over SSH."""

import hashlib
import json
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from testbed.hosts.host import in_parallel
from testbed.network.apply import Place, require_shaping
from testbed.network.fabric import shaped_devices
from testbed.network.machine_shaping import ingress_device, shaping_lines
from testbed.network.shape import Shape, sends_frames
from testbed.network.shaping_watch import MonitorWatch, ShapingWatch
from testbed.objectstore.server import BINARY
from testbed.provision import state as states
from testbed.provision.inventory.preflight import java_home, preflight, require_ready
from testbed.provision.inventory.remains import boots
from testbed.provision.inventory.software import copy_software
from testbed.provision.inventory.survey import PROGRAM, MachineFacts, ask, data_addresses, survey
from testbed.provision.plan import ClusterIdentity, host_files
from testbed.provision.provider import HostPlatform, Progress, Requirements
from testbed.provision.software import SoftwareSet
from testbed.provision.state import MachineState, TestbedState
from testbed.software.jvm import home
from testbed.software.rsm import TARGET
from testbed.topology.host import DeclaredHost
from testbed.topology.model import Topology

if TYPE_CHECKING:
    from testbed.provision.testbed import Testbed

ROLLBACK_S = 30.0
"""A machine restores its NICs when the driver has not been heard for so long after it shaped them."""
HOST_PROGRAM = "/opt/testbed/host_program.py"


class InventoryProvider:
    """As `ContainerProvider`, with machines that exist."""

    def __init__(self, topology: Topology, software: SoftwareSet) -> None:
        self._topology, self._software = topology, software

    def require(self, testbed_name: str, progress: Progress) -> Requirements:
        """Survey the machines; return what they have. Raise `TestbedError` where one lacks something."""
        facts = survey(self._topology)
        report = preflight(self._topology, facts)
        require_ready(self._topology, report)
        progress("preflight\n" + report.text())
        mark = secrets.token_hex(8)
        machines = {
            host.name: machine_state(testbed_name, mark, host, facts[host.name]) for host in self._topology.hosts
        }
        return Requirements({"image": environment_digest(facts)}, machines)

    def allocate(self, state: TestbedState) -> TestbedState:
        """Return the state as it is: the machines have addresses already."""
        return state

    def make(self, testbed: "Testbed", identity: ClusterIdentity, progress: Progress) -> None:
        """Copy files and software to the machines, and shape their NICs. Raise `TestbedError`."""
        state, topology = testbed.state, self._topology

        def make(name: str) -> int:
            """Make one host; return the bytes of software that were sent."""
            host, machine = testbed.hosts[name], state.machines[name]
            relocation = host.relocation
            assert relocation is not None
            config = {"home": machine.home, "mark": machine.mark, "testbed": state.name}
            ask(host, "begin", {**config, "folders": relocation.folders})
            host.put(PROGRAM.read_bytes(), HOST_PROGRAM)
            version = state.kafka.get(name)
            declared = topology.host(name)
            remote = topology.remote_storage
            software = self._software.member(version, state.kafka.values(), remote) if version else None
            sent = copy_software(host, relocation, machine.software, self._copies(declared, version))
            files, private = host_files(declared, topology, testbed.plan, identity, software, state.overlay)
            for path, content in files.items():
                host.put(content, path, mode=0o600 if path in private else 0o644)
            return sent

        sent = in_parallel(testbed.hosts, make)
        progress(f"software: {sum(sent) / 1e6:.0f} MB copied to {sum(map(bool, sent))} hosts")
        in_parallel(topology.hosts, lambda host: self._shape(testbed, host))
        require_shaping(shaped_devices(topology), testbed.hosts)
        progress(f"{len(testbed.hosts)} hosts, NICs shaped and read back")

    def _copies(self, host: DeclaredHost, version: str | None) -> dict[Path, str]:
        """Return what a host needs, each with its path in a container."""
        found = {}
        if version is not None:
            release = self._software.kafka(version).release
            found[release.folder] = home(release)
            if (wanted := self._topology.remote_storage) is not None:
                found[self._software.manager(wanted).folder] = TARGET
        if host in self._topology.objectstores:
            found[self._software.minio().binary] = BINARY
        return found

    def _shape(self, testbed: "Testbed", host: DeclaredHost) -> None:
        """Shape the NICs of a host; a new connection through them ends the rollback."""
        machine = testbed.state.machines[host.name]
        devices = []
        for nic in host.nics:
            tx, rx = (Shape.of(side) for side in nic.sides)
            devices.append(
                {
                    "device": nic.name,
                    "entry": ingress_device(nic.name),
                    "tc": shaping_lines(nic.name, tx, rx, machine.ssh_port),
                    "frames": any(sends_frames(each.shape) for each in shaped_devices(self._topology)),
                }
            )
        config = {"home": machine.home, "seconds": ROLLBACK_S, "alias": f"testbed={testbed.name}", "devices": devices}
        ask(testbed.hosts[host.name], "shape", config, program=HOST_PROGRAM)
        # Only a connection that begins now shows that the machine can still be reached.
        fresh = states.machine_hosts(testbed.state, self._topology, connect_timeout_s=ROLLBACK_S / 2)[host.name]
        try:
            ask(fresh, "confirm", {"home": machine.home}, program=HOST_PROGRAM)
        finally:
            fresh.close()

    def runs(self, state: TestbedState) -> bool:
        """Return whether any host may still run: a machine that does not answer may, a restarted one does not."""
        return not all(boot not in (None, state.machines[name].boot) for name, boot in boots(state).items())

    def places(self, testbed: "Testbed") -> Mapping[str, Place]:
        """Return the shell of each host: its NICs are in the network namespace of its machine."""
        return dict(testbed.hosts)

    def watch_shaping(self, testbed: "Testbed") -> ShapingWatch:
        """Return a watch of every change of the traffic control of all machines."""
        devices = {
            host.name: [device for nic in host.nics for device in (nic.name, ingress_device(nic.name))]
            for host in self._topology.hosts
        }
        return MonitorWatch(testbed.hosts, devices)

    def platform(self) -> HostPlatform:
        """Return that the hosts run on no engine."""
        return HostPlatform("none (machines that exist)", "none")


def machine_state(testbed_name: str, mark: str, host: DeclaredHost, facts: MachineFacts) -> MachineState:
    """Return the state of a machine that passed the preflight: what reaches it, and the paths of the testbed there."""
    parent = host.access.folder.rstrip("/")
    return MachineState(
        host_key=facts.keys.host,
        jump_key=facts.keys.jump,
        home=f"{parent}/testbed-{testbed_name}-{mark[:8]}",
        software=f"{parent}/testbed-software",
        mark=mark,
        java=java_home(facts),
        ssh_port=facts.ssh_port,
        addresses=data_addresses(host, facts),
        boot=str(facts.survey["boot"]),
    )


def environment_digest(facts: Mapping[str, MachineFacts]) -> str:
    """Return a digest of the machines' systems, kernels and Javas: runs on other ones are not compared."""
    fields = [[facts[host].survey[name] for name in ("system", "release", "cores", "java")] for host in sorted(facts)]
    return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()
