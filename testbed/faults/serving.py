"""Whether Kafka serves again after faults: asked of each node itself.

The metadata alone does not tell: a broker that was killed and started again within its session is still listed
as unfenced, by the registration of the process that is dead.
"""

import socket
import time
from collections.abc import Collection
from typing import TYPE_CHECKING

from testbed.errors import TestbedError
from testbed.kafka.admin import Admin
from testbed.kafka.errors import KafkaError
from testbed.kafka.properties import CONTROLLER_PORT
from testbed.topology.model import Host
from testbed.wait import wait_for

if TYPE_CHECKING:
    from testbed.provision.testbed import Testbed

ASK_S = 2.0
_LOOK_S = 0.2


def wait_serving(testbed: "Testbed", *, timeout_s: float) -> None:
    """Wait until every Kafka node answers for itself and every broker is unfenced.

    Raises `TestbedError` at once when Kafka has died, with the end of its log; and when `timeout_s` have passed.
    """
    deadline = time.monotonic() + timeout_s
    nodes = [host.name for host in testbed.topology.hosts if host.node_id is not None]
    wait_for(
        lambda: silent(testbed, nodes),
        lambda found: not found,
        timeout_s=timeout_s,
        interval_s=_LOOK_S,
        what=f"every node of {testbed.name} to answer",
    )
    testbed.wait_serving(timeout_s=max(1.0, deadline - time.monotonic()))


def silent(testbed: "Testbed", nodes: Collection[str]) -> list[str]:
    """Those of `nodes` (hosts' names) that do not answer, and why; empty when all do.

    Raises `TestbedError` for one whose process has died.
    """
    hosts = [host for host in testbed.topology.hosts if host.name in nodes]
    found: dict[str, str] = {}
    try:
        with testbed.admin(timeout_s=ASK_S) as admin:
            found |= {host.name: _broker_silence(admin, host) for host in hosts if host.is_broker}
    except TestbedError as error:
        found |= {host.name: str(error) for host in hosts if host.is_broker}
    for host in hosts:
        if not host.is_broker:
            found[host.name] = _port_silence(str(testbed.plan.data_ip(host.name)), CONTROLLER_PORT)
    for name in (name for name, why in found.items() if why):
        node = testbed.node(name)
        if node.pid() is None:
            raise TestbedError(f"Kafka on {name} does not run; the end of its log:\n{node.log_tail()}")
    return [f"{name}: {why}" for name, why in found.items() if why]


def _broker_silence(admin: Admin, host: Host) -> str:
    assert host.node_id is not None
    try:
        # Answered by that broker alone, and by no broker before it has registered anew.
        admin.broker_configs(host.node_id)
    except KafkaError as error:
        return str(error)
    return ""


def _port_silence(address: str, port: int) -> str:
    try:
        socket.create_connection((address, port), timeout=ASK_S).close()
    except OSError as error:
        return f"{address}:{port}: {error}"
    return ""
