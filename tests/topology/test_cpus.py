"""How many CPUs a host has: inherited as everything is, told by its document, refused where it makes no sense."""

from dataclasses import replace

import pytest

from testbed.provision.machine import MachineLacks, require_machine
from testbed.provision.plan_text import describe
from testbed.topology import TopologyError, load_document, loads

TEXT = """
name: unequal
kafka: {version: 4.3.1}
defaults: {nic: {rate: 400mbit}, cpus: 2}
roles: {broker: {cpus: 1}}
hosts:
  b1: {role: both}
  b2: {role: broker}
  b3: {role: broker, cpus: 0.29}
  c1: {role: client, cpus: 0.5}
"""


def test_the_nearest_place_counts():
    topology = loads(TEXT)
    assert [host.cpus for host in topology.hosts] == [2, 1, 0.29, 0.5]
    assert "    cpus: 0.29" in describe(topology).splitlines()


def test_it_is_part_of_what_a_topology_means_and_nothing_where_it_is_not_given():
    topology = loads(TEXT)
    assert load_document(topology.to_document()) == topology
    bare = loads(TEXT.replace(", cpus: 2", "").replace("roles: {broker: {cpus: 1}}", "").replace(", cpus: 0.29", ""))
    assert "cpus" not in bare.to_document()["hosts"]["b3"]
    assert bare.digest() != topology.digest()
    assert loads(TEXT.replace("cpus: 2", "cpus: 2.0")).digest() == topology.digest()


@pytest.mark.parametrize("wrong", ["0", "-1", "0.005", "1.234", "2000", "half", "true", ".inf", ".nan", "[1]"])
def test_what_is_no_number_of_cpus_is_refused_with_its_place(wrong):
    with pytest.raises(TopologyError) as refused:
        loads(TEXT.replace("cpus: 0.29", f"cpus: {wrong}"), "t.yaml")
    [problem] = refused.value.problems
    assert str(problem).startswith("t.yaml:9:")
    assert "hosts.b3.cpus" in str(problem)
    assert "0.01 to 1024, in hundredths, such as 0.5" in str(problem)


def test_in_python_it_is_refused_alike():
    topology = loads(TEXT)
    with pytest.raises(TopologyError, match=r"hosts\.b1\.cpus.*not a number of CPUs"):
        replace(topology, hosts=(replace(topology.hosts[0], cpus=0.0), *topology.hosts[1:]))


def test_more_than_the_machine_has_is_refused_before_anything_is_made(monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    with pytest.raises(MachineLacks, match="this machine cannot provide 2 CPUs, declared by b1: it has 1$"):
        require_machine(loads(TEXT))
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    require_machine(loads(TEXT))
