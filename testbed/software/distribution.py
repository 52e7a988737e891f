"""This machine's distribution: its names of the packages that the testbed calls, and the command that installs them.

Standard library only. `PACKAGES` is the one table of names.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

OS_RELEASE = Path("/etc/os-release")
# A user's PATH often omits these folders, although tc, mmdebstrap and dockerd are in them.
SYSTEM_FOLDERS = ("/usr/local/sbin", "/usr/sbin", "/sbin")


@dataclass(frozen=True, slots=True)
class PackageManager:
    """A package manager: its program, the words that install packages, and the words that fetch the lists first."""

    name: str
    program: str
    install: tuple[str, ...]
    refresh: tuple[str, ...] = ()
    quiet: tuple[str, ...] = ()
    """Words after the program in a command that no person watches."""


MANAGERS = (
    PackageManager(
        "apt",
        "apt-get",
        ("install", "--no-install-recommends"),
        ("update",),
        ("-q", "-y", "-o", "DPkg::Lock::Timeout=300"),
    ),
    PackageManager("dnf", "dnf", ("install", "--setopt=install_weak_deps=False"), quiet=("-q", "-y")),
    PackageManager("zypper", "zypper", ("install", "--no-recommends"), quiet=("--quiet", "--non-interactive")),
    PackageManager("pacman", "pacman", ("-S", "--needed"), quiet=("--noconfirm",)),
    PackageManager("apk", "apk", ("add",), quiet=("--quiet",)),
)
FAMILIES: Mapping[str, str] = {
    "debian": "apt",
    "ubuntu": "apt",
    "fedora": "dnf",
    "rhel": "dnf",
    "centos": "dnf",
    "suse": "zypper",
    "opensuse": "zypper",
    "arch": "pacman",
    "alpine": "apk",
}
"""By ID and ID_LIKE of os-release."""

_COLUMNS = tuple(manager.name for manager in MANAGERS)
# A program, or another thing to be had, and the packages that have it: apt, dnf, zypper, pacman, apk. "": none has it.
_TABLE: Mapping[str, tuple[str, str, str, str, str]] = {
    "ip": ("iproute2", "iproute", "iproute2", "iproute2", "iproute2"),
    "tc": ("iproute2", "iproute-tc", "iproute2", "iproute2", "iproute2-tc"),
    "ethtool": ("ethtool", "ethtool", "ethtool", "ethtool", "ethtool"),
    "unshare": ("util-linux", "util-linux", "util-linux", "util-linux", "util-linux-misc"),
    "mmdebstrap": ("mmdebstrap", "mmdebstrap", "", "", ""),
    "debian keyring": ("debian-archive-keyring", "debian-keyring", "", "", ""),
    "mvn": ("maven", "maven", "maven", "maven", "maven"),
    "java": (
        "default-jre-headless",
        "java-21-openjdk-headless",
        "java-21-openjdk-headless",
        "jre21-openjdk-headless",
        "openjdk21-jre-headless",
    ),
    "engine": ("docker.io iptables", "moby-engine", "docker", "docker", "docker"),
    "python": ("python3", "python3", "python311", "python", "python3"),
    "venv": ("python3-venv", "python3-libs", "python311", "python", "python3"),
    "Python.h": ("python3-dev", "python3-devel", "python311-devel", "python", "python3-dev"),
    "cc": ("gcc libc6-dev", "gcc", "gcc", "gcc", "gcc musl-dev"),
    "go": ("golang-go", "golang", "go", "go", "go"),
    "mkfs.ext4": ("e2fsprogs", "e2fsprogs", "e2fsprogs", "e2fsprogs", "e2fsprogs"),
    "debugfs": ("e2fsprogs", "e2fsprogs", "e2fsprogs", "e2fsprogs", "e2fsprogs-extra"),
    "losetup": ("util-linux", "util-linux", "util-linux", "util-linux", "losetup"),
}
PACKAGES: Mapping[str, Mapping[str, str]] = {
    what: dict(zip(_COLUMNS, names, strict=True)) for what, names in _TABLE.items()
}
NOT_IN_RHEL = frozenset({"mmdebstrap", "debian keyring", "engine"})
"""What Fedora has packages of, and RHEL has none."""
JAVA_17 = frozenset({"", "bookworm", "jammy", "noble"})
"""Releases of Debian and Ubuntu that have Java 17; later ones have newer Javas only."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """A distribution by its os-release, and its package manager (None: an unknown one)."""

    release: Mapping[str, str]
    manager: PackageManager | None

    @classmethod
    def of(cls, release: Mapping[str, str], programs: Iterable[str] = ()) -> "Distribution":
        """Return the distribution of an os-release; an unknown one's manager is the first of `programs`. Pure."""
        names = [release.get("ID", ""), *release.get("ID_LIKE", "").split()]
        family = next((FAMILIES[name.split("-")[0]] for name in names if name.split("-")[0] in FAMILIES), None)
        present = tuple(programs)
        found = (each for each in MANAGERS if each.name == family or (family is None and each.program in present))
        return cls(release, next(found, None))

    @property
    def name(self) -> str:
        """Return its name for people."""
        return self.release.get("PRETTY_NAME") or self.release.get("NAME") or "Linux"

    @property
    def is_rhel(self) -> bool:
        """Return whether it is Red Hat's enterprise distribution or one made of it, whose only engine is Podman."""
        names = {self.release.get("ID", ""), *self.release.get("ID_LIKE", "").split()}
        return not names.isdisjoint(("rhel", "centos", "ol"))

    @property
    def is_debian(self) -> bool:
        """Return whether its packages are Debian's own, with Debian's keys."""
        return self.release.get("ID") == "debian"

    def has(self, what: str) -> bool:
        """Return whether a package has this program or thing."""
        if self.manager is None or (self.is_rhel and what in NOT_IN_RHEL):
            return False
        return bool(PACKAGES[what][self.manager.name])

    def packages(self, missing: Iterable[str], python: str = "python3") -> tuple[str, ...]:
        """Return the packages that have these programs and things; unpackaged ones under their own names.

        `python` is the name of the interpreter that lacks them. Raise KeyError for a name that the table lacks.
        """
        found: list[str] = []
        for what in missing:
            if self.manager is None or not self.has(what):
                found.append(what)
                continue
            names = PACKAGES[what][self.manager.name]
            if what == "java" and self.manager.name == "apt":
                names = self._java()
            if what in ("venv", "Python.h") and (self.manager.name == "apt" or self.is_rhel):
                # A second Python, such as python3.11 of Ubuntu 22.04 and RHEL 9, has packages of its own.
                names = names.replace("python3", python)
            found += names.split()
        return tuple(dict.fromkeys(found))

    def _java(self) -> str:
        modern = self.release.get("VERSION_CODENAME", "") not in JAVA_17
        return PACKAGES["java"]["apt"] if modern else "openjdk-17-jre-headless"

    def command(self, packages: Sequence[str], *, root: bool = True) -> str:
        """Return the command with which a person installs packages; without `root` it has sudo."""
        if self.manager is None:
            return f"install by hand what provides: {' '.join(packages)}"
        words = (self.manager.program, *self.manager.install, *packages)
        return " ".join(words if root else ("sudo", *words))

    def how_to_get(self, *missing: str) -> str:
        """Return the command that installs these programs, for a message."""
        return self.command(self.packages(missing), root=os.geteuid() == 0)


