import os
from dataclasses import replace
from types import SimpleNamespace

import pytest

from testbed.cgroups import ContainerCgroup
from testbed.errors import TestbedError
from testbed.faults import Faults, parse_fault
from testbed.hosts import CommandResult
from testbed.topology import loads
from tests.faults.fakes import THREE, FakeTestbed


def test_the_lowest_limit_counts_and_the_end_of_all_is_none(one, faults):
    first = faults.add(parse_fault("cpu-limit host=b2 cpus=0.5"))
    second = faults.add(parse_fault("cpu-limit host=b2 cpus=0.25"))
    assert one.engine.limits == {"id-b2": 0.25}
    faults.clear(second)
    assert one.engine.limits == {"id-b2": 0.5}
    faults.clear(first)
    assert one.engine.limits == {"id-b2": None}


@pytest.mark.parametrize(
    ("cgroup", "files", "cpus"),
    [
        (
            "3:cpuset:/docker/x\n2:cpu,cpuacct:/docker/x\n0::/",
            {"cpu/docker/x/cpu.cfs_quota_us": "25000", "cpu/docker/x/cpu.cfs_period_us": "100000"},
            0.25,
        ),
        (
            "2:cpu:/docker/x\n0::/system",
            {"cpu/docker/x/cpu.cfs_quota_us": "-1", "cpu/docker/x/cpu.cfs_period_us": "100000"},
            None,
        ),
        ("0::/system.slice/docker-x.scope", {"system.slice/docker-x.scope/cpu.max": "50000 100000"}, 0.5),
        ("0::/system.slice/docker-x.scope", {"system.slice/docker-x.scope/cpu.max": "max 100000"}, None),
    ],
)
def test_the_limit_is_read_from_either_version_of_cgroups(tmp_path, cgroup, files, cpus):
    for path, content in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(content + "\n")
    assert ContainerCgroup(cgroup, tmp_path).cpus() == cpus


V1 = {
    "cpu/lab.slice/cpu.cfs_quota_us": "300000",
    "cpu/lab.slice/cpu.cfs_period_us": "100000",
    "cpu/lab.slice/ci/cpu.cfs_quota_us": "150000",
    "cpu/lab.slice/ci/cpu.cfs_period_us": "100000",
    "cpu/lab.slice/ci/job/cpu.cfs_quota_us": "-1",
    "cpu/lab.slice/ci/job/cpu.cfs_period_us": "100000",
    "cpuacct/lab.slice/ci/cpuacct.usage": "2500000000",
}
V2 = {
    "lab.slice/cpu.max": "300000 100000",
    "lab.slice/ci/cpu.max": "150000 100000",
    "lab.slice/ci/cpu.stat": "usage_usec 2500000\nuser_usec 2000000",
    "lab.slice/ci/job/cpu.max": "max 100000",
}
IN_V1 = {"cpu/cpu.cfs_quota_us": "50000", "cpu/cpu.cfs_period_us": "100000", "cpuacct/cpuacct.usage": "2500000000"}
IN_V2 = {"cpu.max": "50000 100000", "cpu.stat": "usage_usec 2500000"}


@pytest.mark.parametrize(
    ("cgroup", "files", "cpus", "group"),
    [
        ("3:cpu,cpuacct:/lab.slice/ci/job", V1, 1.5, "cpu/lab.slice/ci"),
        ("0::/lab.slice/ci/job", V2, 1.5, "lab.slice/ci"),
        ("3:cpu:/docker/x", IN_V1, 0.5, "cpu"),
        ("0::/", IN_V2, 0.5, "."),
    ],
    ids=["version 1", "version 2", "in a container, version 1", "in a container, version 2"],
)
def test_the_smallest_quota_above_a_process_counts(tmp_path, cgroup, files, cpus, group):
    for path, content in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(content + "\n")
    quota = ContainerCgroup(cgroup, tmp_path).smallest_quota()
    assert (quota.cpus, quota.group, quota.used_s()) == (cpus, tmp_path / group, 2.5)


@pytest.mark.parametrize("cgroup", ["3:cpu:/", "0::/", "0::/../elsewhere"])
def test_without_a_limit_there_is_no_quota(tmp_path, cgroup):
    assert ContainerCgroup(cgroup, tmp_path / "cgroup").smallest_quota() is None


def test_a_process_without_a_cgroup_is_an_error(tmp_path):
    with pytest.raises(TestbedError, match="no control group has the controller cpu"):
        ContainerCgroup("4:memory:/docker/x", tmp_path).cpus()


def test_what_a_host_has_by_its_topology_comes_back_after_the_fault():
    two = replace(THREE, hosts=tuple(replace(h, cpus=0.5) if h.name == "b2" else h for h in THREE.hosts))
    one = FakeTestbed(two, "limited")
    faults = Faults(one)
    with pytest.raises(TestbedError, match=r"would limit nothing: b2 has 0\.5"):
        faults.add(parse_fault("cpu-limit host=b2 cpus=0.5"))
    fault = faults.add(parse_fault("cpu-limit host=b2 cpus=0.25"))
    assert one.engine.limits == {"id-b2": 0.25}
    faults.clear(fault)
    assert one.engine.limits == {"id-b2": 0.5}


def test_a_host_on_another_machine_has_the_cpus_of_that_machine():
    """The machine of the command may have more of them, or fewer."""
    two = loads(
        "{name: two, machines: {here: {engine: local}, m1: {engine: 'ssh://h1'}}, kafka: {version: 4.3.1},"
        " defaults: {nic: {rate: 400mbit}},"
        " hosts: {b1: {role: both, machine: here}, b2: {role: broker, machine: m1}}}"
    )
    here, there = os.cpu_count(), os.cpu_count() + 6
    b2 = SimpleNamespace(run=lambda command: CommandResult(" ".join(command), 0, f"{there}\n", "", 0.0))
    testbed = SimpleNamespace(topology=two, hosts={"b2": b2})
    on_b2 = parse_fault(f"cpu-limit host=b2 cpus={here + 1}")
    assert on_b2.prepare(testbed) is on_b2
    with pytest.raises(TestbedError, match=f"cpus={there} would limit nothing: the machine of b2 has {there}"):
        parse_fault(f"cpu-limit host=b2 cpus={there}").prepare(testbed)
    with pytest.raises(TestbedError, match=f"would limit nothing: this machine has {here}"):
        parse_fault(f"cpu-limit host=b1 cpus={here + 1}").prepare(testbed)
