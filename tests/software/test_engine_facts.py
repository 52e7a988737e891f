"""Engines by what they say of themselves: recorded answers, most of engines that are not here."""

import os

import pytest

from testbed.software import engine
from testbed.software.engine import facts, kernel_name

DOCKER = {"Components": [{"Name": "Engine"}, {"Name": "containerd"}]}
PODMAN = {"Components": [{"Name": "Podman Engine"}, {"Name": "Conmon"}]}
DEBIAN = (
    {**DOCKER, "Version": "20.10.24+dfsg1"},
    {
        "SecurityOptions": ["name=seccomp,profile=default"],
        "CgroupVersion": "1",
        "Architecture": "x86_64",
        "OperatingSystem": "Debian GNU/Linux 12 (bookworm)",
        "DefaultAddressPools": [{"Base": "198.18.0.0/16", "Size": 24}],
    },
)
HOSTED_RUNNER = (
    {**DOCKER, "Version": "28.0.4"},
    {
        "SecurityOptions": ["name=apparmor", "name=seccomp,profile=builtin", "name=cgroupns"],
        "CgroupVersion": "2",
        "Architecture": "x86_64",
        "OperatingSystem": "Ubuntu 24.04.2 LTS",
    },
)
ROOTLESS = (
    {**DOCKER, "Version": "27.3.1"},
    {"SecurityOptions": ["name=seccomp,profile=builtin", "name=rootless", "name=cgroupns"], "CgroupVersion": "2"},
)
DESKTOP = (
    {**DOCKER, "Version": "27.4.0"},
    {"OperatingSystem": "Docker Desktop", "Architecture": "aarch64", "SecurityOptions": None},
)
PODMAN_OF_DEBIAN = (
    {**PODMAN, "Version": "4.3.1"},
    {"SecurityOptions": ["name=seccomp,profile=default"], "CgroupVersion": "1", "Architecture": "amd64"},
)
PODMAN_OF_FEDORA = (
    {**PODMAN, "Version": "5.2.5"},
    {
        "SecurityOptions": ["name=seccomp,profile=default", "name=rootless", "name=selinux"],
        "CgroupVersion": "2",
        "Architecture": "arm64",
    },
)
PODMAN_OF_JAMMY = ({**PODMAN, "Version": "3.4.4"}, {"CgroupVersion": "2", "Architecture": "amd64"})


@pytest.mark.parametrize("answers", [DEBIAN, HOSTED_RUNNER, PODMAN_OF_DEBIAN])
def test_engines_that_work(answers):
    assert facts(*answers).lacks == ()


@pytest.mark.parametrize(
    ("answers", "lacks"),
    [
        (ROOTLESS, "root is missing, so it cannot link hosts to this machine"),
        (PODMAN_OF_FEDORA, "DOCKER_HOST=unix:///run/podman/podman.sock"),
        (DESKTOP, "this machine's network is missing, since it runs in a virtual machine of its own"),
        (PODMAN_OF_JAMMY, "a release from 4.3 on is missing: install a newer Podman"),
        (({**DOCKER, "Version": "19.03.8"}, {}), "a release from 20.10 on is missing: install a newer Docker"),
    ],
)
def test_engines_that_do_not_say_what_is_missing(answers, lacks):
    assert lacks in "; ".join(facts(*answers).lacks)


def test_an_engine_on_another_host_is_not_on_this_machine(monkeypatch):
    """Such as colima, or the machine around a container that has the engine's socket."""
    monkeypatch.setattr(engine, "_has_bridges", lambda: False)
    version, info = HOSTED_RUNNER
    assert facts(version, {**info, "Name": os.uname().nodename}).lacks == ()
    (why,) = facts(version, {**info, "Name": "lima-docker"}).lacks
    assert f"it runs on lima-docker, and this process on {os.uname().nodename}, in a virtual machine or a cont" in why
    (why,) = facts(DESKTOP[0], {**DESKTOP[1], "Name": "docker-desktop"}).lacks
    assert "on docker-desktop" not in why


def test_a_container_that_shares_the_machines_network_may_have_a_host_name_of_its_own(monkeypatch, tmp_path):
    """As those of distrobox, with the numbers of the machine's processes as well."""
    monkeypatch.setattr(engine, "_has_bridges", lambda has=engine._has_bridges: has(tmp_path))
    version, info = HOSTED_RUNNER
    assert facts(version, {**info, "Name": "machine"}).lacks
    (tmp_path / "docker0" / "bridge").mkdir(parents=True)
    assert facts(version, {**info, "Name": "machine"}).lacks == ()


def test_kind_version_and_addresses():
    found = facts(*DEBIAN)
    assert (found.kind, found.version) == ("Docker", "20.10.24+dfsg1")
    assert found.pools == ("198.18.0.0/16 by /24",)
    assert facts(*PODMAN_OF_FEDORA).kind == "Podman"


def test_architectures_have_the_kernels_names():
    assert facts(*PODMAN_OF_FEDORA).architecture == facts(*DESKTOP).architecture == "aarch64"
    assert facts(*PODMAN_OF_DEBIAN).architecture == facts(*DEBIAN).architecture == kernel_name("amd64") == "x86_64"
    assert kernel_name("riscv64") == "riscv64"