def os_release(path: Path = OS_RELEASE) -> dict[str, str]:
    """Return the fields of os-release; empty where there is none."""
    if not path.exists():
        return {}
    pairs = (line.split("=", 1) for line in path.read_text(encoding="utf-8").splitlines() if "=" in line)
    return {key: value.strip("\"'") for key, value in pairs}


def this_distribution() -> Distribution:
    """Return this machine's distribution."""
    return Distribution.of(os_release(), (each.program for each in MANAGERS if which(each.program)))


def which(program: str) -> str | None:
    """Return the program's path; search the system folders, too.

    One of BusyBox, as on Alpine, counts as missing: it has few of the options that the testbed uses.
    """
    folders = os.pathsep.join((os.environ.get("PATH", os.defpath), *SYSTEM_FOLDERS))
    found = shutil.which(program, path=folders)
    return None if found is not None and Path(found).resolve().name == "busybox" else found


def has_podman_alone() -> bool:
    """Return whether Podman is this machine's engine: its `docker` is Podman's, or the distribution has no other."""
    docker = which("docker")
    stands_in = which("podman") is not None and docker is not None and _is_script(Path(docker))
    return which("dockerd") is None and (stands_in or this_distribution().is_rhel)


def _is_script(program: Path) -> bool:
    """Return whether a program is a script, as Podman's `docker` is. Docker's own client is none."""
    try:
        with program.open("rb") as opened:
            return opened.read(2) == b"#!"
    except OSError:
        return False


def interpreter_name() -> str:
    """Return `python3` for the distribution's own Python, or `python3.11` for another one that it has packaged."""
    own = Path(sys.executable).resolve().name
    return "python3" if Path("/usr/bin/python3").resolve().name == own else own


@cache
def sudo_works() -> bool:
    """Return whether this user may run commands as root without a password."""
    sudo = which("sudo")
    if sudo is None:
        return False
    done = subprocess.run([sudo, "-n", "true"], capture_output=True, stdin=subprocess.DEVNULL, check=False)
    return done.returncode == 0


def as_root(words: Sequence[str | Path], env: Mapping[str, str] | None = None) -> list[str] | None:
    """Return the command that runs `words` as root without asking; None when this user has no such way.

    sudo drops most variables, so `env` is part of its command.
    """
    plain = [str(word) for word in words]
    if os.geteuid() == 0:
        return plain
    if sudo_works():
        return ["sudo", "-n", "env", *(f"{name}={value}" for name, value in (env or {}).items()), *plain]
    return None


def by_sudo(command: str) -> str:
    """Return the command with sudo, for a message to a user who is not root."""
    return command if os.geteuid() == 0 else f"sudo {command}"
