"""Clusters of several releases, and from one release to the next, on real brokers."""

import json
import tarfile
import time

import pytest

from testbed.errors import TestbedError
from testbed.kafka.capabilities import Capability, of_cluster
from testbed.provision import state as states
from testbed.provision.resources import remove
from testbed.provision.testbed import Testbed
from testbed.provision.upgrade import rolling_upgrade
from testbed.software.kafka import kafka_release
from testbed.topology import load_document
from testbed.workload.preload import audit, preload
from testbed.workload.records import Fill, Recipe
from tests.containers.conftest import cli

pytestmark = pytest.mark.containers
OLD, NEW = "3.9.2", "4.3.1"
NAME = "ci-mixed"
FILL = Fill("before", range(6), 200, Recipe(seed=39, record_bytes=1024))


@pytest.fixture(scope="module")
def mixed(own_state, engine):
    """The controller and one broker at the old release, one broker at the new one."""
    topology = load_document(
        {
            "name": "mixed",
            "kafka": {"version": OLD},
            "defaults": {"nic": {"rate": "400mbit"}},
            "hosts": {
                "b1": {"role": "both"},
                "b2": {"role": "broker", "kafka": {"version": NEW}},
                "b3": {"role": "broker"},
            },
        }
    )
    for version in (OLD, NEW):
        kafka_release(version)
    testbed = Testbed.up(topology, name=NAME)
    yield testbed
    testbed.close()
    remove(engine, NAME)


def finalized(testbed):
    with testbed.admin() as admin:
        return {name: level for name, level in admin.features().items() if level}


def releases(testbed):
    return [testbed.software.kafka(version).release for version in testbed.state.kafka.values()]


# The tests of this file are one story, told in its order.


def test_a_mixed_cluster_starts_at_the_lowest_releases_features(mixed):
    lowest = mixed.software.kafka(OLD).features
    assert finalized(mixed) == lowest
    assert lowest["metadata.version"] < mixed.software.kafka(NEW).features["metadata.version"]
    assert mixed.state.kafka == {"b1": OLD, "b2": NEW, "b3": OLD}
    assert Capability.SHARE_GROUPS not in of_cluster(releases(mixed), finalized(mixed))


def test_a_mixed_clusters_topics_can_be_written_and_read(mixed):
    ids = [host.node_id for host in mixed.topology.brokers]
    with mixed.admin() as admin:
        admin.create_topic(FILL.topic, {p: ids[p % 3 :] + ids[: p % 3] for p in FILL.partitions})
    preload(mixed.bootstrap, [FILL])
    told = audit(mixed.bootstrap, [FILL])
    assert (told.lost, told.duplicated, told.corrupt, told.found) == (0, 0, 0, told.expected)


def test_both_log_libraries_log(mixed):
    for host, version in (("b1", OLD), ("b2", NEW)):
        log = cli("logs", "-n", "3000", NAME, host).stdout
        assert f"Kafka version: {version}" in log
        assert "INFO [KafkaRaftServer nodeId=" in log
        assert "Kafka Server started" in log


def test_a_rolling_upgrade_is_one_command_and_keeps_what_was_written(mixed):
    begun = time.monotonic()
    told = cli("upgrade", NAME, "--to", NEW, "--finalize", "--json")
    print(f"rolling upgrade of two nodes: {time.monotonic() - begun:.1f} s\n{told.stderr}")
    assert told.returncode == 0, told.stderr
    done = json.loads(told.stdout)
    assert [step["host"] for step in done["steps"]] == ["b3", "b1"]  # b2 had it already; the controller comes last
    mixed.state = states.load(NAME)
    assert set(mixed.state.kafka.values()) == {NEW}
    assert mixed.state.digests[NEW] == mixed.software.kafka(NEW).digest
    assert finalized(mixed) == mixed.software.kafka(NEW).features
    assert Capability.SHARE_GROUPS in of_cluster(releases(mixed), finalized(mixed))
    for host in ("b1", "b3"):
        assert f"Kafka version: {NEW}" in mixed.hosts[host].tail("/var/log/kafka/server.log", lines=3000)
    read = audit(mixed.bootstrap, [FILL])
    assert (read.lost, read.duplicated, read.corrupt, read.found) == (0, 0, 0, read.expected)
    with mixed.admin() as admin:
        assert all(p.leader == p.replicas[0] for p in admin.partitions([FILL.topic]).values())


def test_there_is_no_way_back_behind_what_is_finalized(mixed):
    pids = {host: mixed.node(host).pid() for host in mixed.hosts}
    with pytest.raises(TestbedError, match=rf"cannot be brought to Kafka {OLD}: the cluster has finalized metadata\."):
        rolling_upgrade(mixed, OLD)
    told = cli("upgrade", NAME, "--to", NEW, "--hosts", "b2,b9")
    assert (told.returncode, "b9 cannot be upgraded" in told.stderr) == (64, True)
    assert {host: mixed.node(host).pid() for host in mixed.hosts} == pids


def test_a_tarball_runs_as_a_release_does_also_on_a_host_that_an_upgrade_left_stopped(mixed, tmp_path):
    release = kafka_release(NEW)
    tarball = tmp_path / f"kafka_2.13-{NEW}.tgz"
    with tarfile.open(tarball, "w:gz", compresslevel=0) as archive:
        archive.add(release.libs, arcname=f"kafka_2.13-{NEW}/libs")
    build = f"{NEW}+{release.digest[:12]}"
    mixed.node("b3").stop()
    assert rolling_upgrade(mixed, str(tarball), ["b3"]).steps == ()  # there was nothing to stop
    tarball.unlink()
    again = Testbed.attach(NAME)
    assert again.state.kafka == {"b1": NEW, "b2": NEW, "b3": build}
    assert again.node("b3").pid() is not None
    again.close()
    assert audit(mixed.bootstrap, [FILL]).lost == 0
