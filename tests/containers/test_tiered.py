"""Tiered topics on real brokers and a real object store: nothing lost, little moved, what is left over counted."""

import os
from contextlib import contextmanager

import pytest
from confluent_kafka import Producer

from testbed.faults import Faults, parse_fault
from testbed.kafka.types import ConfigResource, TopicPartition
from testbed.objectstore.store import TIERED
from testbed.provision import state as states
from testbed.provision.resources import remove
from testbed.provision.testbed import Testbed
from testbed.software.rsm import PROJECT
from testbed.tiered.remote_log import RemoteLog, accounted
from testbed.tiered.segments import SegmentState
from testbed.tiered.topics import largest_local, tiered_topic, topic_bytes, wait_local
from testbed.topology import load_document
from testbed.wait import WaitTimeout, wait_for, wait_until
from testbed.workload.preload import audit, preload
from testbed.workload.records import Fill, Recipe
from tests.containers.conftest import GIVEN_MANAGER, needs_manager

pytestmark = [pytest.mark.containers, pytest.mark.store]
NAME = "ci-tiered"
MIB = 1 << 20
RECORD = 4096
TIER = "remote.storage.enable"
LAST_TIERED = "follower.fetch.last.tiered.offset.enable"


def topology(version="4.3.1", brokers=3, name="tiered", **remote_storage):
    hosts = {f"b{n}": {"role": "both" if n == 1 else "broker"} for n in range(1, brokers + 1)}
    return load_document(
        {
            "name": name,
            "kafka": {"version": version},
            "remote_storage": remote_storage,
            "defaults": {"nic": {"rate": "400mbit"}},
            "hosts": {**hosts, "s1": {"role": "objectstore", "nic": {"rate": "1gbit"}}},
        }
    )


@pytest.fixture(scope="module")
def tiered(own_state, engine):
    testbed = Testbed.up(topology(), name=NAME, progress=print)
    yield testbed
    testbed.close()
    remove(engine, NAME)


@pytest.fixture
def remote(tiered):
    with RemoteLog(tiered.bootstrap) as remote:
        yield remote


