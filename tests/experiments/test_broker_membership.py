"""What a run that added or removed brokers puts back, and what a leaving broker's other replicas become."""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from testbed.experiments import broker_membership
from testbed.experiments.broker_membership import BrokerArrival, drain_rest, presence, restore_hosts
from testbed.kafka.errors import BROKER_NOT_REGISTERED, KafkaError
from testbed.kafka.types import TopicPartition
from testbed.provision.membership import joining
from testbed.reassignment.planners import leave
from testbed.topology.find import find

S3 = find("s3")
RACKS = {1: "r1", 2: "r1", 3: "r1"}


class FakeTestbed:
    """A testbed that notes who joins and leaves."""

    def __init__(self, topology):
        self.topology, self.done = topology, []
        self.state = SimpleNamespace(own_hosts={})

    def add_host(self, host, progress):
        self.done.append(f"add {host.name} {host.node_id}")
        self.topology = self.topology.with_host(host)

    def remove_host(self, name, progress):
        self.done.append(f"remove {name}")
        self.topology = self.topology.without_host(name)


class FakeFaults:
    """The faults of a testbed: it notes which hosts were given those of the network."""

    def __init__(self, testbed):
        self._testbed = testbed

    def host_joined(self, name):
        self._testbed.done.append(f"faults of {name}")


def test_the_testbed_has_its_own_brokers_again_and_an_added_one_is_drained_first(monkeypatch):
    monkeypatch.setattr(broker_membership, "Faults", FakeFaults)
    grown = FakeTestbed(S3.with_host(joining(S3, "b3", "b2")))
    monkeypatch.setattr(broker_membership, "drain_rest", lambda on, host: on.done.append(f"drain {host.name}"))
    restore_hosts(grown, S3, print)
    assert grown.done == ["drain b3", "remove b3"]
    shrunk = FakeTestbed(S3.without_host("b2"))
    shrunk.state.own_hosts = {"b1": "me", "b2": "me", "s1": "me"}
    monkeypatch.setattr(broker_membership, "forget_own_hosts", lambda on: on.done.append("own hosts forgotten"))
    restore_hosts(shrunk, S3, print)
    assert shrunk.done == [f"add b2 {S3.host('b2').node_id}", "faults of b2", "own hosts forgotten"]
    assert shrunk.topology.hosts == grown.topology.hosts == S3.hosts


def test_a_broker_that_joins_for_a_move_has_the_faults_of_the_network(monkeypatch):
    monkeypatch.setattr(broker_membership, "Faults", FakeFaults)
    monkeypatch.setattr(broker_membership, "presence", lambda *_words, wanted: (wanted, wanted))
    monkeypatch.setattr(broker_membership, "note_own_hosts", lambda on: on.done.append("own hosts noted"))
    host, events = joining(S3, "b3", "b2"), []

    class Joining(FakeTestbed):
        def add_host(self, host, step, progress):
            super().add_host(host, progress)

    environment = SimpleNamespace(
        testbed=Joining(S3),
        setup=SimpleNamespace(joining=(host,)),
        context=SimpleNamespace(progress=print),
        load=SimpleNamespace(warm=lambda: None),
    )
    recorder = SimpleNamespace(event=lambda kind, *_words, **_more: events.append(kind))
    run = SimpleNamespace(environment=environment, testbed=environment.testbed, recorder=recorder)
    BrokerArrival(run).before_move()
    assert environment.testbed.done == ["own hosts noted", f"add b3 {host.node_id}", "faults of b3"]
    assert events == ["scale.asked", "scale.step"]


def test_a_partition_on_all_brokers_gets_one_replica_fewer_when_one_leaves():
    everywhere, single = TopicPartition("offsets", 0), TopicPartition("one", 0)
    held = {everywhere: (3, 1, 2), single: (3,)}
    found = leave(held, RACKS, {3}).targets
    assert found[everywhere] == (1, 2)
    assert found[single] in ((1,), (2,))


@pytest.mark.parametrize(("size_bytes", "timeout_s"), [(0, 120.0), (2_400_000_000, 120.0 + 5 * 96.0)])
def test_a_broker_with_more_on_its_disks_has_more_time_to_be_drained(monkeypatch, size_bytes, timeout_s):
    grown = S3.with_host(joining(S3, "b3", "b2"))
    b3, tp = grown.host("b3"), TopicPartition("large", 0)
    given = []

    class Driver:
        def __init__(self, _admin, _journals, able):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *_error):
            return None

        def execute(self, plan, _rate):
            assert set(plan.targets) == {tp}

        def follow(self, *, timeout_s, interval_s):
            given.append(timeout_s)

    admin = SimpleNamespace(
        topics=lambda: ["large"],
        partitions=lambda _topics: {tp: SimpleNamespace(replicas=(b3.node_id,))},
        log_dirs=lambda brokers: {broker: {tp: SimpleNamespace(size_bytes=size_bytes)} for broker in brokers},
    )
    monkeypatch.setattr(broker_membership, "Driver", Driver)
    drain_rest(SimpleNamespace(topology=grown, admin=lambda: nullcontext(admin)), b3)
    assert given == [pytest.approx(timeout_s)]


def test_what_became_of_a_broker_is_what_the_controller_and_the_engine_say(monkeypatch):
    monkeypatch.setattr(broker_membership, "KNOWN_S", 0.2)
    b2 = S3.host("b2")

    def testbed(live, hosts, registered=None):
        cluster = SimpleNamespace(brokers=[SimpleNamespace(id=each) for each in live])

        def unregister(broker):
            if broker not in (live if registered is None else registered):
                raise KafkaError("unregister", BROKER_NOT_REGISTERED)

        admin = SimpleNamespace(cluster=lambda: cluster, unregister_broker=unregister)
        containers = [SimpleNamespace(host=each) for each in hosts]

        class Admin:
            def __enter__(self):
                return admin

            def __exit__(self, *_error):
                return None

        return SimpleNamespace(name="one", admin=Admin, engine=SimpleNamespace(containers=lambda _name: containers))

    gone = testbed([1], ["", "b1"])
    assert presence(gone, b2, wanted=False) == (False, False)
    assert presence(testbed([1, b2.node_id], ["", "b1", "b2"]), b2, wanted=False) == (True, True)
    # No broker lists one that is stopped, although it is still registered.
    assert presence(testbed([1], ["", "b1"], [1, b2.node_id]), b2, wanted=False) == (True, False)
    assert presence(testbed([1, b2.node_id], ["", "b1", "b2"]), b2, wanted=True) == (True, True)
    assert presence(testbed([1], ["", "b1"]), b2, wanted=True) == (False, False)
