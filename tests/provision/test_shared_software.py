"""What a host is given of a Kafka whose partitions lie in the object store."""

import shutil
from dataclasses import replace
from types import SimpleNamespace

import pytest

from testbed.kafka.capabilities import Capability
from testbed.provision import software as softwares
from testbed.provision.software import START_SHARED_S, SoftwareSet, builds_of
from testbed.provision.testbed import software_set
from testbed.software.automq import VARIABLE, NoDistribution
from testbed.topology import load_document
from testbed.topology.find import find
from testbed.topology.host import RemoteStorage
from tests.software.jars import no_registry, write
from tests.software.test_automq import distribution

__all__ = ["no_registry"]


def topology(automq):
    return load_document(
        {
            "name": "automq",
            "software": {"automq": automq},
            "defaults": {"nic": {"rate": "400mbit"}},
            "hosts": {"b1": {"role": "both"}, "b2": {"role": "broker"}, "s1": {"role": "objectstore"}},
        }
    )


def test_it_formats_itself_has_its_memory_and_credentials_and_no_archive(no_registry, tmp_path):
    path = distribution(tmp_path / "automq-1.6.0_kafka-3.9.0")
    software = SoftwareSet()
    found = software.of(topology({"path": str(path)}))
    (version,) = set(found.values())
    assert (set(found), version.startswith("automq-1.6.0+")) == ({"b1", "b2"}, True)
    kafka = software.member(version, found.values())
    assert (kafka.checkpoint, kafka.features, kafka.start_s) == (None, {}, START_SHARED_S)
    assert kafka.capabilities == {Capability.SHARED_STORAGE, Capability.LOG4J2}
    shell, java = kafka.command[:4], kafka.command[4:]
    assert (shell[:2], shell[3]) == (("sh", "-c"), "with-credentials")
    assert java[0] == "java"
    assert {"-Xmx512m", "-XX:MaxDirectMemorySize=512m"} <= set(java)
    assert not [word for word in java if "SharedArchiveFile" in word]
    assert java[-2:] == ("kafka.Kafka", "/etc/testbed/kafka/server.properties")
    # Again by its version, as a testbed that is up does.
    assert SoftwareSet().kafka(version).release == kafka.release


def test_without_a_distribution_nothing_is_looked_for_any_further(no_registry, monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(NoDistribution, match="there is no AutoMQ: the topology names none"):
        SoftwareSet().of(topology({}))


def test_the_environment_may_name_it(no_registry, monkeypatch, tmp_path):
    monkeypatch.setenv(VARIABLE, str(distribution(tmp_path / "automq-1.7.0_kafka-3.9.0")))
    assert SoftwareSet().of(topology({}))["b2"].startswith("automq-1.7.0+")


@pytest.mark.parametrize("by_variable", [False, True])
def test_a_campaigns_automq_is_that_of_its_beginning(no_registry, monkeypatch, tmp_path, by_variable):
    path = distribution(tmp_path / "automq-1.7.0_kafka-3.9.0")
    monkeypatch.setenv(VARIABLE, str(path))
    wanted = topology({} if by_variable else {"path": str(path)})
    builds = builds_of([wanted, wanted])
    (version,) = builds.values()
    assert builds.keys() == {VARIABLE if by_variable else str(path)} and version.startswith("automq-1.7.0+")
    write(path / "libs", {"another-1.0.jar": b"built again"})
    assert set(SoftwareSet().of(wanted).values()).isdisjoint({version})
    shutil.rmtree(path)
    monkeypatch.delenv(VARIABLE)
    assert SoftwareSet(builds=builds).of(wanted) == {"b1": version, "b2": version}


def test_a_campaigns_manager_and_kafka_are_those_of_its_beginning(monkeypatch, tmp_path):
    kafka, build, asked = tmp_path / "kafka", ["4.3.1+0123456789ab"], []
    kafka.mkdir()
    monkeypatch.setattr(softwares, "remote_storage_manager", lambda *given: asked.append(given) or manager)
    monkeypatch.setattr(SoftwareSet, "_made", lambda _set, release: SimpleNamespace(version=release.version))

    def release(source):
        read.append(str(source))
        return SimpleNamespace(version=build[0] if str(source) == str(kafka) else str(source))

    read, manager = [], SimpleNamespace(digest="d1")
    monkeypatch.setattr(softwares, "kafka_release", release)
    document = {
        "name": "tiered",
        "kafka": {"path": str(kafka)},
        "remote_storage": {"manager": str(tmp_path / "rsm")},
        "defaults": {"nic": {"rate": "400mbit"}},
        "hosts": {"b1": {"role": "both"}, "b2": {"role": "broker"}, "s1": {"role": "objectstore"}},
    }
    wanted = load_document(document)
    builds = builds_of([wanted, replace(wanted, name="other")])
    assert builds == {str(kafka): "4.3.1+0123456789ab", str(tmp_path / "rsm"): "d1"}
    assert (read, asked) == ([str(kafka)], [(str(tmp_path / "rsm"),)])
    build[0] = "4.3.1+ba9876543210"
    software = software_set(wanted, {}, builds)
    assert set(software.of(wanted).values()) == {"4.3.1+0123456789ab"}
    software.manager(wanted.remote_storage)
    assert asked[-1] == (str(tmp_path / "rsm"), "d1")


def test_what_no_path_names_is_no_build():
    assert builds_of([find("s3"), find("two-brokers")]) == {}


def test_a_path_is_read_again_as_it_may_have_been_built_again(monkeypatch):
    build = ["4.3.1+0123456789ab"]
    monkeypatch.setattr(softwares, "kafka_release", lambda _source: SimpleNamespace(version=build[0]))
    monkeypatch.setattr(SoftwareSet, "_made", lambda _set, release: SimpleNamespace(version=release.version))
    software = SoftwareSet()
    first = software.kafka("/src/kafka")
    assert software.kafka("/src/kafka") is first
    build[0] = "4.3.1+ba9876543210"
    assert software.kafka("/src/kafka").version == build[0]
    assert software.kafka(first.version) is first


def test_a_testbed_that_is_up_asks_for_the_manager_that_its_brokers_have(monkeypatch):
    """Its folder may have been built again, or be gone: a broker that joins has that of the others."""
    asked = []
    monkeypatch.setattr(softwares, "remote_storage_manager", lambda *given: asked.append(given))
    wanted = RemoteStorage("/src/tiered-storage")
    for digests in ({}, {"remote-storage-manager": "d1"}):
        software_set(find("s3"), digests).manager(wanted)
    assert asked == [("/src/tiered-storage", ""), ("/src/tiered-storage", "d1")]
