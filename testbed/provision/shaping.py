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


def differences(topology: Topology, fabric_pid: int | None, host_pids: Mapping[str, int]) -> list[str]:
    """Where the shaping in force differs from the declared one, in words; empty when it is as declared.

    What does not run (None; a host that is not among `host_pids`) differs.
    """
    found = []
    for each in shaped_devices(topology):
        pid = fabric_pid if each.host is None else host_pids.get(each.host)
        if pid is None:
            found.append(f"{each.what}: {each.host or 'the fabric'} does not run")
        else:
            found += [f"{each.what}: {difference}" for difference in compare(each.shape, read_shape(each.device, pid))]
    return found
