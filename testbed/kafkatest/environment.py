"""The Python environment of a checkout's tests: what its setup.py pins, in the cache, under a key of the pins.

An old pin may have no wheel for a new Python, and its sources may not compile there. So each Python of the machine is
tried, this program's own first. The tests' files are imported from the checkout, and nothing is installed from it.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from results.contract import durable
from testbed.errors import SoftwareError, UsageError
from testbed.paths import cache_dir, state_dir
from testbed.software.commands import CommandError, run_logged

LAYOUT = "2"
SETUPTOOLS = "setuptools<72"
"""Has distutils and pkg_resources, which these tests and their ducktape import."""
TRIAL = (
    "import ducktape.command_line.main; from ducktape.cluster.cluster_spec import ClusterSpec; "
    "from ducktape.cluster.localhost import LocalhostCluster; "
    "c = LocalhostCluster(num_nodes=2); c.free(c.alloc(ClusterSpec.simple_linux(2)))"
)
"""A program that imports all of ducktape, which does not declare psutil, and gives nodes back, as after each test:
0.11 does so with what Python 3.10 removed."""
OLDEST = (3, 8)
INSTALL_S, TRIAL_S = 900.0, 60.0
_ASKED = "import sys; print(sys.executable); print(*sys.version_info[:3])"


@dataclass(frozen=True, slots=True)
class PythonVersion:
    """A Python interpreter of this machine."""

    program: Path
    version: tuple[int, int, int]

    @property
    def name(self) -> str:
        """Return `Python 3.11.7`."""
        return f"Python {'.'.join(map(str, self.version))}"


@dataclass(frozen=True, slots=True)
class TestEnvironment:
    """The environment: its interpreter, and the version of Python that it has."""

    __test__ = False

    program: Path
    python: str
    installed: tuple[str, ...]
    """Every package, as `name==version`."""


def environment(
    pins: Sequence[str], wanted: str | None = None, progress: Callable[[str], None] = lambda _text: None
) -> TestEnvironment:
    """Return the environment of these pins, from the cache or made now, with the Python `wanted` or one that works.

    Raise `SoftwareError`, which names each Python that was tried and why its installation failed.
    """
    asked = examined(wanted) if wanted else None
    if wanted and asked is None:
        raise UsageError(
            f"--python {wanted}: it does not run as a Python of version {'.'.join(map(str, OLDEST))} or newer"
        )
    folder = cache_dir() / "kafkatest" / key_of(pins, asked)
    with durable.lock(folder.with_name(f".{folder.name}.lock")):
        if not (folder / "environment.json").is_file():
            _make(folder, pins, [asked] if asked else list(candidates()), progress)
    document = json.loads((folder / "environment.json").read_text(encoding="utf-8"))
    return TestEnvironment(folder / "bin" / "python", document["python"], tuple(document["installed"]))


def key_of(pins: Sequence[str], asked: PythonVersion | None = None) -> str:
    """Return the name of the environment's folder: it follows from the pins, and from a Python that is asked for.

    It also follows from this program's Python: that of another distribution, in a shared home, has other ones.
    """
    of = json.dumps([LAYOUT, SETUPTOOLS, sorted(pins), str(asked.program) if asked else None, sys.version])
    return hashlib.sha256(of.encode()).hexdigest()[:16]


def candidates() -> Iterator[PythonVersion]:
    """Yield this program's Python, then older ones, newest first, then newer ones, which old pins may not support."""
    own = examined(sys.executable)
    names = {f"python3.{minor}" for minor in range(OLDEST[1], sys.version_info[1] + 4)}
    folders = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep) if folder]
    folders += (Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions").glob("*/bin")
    programs = {(folder / name).resolve() for folder in folders for name in names if os.access(folder / name, os.X_OK)}
    found = [python for program in sorted(programs) if (python := examined(str(program))) is not None]
    here = sys.version_info[1]
    found.sort(key=lambda each: (each.version[1] > here, abs(each.version[1] - here), -each.version[2]))
    by_minor: dict[int, PythonVersion] = {}
    for python in [own, *found] if own else found:
        by_minor.setdefault(python.version[1], python)
    yield from by_minor.values()


def examined(program: str) -> PythonVersion | None:
    """Return the interpreter that `program` starts; None when it starts none, or one that is too old."""
    try:
        done = subprocess.run(
            [program, "-I", "-c", _ASKED], capture_output=True, text=True, timeout=20, check=True, cwd="/"
        )
        executable, numbers = done.stdout.splitlines()
        major, minor, micro = (int(number) for number in numbers.split())
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return PythonVersion(Path(executable), (major, minor, micro)) if (major, minor) >= OLDEST else None


def _make(folder: Path, pins: Sequence[str], pythons: Sequence[PythonVersion], progress: Callable[[str], None]) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    log = state_dir() / "logs" / "kafkatest-environment.log"
    refused = []
    for python in pythons:
        progress(f"installing {', '.join(pins)} with {python.name}, once")
        # Not in a temporary folder: an environment cannot be renamed, and the document is written last.
        shutil.rmtree(folder, ignore_errors=True)
        try:
            run_logged([python.program, "-m", "venv", folder], log, timeout_s=INSTALL_S)
            run_logged([*_pip(folder), "install", SETUPTOOLS, *pins], log, timeout_s=INSTALL_S)
            run_logged([folder / "bin" / "python", "-I", "-c", TRIAL], log, timeout_s=TRIAL_S)
            document = {"python": python.name, "pins": list(pins), "installed": _installed(folder)}
            durable.write(folder / "environment.json", json.dumps(document, indent=1))
            return
        except CommandError as error:
            why = reason(error.output) or str(error).splitlines()[0]
            refused.append(f"{python.name}: {why}")
            progress(f"{python.name} cannot install them: {why}")
            shutil.rmtree(folder, ignore_errors=True)
    raise SoftwareError(
        f"{', '.join(pins)}, which the checkout's tests/setup.py pins, cannot be installed:\n  "
        + "\n  ".join(refused)
        + f"\nname a Python that can have them with --python PATH; the whole output is in {log}"
    )


def reason(output: str) -> str:
    """Return why pip failed, in one line of its output; empty when it does not say."""
    lines = [line.strip() for line in output.splitlines()]
    built = dict.fromkeys(m[1] for line in lines if (m := re.match(r"ERROR: Failed building wheel for (\S+)", line)))
    if built:
        fatal = next((line for line in lines if ": fatal error:" in line or line.startswith("ModuleNotFound")), "")
        return f"{', '.join(built)} cannot be built" + (f" ({fatal.split('fatal error: ')[-1]})" if fatal else "")
    missing = next((line for line in lines if line.startswith(("ModuleNotFoundError: ", "AttributeError: "))), "")
    return next((line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")), missing)


def _installed(folder: Path) -> list[str]:
    command = [*_pip(folder), "list", "--format=freeze"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return done.stdout.splitlines()


def _pip(folder: Path) -> list[str]:
    return [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "--no-input"]
