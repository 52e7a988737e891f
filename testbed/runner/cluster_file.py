"""The cluster file of ducktape's own `JsonCluster`: the hosts of a testbed that is up, and how to reach them."""

from typing import Any

from testbed.errors import TestbedError
from testbed.provision import state as states
from testbed.provision.testbed import Testbed
from testbed.topology.host import DeclaredHost


def require_here(testbed: Testbed) -> None:
    """Raise `TestbedError` for hosts on other machines: ducktape's SSH does not reach their management network."""
    elsewhere = [host.name for host in testbed.topology.hosts if testbed.topology.remote_machine_of(host)]
    if elsewhere:
        raise TestbedError(
            f"{', '.join(elsewhere)} of testbed {testbed.name} are on other machines, whose management network "
            "ducktape does not reach; place all hosts on this machine (machine: at the host)"
        )


def cluster_file(testbed: Testbed) -> dict[str, Any]:
    """Return the document of ducktape's `--cluster-file`, with a node for each host.

    A node's type is the topology's name, so that tests with and without a node type find their nodes. Clients outside
    the host use the address of its shaped NIC; ducktape's SSH uses the management network, or logs in to a machine that
    exists as the testbed does. Raise `TestbedError` for hosts on other machines, and behind a jump host.
    """
    require_here(testbed)
    return {
        "nodes": [
            {
                "externally_routable_ip": str(testbed.plan.data_ip(host.name)),
                "node_type": testbed.topology.name,
                "ssh_config": {
                    "host": host.name,
                    "hostname": str(testbed.plan.management_ip(host.name)),
                    "password": None,
                    **_login(testbed, host),
                },
            }
            for host in testbed.topology.hosts
        ]
    }


def _login(testbed: Testbed, host: DeclaredHost) -> dict[str, Any]:
    if not testbed.topology.exists:
        return {"identityfile": str(states.private_key_path(testbed.name).resolve()), "port": 22, "user": "root"}
    access = host.access
    if access.jump is not None:
        raise TestbedError(f"{host.name} is behind the jump host {access.jump}, which ducktape's SSH cannot use")
    # Without a key, ducktape asks the SSH agent.
    return {"identityfile": access.key, "port": access.port, "user": access.user}
