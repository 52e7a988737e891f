"""With a NIC for replication, that NIC is sampled, measured and judged with; otherwise the only one."""

import pytest

from testbed.network.addresses import AddressPlan
from testbed.network.measure import LinkRate
from testbed.network.shape import payload_bytes_per_s
from testbed.probes.brokers import nic_measurements, sampled_bps, watch_nodes
from testbed.runner import canary
from testbed.runner.canary import ByteTransfer
from testbed.topology import loads
from testbed.topology.find import find

TWO_NICS = loads(
    "{name: two-nics, kafka: {version: 4.3.1},"
    " defaults: {nics: {data0: {rate: 400mbit}, repl0: {tx_rate: 100mbit, rx_rate: 200mbit, use: replication}}},"
    " hosts: {b1: {role: both}, b2: {role: broker}, load: {role: client, nics: {data0: {rate: 1gbit}}}}}"
)
ONE_NIC = loads(
    "{name: one-nic, kafka: {version: 4.3.1}, defaults: {nic: {rate: 400mbit}},"
    " hosts: {b1: {role: both}, b2: {role: broker}}}"
)


class FakeRecorder:
    def __init__(self):
        self.asked = {}

    def watch_host(self, host, **asked):
        self.asked[host] = asked


def rates(topology):
    return [
        LinkRate(host.name, nic.name, way, nic.tx_bps, 1.0, 1.0, 2.0, nic.tx_bps)
        for host in topology.hosts
        for nic in host.nics
        for way in ("transmit", "receive")
    ]


@pytest.mark.parametrize(("topology", "device"), [(TWO_NICS, "repl0"), (ONE_NIC, "data0")])
def test_the_nic_that_carries_replicas_is_sampled(topology, device):
    recorder = FakeRecorder()
    watch_nodes(recorder, topology, {host.name: host.name for host in topology.hosts}, ["t"])
    ports = (9092, 9093, 9094, 9095, 9096, 9000)
    asked = {"topics": ["t"], "log_dir": "/var/lib/kafka", "jmx_port": 8778, "ports": ports}
    assert [(host, each["devices"], asked.items() <= each.items()) for host, each in recorder.asked.items()] == [
        ("b1", [device], True),
        ("b2", [device], True),
    ]


def test_a_host_that_is_a_controller_only_is_sampled_without_what_only_brokers_have():
    recorder, topology = FakeRecorder(), find("controllers")
    watch_nodes(recorder, topology, {host.name: host.name for host in topology.hosts}, ["t"])
    asked = {"devices": ["data0"], "log_dir": "/var/lib/kafka"}
    assert [recorder.asked[host] for host in ("c1", "c2", "c3")] == [asked] * 3


def test_a_run_is_judged_with_that_nic_alone():
    found = nic_measurements(TWO_NICS, rates(TWO_NICS))
    assert [(each.host, each.device, each.direction) for each in found] == [
        (host, device, way)
        for host, device in (("b1", "repl0"), ("b2", "repl0"), ("load", "data0"))
        for way in ("transmit", "receive")
    ]
    assert len(nic_measurements(ONE_NIC, rates(ONE_NIC))) == 4
    assert sampled_bps(TWO_NICS.host("b1")) == (100_000_000, 200_000_000)


def test_the_canary_of_the_network_looks_at_that_nic(monkeypatch):
    plan = AddressPlan(0, tuple(host.name for host in TWO_NICS.hosts))
    testbed = type("T", (), {"topology": TWO_NICS, "plan": plan, "name": "t", "hosts": {"b1": "b1", "b2": "b2"}})()
    asked = []

    def transfer(source, target, address, *, at_most_bytes, at_most_s):
        asked.append((source, target, address))
        size = min(at_most_bytes, int(payload_bytes_per_s(100_000_000) * at_most_s))
        return ByteTransfer(size, size / payload_bytes_per_s(100_000_000))

    monkeypatch.setattr(canary, "transfer", transfer)
    assert canary.network(testbed) == pytest.approx((1.0, 1.0), rel=1e-6)
    assert asked == [("b2", "b1", str(plan.data_ip("b1", 1))), ("b1", "b2", str(plan.data_ip("b2", 1)))]
