"""Package names and commands for distributions that are not here, against their recorded os-release files."""

import os

import pytest

from testbed.software import distribution
from testbed.software.distribution import MANAGERS, PACKAGES, Distribution, as_root

RELEASES = {
    "debian 12": 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nID=debian\nVERSION_CODENAME=bookworm\n',
    "debian 13": 'PRETTY_NAME="Debian GNU/Linux 13 (trixie)"\nID=debian\nVERSION_CODENAME=trixie\n',
    "ubuntu 22.04": 'PRETTY_NAME="Ubuntu 22.04.5 LTS"\nID=ubuntu\nID_LIKE=debian\nVERSION_CODENAME=jammy\n',
    "ubuntu 24.04": 'PRETTY_NAME="Ubuntu 24.04.1 LTS"\nID=ubuntu\nID_LIKE=debian\nVERSION_CODENAME=noble\n',
    "mint": 'PRETTY_NAME="Linux Mint 22"\nID=linuxmint\nID_LIKE="ubuntu debian"\nVERSION_CODENAME=wilma\n',
    "fedora": 'PRETTY_NAME="Fedora Linux 41 (Server Edition)"\nID=fedora\nVERSION_ID=41\n',
    "rocky": 'PRETTY_NAME="Rocky Linux 9.5 (Blue Onyx)"\nID="rocky"\nID_LIKE="rhel centos fedora"\n',
    "tumbleweed": 'PRETTY_NAME="openSUSE Tumbleweed"\nID="opensuse-tumbleweed"\nID_LIKE="opensuse suse"\n',
    "arch": 'PRETTY_NAME="Arch Linux"\nID=arch\n',
    "alpine": 'PRETTY_NAME="Alpine Linux v3.20"\nID=alpine\nVERSION_ID=3.20.3\n',
}


def named(name, tmp_path):
    file = tmp_path / "os-release"
    file.write_text(RELEASES[name])
    return Distribution.of(distribution.os_release(file))


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("debian 12", "apt-get install --no-install-recommends iproute2 maven openjdk-17-jre-headless"),
        ("debian 13", "apt-get install --no-install-recommends iproute2 maven default-jre-headless"),
        ("ubuntu 22.04", "apt-get install --no-install-recommends iproute2 maven openjdk-17-jre-headless"),
        ("ubuntu 24.04", "apt-get install --no-install-recommends iproute2 maven openjdk-17-jre-headless"),
        ("mint", "apt-get install --no-install-recommends iproute2 maven default-jre-headless"),
        ("fedora", "dnf install --setopt=install_weak_deps=False iproute-tc maven java-21-openjdk-headless"),
        ("rocky", "dnf install --setopt=install_weak_deps=False iproute-tc maven java-21-openjdk-headless"),
        ("tumbleweed", "zypper install --no-recommends iproute2 maven java-21-openjdk-headless"),
        ("arch", "pacman -S --needed iproute2 maven jre21-openjdk-headless"),
        ("alpine", "apk add iproute2-tc maven openjdk21-jre-headless"),
    ],
)
def test_missing_programs_are_named_as_the_distribution_names_them(name, command, tmp_path):
    found = named(name, tmp_path)
    assert found.command(found.packages(["tc", "mvn", "java"])) == command
    assert found.command(["x"], root=False).startswith(f"sudo {command.split()[0]} ")


def test_an_unknown_distribution_is_known_by_its_package_manager():
    assert Distribution.of({"ID": "mageia"}, ["dnf"]).packages(["tc"]) == ("iproute-tc",)
    unknown = Distribution.of({"ID": "nixos"})
    assert unknown.command(unknown.packages(["tc", "java"])) == "install by hand what provides: tc java"


def test_a_program_without_a_package_keeps_its_name(tmp_path):
    arch = named("arch", tmp_path)
    assert not arch.has("mmdebstrap")
    assert arch.packages(["mmdebstrap", "ip"]) == ("mmdebstrap", "iproute2")


def test_only_debian_has_debians_keys(tmp_path):
    assert named("debian 13", tmp_path).is_debian
    assert not named("ubuntu 24.04", tmp_path).is_debian
    assert named("fedora", tmp_path).packages(["debian keyring"]) == ("debian-keyring",)


def test_a_second_python_has_packages_of_its_own(tmp_path):
    jammy = named("ubuntu 22.04", tmp_path)
    assert jammy.packages(["venv", "Python.h", "cc"], "python3.11")[:2] == ("python3.11-venv", "python3.11-dev")
    assert named("fedora", tmp_path).packages(["Python.h"], "python3.12") == ("python3-devel",)


def test_rhel_has_packages_of_its_second_python_and_none_of_mmdebstrap(tmp_path):
    """RHEL 9 has Python 3.9, and `./run` names python3.11: its header was asked of the package of 3.9."""
    rocky = named("rocky", tmp_path)
    assert rocky.is_rhel
    assert rocky.packages(["venv", "Python.h"], "python3.11") == ("python3.11-libs", "python3.11-devel")
    assert rocky.packages(["Python.h"]) == ("python3-devel",)
    assert not rocky.has("mmdebstrap")
    fedora = named("fedora", tmp_path)
    assert not fedora.is_rhel
    assert fedora.has("mmdebstrap")


def test_a_program_of_busybox_counts_as_missing(tmp_path, monkeypatch):
    """Alpine's `ip` has no JSON, and its `setpriv`, with which each program of set-up begins, no `--pdeathsig`."""
    (tmp_path / "busybox").write_text("#!/bin/sh\n")
    (tmp_path / "busybox").chmod(0o755)
    (tmp_path / "own").symlink_to("busybox")
    (tmp_path / "whole").write_text("#!/bin/sh\n")
    (tmp_path / "whole").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(distribution, "SYSTEM_FOLDERS", ())
    assert distribution.which("own") is None
    assert distribution.which("whole") == str(tmp_path / "whole")


def test_every_name_has_a_column_for_every_manager():
    assert all(set(names) == {each.name for each in MANAGERS} for names in PACKAGES.values())


def test_root_is_had_directly_or_by_sudo_without_a_password_or_not_at_all(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert as_root(["apt-get", "update"], {"A": "b"}) == ["apt-get", "update"]
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(distribution, "sudo_works", lambda: True)
    assert as_root(["apt-get", "update"], {"A": "b"}) == ["sudo", "-n", "env", "A=b", "apt-get", "update"]
    monkeypatch.setattr(distribution, "sudo_works", lambda: False)
    assert as_root(["apt-get", "update"]) is None


@pytest.mark.parametrize(("status", "works"), [(0, True), (1, False)])
def test_sudo_is_tried_without_a_password(status, works, tmp_path, monkeypatch):
    program = tmp_path / "sudo"
    program.write_text(f'#!/bin/sh\n[ "$*" = "-n true" ] && exit {status}\nexit 9\n')
    program.chmod(0o755)
    monkeypatch.setattr(distribution, "which", lambda _: str(program))
    distribution.sudo_works.cache_clear()
    assert distribution.sudo_works() is works
    distribution.sudo_works.cache_clear()
