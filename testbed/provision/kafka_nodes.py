"""The Kafka nodes of a testbed: their start and restart, and checks that they serve and are as declared.

Every node is asked itself, because the metadata alone is no proof. A broker that was killed and restarted within
its session is still listed as unfenced, by the registration of the dead process.
"""

import socket
import time
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from testbed.defects import agent
from testbed.defects.parse import in_words, name_in
from testbed.errors import KafkaStuck, TestbedError
from testbed.hosts.host import in_parallel
from testbed.kafka.admin import Admin
from testbed.kafka.capabilities import SHARED_STORAGE_KEY, Capability, of_software
from testbed.kafka.node import BALANCER, CONTROLLER_PORT, ONE_REPLICA, server_properties
from testbed.objectstore.store import AUTOMQ_BUCKETS
from testbed.owner import Owner
from testbed.provision.software import SoftwareSet
from testbed.topology.host import DeclaredHost
from testbed.wait import WaitTimeout, wait_for

if TYPE_CHECKING:
    from testbed.provision.provider import Progress
    from testbed.provision.testbed import Testbed

ASK_S = 2.0
_LOOK_S = 0.1
_ASKED = (SHARED_STORAGE_KEY, BALANCER, *ONE_REPLICA)
"""The settings of shared storage that every broker is asked for."""


def start_kafka(testbed: "Testbed", *, timeout_s: float | None, progress: "Progress") -> None:
    """Start every Kafka node that does not run, and wait until all serve. Raise `KafkaStuck` otherwise."""
    shared = Capability.SHARED_STORAGE in of_software(testbed.topology)
    if shared:
        testbed.objectstore.require_buckets(AUTOMQ_BUCKETS)
    in_parallel(_nodes(testbed), lambda host: testbed.node(host).start())
    begun = time.monotonic()
    allowed = [testbed.software.kafka(version).start_s for version in set(testbed.state.kafka.values())]
    wait_serving(testbed, timeout_s=max(allowed) if timeout_s is None else timeout_s)
    progress(f"{len(testbed.topology.brokers)} brokers unfenced after {time.monotonic() - begun:.1f} s")
    if shared:
        require_as_declared(testbed, progress)
    require_loaded(testbed, progress)


def wait_serving(testbed: "Testbed", *, timeout_s: float) -> None:
    """Wait until every node answers itself and every broker is unfenced. Raise `KafkaStuck` otherwise."""
    try:
        wait_for(
            lambda: silent(testbed, _nodes(testbed)),
            lambda found: not found,
            timeout_s=timeout_s,
            interval_s=_LOOK_S,
            what=f"every Kafka node of {testbed.name} to serve",
        )
    except WaitTimeout as error:
        raise KafkaStuck(str(error)) from error


def silent(testbed: "Testbed", nodes: Collection[str]) -> list[str]:
    """Return which of `nodes` (names of hosts) do not serve, and why; empty when all do.

    Raise `KafkaStuck` with the end of its log when a node's process has died.
    """
    found = silence(testbed, nodes)
    for name in found:
        node = testbed.node(name)
        if node.pid() is None:
            raise KafkaStuck(f"Kafka on {name} does not run; the end of its log:\n{node.log_tail()}")
    return [f"{name}: {why}" for name, why in found.items()]


def silence(testbed: "Testbed", nodes: Collection[str]) -> dict[str, str]:
    """Return host → why it does not serve, for each of `nodes` that does not serve.

    A broker serves when it is unfenced and answers itself; a node that is only a controller serves when it listens.
    """
    hosts = [host for host in testbed.topology.hosts if host.name in nodes]
    found: dict[str, str] = {}
    brokers = [host for host in hosts if host.is_broker]
    if brokers:
        try:
            with testbed.admin(timeout_s=ASK_S) as admin:
                unfenced = {broker.id for broker in admin.cluster().brokers}
                found |= {host.name: _broker_silence(admin, host, unfenced) for host in brokers}
        except TestbedError as error:
            found |= {host.name: str(error) for host in brokers}
    for host in hosts:
        if not host.is_broker:
            found[host.name] = _port_silence(str(testbed.plan.data_ip(host.name)), CONTROLLER_PORT)
    return {name: why for name, why in found.items() if why}


def reconfigure(
    testbed: "Testbed", overlay: Mapping[str, str], defects: Mapping[str, tuple[str, ...]], progress: "Progress"
) -> None:
    """Make `overlay` the properties of all brokers and `defects` those of each host. Restart Kafka if they differ."""
    if is_configured(testbed, overlay, defects):
        return
    state = testbed.state
    broken = dict(defects) != dict(state.defects)
    if broken and defects:
        require_breakable(testbed.software, state.kafka, defects)
    progress(f"restarting Kafka with other {'defects' if broken else 'properties'}")
    digests = {**state.digests, **({"defects": agent.PROJECT.digest()} if defects else {})}
    # Recorded first: after a kill at any point the state shows that Kafka may be down, or run with either.
    me = str(Owner.this_process())
    testbed.record(replace(state, overlay=dict(overlay), defects=dict(defects), digests=digests, restarting=me))
    kafka = [host for host in testbed.topology.hosts if host.node_id is not None]
    for host in kafka:
        configure(testbed, host)
    # Brokers first: a controlled shutdown needs the controller.
    in_parallel([h.name for h in kafka if not h.is_controller], lambda host: testbed.node(host).stop())
    in_parallel([h.name for h in kafka if h.is_controller], lambda host: testbed.node(host).stop())
    install_defects(testbed)
    testbed.start_kafka(progress=progress)
    testbed.record(replace(testbed.state, restarting=""))


