"""A checkout of Kafka as its system tests need it: version, Python pins, scripts and test files, read only."""

import ast
import io
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path

from testbed.errors import UsageError
from testbed.software.source import SNAPSHOT
from testbed.suggestions import choices, nearest

SCRIPT_FOLDERS = ("bin", "config")
"""What a Kafka home has besides its jars."""
TESTS = Path("tests", "kafkatest", "tests")
_PARTS = ("gradle.properties", "bin/kafka-run-class.sh", "config", "tests/setup.py", "tests/kafkatest/__init__.py")


@dataclass(frozen=True, slots=True)
class KafkaCheckout:
    """A checkout: `version` is that of its build, `pins` the requirements of its `tests/setup.py`."""

    folder: Path
    version: str
    pins: tuple[str, ...]
    built: bool
    """Whether `./gradlew systemTestLibs`, or `jar`, left jars in it."""

    @property
    def python_path(self) -> Path:
        """Return the folder from which Python imports `kafkatest`."""
        return self.folder / "tests"

    @property
    def release(self) -> str | None:
        """Return the release whose source this is; None for a version under development."""
        return None if self.version.endswith(SNAPSHOT) else self.version

    def scripts_for(self, release: str) -> tuple[bytes, str]:
        """Return the scripts for the jars of a release, and their source in words.

        They are those of the release's tag, since another release's scripts may start classes that it lacks; without
        the tag, those of the checkout.
        """
        tagged = None if release == self.release else self.scripts_of(release)
        return (self.scripts(), "the checkout") if tagged is None else (tagged, f"the checkout's tag {release}")

    def scripts(self) -> bytes:
        """Return a tar of the checkout's `bin` and `config`, without the owners of their files."""
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as archive:
            for name in SCRIPT_FOLDERS:
                archive.add(self.folder / name, name, filter=_without_owner)
        return buffer.getvalue()

    def scripts_of(self, release: str) -> bytes | None:
        """Return the same of another release, from its tag in the checkout's history; None without that tag."""
        command = ["git", "-C", str(self.folder), "archive", "--format=tar", f"refs/tags/{release}", *SCRIPT_FOLDERS]
        try:
            done = subprocess.run(command, capture_output=True, timeout=60, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout if done.returncode == 0 else None

    def find_tests(self, wanted: str, here: Path) -> str:
        """Return ducktape's name of the tests that the user names, with an absolute path.

        `wanted` is a folder or file, relative to `here`, to the checkout or to one of its folders of tests, or a
        file's bare name; `::Class.method` may follow. Raise `UsageError` when there is no such file.
        """
        path, colons, inside = wanted.partition("::")
        for root in (here, self.folder, self.python_path, self.folder / TESTS):
            if path and (root / path).exists():
                return f"{(root / path).resolve()}{colons}{inside}"
        files = {file.stem: file for file in sorted((self.folder / TESTS).rglob("*_test.py"))}
        stem = Path(path).name.removesuffix(".py")
        if "/" not in path and stem in files:
            return f"{files[stem]}{colons}{inside}"
        close = nearest(stem, files)
        meant = f"; did you mean {files[close].relative_to(self.folder)}?" if close else ""
        raise UsageError(f"{wanted}: {self.folder} has no such test file or folder{meant}")


def read_checkout(path: str | Path) -> KafkaCheckout:
    """Return the checkout at `path`. Raise `UsageError`, which names what it lacks."""
    try:
        folder = Path(path).expanduser().absolute()
    except RuntimeError as error:  # ~USER of a user that does not exist
        raise UsageError(f"{path}: {error}") from error
    if not folder.is_dir():
        raise UsageError(f"{path}: there is no such folder; name a checkout of Apache Kafka's sources")
    lacking = [part for part in _PARTS if not (folder / part).exists()]
    if lacking:
        inside = next((root for root in folder.parents if all((root / part).exists() for part in _PARTS)), None)
        meant = f"; did you mean {inside}?" if inside else ""
        raise UsageError(
            f"{path} is no checkout of Kafka: it has no {choices(lacking)}; "
            f"name the folder of its sources that has gradle.properties, bin and tests{meant}"
        )
    built = any(folder.glob("clients/build/libs/kafka-clients-*.jar"))
    return KafkaCheckout(folder, _version(folder / "gradle.properties"), _pins(folder / "tests" / "setup.py"), built)


def _version(file: Path) -> str:
    for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
        name, _equals, value = line.partition("=")
        if name.strip() == "version" and value.strip():
            return value.strip()
    raise UsageError(f"{file} has no line version=…, so the checkout's version is not known")


def _pins(file: Path) -> tuple[str, ...]:
    """Return `install_requires` of a setup.py, read and not executed: it imports what today's setuptools lacks."""
    try:
        tree = ast.parse(file.read_text(encoding="utf-8"), str(file))
    except (SyntaxError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} cannot be read as Python: {error}") from error
    known = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for keyword in (each for node in ast.walk(tree) if isinstance(node, ast.Call) for each in node.keywords):
        if keyword.arg == "install_requires":
            value = known.get(keyword.value.id) if isinstance(keyword.value, ast.Name) else keyword.value
            pins = _texts(value)
            if not any(pin.replace("_", "-").lower().startswith("ducktape") for pin in pins):
                raise UsageError(
                    f"{file}, line {keyword.value.lineno}: install_requires is no list of requirements with ducktape; "
                    "the tests run with the ducktape that it pins"
                )
            return pins
    raise UsageError(f"{file} has no install_requires, so the ducktape that these tests need is not known")


def _texts(value: ast.expr | None) -> tuple[str, ...]:
    try:
        found = ast.literal_eval(value) if value is not None else ()
    except ValueError:
        return ()
    return tuple(found) if isinstance(found, list | tuple) and all(isinstance(each, str) for each in found) else ()


def _without_owner(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry
