"""`testbed plan`: everything `up` would make, in words; a pure function of the topology."""

from testbed.kafka.capabilities import Capability, of_software
from testbed.kafka.node import properties_of, render, server_properties
from testbed.network.addresses import AddressPlan
from testbed.network.fabric import Script, port, wire
from testbed.provision.requirements import asked_for
from testbed.software.automq import VARIABLE
from testbed.software.rsm import OWN_CLASS, SOURCES, RemoteStorageManager
from testbed.topology.host import Host, RemoteStorage
from testbed.topology.links import Disk, Link
from testbed.topology.model import Topology
from testbed.units import format_bit_rate, format_byte_rate, format_duration, format_share, format_size


def _script(title: str, script: Script) -> list[str]:
    lines = [f"ip {line}" for line in script.ip]
    lines += [" ".join(command) for command in script.commands]
    lines += [f"tc {line}" for line in script.tc]
    return [f"\n{title}", *(f"  {line}" for line in lines)]


def _link(link: Link) -> str:
    """`transmit 100mbit (burst 16KiB), receive …`, with delay and loss where there are any."""
    ways = []
    for side in link.sides:
        way = "transmit" if side.name == "tx" else "receive"
        words = [f"{way} {format_bit_rate(side.rate_bps)} (burst {format_size(side.burst_bytes)})"]
        delay_s, jitter_s = side.impairment.delay_us / 1e6, side.impairment.jitter_us / 1e6
        words += [f"delay {format_duration(delay_s)}"] if delay_s else []
        words += [f"± {format_duration(jitter_s)}"] if jitter_s else []
        words += [f"loss {format_share(side.impairment.loss_ppm)}"] if side.impairment.loss_ppm else []
        ways.append(" ".join(words))
    return ", ".join(ways)


def _disk(disk: Disk) -> str:
    fast = f", {format_byte_rate(disk.bandwidth_bytes_per_s)} each way" if disk.bandwidth_bytes_per_s else ""
    return f"ext4 of {format_size(disk.size_bytes)}{fast}"


def _kafka(host: Host, topology: Topology) -> str:
    """Which Kafka it runs, in words."""
    if topology.automq is None or not host.role.runs_kafka:
        return host.kafka_version or "-"
    return f"AutoMQ ({topology.automq.path or topology.automq.image or f'what {VARIABLE} names'})"


def to_be_made(wanted: RemoteStorage | None) -> RemoteStorageManager | None:
    """The manager that `up` would take, as far as can be told without building it or opening its jars."""
    if wanted is None:
        return None
    found = f"(the RemoteStorageManager among the jars of {wanted.manager})"
    return RemoteStorageManager(SOURCES, OWN_CLASS if wanted.manager is None else found, "")


def describe(topology: Topology) -> str:
    """What would be made. Addresses are of the first slot; `up` takes the first that is free."""
    plan = AddressPlan(0, tuple(host.name for host in topology.hosts))
    # In `up` these are process numbers; here the names stand for them.
    wiring = wire(topology.name, topology, plan, {host.name: f"<{host.name}>" for host in topology.hosts}, "<machine>")
    lines = [f"{topology.name}: {topology.description}".rstrip(": "), "", "hosts"]
    for number, host in enumerate(topology.hosts):
        lines.append(
            f"  {host.name}: {host.role.value} in {host.rack}, node {host.node_id or '-'}, "
            f"Kafka {_kafka(host, topology)}, management {plan.management_ip(host.name)}"
        )
        for index, nic in enumerate(host.nics):
            use = f" for {nic.use.value}" if host.more_nics else ""
            lines.append(f"    {nic.name}{use} {plan.data_ip(host.name, index)} ({port(number, index)}): {_link(nic)}")
        if host.disk is not None:
            lines.append(f"    disk: {_disk(host.disk)}")
        if host.cpus is not None:
            lines.append(f"    cpus: {host.cpus:g}")
    lines += ["", "links", f"  {plan.driver} (this machine) ── core"]
    for rack in topology.racks:
        uplink = topology.uplinks.get(rack)
        lines.append(f"  core ── {rack}" + (f": {_link(uplink)}" if uplink else ""))
    lines += [f"  {host.rack} ── {host.name} ({', '.join(nic.name for nic in host.nics)})" for host in topology.hosts]
    wanted = asked_for(topology)
    if wanted:
        lines += ["", "asked of this machine, and looked for by `up`"]
        lines += [f"  {need.value}: by {', '.join(who)}" for need, who in wanted.items()]
    lines += _script("in the fabric's network namespace", wiring.fabric)
    for name, script in wiring.hosts.items():
        lines += _script(f"in {name}'s network namespace", script)
    lines += _script("on this machine", wiring.machine)
    for host in topology.hosts:
        if host.node_id is not None:
            lines += ["", f"server.properties of {host.name}"]
            manager = to_be_made(topology.remote_storage)
            properties = server_properties(
                topology, host, plan, able=of_software(topology), manager=manager, cluster_id="<cluster id>"
            )
            lines += [f"  {line}" for line in render(properties).splitlines()]
            # What a release can do is asked of its jars, which need not be here yet.
            for capability in Capability:
                more = properties_of(capability, topology).items()
                lines += [f"  where its release has {capability.value}: {key}={value}" for key, value in sorted(more)]
    return "\n".join(lines)
