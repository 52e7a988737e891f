"""What nodes are told of remote log storage."""

from pathlib import Path

import pytest

from testbed.errors import TestbedError
from testbed.kafka.node import server_properties
from testbed.network.addresses import AddressPlan
from testbed.provision.plan_text import describe
from testbed.software.rsm import OWN_CLASS, RemoteStorageManager
from testbed.topology import load_document

CLASS = "remote.log.storage.manager.class.name"
OWN = RemoteStorageManager(Path("/cache/rsm"), OWN_CLASS, "0")


def topology(**more):
    return load_document(
        {
            "name": "t",
            "kafka": {"version": "4.3.1", "properties": more},
            "remote_storage": {},
            "defaults": {"nic": {"rate": "100mbit"}},
            "hosts": {
                "c1": {"role": "controller"},
                "b1": {"role": "broker"},
                "b2": {"role": "broker"},
                "s1": {"role": "objectstore"},
            },
        }
    )


def properties(host, manager, **more):
    found = topology(**more)
    plan = AddressPlan(0, tuple(each.name for each in found.hosts))
    return server_properties(found, found.host(host), plan, manager=manager)


def test_a_broker_with_our_own_manager():
    found = properties("b1", OWN)
    assert found["remote.log.storage.system.enable"] == "true"
    assert found[CLASS] == "testbed.tiered.S3RemoteStorageManager"
    assert found["remote.log.storage.manager.class.path"] == "/opt/testbed/rsm/*"
    assert {key: value for key, value in found.items() if key.startswith("rsm.config.")} == {
        "rsm.config.endpoint": "http://198.19.0.14:9000",
        "rsm.config.bucket": "testbed-tiered",
        "rsm.config.region": "us-east-1",
        "rsm.config.credentials.file": "/etc/testbed/s3/credentials",
    }
    assert found["rlmm.config.remote.log.metadata.topic.replication.factor"] == "2"
    assert found["remote.log.metadata.manager.listener.name"] == "CLIENT"
    assert found["log.retention.check.interval.ms"] == found["remote.log.manager.task.interval.ms"] == "1000"


def test_a_controller_only_lets_topics_be_tiered():
    found = properties("c1", OWN)
    assert [key for key in found if "remote" in key or key.startswith("rsm")] == ["remote.log.storage.system.enable"]


def test_the_topologys_properties_win():
    more = {"rsm.config.part.bytes": "6000000", "remote.log.manager.task.interval.ms": "5000"}
    found = properties("b1", OWN, **more)
    assert {key: found[key] for key in more} == more


def test_without_remote_storage_nothing_is_said_of_it():
    assert not [key for key in properties("b1", None) if "remote" in key]


def test_aivens_is_told_where_the_store_is_and_reads_the_credentials_itself():
    found = properties("b1", RemoteStorageManager(Path("/x"), "io.aiven.kafka.tieredstorage.RemoteStorageManager", "0"))
    assert found["rsm.config.storage.s3.endpoint.url"] == "http://198.19.0.14:9000"
    assert found["rsm.config.storage.aws.secret.access.key"] == "${file:/etc/testbed/s3/credentials:secret_key}"
    assert found["config.providers"] == "file"


def test_a_class_that_nobody_knows_is_asked_for():
    with pytest.raises(TestbedError, match=f"b1: .*name it with the property {CLASS}"):
        properties("b1", RemoteStorageManager(Path("/x"), "", "0"))
    assert properties("b1", RemoteStorageManager(Path("/x"), "", "0"), **{CLASS: "a.B"})[CLASS] == "a.B"


def test_plan_tells_it():
    assert f"  {CLASS}={OWN_CLASS}" in describe(topology()).splitlines()
