"""The object store's server: one binary, from the project's image when a registry has it, else built from source.

The ordinary Go client builds it once at a pinned version, in about five minutes on two cores. The cache folder keeps
the compiled parts of a killed build for the next one.
"""

import logging
import os
import re
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from testbed.errors import SoftwareError
from testbed.paths import cache_dir, state_dir
from testbed.software.cache import artefact, digests, existing
from testbed.software.commands import CommandError, run_logged
from testbed.software.engine import EngineError, EngineSocket, have_image

LOG = logging.getLogger(__name__)
MODULE = "github.com/minio/minio"
VERSION = "v0.0.0-20260212201848-7aac2a2c5b7c"
"""The last state of its source; the Go client cannot fetch the tags of releases."""
GO = (1, 24)
"""The oldest Go that compiles it."""
CONFIGURED = "TESTBED_MINIO_IMAGE"
IMAGE = "minio/minio:RELEASE.2025-09-07T16-13-09Z"
"""The last release that was published as an image."""
IN_IMAGE = "/usr/bin/minio"
BINARY = "minio"
BUILD_S = 300.0
_REPORT_S = 30.0
Progress = Callable[[str], None]


class GoMissing(SoftwareError):
    """Go is missing or too old."""


@dataclass(frozen=True, slots=True)
class Minio:
    """A verified server binary on this machine, and its origin: a version of the source, or an image."""

    binary: Path
    version: str
    digest: str
    """The binary's sha256."""


def cached_minio() -> Minio | None:
    """Return the binary when it is cached and whole; make nothing. An image that the user names replaces a build."""
    of_image = _of_image(wanted_image())
    for version in (of_image,) if os.environ.get(CONFIGURED) else (of_image, VERSION):
        folder = existing("minio", version)
        if folder is not None:
            return _minio(folder, version)
    return None


def minio(progress: Progress = lambda _text: None) -> Minio:
    """Return the binary from the cache, from the image, or from a build (also an earlier one, or of another process).

    Raise `GoMissing` when a build is necessary and impossible, `SoftwareError` for any other failure.
    """
    found = cached_minio()
    if found is not None:
        return found
    image = wanted_image()
    if _pulled(image):
        return _minio(artefact("minio", _of_image(image), lambda target: _extract(image, target)), _of_image(image))
    if (built := existing("minio", VERSION)) is not None:
        return _minio(built, VERSION)
    require_go()
    about = f"once, {BUILD_S / 60:.0f} min or so (or waiting for who builds it)"
    progress(f"building the object store's server, {about}; log: {_log()}")
    with _reporting(progress):
        return _minio(artefact("minio", VERSION, build), VERSION)


def wanted_image() -> str:
    """Return the image that has the binary."""
    return os.environ.get(CONFIGURED) or IMAGE


def go_version() -> tuple[int, ...] | None:
    """Return the version of the Go on PATH, such as (1, 24, 3); None without one."""
    go = shutil.which("go")
    if go is None:
        return None
    # GOTOOLCHAIN decides which Go compiles: the installed one, or one that it fetches.
    said = subprocess.run([go, "env", "GOVERSION"], capture_output=True, text=True, check=False).stdout
    return parse_go_version(said)


def parse_go_version(text: str) -> tuple[int, ...] | None:
    """Return (1, 24, 3) for `go1.24.3`; None for any other text."""
    found = re.match(r"go(\d+(?:\.\d+)*)", text.strip())
    return tuple(map(int, found[1].split("."))) if found else None


def require_go() -> None:
    """Raise `GoMissing` with the remedy unless there is a Go that is new enough."""
    found = go_version()
    if found is None or found < GO:
        there = "is not installed" if found is None else f"is {'.'.join(map(str, found))}"
        raise GoMissing(
            f"the object store's server is built with Go {'.'.join(map(str, GO))} or newer; go {there}: "
            "`./run testbed doctor --fix --with minio` installs it or says how"
        )


def build(target: Path) -> None:
    """Compile the pinned version into `target`. Raise `CommandError`."""
    work = cache_dir() / "minio-build"
    run_logged(build_command(), _log(), env=build_environment(work))
    (target / BINARY).write_bytes((work / "bin" / BINARY).read_bytes())
    (target / BINARY).chmod(0o755)
    shutil.rmtree(work, ignore_errors=True)


def build_command() -> tuple[str, ...]:
    """Return the command that compiles it. `-v` names each package in the log, which is the only progress."""
    return ("go", "install", "-v", "-trimpath", "-modcacherw", "-ldflags=-s -w", f"{MODULE}@{VERSION}")


def build_environment(work: Path) -> dict[str, str]:
    """Return Go's environment: all output is in `work`, sources follow the user's settings. The binary is static."""
    return {"GOPATH": str(work), "GOBIN": str(work / "bin"), "GOCACHE": str(work / "cache"), "CGO_ENABLED": "0"}


def _log() -> Path:
    return state_dir() / "logs" / "minio.log"


def _of_image(image: str) -> str:
    return "image-" + re.sub(r"[^A-Za-z0-9._+-]", "-", image)


def _minio(folder: Path, version: str) -> Minio:
    return Minio(folder / BINARY, version, digests(folder)[BINARY])


def _pulled(image: str) -> bool:
    """Return whether the engine has the image, or can pull it."""
    try:
        have_image(EngineSocket.from_environment(), image)
    except EngineError as error:
        log = LOG.warning if os.environ.get(CONFIGURED) else LOG.info
        log("the image %s cannot be pulled (%s): taking the server that is built from source", image, error)
        return False
    return True


def _extract(image: str, target: Path) -> None:
    EngineSocket.from_environment().copy_out(image, IN_IMAGE, target / BINARY)
    (target / BINARY).chmod(0o755)


@contextmanager
def _reporting(progress: Progress) -> Iterator[None]:
    """Report every half minute how many packages the log names so far."""
    done = threading.Event()

    def report() -> None:
        seconds = 0.0
        while not done.wait(_REPORT_S):
            seconds += _REPORT_S
            lines = _log().read_text(errors="replace").count("\n") if _log().exists() else 0
            progress(f"building the object store's server: {seconds:.0f} s of about {BUILD_S:.0f} s ({lines} packages)")

    reporter = threading.Thread(target=report, daemon=True)
    reporter.start()
    try:
        yield
    finally:
        done.set()
        reporter.join()


if __name__ == "__main__":
    # To build it in the background: `python -m testbed.software.minio`.
    try:
        made = minio(lambda text: print(text, flush=True))
    except CommandError as error:
        raise SystemExit(str(error)) from error
    print(f"{made.binary}: {made.version}")
