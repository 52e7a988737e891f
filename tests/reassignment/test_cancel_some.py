"""The driver over KIP-455's API: some of a move is cancelled while it is under way."""

import pytest
from fakes.kraft import Controller, KraftAdmin

from testbed.kafka.types import TopicPartition
from testbed.reassignment.driver import Driver
from testbed.reassignment.plan import Plan

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.fixture
def cluster():
    """Nothing comes into sync before `go` is put into its `live`."""
    return KraftAdmin(Controller.of({A: (1, 2, 3), B: (1, 2, 3)}, [1, 2, 3]))


def begun(admin, journals, rate=1000):
    driver = Driver(admin, journals)
    # Targets must be alive when the plan is accepted; afterwards they are held back.
    admin.controller.live |= {4, 5, 6}
    driver.execute(Plan({A: (4, 2, 3), B: (4, 2, 3)}), rate)
    admin.controller.live -= {4, 5, 6}
    return driver


def test_one_of_two_is_cancelled(cluster, journals):
    with begun(cluster, journals) as driver:
        assert driver.cancel([A]) == 1
        assert driver.cancel([A]) == 0
        now = cluster.controller.partitions
        assert (now[A].adding, now[B].adding) == ((), (4,))
        assert driver.cancel() == 1
        assert now[B].adding == ()
