"""The heap that follows from an experiment's replicas."""

from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import pytest

from testbed.errors import UsageError
from testbed.experiments import experiment_run
from testbed.experiments import run_topology as module
from testbed.experiments.experiment import find_experiment, read_settings
from testbed.experiments.experiment_run import RunRequest
from testbed.experiments.run_topology import MIB, check_space, heap_bytes, run_topology, short_of_heap, with_heap
from testbed.topology import loads
from testbed.topology.find import find

GIB = 1024 * MIB


@pytest.mark.parametrize(
    ("replicas", "heap"),
    [(100, None), (500, None), (501, 640 * MIB), (2000, 1280 * MIB), (4000, 2304 * MIB)],
)
def test_it_grows_with_the_replicas_of_a_broker(replicas, heap):
    assert heap_bytes(replicas) == heap


@pytest.mark.parametrize(
    ("name", "partitions", "replicas"),
    [
        ("kip73-two-node", 2000, 2008),  # with control and calibration
        ("kip435-rf4", 2000, 2004),  # every broker of eight has a replica of each
        ("kip73-many", 10_000, 2008),  # a fifth of them on each old broker, and on each new one
    ],
)
def test_the_replicas_follow_from_the_layout(name, partitions, replicas):
    experiment = find_experiment(name)
    settings = read_settings(experiment, "ci", [f"partitions={partitions}"])
    assert experiment.replicas(settings) == replicas


def test_brokers_get_it_and_a_declared_heap_stays():
    topology = find("two-brokers")
    assert with_heap(topology, 100, 8 * GIB) == topology
    assert with_heap(topology, 0, 8 * GIB) == topology
    made = with_heap(topology, 2000, 8 * GIB)
    assert [host.jvm.heap_bytes for host in made.brokers] == [1280 * MIB] * 2
    declared = topology.with_heap(3 * GIB)
    assert with_heap(declared, 2000, 8 * GIB) == declared


def test_heaps_that_the_machine_does_not_carry_are_refused():
    with pytest.raises(UsageError, match="2 brokers need 2.68GB of heap, and this machine has 3.22GB"):
        with_heap(find("two-brokers"), 2000, 3 * GIB)


def test_brokers_whose_heap_is_too_small_are_named():
    topology = find("two-brokers")
    assert short_of_heap(topology, 500) == short_of_heap(topology.with_heap(1280 * MIB), 2000) == ""
    assert short_of_heap(topology.with_heap(1024 * MIB), 2000) == (
        "a broker gets up to 2000 replicas, which need 1280MiB of heap, and b1, b2 have less: "
        "declare kafka.jvm.heap in the topology, or leave --on out"
    )


def test_a_run_on_a_testbed_with_too_little_heap_says_so(monkeypatch, tmp_path):
    """Its brokers collected garbage without end, and the command said nothing of it."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    testbed = SimpleNamespace(name="one", topology=find("two-brokers"), close=lambda: None)
    monkeypatch.setattr(experiment_run.Testbed, "attach", lambda _name: testbed)
    for name in ("require_whole_change", "require_space", "reconfigure", "restore_hosts"):
        monkeypatch.setattr(experiment_run, name, lambda *_: None)
    experiment, said = find_experiment("kip73-two-node"), []
    settings = read_settings(experiment, "ci", ["partitions=2000"])
    request = RunRequest(experiment.name, on="one")
    with ExitStack() as stack:
        experiment_run._testbed(request, experiment, settings, "run-1", stack, said.append)
    [line] = said
    assert line.startswith("a broker gets up to 2008 replicas, which need 1280MiB of heap, and b1, b2 have less")


def test_heaps_that_are_all_declared_are_not_refused():
    """The refusal advised to declare `kafka.jvm.heap`, and then refused that as well."""
    declared = find("two-brokers").with_heap(4 * GIB)
    assert with_heap(declared, 2000, 3 * GIB) == declared


COMMON = "kafka: {version: 4.3.1}\ndefaults: {nic: {device: eth0, rate: 100mbit}}\n"
LAB = (
    "name: lab\nprovision: inventory\ninventory: {user: ops, key: id}\n"
    + COMMON
    + "hosts: {b1: {role: both, ssh: {address: 10.0.0.2}}, b2: {role: broker, ssh: {address: 10.0.0.3}}}\n"
)
SPREAD = (
    'name: spread\nmachines: {here: {engine: local}, there: {engine: "ssh://h2"}}\n'
    + COMMON.replace("device: eth0, ", "")
    + "hosts: {b1: {role: both, machine: here}, b2: {role: broker, machine: there}}\n"
)


@pytest.mark.parametrize(("text", "here"), [(LAB, 0), (SPREAD, 1)], ids=["machines that exist", "several machines"])
def test_only_heaps_on_this_machine_count_against_its_memory(text, here):
    """The driver's memory was held against the heaps of brokers on other machines."""
    topology = loads(text)
    assert [host.jvm.heap_bytes for host in with_heap(topology, 2000, 2 * GIB).brokers] == [1280 * MIB] * 2
    if here:
        with pytest.raises(UsageError, match="1 broker needs 1.34GB of heap, and this machine has 1.07GB"):
            with_heap(topology, 2000, GIB)
    else:
        assert with_heap(topology, 2000, GIB) == with_heap(topology, 2000, 64 * GIB)


def test_a_run_that_fills_the_disk_is_refused_before_anything_is_provisioned(monkeypatch):
    """A `preload` of a day was written until the disk was full, and brokers failed."""
    monkeypatch.setattr(module, "engine_folder", lambda: Path("/engine"))
    monkeypatch.setattr(module, "free_bytes", lambda _folder: 70_000_000_000)
    experiment = find_experiment("kip73-two-node")
    with pytest.raises(UsageError, match=r"would have 72\.\dGB on their disks.* 70GB free: lower preload, rate"):
        run_topology(experiment, read_settings(experiment, "ci", ["preload=1h"]))
    run_topology(experiment, read_settings(experiment, "ci", ["preload=50min"]))
    experiment = find_experiment("s3-reassign")
    with pytest.raises(UsageError, match=r"would have 80GB on their disks"):
        run_topology(experiment, read_settings(experiment, "ci", ["size=40GB"]))


def test_the_disk_is_not_asked_for_a_run_of_a_suite(monkeypatch):
    monkeypatch.setattr(module, "engine_folder", lambda: pytest.fail("asked"))
    experiment = find_experiment("kip73-two-node")
    given = ["storage=tiered", "rate=4MB/s", "partitions=20"]
    run_topology(experiment, read_settings(experiment, "release", given), "s3")


@pytest.mark.parametrize("text", [LAB, SPREAD], ids=["machines that exist", "several machines"])
def test_the_disks_of_other_machines_are_not_those_of_this_one(text):
    check_space(loads(text), 10**12, 10**9)
