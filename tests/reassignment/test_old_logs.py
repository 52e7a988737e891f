"""Whether old replicas are gone, on brokers of which one has a log dir that is offline."""

import pytest

from testbed.kafka.errors import LogDirError, UnreachableError
from testbed.kafka.types import PartitionMove, ReplicaLog, TopicPartition
from testbed.reassignment.driver import Driver
from testbed.reassignment.plan import Plan
from testbed.reassignment.progress import left_behind
from tests.fakes.admin import FakeAdmin

TP = TopicPartition("orders", 0)
MOVE = PartitionMove.between(TP, (1, 2), (3, 2))


@pytest.mark.parametrize(
    ("error", "left"),
    [
        (LogDirError("describe", "KAFKA_STORAGE_ERROR", {1: {}}), []),
        (
            LogDirError("describe", "KAFKA_STORAGE_ERROR", {1: {TP: ReplicaLog(1, False)}}),
            ["orders-0: the old replica on broker 1 is still there"],
        ),
        (
            UnreachableError("describe", "REQUEST_TIMED_OUT"),
            ["orders-0: the old replica on broker 1 cannot be seen: no answer"],
        ),
    ],
)
def test_a_log_dir_that_is_offline_hides_no_replica_of_the_others(error, left):
    assert left_behind(failing(error), [MOVE]) == left


def test_a_broker_is_drained_also_when_one_of_its_disks_has_failed(journals):
    admin = failing(LogDirError("describe", "KAFKA_STORAGE_ERROR", {1: {}}))
    with Driver(admin, journals) as driver:
        driver.execute(Plan({TP: (3, 2)}), None)
        driver.follow(timeout_s=10, interval_s=0.01)


def failing(error):
    def refuse(call, _arguments):
        if call == "log_dirs":
            raise error

    return FakeAdmin({TP: (1, 2)}, hook=refuse)