def is_configured(testbed: "Testbed", overlay: Mapping[str, str], defects: Mapping[str, tuple[str, ...]]) -> bool:
    """Return whether `reconfigure` with these would restart nothing."""
    state = testbed.state
    return not state.restarting and (dict(overlay), dict(defects)) == (dict(state.overlay), dict(state.defects))


def configure(testbed: "Testbed", host: DeclaredHost) -> None:
    """Write a node's properties; they apply at its next start."""
    testbed.node(host.name).configure(_properties(testbed, host))


def _properties(testbed: "Testbed", host: DeclaredHost) -> dict[str, str]:
    """Return a node's properties from its release, the topology and the overlay."""
    state, wanted = testbed.state, testbed.topology.remote_storage
    able = testbed.software.kafka(state.kafka[host.name]).capabilities
    manager = None if wanted is None else testbed.software.manager(wanted)
    topology, plan, overlay = testbed.topology, testbed.plan, state.overlay
    return server_properties(topology, host, plan, overlay, able=able, manager=manager, cluster_id=state.cluster_id)


def require_breakable(software: SoftwareSet, kafka: Mapping[str, str], defects: Mapping[str, tuple[str, ...]]) -> None:
    """Raise `SoftwareError` when the Kafka of a host lacks a method that one of the host's defects changes.

    `kafka` is the version of each host.
    """
    names: dict[str, list[str]] = {}
    for host, options in defects.items():
        names.setdefault(kafka[host], []).extend(map(name_in, options))
    for version, of_version in names.items():
        agent.require_methods(software.kafka(version).release, of_version)


def install_defects(testbed: "Testbed") -> None:
    """Copy the agent to each host with a defect, before Kafka starts there."""
    in_parallel(testbed.state.defects, lambda host: agent.install(testbed.hosts[host]))


def require_loaded(testbed: "Testbed", progress: "Progress") -> None:
    """Raise `TestbedError` when a broker runs without a defect that it should have."""
    for host, options in testbed.state.defects.items():
        if missing := agent.not_loaded(options, agent.notes(testbed.hosts[host])):
            raise TestbedError(
                f"{host} runs without {', '.join(missing)}, which it should have: {agent.NOTES} has no such note"
            )
    if testbed.state.defects:
        progress(f"broken on purpose: {'; '.join(in_words(testbed.state.defects))}")


def _nodes(testbed: "Testbed") -> list[str]:
    return [host.name for host in testbed.topology.hosts if host.node_id is not None]


def _broker_silence(admin: Admin, host: DeclaredHost, unfenced: Collection[int]) -> str:
    assert host.node_id is not None
    if host.node_id not in unfenced:
        return "not registered, or fenced"
    try:
        # Only that broker answers this, and only after it has registered again.
        admin.broker_configs(host.node_id, ["broker.id"])
    except TestbedError as error:
        return str(error)
    return ""


def _port_silence(address: str, port: int) -> str:
    try:
        socket.create_connection((address, port), timeout=ASK_S).close()
    except OSError as error:
        return f"{address}:{port}: {error}"
    return ""


def require_as_declared(testbed: "Testbed", progress: "Progress") -> None:
    """Ask every broker for its settings. Raise `TestbedError`, which names each setting with another value.

    A setting that a broker does not know is reported as not checked.
    """
    found = in_parallel(testbed.topology.brokers, lambda broker: _differences(testbed, broker))
    silent = sorted({key for _wrong, unknown in found for key in unknown})
    if silent:
        progress(f"the brokers do not report {', '.join(silent)}: not checked")
    wrong = [text for of_broker, _unknown in found for text in of_broker]
    if wrong:
        raise TestbedError(f"{testbed.name} is not as declared:\n  " + "\n  ".join(wrong))


def _differences(testbed: "Testbed", host: DeclaredHost) -> tuple[list[str], list[str]]:
    """Return the settings of one broker with other values, and the settings that it does not report."""
    assert host.node_id is not None
    with testbed.admin() as admin:
        return compared(host.name, _properties(testbed, host), admin.broker_settings(host.node_id, _ASKED))


def compared(host: str, given: Mapping[str, str], reported: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Return the settings that differ from the given values, and the settings that the broker does not report. Pure."""
    wrong = [
        f"{host} has {key}={reported[key]}, was given {given[key]}"
        for key in _ASKED
        if key in reported and reported[key] != given[key]
    ]
    return wrong, [key for key in _ASKED if key not in reported]
