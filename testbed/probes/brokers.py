"""What is sampled of every broker, and on which of its NICs: the one that replicas are copied on."""

from collections.abc import Iterable, Mapping, Sequence

from results.contract.manifest import NicMeasurement
from testbed.hosts import Host as Reached
from testbed.kafka.properties import DATA_DIR
from testbed.network.measure import LinkRate
from testbed.probes.recorder import Recorder
from testbed.software.jvm import AGENT_PORT
from testbed.topology.links import Nic, NicUse
from testbed.topology.model import Host, Topology


def sampled_nic(host: Host) -> Nic:
    """The NIC whose bytes are those of copied replicas: the one for data, unless another is for replication."""
    return host.nic_for(NicUse.REPLICATION)[1]


def sampled_bps(host: Host) -> tuple[int, int]:
    """The declared rates of the NIC that is sampled: (sent, received), bits/s."""
    nic = sampled_nic(host)
    return nic.tx_bps, nic.rx_bps


def watch_brokers(recorder: Recorder, topology: Topology, hosts: Mapping[str, Reached], topics: Sequence[str]) -> None:
    """Start the agent on every broker: the NIC that carries replicas, the logs of `topics`, Kafka's metrics."""
    for broker in topology.brokers:
        recorder.watch_host(
            hosts[broker.name],
            topics=topics,
            devices=[sampled_nic(broker).name],
            log_dir=DATA_DIR,
            jmx_port=AGENT_PORT,
        )


def nic_measurements(topology: Topology, rates: Iterable[LinkRate]) -> tuple[NicMeasurement, ...]:
    """Of measured NICs those that a run is judged with: one each way for each host. Pure."""
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
        )
        for rate in rates
        if (rate.place, rate.device) in sampled
    )
