"""How the hosts of a testbed are reached."""

from collections.abc import Mapping

from testbed.hosts import SshHost
from testbed.hosts.ssh import SshAddress
from testbed.network.addresses import AddressPlan
from testbed.provision import state as states
from testbed.provision.state import TestbedState
from testbed.topology import Topology


def ssh_hosts(
    state: TestbedState, topology: Topology, plan: AddressPlan, *, connect_timeout_s: float = 15.0
) -> Mapping[str, SshHost]:
    """Every host by its name: over the management network, with the testbed's key and the host's pinned one."""
    return {
        host.name: SshHost(
            host.name,
            SshAddress(
                host=str(plan.management_ip(host.name)),
                port=22,
                user="root",
                private_key=states.private_key_path(state.name),
                host_key=state.host_keys[host.name],
            ),
            connect_timeout_s=connect_timeout_s,
        )
        for host in topology.hosts
    }
