"""Checks of the distribution's packages and of the Python environment made with them."""

import json
import os
import sys
import sysconfig
import tempfile
from importlib.util import find_spec
from pathlib import Path

from testbed.network.kernel import lacking_capabilities
from testbed.setup.check import Check, CheckFinding
from testbed.setup.environment import IS_CHECKOUT, environment, make
from testbed.setup.install import install, run_as_root
from testbed.software.commands import find_java
from testbed.software.distribution import has_podman_alone, interpreter_name, this_distribution, which
from testbed.software.engine import EngineError, EngineSocket, Trouble
from testbed.software.image import BASE, CONFIGURED, local_image

DAEMON_JSON = Path("/etc/docker/daemon.json")
# From the range reserved for benchmarks (RFC 2544), so that it hides no network of the machine.
DAEMON_SETTINGS = {"bip": "198.18.255.1/24", "default-address-pools": [{"base": "198.18.0.0/16", "size": 24}]}
DEBIAN_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
OF_ROOT = ("tc", "ethtool", "unshare")
"""Programs that root calls itself. For other users a root container has them."""


class PythonPackages(Check):
    """The packages that this interpreter needs to make the environment: venv with pip, and a C compiler for psutil."""

    name = "python packages"
    needs = ("platform",)
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
    needs = ("python packages",)  # one installation at a time; the environment is waiting for that one
    doing = "installing the distribution's packages"
    estimate_s = 20.0

    def probe(self) -> CheckFinding:
        """Search for each program (the engine's only when no engine answers); return the finding."""
        missing = missing_packages()
        if not missing:
            return self.good("every program that set-up and provisioning call is installed")
        return self.bad(f"not installed: {', '.join(missing)}", _command(missing))

    def fix(self) -> None:
        """Install the missing packages; write the engine's addresses before its first start."""
        missing = missing_packages()
        if lacks_engine():
            write_daemon_settings()
        install(missing)


def missing_for_python() -> tuple[str, ...]:
    """Return the packages that this interpreter lacks."""
    missing = []
    if find_spec("venv") is None or find_spec("ensurepip") is None:
        missing.append("venv")
    if not (Path(sysconfig.get_path("include")) / "Python.h").exists():
        missing.append("Python.h")
    if which("cc") is None:
        missing.append("cc")
    return this_distribution().packages(missing, interpreter_name())


def missing_packages() -> tuple[str, ...]:
    """Return the packages of missing programs."""
    distribution = this_distribution()
    wanted = ["ip", *(() if lacking_capabilities() else OF_ROOT), "mvn"]
    missing = [program for program in wanted if which(program) is None]
    # Without a package of mmdebstrap, only a registry gives the image: the image's own check says so.
    if which("mmdebstrap") is None and distribution.has("mmdebstrap") and not _image_without_packages():
        missing.append("mmdebstrap")
        if not distribution.is_debian and not DEBIAN_KEYRING.exists():
            missing.append("debian keyring")
    if find_java() is None:
        missing.append("java")
    if lacks_engine():
        missing.append("engine")
    return distribution.packages(missing)


def _image_without_packages() -> bool:
    """Return whether the engine has the node image, or its base, or can have one of them from a registry."""
    engine = EngineSocket.from_environment()
    try:
        if local_image(engine) is not None or engine.find_image(BASE) is not None:
            return True
        return engine.registry_gives(os.environ.get(CONFIGURED) or BASE)
    except EngineError:
        return False


def lacks_engine() -> bool:
    """Return whether an engine is to be installed: none answers or could be started.

    With Podman, the check of the engine says what to do.
    """
    if which("dockerd") is not None or has_podman_alone():
        return False
    try:
        EngineSocket.from_environment().ping()
    except EngineError as error:
        # An engine that refuses or is on another machine exists: a second one would not help.
        return error.trouble not in (Trouble.DENIED, Trouble.ELSEWHERE, Trouble.FAILED)
    return False


def write_daemon_settings(path: Path = DAEMON_JSON) -> None:
    """Write the addresses of an engine that set-up installs; existing settings stay unchanged."""
    if path.exists():
        return
    text = json.dumps(DAEMON_SETTINGS, indent=2) + "\n"
    if os.access(path.parent if path.parent.exists() else path.parent.parent, os.W_OK):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        file.write(text)
        file.flush()
        run_as_root(["install", "-D", "-m", "644", file.name, path], f"tee {path} << EOF\n{text}EOF")


def _command(missing: tuple[str, ...]) -> str:
    return this_distribution().command(missing, root=os.geteuid() == 0)


class PythonEnvironment(Check):
    """Every Python dependency, at the version in the lock file."""

    name = "python environment"
    needs = ("python packages", "disk")
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
