"""What a user does where no engine answers: by distribution, by engine, and with or without root."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from fakes.checks import FakeCheck

from testbed.setup.check import CannotFix
from testbed.setup.checks import engine, machine, packages
from testbed.setup.fix import make_ready
from testbed.software import distribution
from testbed.software.engine import EngineSocket, Trouble
from tests.setup.engine_answers import silence, told

BOTH = ("CAP_NET_ADMIN", "CAP_SYS_ADMIN")


@pytest.mark.parametrize(
    ("trouble", "podman", "remedy"),
    [
        (Trouble.DENIED, False, "sudo usermod -aG docker $USER, and log in again; or run as root"),
        # Docker's package makes the group.
        (Trouble.ABSENT, False, "install and start the engine, then sudo usermod -aG docker $USER, and log in again;"),
        (Trouble.DENIED, True, "run as root, which owns Podman's socket"),
    ],
)
def test_a_user_without_root_is_told_how_to_use_the_engine(
    trouble: Trouble, podman: bool, remedy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    silence(monkeypatch, trouble)
    monkeypatch.setattr(machine, "lacking_capabilities", lambda: BOTH)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(machine, "sudo_works", lambda: False)
    monkeypatch.setattr(machine, "has_podman_alone", lambda: podman)
    assert f" | {remedy}" in told(machine.Permissions().probe())


def programs(monkeypatch: pytest.MonkeyPatch, release: dict[str, str], *there: str) -> None:
    """Let this machine have a distribution and only these programs."""
    for module in (distribution, engine, packages):
        monkeypatch.setattr(module, "which", lambda name: f"/usr/bin/{name}" if name in there else None)
    monkeypatch.setattr(distribution, "_is_script", lambda _program: True)
    monkeypatch.setattr(distribution, "os_release", lambda: release)


FEDORA, ROCKY = {"ID": "fedora"}, {"ID": "rocky", "ID_LIKE": "rhel centos fedora"}
SOCKET_COMMAND = "systemctl start podman.socket && export DOCKER_HOST=unix:///run/podman/podman.sock"


@pytest.mark.parametrize(
    ("release", "there", "remedy"),
    [
        (FEDORA, ("podman", "docker"), f"as root: {SOCKET_COMMAND}"),  # Fedora's package conflicts with Docker's
        (ROCKY, ("podman",), f"as root: {SOCKET_COMMAND}"),
        (ROCKY, (), f"as root: dnf install --setopt=install_weak_deps=False podman && {SOCKET_COMMAND}"),
    ],
)
def test_where_podman_is_the_engine_docker_is_neither_installed_nor_started(
    release: dict[str, str],
    there: tuple[str, ...],
    remedy: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """RHEL has no package of Docker; `dnf` and `systemctl start docker` failed, and nothing said what to do."""
    silence(monkeypatch, Trouble.ABSENT)
    programs(monkeypatch, release, *there)
    monkeypatch.setattr(os, "access", lambda path, _mode: path != engine.PODMAN_SOCKET)
    monkeypatch.setattr(packages, "find_java", object)
    missing = packages.missing_packages()
    assert not {"engine", "moby-engine"} & {*missing}
    assert ("mmdebstrap" in missing) is (release is FEDORA)  # one that dnf does not find keeps it from all others
    assert told(engine.ContainerEngine().probe()).endswith(f"Podman works with root's socket | {remedy}")
    with pytest.raises(CannotFix, match="Podman works with root's socket"):
        engine.ContainerEngine().fix()


@pytest.mark.parametrize(
    ("trouble", "fixable"), [(Trouble.ABSENT, True), (Trouble.DENIED, False), (Trouble.FAILED, False), (None, False)]
)
def test_set_up_begins_nothing_where_starting_an_engine_does_not_help(
    trouble: Trouble | None, fixable: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a rootless engine set-up said after two minutes what it had seen at once."""
    programs(monkeypatch, FEDORA, "dockerd")
    if trouble is None:
        answers = {"/version": {"Version": "27.3.1"}, "/info": {"SecurityOptions": ["name=rootless"]}}
        monkeypatch.setattr(EngineSocket, "ping", lambda *_: None)
        monkeypatch.setattr(EngineSocket, "get", lambda _self, path: answers[path])
    else:
        silence(monkeypatch, trouble)
    check, begun = engine.ContainerEngine(), []
    monkeypatch.setattr(engine.ContainerEngine, "needs", ())
    monkeypatch.setattr(engine.ContainerEngine, "fix", lambda _self: None)
    outcome = make_ready([check, FakeCheck("environment", during=lambda: begun.append("environment"))])
    assert not outcome.ok
    assert begun == ["environment"] * fixable


def test_docker_is_installed_where_a_distribution_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    silence(monkeypatch, Trouble.ABSENT)
    programs(monkeypatch, FEDORA, "podman")
    assert "moby-engine" in packages.missing_packages()
    programs(monkeypatch, ROCKY, "dockerd")
    monkeypatch.setattr(os, "access", lambda path, _mode: path != engine.PODMAN_SOCKET)
    assert "it is not running" in told(engine.ContainerEngine().probe())


def test_a_socket_that_a_user_may_not_see_is_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    """Podman's folder in /run belongs to root alone, and pathlib raises an error there."""
    silence(monkeypatch, Trouble.ABSENT)

    def refuse(path: Path, **_: object) -> bool:
        raise PermissionError(13, "Permission denied", str(path))

    programs(monkeypatch, FEDORA, "dockerd")
    monkeypatch.setattr(os, "access", lambda _path, _mode: False)
    monkeypatch.setattr(type(engine.PODMAN_SOCKET), "exists", refuse)
    monkeypatch.setattr(engine, "SYSTEMD", SimpleNamespace(exists=lambda: True))
    assert "systemctl start docker" in told(engine.ContainerEngine().probe())
