"""The text of `testbed plan`: what `up` would make of a topology. Pure."""

from ipaddress import IPv4Address
from typing import cast

from testbed.kafka.capabilities import Capability, of_software
from testbed.kafka.node import properties_of, render, server_properties
from testbed.network.addresses import AddressPlan, MachineAddresses
from testbed.network.fabric import Script, Wiring, port, wire
from testbed.network.machine_shaping import ingress_device, shaping_lines
from testbed.network.overlay import HERE, Overlay, fabric_place, in_words, machines_of, path_needs
from testbed.network.shape import FULL_MTU, Shape
from testbed.provision.machine import asked_for
from testbed.software.automq import VARIABLE
from testbed.software.rsm import OWN_CLASS, SOURCES, RemoteStorageManager
from testbed.topology.host import DeclaredHost, RemoteStorage
from testbed.topology.links import Disk, Link
from testbed.topology.machines import VXLAN_BYTES
from testbed.topology.model import Topology
from testbed.units import format_bit_rate, format_byte_rate, format_duration, format_share, format_size

CHECKED = (
    "SSH and its host key, root rights, python3, Java, programs, kinds of traffic control in the kernel, "
    "NICs and their shaping, disk space, free ports, clock, MTU, whether all reach each other"
)


def _script(title: str, script: Script) -> list[str]:
    lines = [f"ip {line}" for line in script.ip]
    lines += [" ".join(command) for command in script.commands]
    lines += [f"tc {line}" for line in script.tc]
    return [f"\n{title}", *(f"  {line}" for line in lines)]


def _link(link: Link) -> str:
    """Return `transmit 100mbit (burst 16KiB), receive …`, with delay and loss where there are any."""
    ways = []
    for side in link.sides:
        words = [f"{side.direction} {format_bit_rate(side.rate_bps)} (burst {format_size(side.burst_bytes)})"]
        delay_s, jitter_s = side.impairment.delay_us / 1e6, side.impairment.jitter_us / 1e6
        words += [f"delay {format_duration(delay_s)}"] if delay_s else []
        words += [f"± {format_duration(jitter_s)}"] if jitter_s else []
        words += [f"loss {format_share(side.impairment.loss_ppm)}"] if side.impairment.loss_ppm else []
        ways.append(" ".join(words))
    return ", ".join(ways)


def _disk(disk: Disk) -> str:
    fast = f", {format_byte_rate(disk.bandwidth_bytes_per_s)} each way" if disk.bandwidth_bytes_per_s else ""
    return f"ext4 of {format_size(disk.size_bytes)}{fast}"


def _kafka(host: DeclaredHost, topology: Topology) -> str:
    """Return the Kafka that the host runs, as text."""
    if topology.automq is None or not host.role.runs_kafka:
        return host.kafka_version or "-"
    return f"AutoMQ ({topology.automq.path or topology.automq.image or f'what {VARIABLE} names'})"


def to_be_made(wanted: RemoteStorage | None) -> RemoteStorageManager | None:
    """Return the manager that `up` would use, as far as it is known without a build and without opening its jars."""
    if wanted is None:
        return None
    found = f"(the RemoteStorageManager among the jars of {wanted.manager})"
    return RemoteStorageManager(SOURCES, OWN_CLASS if wanted.manager is None else found, "")


def planned_overlay(topology: Topology) -> Overlay | None:
    """Return the links between the machines as far as they are known before `up`; None for one machine."""
    if not topology.remote_machines:
        return None
    declared = {machine.name if not machine.is_local else HERE: machine.address for machine in topology.machines}
    addresses = {name: declared.get(name) or f"<address of {name or 'this machine'}>" for name in machines_of(topology)}
    return Overlay(addresses, topology.mtu or FULL_MTU - VXLAN_BYTES)


def _machines(topology: Topology, overlay: Overlay | None) -> list[str]:
    """Return the machines, their hosts, and what is declared on the paths between them, as lines."""
    if overlay is None:
        return []
    lines = ["", "machines"]
    for machine in topology.machines:
        there = [host.name for host in topology.hosts if host.machine == machine.name]
        lines.append(f"  {machine.name} ({machine.engine}): {', '.join(there) or 'no host'}")
    if topology.mtu is None:
        mtu = f"{overlay.mtu} where the network between them has {FULL_MTU}; `up` reads it"
    else:
        mtu = f"{overlay.mtu}; the network between them needs {overlay.mtu + VXLAN_BYTES}"
    lines += [f"  VXLAN between the fabrics, MTU of the NICs {mtu}", "paths between machines, measured by `up`"]
    lines += [
        f"  {need.what}: {format_bit_rate(need.rate_bps)}, declared by {', '.join(need.nics)}"
        for need in path_needs(topology)
    ]
    return lines


def _scripts(wiring: Wiring) -> list[str]:
    """Return the scripts of all network namespaces in their order, as lines."""
    lines: list[str] = []
    for machine, script in wiring.underlay.items():
        lines += _script(f"on {machine or 'this machine'}, before all others", script)
    for machine, script in wiring.fabrics.items():
        lines += _script(f"in the network namespace of {in_words(fabric_place(machine))}", script)
    for name, script in wiring.hosts.items():
        lines += _script(f"in {name}'s network namespace", script)
    lines += _script("on this machine", wiring.machine)
    return lines


def describe(topology: Topology) -> str:
    """Return the plan as text. Addresses are of the first slot; `up` takes the first free slot."""
    if topology.exists:
        return describe_machines(topology)
    plan = AddressPlan(0, topology.by_number)
    # `up` uses process numbers here; the plan uses the names instead.
    pids = {host.name: f"<{host.name}>" for host in topology.hosts}
    overlay = planned_overlay(topology)
    if overlay is not None:
        pids |= {fabric_place(machine): f"<{in_words(fabric_place(machine))}>" for machine in overlay.addresses}
    wiring = wire(topology.name, topology, plan, pids, "<machine>", overlay)
    lines = [f"{topology.name}: {topology.description}".rstrip(": "), "", "hosts"]
    for number, host in topology.numbered:
        lines.append(f"{_title(host, topology)}, management {plan.management_ip(host.name)}")
        lines += [
            f"    {_nic(host, index, plan)} ({port(number, index)}): {_link(nic)}"
            for index, nic in enumerate(host.nics)
        ]
        if host.disk is not None:
            lines.append(f"    disk: {_disk(host.disk)}")
        if host.cpus is not None:
            lines.append(f"    cpus: {host.cpus:g}")
        if host.role.runs_kafka:
            lines.append(f"    jvm: {host.jvm.in_force}")
    lines += ["", "links", f"  {plan.driver} (this machine) ── core"]
    for rack in topology.racks:
        uplink = topology.uplinks.get(rack)
        lines.append(f"  core ── {rack}" + (f": {_link(uplink)}" if uplink else ""))
    lines += [f"  {host.rack} ── {host.name} ({', '.join(nic.name for nic in host.nics)})" for host in topology.hosts]
    lines += _machines(topology, overlay)
    wanted = asked_for(topology)
    if wanted:
        lines += ["", "required of this machine, and checked by `up`"]
        lines += [f"  {need.value}: by {', '.join(who)}" for need, who in wanted.items()]
    lines += _scripts(wiring)
    for host in topology.hosts:
        lines += _properties(host, topology, plan)
    return "\n".join(lines)


def _properties(host: DeclaredHost, topology: Topology, plan: AddressPlan) -> list[str]:
    if host.node_id is None:
        return []
    lines = ["", f"server.properties of {host.name}"]
    manager = to_be_made(topology.remote_storage)
    properties = server_properties(
        topology, host, plan, able=of_software(topology), manager=manager, cluster_id="<cluster id>"
    )
    lines += [f"  {line}" for line in render(properties).splitlines()]
    # Only a release's jars have its feature levels, and they need not be on this machine yet.
    for capability in Capability:
        more = properties_of(capability, topology).items()
        lines += [f"  where its release has {capability.value}: {key}={value}" for key, value in sorted(more)]
    return lines


def describe_machines(topology: Topology) -> str:
    """Return the plan of machines that exist as text. Addresses that `up` reads from a device stand in brackets."""
    # The text only prints an address, so words can stand for one that is not known.
    nics = {
        host.name: tuple(cast(IPv4Address, nic.address or f"<address of {host.name} {nic.name}>") for nic in host.nics)
        for host in topology.hosts
    }
    ssh = {host.name: host.access.address for host in topology.hosts}
    plan = MachineAddresses(0, topology.by_number, ssh, nics)
    lines = [f"{topology.name}: {topology.description}".rstrip(": "), "", "machines that exist"]
    for host in topology.hosts:
        lines += _machine(host, topology, plan)
    lines += ["", "checked by `up` on every machine before anything is changed: " + CHECKED]
    lines += ["removed by `down`: the shaping, the processes, and the testbed's folder"]
    for host in topology.hosts:
        lines += ["", f"on {host.name}, by `tc -batch`; restored unless a new SSH connection confirms it"]
        for nic in host.nics:
            tx, rx = (Shape.of(side) for side in nic.sides)
            lines += [f"  ip link add name {ingress_device(nic.name)} type ifb"]
            lines += [f"  tc {line}" for line in shaping_lines(nic.name, tx, rx, host.access.port)]
    for host in topology.hosts:
        lines += _properties(host, topology, plan)
    return "\n".join(lines)


def _nic(host: DeclaredHost, index: int, plan: AddressPlan) -> str:
    nic = host.nics[index]
    use = f" for {nic.use.value}" if host.more_nics else ""
    return f"{nic.name}{use} {plan.data_ip(host.name, index)}"


def _title(host: DeclaredHost, topology: Topology) -> str:
    on = f" on {host.machine}" if host.machine else ""
    node = "-" if host.node_id is None else host.node_id
    return f"  {host.name}: {host.role.value} in {host.rack}{on}, node {node}, Kafka {_kafka(host, topology)}"


def _machine(host: DeclaredHost, topology: Topology, plan: AddressPlan) -> list[str]:
    access = host.access
    jump = f" by way of {access.jump}" if access.jump else ""
    root = ", as root by sudo" if access.sudo else ""
    lines = [
        _title(host, topology),
        f"    ssh: {access.user}@{access.address}:{access.port}{jump}{root}",
        f"    folder: {access.folder}",
    ]
    lines += [f"    {_nic(host, index, plan)}: {_link(nic)}" for index, nic in enumerate(host.nics)]
    return [*lines, f"    jvm: {host.jvm.in_force}"] if host.role.runs_kafka else lines
