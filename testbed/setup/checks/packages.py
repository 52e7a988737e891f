"""Checks of Debian's packages and of the Python environment made with them."""

import json
import sys
import sysconfig
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

from testbed.setup.check import Check, CheckFinding
from testbed.setup.debian import has_apt, install, os_release, which
from testbed.setup.environment import IS_CHECKOUT, environment, make
from testbed.software.commands import find_java
from testbed.software.engine import EngineError, EngineSocket, Trouble

DAEMON_JSON = Path("/etc/docker/daemon.json")
# From the range reserved for benchmarks (RFC 2544), so that it hides no network of the machine.
DAEMON_SETTINGS = {"bip": "198.18.255.1/24", "default-address-pools": [{"base": "198.18.0.0/16", "size": 24}]}
PROGRAMS = {
    "ip": "iproute2",
    "tc": "iproute2",
    "ethtool": "ethtool",
    "mmdebstrap": "mmdebstrap",
    "mvn": "maven",
}


class PythonPackages(Check):
    """The packages that this interpreter needs to make the environment: venv with pip, and a C compiler for psutil."""

    name = "python packages"
    needs = ("platform",)
    fixable = True
    doing = "installing Python's packages"
    estimate_s = 8.0

    def probe(self) -> CheckFinding:
        """Search for venv, ensurepip, Python.h and cc, which only a checkout needs; return the finding."""
        if not IS_CHECKOUT:
            return self.good("the testbed is installed")
        missing = missing_for_python()
        if not missing:
            return self.good("venv, pip and a C compiler are there")
        return self.bad(f"not installed: {', '.join(missing)}", _command(missing))

    def fix(self) -> None:
        """Install the missing packages."""
        install(missing_for_python())


class Packages(Check):
    """The programs that set-up and provisioning call."""

    name = "packages"
    needs = ("python packages",)  # apt installs one thing at a time; the environment is waiting for that one
    fixable = True
    doing = "installing Debian packages"
    estimate_s = 20.0

    def probe(self) -> CheckFinding:
        """Search for each program (the engine's only when no engine answers); return the finding."""
        missing = missing_packages()
        if not missing:
            return self.good("ip, tc, ethtool, mmdebstrap, mvn, java and a container engine are installed")
        return self.bad(f"not installed: {', '.join(missing)}", _command(missing))

    def fix(self) -> None:
        """Install the missing packages; write the engine's addresses before its first start."""
        missing = missing_packages()
        if "docker.io" in missing:
            write_daemon_settings()
        install(missing)


def missing_for_python() -> tuple[str, ...]:
    """Return the packages that this interpreter lacks."""
    missing = []
    if find_spec("venv") is None or find_spec("ensurepip") is None:
        missing.append("python3-venv")
    if not (Path(sysconfig.get_path("include")) / "Python.h").exists():
        missing.append("python3-dev")
    if which("cc") is None:
        missing += ["gcc", "libc6-dev"]
    return tuple(missing)


def missing_packages() -> tuple[str, ...]:
    """Return the packages of missing programs."""
    missing = [package for program, package in PROGRAMS.items() if which(program) is None]
    if find_java() is None:
        missing.append(java_package(os_release().get("VERSION_CODENAME", "")))
    if not engine_there():
        missing += ["docker.io", "iptables"]
    return _unique(missing)


def java_package(codename: str) -> str:
    """Return the package of a Java that runs Spark and Kafka."""
    return "openjdk-17-jre-headless" if codename in ("", "bookworm") else "default-jre-headless"


def engine_there() -> bool:
    """Return whether an engine answers or could be started."""
    if which("dockerd") is not None:
        return True
    try:
        EngineSocket.from_environment().ping()
    except EngineError as error:
        # An engine that refuses or is on another machine exists: a second one would not help.
        return error.trouble in (Trouble.DENIED, Trouble.ELSEWHERE, Trouble.FAILED)
    return True


def write_daemon_settings(path: Path = DAEMON_JSON) -> None:
    """Write the addresses of an engine that set-up installs; existing settings stay unchanged."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(DAEMON_SETTINGS, indent=2) + "\n", encoding="utf-8")


def _command(missing: Iterable[str]) -> str:
    if has_apt():
        return f"apt-get install --no-install-recommends {' '.join(missing)}"
    return f"install what provides: {' '.join(missing)} (names are Debian's)"


def _unique(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


class PythonEnvironment(Check):
    """Every Python dependency, at the version in the lock file."""

    name = "python environment"
    needs = ("python packages", "disk")
    fixable = True
    doing = "installing Python dependencies"
    estimate_s = 90.0

    def probe(self) -> CheckFinding:
        """Return whether the environment is complete. pip made that of an installed package."""
        if not IS_CHECKOUT:
            return self.good(sys.prefix)
        wanted = environment()
        if wanted.complete:
            return self.good(str(wanted.folder))
        return self.bad("not made yet for this checkout, lock file and interpreter")

    def fix(self) -> None:
        """Make the environment."""
        make(environment())
