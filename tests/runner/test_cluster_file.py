"""The file for ducktape's own cluster. tests/containers/test_pytest_plugin.py uses one on real hosts."""

import json
from ipaddress import IPv4Address
from types import SimpleNamespace

import pytest
from ducktape.cluster.cluster_spec import ClusterSpec
from ducktape.cluster.json import JsonCluster
from ducktape.cluster.node_spec import NodeSpec

from testbed.cli.main import main
from testbed.errors import TestbedError
from testbed.network.addresses import AddressPlan, MachineAddresses
from testbed.provision import state as states
from testbed.provision.testbed import Testbed
from testbed.runner.cluster_file import cluster_file
from testbed.topology import loads
from testbed.topology.find import find


def standing(name="mine"):
    topology = find("two-brokers")
    plan = AddressPlan(7, tuple(host.name for host in topology.hosts))
    return SimpleNamespace(name=name, topology=topology, plan=plan, close=lambda: None)


def test_ducktape_reads_every_host_with_its_address_and_key(tmp_path):
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps(cluster_file(standing())))
    cluster = JsonCluster(cluster_file=str(file))
    nodes = cluster.alloc(ClusterSpec([NodeSpec("linux", "two-brokers"), NodeSpec("linux")]))
    config = {node.account.ssh_config.host: node.account.ssh_config for node in nodes}
    assert sorted(config) == ["b1", "b2"]
    plan = standing().plan
    assert [config[host].hostname for host in ("b1", "b2")] == [str(plan.management_ip(h)) for h in ("b1", "b2")]
    assert {each.identityfile for each in config.values()} == {str(states.private_key_path("mine"))}
    assert {n.account.externally_routable_ip for n in nodes} == {str(plan.data_ip(host)) for host in ("b1", "b2")}


LAB = """
name: lab
provision: inventory
inventory: {user: ops, key: /keys/id}
kafka: {version: 4.3.1}
defaults: {nic: {device: eth1, rate: 100mbit}}
hosts:
  b1: {role: both, nic: {address: 10.1.0.5}, ssh: {address: lab-5.example, port: 2222}}
"""


def on_machines(text):
    plan = MachineAddresses(0, ("b1",), {"b1": "lab-5.example"}, {"b1": (IPv4Address("10.1.0.5"),)})
    return SimpleNamespace(name="lab", topology=loads(text), plan=plan)


def test_ducktape_logs_in_to_machines_that_exist_as_the_testbed_does():
    """They do not have the testbed's own key, and root may not log in."""
    [node] = cluster_file(on_machines(LAB))["nodes"]
    known = {"host": "b1", "hostname": "lab-5.example", "password": None}
    assert node["ssh_config"] == {**known, "identityfile": "/keys/id", "port": 2222, "user": "ops"}
    assert node["externally_routable_ip"] == "10.1.0.5"


def test_a_machine_behind_a_jump_host_is_refused():
    with pytest.raises(TestbedError, match="b1 is behind the jump host ops@bastion, which ducktape's SSH cannot use"):
        cluster_file(on_machines(LAB.replace("port: 2222", "jump: ops@bastion")))


def test_the_command_prints_the_document(monkeypatch, capsys):
    monkeypatch.setattr(Testbed, "attach", standing)
    assert main(["export", "ducktape-cluster", "mine"]) == 0
    assert json.loads(capsys.readouterr().out) == cluster_file(standing())


def test_a_testbed_that_is_not_up_is_an_error(capsys):
    assert main(["export", "ducktape-cluster", "absent"]) == 70
    said = capsys.readouterr()
    assert said.out == ""
    assert "there is no testbed absent" in said.err
