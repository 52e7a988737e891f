"""Starting Kafka on all hosts of a testbed, waiting until it serves, restarting it with other properties."""

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from testbed.errors import TestbedError
from testbed.kafka.properties import server_properties
from testbed.provision import state as states
from testbed.provision.parallel import each
from testbed.wait import wait_for

if TYPE_CHECKING:
    from testbed.provision.testbed import Progress, Testbed


def start_kafka(testbed: "Testbed", *, timeout_s: float, progress: "Progress") -> None:
    """See `Testbed.start_kafka`."""
    kafka = [host.name for host in testbed.topology.hosts if host.node_id is not None]
    each(kafka, lambda host: testbed.node(host).start())
    begun = time.monotonic()
    wait_serving(testbed, timeout_s=timeout_s)
    progress(f"{len(testbed.topology.brokers)} brokers unfenced after {time.monotonic() - begun:.1f} s")


def wait_serving(testbed: "Testbed", *, timeout_s: float) -> None:
    """See `Testbed.wait_serving`."""
    expected = {host.node_id for host in testbed.topology.brokers}
    waiter = Serving(testbed)
    wait_for(
        waiter.brokers,
        lambda brokers: brokers >= expected,
        timeout_s=timeout_s,
        interval_s=0.1,
        what=f"brokers {sorted(filter(None, expected))} of {testbed.name} to be unfenced",
    )


def reconfigure(testbed: "Testbed", overlay: Mapping[str, str], progress: "Progress") -> None:
    """See `Testbed.reconfigure`."""
    if dict(overlay) == dict(testbed.state.overlay):
        return
    progress("restarting Kafka with other properties")
    kafka = [host for host in testbed.topology.hosts if host.node_id is not None]
    for host in kafka:
        testbed.node(host.name).configure(server_properties(testbed.topology, host, testbed.plan, overlay))
    # Brokers first: a controlled shutdown needs the controller.
    each([h.name for h in kafka if not h.is_controller], lambda host: testbed.node(host).stop())
    each([h.name for h in kafka if h.is_controller], lambda host: testbed.node(host).stop())
    testbed.state = replace(testbed.state, overlay=dict(overlay))
    states.save(testbed.state)
    testbed.start_kafka(progress=progress)


class Serving:
    """Asks a starting cluster which brokers are unfenced, and notices when a node has died instead."""

    def __init__(self, testbed: "Testbed") -> None:
        self._testbed = testbed

    def brokers(self) -> set[int | None]:
        """The node ids of the unfenced brokers; empty while nobody answers."""
        try:
            with self._testbed.admin(timeout_s=2.0) as admin:
                return {broker.id for broker in admin.cluster().brokers}
        except TestbedError:
            self._check_alive()
            return set()

    def _check_alive(self) -> None:
        for host in self._testbed.topology.hosts:
            if host.node_id is None:
                continue
            node = self._testbed.node(host.name)
            if node.pid() is None:
                raise TestbedError(f"Kafka on {host.name} ended while starting; the end of its log:\n{node.log_tail()}")
