from dataclasses import replace

import pytest

from testbed.errors import TestbedError
from testbed.faults import Faults, parse_fault
from testbed.provision.cgroups import ContainerCgroup
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
