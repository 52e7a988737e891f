"""Making the fabric of a testbed, and checking that the kernel has what was declared."""

import os
from collections.abc import Mapping

from testbed.errors import TestbedError
from testbed.network.addresses import AddressPlan
from testbed.network.apply import apply, read_shape
from testbed.network.fabric import shaped_devices, wire
from testbed.network.shape import compare
from testbed.topology.model import Topology


def make_fabric(
    name: str, topology: Topology, plan: AddressPlan, fabric_pid: int, host_pids: Mapping[str, int]
) -> None:
    """Bridges, links, addresses and shaping, read back and compared. Raises `TestbedError` on any difference."""
    wiring = wire(name, topology, plan, host_pids, os.getpid())
    apply(wiring.fabric, fabric_pid)
    for host, script in wiring.hosts.items():
        apply(script, host_pids[host])
    apply(wiring.machine)
    problems = differences(topology, fabric_pid, host_pids)
    if problems:
        raise TestbedError("the kernel did not take the declared shaping:\n  " + "\n  ".join(problems))


def differences(topology: Topology, fabric_pid: int, host_pids: Mapping[str, int]) -> list[str]:
    """Where the shaping in force differs from the declared one, in words; empty when it is as declared."""
    found = []
    for each in shaped_devices(topology):
        actual = read_shape(each.device, fabric_pid if each.host is None else host_pids[each.host])
        found += [f"{each.what}: {difference}" for difference in compare(each.shape, actual)]
    return found
