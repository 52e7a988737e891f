"""A NIC that somebody changes during a move is named, and Kafka is not blamed for it."""

import subprocess

import pytest

from results.contract.store import Store
from testbed.experiments.reports import default_store
from testbed.faults import Faults, parse_fault
from tests.containers.test_run import SHORT, finish, running_testbed, start, verdicts, wait_for_quota

# Each is a run of more than a minute.
pytestmark = [pytest.mark.containers, pytest.mark.spark, pytest.mark.nightly]
RATES = ("steady-mean", "duration-model", "bottleneck-as-modelled", "nic-conservation")
RECEIVES_B2 = "port1"


def reshape(testbed, rate):
    fabric, _hosts = testbed.pids()
    change = f"tc class replace dev {RECEIVES_B2} parent 1: classid 1:10 htb rate {rate} ceil {rate} quantum 1514"
    subprocess.run(["nsenter", f"--net=/proc/{fabric}/ns/net", "--", *change.split()], check=True)


def changed(document):
    return [c for c in document["criteria"] if c["name"] == "nic-unchanged"]


def test_a_nic_lowered_in_mid_move_makes_the_rates_inconclusive_and_is_named():
    process = start(*SHORT, "--set", "rate=5MB/s")
    testbed = running_testbed(process)
    with testbed.admin() as admin:
        wait_for_quota(admin, process)
        reshape(testbed, "30mbit")  # 3.6 MB/s: less than the throttle
    status, document = finish(process)
    assert (status, document["verdict"]) == (2, "inconclusive")
    (found,) = changed(document)
    assert (found["host"], found["direction"]) == ("b2", "receive")
    assert found["why"].startswith("b2 data0 receive: rate is 30mbit; declared is 400mbit")
    for name in RATES:
        assert verdicts(document, name) <= {"inconclusive"}, name
    record = Store.open(default_store()).manifest(document["run_id"]).network
    assert [reading.when for reading in record.readings] == ["before", "during", "after"]
    assert [bool(reading.differences) for reading in record.readings] == [False, True, True]


def test_a_nic_that_is_lowered_for_a_moment_is_named_and_a_fault_of_another_process_too():
    process = start(*SHORT)
    testbed = running_testbed(process)
    with testbed.admin() as admin:
        wait_for_quota(admin, process)
        with Faults(testbed).injected(parse_fault("nic-rate host=b1 direction=transmit rate=60mbit")):
            pass
    status, document = finish(process)
    assert (status, document["verdict"]) == (2, "inconclusive")
    (found,) = changed(document)
    assert (found["host"], found["direction"]) == ("b1", "transmit")
    assert found["why"].endswith("not after it")