def filled(testbed, topic, replicas, *, mib, partitions=1, tier=True, **settings):
    """A topic, tiered or not (yet), with so many MiB of records in each partition."""
    fill = Fill(topic, range(partitions), mib * MIB // RECORD, Recipe(seed=405, record_bytes=RECORD))
    configs = {**tiered_topic(**settings), TIER: str(tier).lower()}
    with testbed.admin() as admin:
        admin.create_topic(topic, dict.fromkeys(range(partitions), replicas), configs)
    preload(testbed.bootstrap, [fill])
    return fill


def whole(testbed, *fills):
    """Every record is there, once, in order."""
    told = audit(testbed.bootstrap, fills, patience_s=60)
    assert (told.lost, told.duplicated, told.corrupt, told.reordered, told.found) == (0, 0, 0, 0, told.expected), told


def received(testbed, host):
    return int(testbed.hosts[host].run("cat /sys/class/net/data0/statistics/rx_bytes").stdout)


def moved(testbed, topic, replicas, onto):
    """Move partition 0 and return the bytes that the NIC of `onto` received meanwhile."""
    tp = TopicPartition(topic, 0)
    with testbed.admin() as admin:
        before = received(testbed, onto)
        admin.alter_reassignments({tp: replicas})
        wait_until(
            lambda: not admin.reassignments([topic]) and set(admin.partitions([topic])[tp].isr) == set(replicas),
            60,
            0.2,
            f"{topic} to be on {replicas}",
        )
        return received(testbed, onto) - before


def one_by_one(testbed, fill):
    """Write a fill so that every record of a partition is a batch of its own, and a later one."""
    producer = Producer({"bootstrap.servers": ",".join(testbed.bootstrap), "acks": "all", "linger.ms": 0})
    payloads = fill.recipe.payloads()
    for place in range(fill.records_per_partition):
        for partition in fill.partitions:
            value = payloads.record(partition, place, fill.producer)
            producer.produce(fill.topic, value, partition=partition, timestamp=1_700_000_000_000 + 1000 * place)
        assert producer.flush(30) == 0


# The tests of this file are one story, told in its order.


def test_a_topic_leaves_the_brokers_and_is_read_whole(tiered, remote):
    fill = filled(tiered, "far", [1, 2], mib=24)
    with tiered.admin() as admin:
        seen = wait_local(admin, remote, "far")
    assert max(seen.replicas.values()) <= largest_local(MIB, 1)
    found = accounted(tiered.objectstore, remote)
    assert (found.orphans, found.missing, found.foreign) == ({}, (), 0), str(found)
    assert found.segments >= 22
    assert found.bytes == seen.remote[0]
    whole(tiered, fill)


def test_a_move_copies_only_what_is_local(tiered, remote):
    total = 24 * MIB
    with tiered.admin() as admin:
        local_bytes = max(topic_bytes(admin, remote, "far").replicas.values())
        onto = moved(tiered, "far", [1, 3], "b3")
        print(f"moved {total:,} bytes, {local_bytes:,} of them local: the new broker received {onto:,}")
        assert local_bytes < onto < 0.2 * total
        wait_local(admin, remote, "far")
    whole(tiered, Fill("far", [0], total // RECORD, Recipe(seed=405, record_bytes=RECORD)))


def test_a_move_copies_the_whole_local_log_unless_told_otherwise(tiered, remote):
    """Also what is in the store already: since 4.3 a broker can be told to begin after that (KIP-1023)."""
    keep = 8 * MIB
    fill = filled(tiered, "kept", [1, 2], mib=16, local_bytes=keep)
    with tiered.admin() as admin:
        wait_for(
            lambda: topic_bytes(admin, remote, "kept"),
            lambda seen: (
                set(seen.replicas) == {(0, 1), (0, 2)}
                and max(seen.replicas.values()) <= largest_local(MIB, keep)
                and seen.remote.get(0, 0) > 15 * MIB
            ),
            30,
            0.3,
            "the topic to be uploaded, and cut to what is kept",
        )
        by_default = moved(tiered, "kept", [1, 3], "b3")
        admin.alter_configs(ConfigResource.broker(2), {LAST_TIERED: "true"})
        told = moved(tiered, "kept", [1, 2], "b2")
        admin.alter_configs(ConfigResource.broker(2), {}, [LAST_TIERED])
    print(f"received by the new broker: {by_default:,} bytes by default, {told:,} with {LAST_TIERED}")
    assert keep < by_default < 1.5 * keep
    assert told < 0.4 * keep
    whole(tiered, fill)


def test_every_call_of_the_manager(tiered):
    PROJECT.run(
        ["-o", "test", "-Dtest=RealStoreTest"],
        env={
            "TESTBED_S3_ENDPOINT": tiered.objectstore.endpoint,
            "TESTBED_S3_BUCKET": TIERED,
            "TESTBED_S3_CREDENTIALS": str(states.credentials_path(tiered.name)),
        },
    )


@contextmanager
def made_tiered(testbed, remote, topic, replicas, *, mib, partitions):
    """Fill a topic that is not tiered, make it so, and go on at the first copied segment: the others are under way, for
    some seconds more, to a store whose NIC is slow meanwhile.
    """
    fill = filled(testbed, topic, replicas, mib=mib, partitions=partitions, tier=False)
    with Faults(testbed).injected(parse_fault("nic-rate host=s1 rate=40mbit")):
        with testbed.admin() as admin:
            admin.alter_configs(ConfigResource.topic(topic), {TIER: "true"})
        wait_until(lambda: bool(remote.copied_bytes(topic)), 30, 0.02, "the first segment to be copied")
        yield fill


@pytest.mark.nightly
def test_a_store_that_is_killed_in_the_middle_loses_nothing(tiered, remote):
    server = tiered.objectstore.server("s1")
    with made_tiered(tiered, remote, "through", [1, 2], mib=24, partitions=2) as fill:
        server.signal("KILL")
        wait_until(lambda: server.pid() is None, 10, 0.05, "MinIO to be dead")
    copied = sum(remote.copied_bytes("through").values())
    assert copied < fill.bytes - 4 * MIB, "nearly all was copied before it was killed: nothing was tested"
    server.start()
    tiered.objectstore.wait_ready()
    with tiered.admin() as admin:
        wait_local(admin, remote, "through")
    found = accounted(tiered.objectstore, remote)
    print(f"{copied:,} bytes were copied when the store was killed; now {found}")
    assert found.missing == ()
    whole(tiered, fill)


@pytest.mark.nightly
def test_a_broker_that_is_killed_while_it_uploads_loses_nothing(tiered, remote):
    with made_tiered(tiered, remote, "killed", [2, 3], mib=4, partitions=8) as fill:
        tiered.node("b2").signal("KILL")
        # A fault is healed on a testbed that is whole.
        tiered.node("b2").start()
        tiered.wait_serving()
    begun = {s.of for s in remote.segments("killed") if s.state is SegmentState.COPY_STARTED and s.broker == 2}
    assert begun, "nothing was under way when it was killed: nothing was tested"
    with tiered.admin() as admin:
        wait_for(
            lambda: remote.copied_bytes("killed"),
            lambda copied: set(copied) == set(fill.partitions) and min(copied.values()) > 3 * MIB - 2 * RECORD,
            60,
            0.3,
            "what was not uploaded to be uploaded by whoever leads now",
        )
        wait_until(
            lambda: all(len(state.isr) == 2 for state in admin.partitions(["killed"]).values()), 60, 0.2, "full ISRs"
        )
    found = accounted(tiered.objectstore, remote)
    print(f"{len(begun)} copies were under way; now {found}")
    assert found.missing == ()
    # What lies there and nobody refers to is of the copies that the killed broker had begun, and of no others.
    assert {of for of in found.orphans if of.topic == "killed"} <= begun
    whole(tiered, fill)


@pytest.mark.nightly
def test_a_move_while_the_store_stands_still_again_and_again_loses_nothing(tiered, remote):
    fill = filled(tiered, "slow", [1, 2], mib=16)
    with tiered.admin() as admin:
        wait_local(admin, remote, "slow")
    with Faults(tiered).injected(parse_fault("objectstore-slow host=s1")):
        onto = moved(tiered, "slow", [1, 3], "b3")
    assert onto < 0.2 * fill.bytes
    whole(tiered, fill)


@pytest.mark.nightly
def test_a_move_waits_for_a_store_that_is_down_and_ends_once_it_is_back(tiered, remote):
    """The new replica needs the leader epochs of what its leader has no more: they are in the store alone."""
    fill, tp = filled(tiered, "away", [1, 2], mib=16), TopicPartition("away", 0)
    with tiered.admin() as admin:
        wait_local(admin, remote, "away")
        with Faults(tiered).injected(parse_fault("objectstore-down host=s1")):
            admin.alter_reassignments({tp: [1, 3]})
            with pytest.raises(WaitTimeout):
                wait_until(lambda: not admin.reassignments(["away"]), 5, 0.5, "a move without its store")
        wait_until(
            lambda: not admin.reassignments(["away"]) and set(admin.partitions(["away"])[tp].isr) == {1, 3},
            120,
            0.5,
            "the move to end once the store is back",
        )
    whole(tiered, fill)


@pytest.mark.nightly
def test_ten_thousand_segments(tiered, remote):
    """Small ones: a segment ends with every batch that is a millisecond younger than its first one."""
    partitions, each = 20, 501
    fill = Fill("many", range(partitions), each, Recipe(seed=407, record_bytes=256))
    settings = {**tiered_topic(), "segment.ms": "1", "segment.index.bytes": "4096"}
    with tiered.admin() as admin:
        admin.create_topic("many", {p: [p % 3 + 1] for p in range(partitions)}, settings)
        one_by_one(tiered, fill)
        wait_for(
            lambda: sum(s.state is SegmentState.COPIED for s in remote.segments("many")),
            lambda copied: copied >= 10_000,
            1800,
            2,
            "10,000 segments in the store",
        )
    found = accounted(tiered.objectstore, remote)
    assert found.missing == ()
    print(found)
    whole(tiered, fill)


@pytest.mark.nightly
@pytest.mark.parametrize("version", ["3.9.2", "4.1.1"])
def test_the_same_manager_in_other_releases(own_state, engine, version):
    name = f"ci-tiered-{version.replace('.', '')}"
    testbed = Testbed.up(topology(version, 2, name), name=name)
    try:
        fill = filled(testbed, "far", [1, 2], mib=24)
        with testbed.admin() as admin, RemoteLog(testbed.bootstrap) as remote:
            wait_local(admin, remote, "far")
            assert accounted(testbed.objectstore, remote).missing == ()
        whole(testbed, fill)
    finally:
        testbed.close()
        remove(engine, name)


@needs_manager
def test_another_manager_copies_and_a_move_copies_only_what_is_local(own_state, engine):
    """Aiven's, where `GIVEN_MANAGER` names its folder. Its objects have names of its own, so nothing accounts them."""
    name, total = "ci-tiered-given", 24 * MIB
    testbed = Testbed.up(topology(brokers=3, name=name, manager=os.environ[GIVEN_MANAGER]), name=name, progress=print)
    try:
        fill = filled(testbed, "far", [1, 2], mib=24)
        with testbed.admin() as admin, RemoteLog(testbed.bootstrap) as remote:
            local_bytes = max(wait_local(admin, remote, "far").replicas.values())
            onto = moved(testbed, "far", [1, 3], "b3")
        print(f"moved {total:,} bytes, {local_bytes:,} of them local: the new broker received {onto:,}")
        assert onto < 0.2 * total
        whole(testbed, fill)
    finally:
        testbed.close()
        remove(engine, name)
