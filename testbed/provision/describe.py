"""`testbed plan`: everything `up` would make, in words; a pure function of the topology."""

from testbed.kafka.properties import render, server_properties
from testbed.network.addresses import AddressPlan
from testbed.network.fabric import Script, wire
from testbed.topology.model import Topology
from testbed.units import format_bit_rate, format_size


def _script(title: str, script: Script) -> list[str]:
    lines = [f"ip {line}" for line in script.ip]
    lines += [" ".join(command) for command in script.commands]
    lines += [f"tc {line}" for line in script.tc]
    return [f"\n{title}", *(f"  {line}" for line in lines)]


def describe(topology: Topology) -> str:
    """What would be made. Addresses are of the first slot; `up` takes the first that is free."""
    plan = AddressPlan(0, tuple(host.name for host in topology.hosts))
    # In `up` these are process numbers; here the names stand for them.
    wiring = wire(topology.name, topology, plan, {host.name: f"<{host.name}>" for host in topology.hosts}, "<machine>")
    lines = [f"{topology.name}: {topology.description}".rstrip(": "), "", "hosts"]
    for host in topology.hosts:
        nic = host.nic
        lines.append(
            f"  {host.name}: {host.role.value} in {host.rack}, node {host.node_id or '-'}, "
            f"Kafka {host.kafka_version or '-'}, management {plan.management_ip(host.name)}, "
            f"{nic.name} {plan.data_ip(host.name)}, transmit {format_bit_rate(nic.tx_bps)} "
            f"(burst {format_size(nic.tx_burst_bytes)}), receive {format_bit_rate(nic.rx_bps)} "
            f"(burst {format_size(nic.rx_burst_bytes)})"
        )
    lines += ["", "links", f"  {plan.driver} (this machine) ── core", *(f"  core ── {rack}" for rack in topology.racks)]
    lines += [f"  {host.rack} ── {host.name} ({host.nic.name})" for host in topology.hosts]
    lines += _script("in the fabric's network namespace", wiring.fabric)
    for name, script in wiring.hosts.items():
        lines += _script(f"in {name}'s network namespace", script)
    lines += _script("on this machine", wiring.machine)
    for host in topology.hosts:
        if host.node_id is not None:
            lines += ["", f"server.properties of {host.name}"]
            lines += [f"  {line}" for line in render(server_properties(topology, host, plan)).splitlines()]
    return "\n".join(lines)
