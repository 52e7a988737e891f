"""The driver over KIP-455's API: another target while a move is under way, some of it cancelled."""

import pytest
from fakes.kraft import Controller, KraftAdmin

from testbed.kafka.errors import ReassignmentError
from testbed.kafka.types import ConfigResource, TopicPartition
from testbed.reassignment.driver import Driver, DriverError
from testbed.reassignment.plan import Plan
from testbed.throttle.configs import FOLLOWER_REPLICAS, LEADER_REPLICAS, ThrottleError

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.fixture
def cluster():
    """Nothing comes into sync before `go` is put into its `live`."""
    return KraftAdmin(Controller.of({A: (1, 2, 3), B: (1, 2, 3)}, [1, 2, 3]))


def follow(admin, driver):
    admin.controller.live |= {4, 5, 6}
    return driver.follow(timeout_s=5, interval_s=0.001)


def begun(admin, journals, rate=1000):
    driver = Driver(admin, journals)
    # Targets must be alive when the plan is accepted; afterwards they are held back.
    admin.controller.live |= {4, 5, 6}
    driver.execute(Plan({A: (4, 2, 3), B: (4, 2, 3)}), rate)
    admin.controller.live -= {4, 5, 6}
    return driver


def test_another_target_is_throttled_followed_and_put_back(cluster, journals):
    with begun(cluster, journals) as driver:
        driver.override({A: (5, 2, 3)})
        lists = cluster.configs[ConfigResource.topic("t")]
        assert {"0:4", "0:5", "1:4"} == set(lists[FOLLOWER_REPLICAS].split(","))
        assert {"0:1", "0:2", "0:3"} <= set(lists[LEADER_REPLICAS].split(","))
        names = [name for name, _args in cluster.calls]
        assert names.index("alter_configs") < len(names) - 1 - names[::-1].index("alter_reassignments")
        follow(cluster, driver)
    now = cluster.controller.partitions
    assert (now[A].replicas, now[B].replicas) == ((5, 2, 3), (4, 2, 3))
    assert cluster.configs == {} and journals.ids() == []


def test_without_a_throttle_there_is_none_to_extend(cluster, journals):
    with begun(cluster, journals, None) as driver:
        driver.override({A: (5, 2, 3)})
        follow(cluster, driver)
    assert cluster.controller.partitions[A].replicas == (5, 2, 3)


def test_what_is_refused_keeps_its_target(cluster, journals):
    with begun(cluster, journals) as driver:
        cluster.refused[A] = "INVALID_REPLICA_ASSIGNMENT"
        with pytest.raises(ReassignmentError, match="INVALID_REPLICA_ASSIGNMENT for t-0"):
            driver.override({A: (99, 2, 3), B: (5, 2, 3)})
        follow(cluster, driver)
    now = cluster.controller.partitions
    assert (now[A].replicas, now[B].replicas) == ((4, 2, 3), (5, 2, 3))


def test_only_partitions_of_the_plan(cluster, journals):
    with begun(cluster, journals) as driver:
        with pytest.raises(DriverError, match="not of this plan: t-7"):
            driver.override({TopicPartition("t", 7): (1,)})
        driver.cancel()


def test_one_of_two_is_cancelled(cluster, journals):
    with begun(cluster, journals) as driver:
        assert driver.cancel([A]) == 1
        assert driver.cancel([A]) == 0
        now = cluster.controller.partitions
        assert (now[A].adding, now[B].adding) == ((), (4,))
        assert driver.cancel() == 1
        assert now[B].adding == ()


def test_a_topic_that_is_not_listed_is_not_extended(cluster, journals):
    with Driver(cluster, journals) as driver, pytest.raises(ThrottleError, match="set one first"):
        driver.throttle.extend([], 1.0)
