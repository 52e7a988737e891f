"""Probes of brokers and object stores: NICs, logs, metrics, and the replication quota in force."""

import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial

from results.contract.manifest import NicMeasurement
from results.contract.schema import Sample
from testbed.hosts import Host
from testbed.kafka.admin import Admin
from testbed.kafka.node import DATA_DIR
from testbed.kafka.node import PORTS as KAFKA_PORTS
from testbed.network.addresses import AddressPlan
from testbed.network.measure import LinkRate
from testbed.objectstore.server import PORT
from testbed.probes.recorder import INTERVAL_S, Recorder, now_us
from testbed.software.jvm import AGENT_PORT
from testbed.throttle.configs import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    RATES,
    missing_entries,
)
from testbed.topology.host import DeclaredHost
from testbed.topology.links import Nic, NicUse
from testbed.topology.model import Topology

PORTS = (*KAFKA_PORTS, PORT)
"""What connections of a broker's data NIC use: Kafka's ports, and that of the object store."""
AGENTS_SHARE = 0.2
"""The share of the machine's CPUs that the agents of all brokers may use. On two CPUs the agents of two brokers with
2,000 replicas each still sample each second; those of ten such brokers would need most of the machine for it."""


def sampled_nic(host: DeclaredHost) -> Nic:
    """Return the NIC that carries replication traffic: the one for data, unless another is for replication."""
    return host.nic_for(NicUse.REPLICATION)[1]


def sampled_bps(host: DeclaredHost) -> tuple[int, int]:
    """Return the declared rates of the NIC that is sampled: (sent, received), bits/s."""
    nic = sampled_nic(host)
    return nic.tx_bps, nic.rx_bps


def watch_nodes(recorder: Recorder, topology: Topology, hosts: Mapping[str, Host], topics: Sequence[str]) -> None:
    """Start the agent on every host that runs Kafka.

    A broker's agent reads the NIC that carries replicas, the logs of `topics`, the JVM and Kafka's metrics. A host that
    is a controller only has no such logs or metrics. What its JVM uses of the machine's CPUs is Kafka's all the same.
    """
    for broker in topology.brokers:
        watch_broker(recorder, topology, broker, hosts[broker.name], topics)
    for host in topology.controllers:
        if not host.is_broker:
            recorder.watch_host(hosts[host.name], devices=[sampled_nic(host).name], log_dir=DATA_DIR)


def watch_broker(
    recorder: Recorder, topology: Topology, broker: DeclaredHost, host: Host, topics: Sequence[str]
) -> None:
    """Start the agent on one broker of a topology; see `watch_nodes`."""
    devices = [sampled_nic(broker).name]
    cpus = AGENTS_SHARE * (os.cpu_count() or 1) / len(topology.brokers)
    # A machine that exists has other programs, with connections of their own.
    ports = () if topology.exists else PORTS
    recorder.watch_host(
        host, topics=topics, devices=devices, log_dir=DATA_DIR, jmx_port=AGENT_PORT, cpus=cpus, ports=ports
    )


def nic_measurements(topology: Topology, rates: Iterable[LinkRate]) -> tuple[NicMeasurement, ...]:
    """Return the measured NICs that a run is judged with: one each way for each host. Pure."""
    sampled = {(host.name, sampled_nic(host).name) for host in topology.hosts}
    return tuple(
        NicMeasurement(
            host=rate.place,
            device=rate.device,
            direction=rate.direction,
            declared_bps=rate.declared_bps,
            payload_bytes_per_s=rate.payload_bytes_per_s,
            ratio=rate.ratio,
            seconds=rate.seconds,
            readings=(*rate.earlier, rate.ratio),
        )
        for rate in rates
        if (rate.place, rate.device) in sampled
    )


def watch_stores(recorder: Recorder, topology: Topology, hosts: Mapping[str, Host]) -> None:
    """Start the agent on every host of the object store, if the topology has one."""
    for store in topology.objectstores:
        recorder.watch_host(hosts[store.name], devices=[nic.name for nic in store.nics], s3_port=PORT)


CARRIED = re.compile(r" bytes_(?:acked|received):(\d+)")
LOCAL = "127.0.0.1"
"""The address from which the agent on the host asks the server."""


def watch_other_clients(recorder: Recorder, topology: Topology, hosts: Mapping[str, Host], plan: AddressPlan) -> None:
    """Poll every server of the object store, if there is one, for connections of other clients; see `other_clients`.

    All hosts but those for load may use the store; `plan` also has the brokers that join later.
    """
    for_load = {host.name for host in topology.clients}
    users = [str(plan.data_ip(name)) for name in plan.hosts if name not in for_load]
    for store in topology.objectstores:
        recorder.poll(f"clients of {store.name}", INTERVAL_S, partial(other_clients, hosts[store.name], users))


def other_clients(store: Host, users: Collection[str]) -> list[Sample]:
    """Return what each connection to a server of the object store has carried, of those from none of `users`.

    These are the bytes of both ways since the connection began; without the program `ss` there are none. Raise
    `TestbedError` when the host does not answer.
    """
    asked, command = now_us(), ["ss", "-tinHO", "state", "established", f"sport = :{PORT}"]
    carried = connections_bytes(store.run(command, timeout_s=10.0, check=False).stdout, (LOCAL, *users))
    return [Sample(asked, store.name, "s3.others.bytes", float(size), label=label) for label, size in carried.items()]


def connections_bytes(listed: str, known: Collection[str]) -> dict[str, int]:
    """Return the bytes of each connection that `ss` lists, by the address and port of its client. Pure.

    Connections from the `known` addresses are left out.
    """
    found = {}
    for line in filter(str.strip, listed.splitlines()):
        address, _, port = line.split()[3].rpartition(":")
        address = address.strip("[]").removeprefix("::ffff:")  # as the kernel has IPv4 for an IPv6 socket
        if address not in known:
            found[f"{address} port {port}"] = sum(map(int, CARRIED.findall(line)))
    return found


Lists = Mapping[str, Mapping[str, str]]
"""Topic → key → value, as a throttle has them."""
_KEYS = {"leader": (LEADER_RATE, LEADER_REPLICAS), "follower": (FOLLOWER_RATE, FOLLOWER_REPLICAS)}


def quota_samples(admin: Admin, host: str, broker: int, lists: Lists | None = None) -> list[Sample]:
    """Return a broker's quota in force (-1: none), and how many replicas of `lists` its own lists lack.

    Without `lists`, return only the quota. A sample's time is the time of the request. Raise `KafkaError` on failure.
    """
    asked, configs = now_us(), admin.broker_configs(broker, RATES)
    there = admin.topics_configs(sorted(lists), [key for _rate, key in _KEYS.values()], broker) if lists else {}
    found = []
    for side, (rate_key, list_key) in _KEYS.items():
        rate = configs.in_force(rate_key)
        found.append(Sample(asked, host, f"quota.{side}.rate", -1.0 if rate is None else float(rate)))
        if lists is None:
            continue
        lacking = sum(
            missing_entries(keys.get(list_key), there.get(topic, {}).get(list_key)) for topic, keys in lists.items()
        )
        found.append(Sample(asked, host, f"quota.{side}.unlisted", float(lacking)))
    return found
