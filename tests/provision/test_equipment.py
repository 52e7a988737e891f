"""Hosts that are all clients, with software of the user's own."""

from testbed.kafkatest.hosts import JVMS, topology_of
from testbed.network.addresses import AddressPlan
from testbed.owner import Owner
from testbed.provision.containers import Labels
from testbed.provision.plan import AUTHORIZED_KEYS, HOST_KEY, SSHD_CONFIG, ClusterIdentity, Equipment, host_spec
from testbed.software.image import ImageRef
from testbed.topology import load_document

IMAGE = ImageRef("image:1", "sha256:1", "sha256:2")
TOPOLOGY = topology_of(2, 400_000_000)
PLAN = AddressPlan(7, ("knode01", "knode02"))


def spec(equipment):
    labels = Labels("mine", 7, Owner.this_process(), "/state")
    identity = ClusterIdentity.generate(TOPOLOGY)
    return host_spec(TOPOLOGY.hosts[0], TOPOLOGY, PLAN, identity, "image:1", labels, None, {}, equipment=equipment)


def test_a_topology_of_clients_is_one_and_reads_back():
    assert load_document(TOPOLOGY.to_document()) == TOPOLOGY
    assert not TOPOLOGY.brokers


def test_equipment_is_mounts_logins_names_and_capabilities():
    mounts = {"/jars": "/opt/jars"}
    found = spec(Equipment(IMAGE, mounts, ("ducker",), ("NET_ADMIN",), JVMS["light"]))
    config = found.files[SSHD_CONFIG].decode()
    assert "AllowUsers root ducker\n" in config
    assert "ListenAddress 0.0.0.0\n" in config
    assert config.endswith(f'SetEnv "KAFKA_JVM_PERFORMANCE_OPTS={JVMS["light"]["KAFKA_JVM_PERFORMANCE_OPTS"]}"\n')
    assert found.private_files == (HOST_KEY,)
    assert (found.read_only_mounts, found.capabilities) == (mounts, ("NET_ADMIN",))
    assert found.names["knode02"] == found.names["knode02.data0"] == "198.19.7.12"


def test_without_it_a_host_is_as_it_was():
    found = spec(None)
    config = found.files[SSHD_CONFIG].decode()
    assert "AllowUsers root\n" in config
    assert "ListenAddress 198.18.7.11\n" in config
    assert "SetEnv" not in config
    assert found.private_files == (HOST_KEY, AUTHORIZED_KEYS)
    assert (found.capabilities, set(found.names)) == ((), {"knode01.data0", "knode02.data0"})
