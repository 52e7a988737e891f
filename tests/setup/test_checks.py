"""Each check's refusals, with the machine's side replaced."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from testbed.cgroups import CpuQuota
from testbed.network import apply, kernel, namespaces
from testbed.network.kernel import effective_capabilities
from testbed.setup.checks import catalogue, engine, machine, packages, software
from testbed.software import distribution
from testbed.software.commands import CommandError
from testbed.software.distribution import Distribution, os_release
from testbed.software.engine import EngineError, EngineSocket, Trouble
from testbed.wait import wait_for
from tests.setup.engine_answers import silence, told


def test_another_system_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine.sys, "platform", "darwin")
    assert told(machine.Platform().probe()).startswith("this is darwin; the testbed shapes NICs with Linux's")


BOTH = ("CAP_NET_ADMIN", "CAP_SYS_ADMIN")


def test_root_without_capabilities_and_without_an_engine_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    silence(monkeypatch, Trouble.DENIED, "/s: permission denied")
    monkeypatch.setattr(machine, "lacking_capabilities", lambda: BOTH)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert told(machine.Permissions().probe()) == (
        "root lacks CAP_NET_ADMIN and CAP_SYS_ADMIN, needed to make and shape the containers' NICs, "
        "and may not use an engine that gives them: /s: permission denied | start this container with --privileged"
    )
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert told(machine.Permissions().probe()).endswith(
        "sudo usermod -aG docker $USER, and log in again; or run as root"
    )
    monkeypatch.setattr(machine, "lacking_capabilities", lambda: ())
    assert machine.Permissions().probe().ok


def test_a_user_of_the_engine_needs_no_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "lacking_capabilities", lambda: BOTH)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(EngineSocket, "ping", lambda *_: None)
    assert machine.Permissions().probe().what.endswith("a container of the engine shapes and links NICs")


@pytest.mark.parametrize(("sudo", "ok"), [(True, True), (False, False)])
def test_an_engine_that_is_not_installed_yet_needs_sudo(sudo: bool, ok: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    silence(monkeypatch, Trouble.ABSENT)
    monkeypatch.setattr(machine, "lacking_capabilities", lambda: BOTH)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(machine, "sudo_works", lambda: sudo)
    assert machine.Permissions().probe().ok is ok


def test_capabilities_are_read_from_the_kernel() -> None:
    assert effective_capabilities("Name:\tx\nCapEff:\t00000000a80425fb\n") >> 12 & 1 == 0
    assert effective_capabilities("CapEff:\t000001ffffffffff\n") >> 21 & 1 == 1
    assert effective_capabilities("") == 0


@pytest.mark.parametrize(
    ("version", "told_as"),
    [
        ("Linux version 5.15.153.1-microsoft-standard-WSL2 (root@941d701f84f1) (gcc (GCC) 11.2.0) #1 SMP", "WSL2"),
        ("Linux version 4.19.128-microsoft-standard (oe-user@oe-host) (gcc version 8.2.0 (GCC)) #1 SMP", "WSL2"),
        ("Linux version 4.4.0-19041-Microsoft (Microsoft@Microsoft.com) (gcc version 5.4.0 (GCC)) #1237", "WSL1"),
        ("Linux version 6.8.0-1017-azure (buildd@lcy02-amd64-051) (x86_64-linux-gnu-gcc-13) #20-Ubuntu SMP", ""),
    ],
)
def test_windows_is_seen_by_the_kernels_version(version: str, told_as: str) -> None:
    assert machine.windows_subsystem(version) == told_as


def test_wsl1_is_refused_and_wsl2_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "version"
    monkeypatch.setattr(machine, "KERNEL_VERSION", file)
    file.write_text("Linux version 4.4.0-19041-Microsoft")
    assert "WSL1: it has no Linux kernel, so no containers | wsl --set-version" in told(machine.Platform().probe())
    file.write_text("Linux version 5.15.153.1-microsoft-standard-WSL2")
    assert machine.Platform().probe().what.endswith(f"{os.uname().machine}, WSL2")


def test_control_groups_by_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "cgroup.controllers"
    monkeypatch.setattr(machine, "CONTROLLERS", file)
    found = machine.ControlGroups().probe()
    assert (found.ok, found.required) == (False, False)
    assert "a disk's bandwidth cannot" in found.what
    file.touch()
    assert machine.ControlGroups().probe().what == "version 2"


def test_a_route_that_covers_all_addresses_is_named() -> None:
    assert machine.covering_routes(["default", "198.18.3.0/24", "10.0.0.0/8"]) == ()
    assert machine.covering_routes(["198.0.0.0/8", "198.18.0.0/15"]) == ("198.0.0.0/8", "198.18.0.0/15")
    assert machine.covering_routes(["0.0.0.0/1", "128.0.0.0/1"]) == ()  # a VPN's default route
    # Each testbed needs a network in both halves of the range: a proxy that answers for one half leaves none.
    assert machine.covering_routes(["198.18.0.0/16", "10.0.0.0/8"]) == ("198.18.0.0/16",)


def test_routes_are_read_where_ip_is_in_no_folder_of_the_users_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """openSUSE has it in /usr/sbin, which a user's PATH lacks."""
    program = tmp_path / "ip"
    program.write_text('#!/bin/sh\necho \'[{"dst": "198.0.0.0/8"}]\'\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", "/no/such/folder")
    for module in (distribution, namespaces):
        monkeypatch.setattr(module, "SYSTEM_FOLDERS", (str(tmp_path),))
    assert "a route to 198.0.0.0/8" in machine.Addresses().probe().what
    assert apply.machine_networks() == ["198.0.0.0/8"]
    monkeypatch.setattr(namespaces, "lacking_capabilities", lambda: ())
    assert "198.0.0.0/8" in namespaces.MachineShell().run(["ip", "route"]).stdout  # root, by `su`


def test_too_little_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal:  8000000 kB\nMemAvailable:  2097152 kB\n")
    monkeypatch.setattr(machine, "MEMINFO", meminfo)
    assert told(machine.MemorySize().probe()).startswith("2.0 GiB available, 4 GiB needed")


def test_a_cpu_quota_above_the_testbed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    monkeypatch.setattr(machine, "own_cpu_quota", lambda: None)
    assert machine.Cpus().probe().what == "8 cores"
    quota = CpuQuota(1.5, Path("/sys/fs/cgroup/lab.slice"), Path("/sys/fs/cgroup/lab.slice/cpu.stat"))
    monkeypatch.setattr(machine, "own_cpu_quota", lambda: quota)
    found = machine.Cpus().probe()
    assert (found.ok, found.required) == (False, False)
    assert found.what.startswith("8 cores, of which /sys/fs/cgroup/lab.slice allows 1.5 CPUs")
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    assert machine.Cpus().probe().what == "1 cores"


def test_too_little_disk_names_the_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    silence(monkeypatch, Trouble.ABSENT)
    usage = SimpleNamespace(free=3 * machine.GIB)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    text = told(machine.DiskSpace().probe())
    assert f"{tmp_path / 'cache' / 'testbed'}: 3.0 GiB free; /var/lib/docker: 3.0 GiB free; 5 GiB needed" in text
    assert "XDG_CACHE_HOME" in text


def test_a_folder_of_the_engine_that_the_user_may_not_look_into_is_no_traceback(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Such as /var/lib/docker/100000.100000 of an engine with user namespaces: only root may enter its parent."""
    is_dir = Path.is_dir

    def refused(path: Path) -> bool:
        if path.is_relative_to(tmp_path / "docker"):
            raise PermissionError(13, "Permission denied", str(path))
        return is_dir(path)

    asked: list[Path] = []
    monkeypatch.setattr(Path, "is_dir", refused)
    monkeypatch.setattr(machine, "engine_folder", lambda: tmp_path / "docker" / "100000.100000")
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: asked.append(folder) or SimpleNamespace(free=9 << 30))
    assert machine.DiskSpace().probe().what == "9 GiB free"
    assert asked[-1] == tmp_path


def test_missing_programs_are_named_by_package(monkeypatch: pytest.MonkeyPatch) -> None:
    silence(monkeypatch, Trouble.ABSENT)
    monkeypatch.setattr(packages, "which", lambda program: "/x" if program in ("ip", "tc", "unshare") else None)
    monkeypatch.setattr(packages, "find_java", lambda: None)
    monkeypatch.setattr(packages, "lacking_capabilities", lambda: ())
    monkeypatch.setattr(packages, "_image_without_packages", lambda: False)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    debian = Distribution.of({"ID": "debian", "VERSION_CODENAME": "bookworm"})
    monkeypatch.setattr(packages, "this_distribution", lambda: debian)
    names = "ethtool maven mmdebstrap openjdk-17-jre-headless docker.io iptables"
    assert told(packages.Packages().probe()) == (
        f"not installed: {names.replace(' ', ', ')} | apt-get install --no-install-recommends {names}"
    )
    # An ordinary user calls less: a container of the engine has the rest.
    monkeypatch.setattr(packages, "lacking_capabilities", lambda: BOTH)
    monkeypatch.setattr(packages, "_image_without_packages", lambda: True)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert told(packages.Packages().probe()).endswith(
        "| sudo apt-get install --no-install-recommends maven openjdk-17-jre-headless docker.io iptables"
    )


def test_an_engine_that_answers_needs_no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "which", lambda program: None if program == "dockerd" else "/x")
    monkeypatch.setattr(EngineSocket, "ping", lambda *_: None)
    assert packages.Packages().probe().ok
    silence(monkeypatch, Trouble.DENIED)
    assert packages.Packages().probe().ok


def test_what_python_lacks_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "find_spec", lambda name: None if name == "ensurepip" else object())
    monkeypatch.setattr(packages, "which", lambda _: None)
    monkeypatch.setattr(packages.sysconfig, "get_path", lambda _: "/none")
    monkeypatch.setattr(packages, "this_distribution", lambda: Distribution.of({"ID": "debian"}))
    monkeypatch.setattr(packages, "interpreter_name", lambda: "python3")
    assert "not installed: python3-venv, python3-dev, gcc, libc6-dev" in told(packages.PythonPackages().probe())
    monkeypatch.setattr(packages, "interpreter_name", lambda: "python3.11")
    assert "not installed: python3.11-venv, python3.11-dev, gcc" in told(packages.PythonPackages().probe())


def test_an_engine_of_ours_gets_its_addresses_once(tmp_path: Path) -> None:
    path = tmp_path / "docker" / "daemon.json"
    packages.write_daemon_settings(path)
    assert json.loads(path.read_text())["bip"] == "198.18.255.1/24"
    path.write_text("{}")
    packages.write_daemon_settings(path)
    assert path.read_text() == "{}"


@pytest.mark.parametrize(
    ("trouble", "expected"),
    [
        (Trouble.ABSENT, "no container engine at unix:///s: it is not running | "),
        (Trouble.DENIED, "this user may not use the engine | run as root, or: sudo usermod -aG docker $USER"),
        (Trouble.FAILED, "the engine does not work: no container engine at unix:///s"),
        (Trouble.ELSEWHERE, " | unset DOCKER_HOST"),
    ],
)
def test_an_engine_that_does_not_answer(monkeypatch: pytest.MonkeyPatch, trouble: Trouble, expected: str) -> None:
    silence(monkeypatch, trouble)
    assert expected in told(engine.ContainerEngine().probe())


def test_an_engine_named_by_the_user_is_not_started_by_us(monkeypatch: pytest.MonkeyPatch) -> None:
    silence(monkeypatch, Trouble.ABSENT)
    monkeypatch.setenv("DOCKER_HOST", "unix:///s")
    assert "(from DOCKER_HOST) | start that engine, or unset" in told(engine.ContainerEngine().probe())
    with pytest.raises(Exception, match="start that engine, or unset DOCKER_HOST"):
        engine.ContainerEngine().fix()


def test_a_daemon_that_dies_is_told_with_its_last_words(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    silence(monkeypatch, Trouble.ABSENT)
    program = tmp_path / "dockerd"
    program.write_text("#!/bin/sh\necho failed to mount overlay >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setattr(engine, "SYSTEMD", tmp_path / "absent")
    monkeypatch.setattr(engine, "which", lambda _: str(program))
    with pytest.raises(CommandError, match=r"dockerd ended with 1\n    failed to mount overlay\n  whole log: "):
        engine.ContainerEngine().fix()


def test_a_started_daemon_is_waited_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    marker = tmp_path / "up"

    def ping(*_: object) -> None:
        if not marker.exists():
            raise EngineError("no container engine", Trouble.ABSENT)

    program = tmp_path / "dockerd"
    program.write_text(f"#!/bin/sh\ntouch {marker}\n")
    program.chmod(0o755)
    monkeypatch.setattr(EngineSocket, "ping", ping)
    monkeypatch.setattr(EngineSocket, "get", lambda *_: {"Version": "28.0.4"})
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    monkeypatch.setattr(engine, "SYSTEMD", tmp_path / "absent")
    monkeypatch.setattr(engine, "which", lambda _: str(program))
    # Its end is not awaited here: a daemon that forks is as good as one that stays.
    monkeypatch.setattr(subprocess.Popen, "poll", lambda _: None)
    engine.ContainerEngine().fix()
    assert engine.ContainerEngine().probe().ok


@pytest.mark.parametrize(("name", "kept"), [("dockerd", True), ("sleeper", False)])
def test_the_pid_file_of_a_killed_engine_does_not_stop_the_next_one(
    name: str, kept: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Another process may have the PID of the engine that was killed."""
    program = tmp_path / name
    shutil.copy(str(shutil.which("sleep")), program)
    file = tmp_path / "docker.pid"
    monkeypatch.setattr(engine, "PID_FILE", file)
    with subprocess.Popen([str(program), "60"]) as process:
        file.write_text(str(process.pid))
        engine._remove_stale_pid()
        assert file.exists() is kept
        process.kill()
        # It is a zombie until the block ends.
        wait_for(lambda: Path(f"/proc/{process.pid}/stat").read_text(), lambda s: ") Z" in s, 5, 0.01, "its end")
        engine._remove_stale_pid()
        assert not file.exists()


def test_a_kernel_that_cannot_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "which", lambda _: "/x")
    monkeypatch.setattr(machine, "try_kind", lambda kind: "" if kind == "veth" else "Specified qdisc kind is unknown")
    finding = machine.KernelFeatures().probe()
    assert "htb (Specified qdisc kind is unknown), bfifo (" in told(finding)
    assert finding.fix_command.replace("sudo ", "") == "modprobe bridge && modprobe sch_htb && modprobe sch_fifo"
    assert finding.required
    optional = machine.KernelDelay().probe()
    assert not optional.required
    assert "delay and loss cannot be declared on this machine; rates can" in optional.what


def test_the_kernel_is_not_judged_before_there_is_anything_to_try_it_with(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "which", lambda _: None)
    monkeypatch.setattr(machine, "lacking_capabilities", lambda: ())
    assert "cannot be tried before ip, tc and unshare are installed" in told(machine.KernelFeatures().probe())


def test_a_trial_that_fails_gives_the_kernels_words(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> "subprocess.CompletedProcess[str]":
        return subprocess.CompletedProcess([], 2, "", "Error: Specified qdisc kind is unknown.\n")

    monkeypatch.setattr(subprocess, "run", refuse)
    assert machine.try_kind("netem") == "Specified qdisc kind is unknown"


def test_a_user_without_root_tries_the_kernel_in_a_container(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[list[str]] = []

    def refuse(words: list[str], **_: object) -> "subprocess.CompletedProcess[str]":
        tried.append(words)
        return subprocess.CompletedProcess([], 1, "", "unshare: unshare failed: Operation not permitted\n")

    monkeypatch.setattr(kernel, "lacking_capabilities", lambda: BOTH)
    monkeypatch.setattr(machine, "lacking_capabilities", lambda: BOTH)
    monkeypatch.setattr(subprocess, "run", refuse)
    monkeypatch.setattr(kernel, "local_image", lambda _: None)
    finding = machine.KernelFeatures().probe()
    assert (finding.ok, finding.required, finding.what) == (
        False,
        False,
        "cannot be tried by this user before the node image is there",
    )
    assert tried[0][:3] == ["unshare", "--user", "--map-root-user"]
    silence(monkeypatch, Trouble.ABSENT)
    monkeypatch.setattr(kernel, "local_image", lambda engine: engine.get("/images"))
    assert kernel.try_kind("htb") == "cannot be tried by this user: no container engine at unix:///s"


@pytest.mark.containers
def test_this_kernel_can_shape_and_nothing_is_left_behind() -> None:
    before = {path.name for path in Path("/sys/class/net").iterdir()}
    assert machine.KernelFeatures().probe().ok
    assert not {"t0", "t1", "t2"} & ({path.name for path in Path("/sys/class/net").iterdir()} - before)


def test_an_environment_that_is_not_made_yet() -> None:
    assert "not made yet for this checkout, lock file and interpreter" in told(packages.PythonEnvironment().probe())


def test_software_that_is_not_there_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(software, "find_java", lambda: None)
    monkeypatch.setattr(software, "local_image", lambda _: None)
    assert told(software.JavaRuntime().probe()).startswith("no Java 17 or newer")
    assert told(software.NodeImage().probe()).startswith("the engine does not have it yet")
    assert told(software.KafkaJars().probe()).startswith("Kafka 4.3.1 is not in the cache, or damaged there")
    assert told(software.QuickStart().probe()).startswith("not made yet")


def test_fast_starts_are_made_for_the_image_that_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """The image of this recipe, also where another one is configured and no registry gives it: no second attempt."""
    made: list[object] = []
    monkeypatch.setattr(software, "kafka_release", lambda: "release")
    monkeypatch.setattr(software, "bootstrap_checkpoint", made.append)
    monkeypatch.setattr(software, "local_image", lambda _: "image")
    monkeypatch.setattr(software, "node_image", lambda: pytest.fail("a registry is asked again"))
    monkeypatch.setattr(software, "cds_archive", lambda *of: made.append(of))
    software.QuickStart().fix()
    assert made == ["release", ("release", "image")]


def test_without_an_engine_the_image_cannot_be_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    silence(monkeypatch, Trouble.ABSENT)
    for check in (software.NodeImage(), software.QuickStart()):
        assert "cannot be looked for: no container engine at unix:///s" in told(check.probe())


def test_os_release(tmp_path: Path) -> None:
    file = tmp_path / "os-release"
    file.write_text('PRETTY_NAME="Debian GNU/Linux 12"\nID=debian\n')
    assert os_release(file) == {"PRETTY_NAME": "Debian GNU/Linux 12", "ID": "debian"}
    assert os_release(tmp_path / "absent") == {}


def test_go_is_needed_only_to_build_the_object_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(software, "cached_minio", lambda: None)
    monkeypatch.setattr(software, "go_version", lambda: (1, 19, 8))
    found = software.Go().probe()
    assert (found.ok, found.required) == (False, False)
    assert told(found).startswith("Go 1.19.8 is too old; 1.24 or newer builds the object store's server")
    assert told(software.MinioServer().probe()).endswith("| ./run testbed doctor --fix --with minio")
    monkeypatch.setattr(software, "cached_minio", lambda: SimpleNamespace(version="v1"))
    assert software.Go().probe().what == "not needed: the server is built"
    assert software.MinioServer().probe().what == "MinIO v1"
    monkeypatch.setattr(software, "go_version", lambda: (1, 26))
    assert software.Go().probe().what == "Go 1.26"


def test_the_library_of_clock_skew_is_fetched_in_advance_when_asked_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(software, "cached_library", lambda: None)
    assert told(software.SkewedClocks().probe()).endswith("| ./run testbed doctor --fix --with clock-skew")
    monkeypatch.setattr(software, "cached_library", lambda: tmp_path / "libfaketimeMT.so.1")
    assert software.SkewedClocks().probe().what == "libfaketimeMT.so.1 of Debian bookworm"
    assert [check.name for check in catalogue.all_checks(["clock-skew"])][-1] == "clock-skew"


def test_a_distribution_whose_go_is_too_old_is_not_asked_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    installed: list[tuple[str, ...]] = []
    monkeypatch.setattr(software, "install", installed.append)
    monkeypatch.setattr(software, "this_distribution", lambda: Distribution.of({"ID": "debian"}))
    monkeypatch.setattr(software, "_offered_go", lambda: software.parse_offered_go("  Candidate: 2:1.19~1\n"))
    with pytest.raises(software.CannotFix, match=r"the distribution has 1\.19: install Go 1\.24 or newer by hand"):
        software.Go().fix()
    monkeypatch.setattr(software, "_offered_go", lambda: software.parse_offered_go("  Candidate: (none)\n"))
    with pytest.raises(software.CannotFix, match="the distribution has none"):
        software.Go().fix()
    assert installed == []
    monkeypatch.setattr(
        software, "_offered_go", lambda: software.parse_offered_go("  Installed: (none)\n  Candidate: 2:1.24~2\n")
    )
    software.Go().fix()
    assert installed == [("golang-go",)]


def test_an_engine_on_which_testbeds_cannot_work_is_named_with_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EngineSocket, "ping", lambda *_: None)
    answers = {
        "/version": {"Version": "5.2.5", "Components": [{"Name": "Podman Engine"}]},
        "/info": {"SecurityOptions": ["name=rootless"]},
    }
    monkeypatch.setattr(EngineSocket, "get", lambda _self, path: answers[path])
    assert told(engine.ContainerEngine().probe()).startswith("Podman 5.2.5: root is missing, so it cannot link hosts")


def test_podmans_socket_is_named_where_docker_is_absent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    silence(monkeypatch, Trouble.ABSENT)
    (tmp_path / "podman.sock").touch()
    monkeypatch.setattr(engine, "PODMAN_SOCKET", tmp_path / "podman.sock")
    assert f"| export DOCKER_HOST=unix://{tmp_path / 'podman.sock'}" in told(engine.ContainerEngine().probe())


def test_an_image_of_another_architecture_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {"/version": {"Version": "28.0.4"}, "/info": {"Architecture": "aarch64"}}
    monkeypatch.setattr(EngineSocket, "get", lambda _self, path: answers[path])
    monkeypatch.setattr(EngineSocket, "image_labels", lambda *_: {})
    monkeypatch.setattr(software, "local_image", lambda _: SimpleNamespace(tag="node:1"))
    monkeypatch.setattr(EngineSocket, "image_architecture", lambda *_: "amd64")
    assert "node:1 is for amd64, the engine runs on aarch64" in told(software.NodeImage().probe())
    monkeypatch.setattr(EngineSocket, "image_architecture", lambda *_: "arm64")
    assert software.NodeImage().probe().what == "node:1, made from a registry"
