"""A real AutoMQ, where TESTBED_AUTOMQ names one."""

import pytest

from results.contract.verdict import overall
from results.criteria.catalogue.handover import judge_handover
from testbed.handover.run import watched_move
from testbed.kafka.errors import KafkaError
from testbed.kafka.types import TopicPartition
from testbed.probes.recorder import now_us
from testbed.provision.resources import remove
from testbed.provision.testbed import Testbed
from testbed.reassignment.plan import Plan
from testbed.topology import load_document
from testbed.workload.preload import audit, preload
from testbed.workload.records import Fill, Recipe
from tests.containers.conftest import needs_automq

pytestmark = [pytest.mark.containers, needs_automq]
NAME = "ci-automq-real"


@pytest.fixture(scope="module")
def real(own_state, engine):
    topology = load_document(
        {
            "name": "automq-real",
            "software": {"automq": {}},
            "defaults": {"nic": {"rate": "400mbit"}},
            "hosts": {
                "c1": {"role": "controller"},
                "b1": {"role": "broker"},
                "b2": {"role": "broker"},
                "s1": {"role": "objectstore", "nic": {"rate": "1gbit"}},
            },
        }
    )
    testbed = Testbed.up(topology, name=NAME)
    yield testbed
    testbed.close()
    remove(engine, NAME)


def ids(testbed):
    return [host.node_id for host in testbed.topology.brokers]


def made(testbed, topic, partitions):
    """A topic led by the first broker, with something in it."""
    source, _target = ids(testbed)
    with testbed.admin(timeout_s=60.0) as admin:
        admin.create_topic(topic, {partition: [source] for partition in range(partitions)})
    fill = Fill(topic, range(partitions), 500, Recipe(record_bytes=4096, seed=11))
    preload(testbed.bootstrap, [fill])
    return fill


def told(found):
    criteria = judge_handover(found.seen)
    print("\n".join(f"{each.name}: {each.verdict}: {each.observed} {each.unit}: {each.why}" for each in criteria))
    return {each.name.removeprefix("handover-"): each.verdict for each in criteria}


def test_it_is_up_as_declared_and_refuses_a_second_replica(real):
    (version,) = set(real.state.kafka.values())
    assert version.startswith("automq-")
    assert "fake" not in version
    with real.admin(timeout_s=60.0) as admin, pytest.raises(KafkaError):
        admin.create_topic("two", {0: ids(real)})


def test_twenty_partitions_are_handed_over_and_every_step_is_found(real):
    fill = made(real, "orders", 20)
    target = ids(real)[1]
    plan = Plan({TopicPartition("orders", partition): (target,) for partition in range(20)})
    found = watched_move(real, plan, 13, timeout_s=120.0)
    verdicts = told(found)
    assert found.why == ""
    assert {each.at("elected") is not None for each in found.seen.partitions} == {True}
    assert overall(judge_handover(found.seen)) == "pass", verdicts
    read = audit(real.bootstrap, [fill], found.written)
    assert (read.lost, read.corrupt) == (0, 0)


def test_the_old_broker_dies_between_the_command_and_the_close(real):
    fill = made(real, "killed", 5)
    target = ids(real)[1]
    plan = Plan({TopicPartition("killed", partition): (target,) for partition in range(5)})

    def kill():
        real.node("b1").signal("KILL")
        return now_us()

    found = watched_move(real, plan, 17, timeout_s=240.0, accepted=kill)
    try:
        verdicts = told(found)
        assert found.why == ""
        # Whether it was killed in time is the machine's affair; a partition that came over may not be unknown.
        assert "fail" not in verdicts.values(), verdicts
        assert {verdicts[step] for step in ("accepted", "elected", "opened", "produced", "fetched")} == {"pass"}
        read = audit(real.bootstrap, [fill], found.written)
        assert (read.lost, read.corrupt) == (0, 0)
    finally:
        real.start_kafka()
