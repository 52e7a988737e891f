"""The project's virtual environment, made from the lock file. It is complete or does not exist.

An environment cannot be moved. It is built in its final folder, and its `.complete` file is written last; a
folder without that file is removed and rebuilt. uv receives the user's registry settings of pip.
"""

import ast
import contextlib
import hashlib
import logging
import os
import shlex
import shutil
import subprocess
import sys
import time
import venv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from results.contract import durable
from testbed.paths import cache_dir, state_dir
from testbed.software.commands import CommandError, find_java, run_logged

LOG = logging.getLogger(__name__)
CHECKOUT = Path(__file__).resolve().parents[2]
LOCK = "requirements.lock"
INSTALLER_LOCK = "requirements-installer.lock"
STAMP = ".complete"
IS_CHECKOUT = (CHECKOUT / LOCK).exists()
"""Whether this is a checkout, whose `./run` makes its environment. An installed package is in the user's own."""
UNUSED_DAYS = 14


@dataclass(frozen=True, slots=True)
class VirtualEnvironment:
    """A virtual environment that is, or is to be, at `folder` for the checkout at `checkout`."""

    folder: Path
    checkout: Path

    @property
    def python(self) -> Path:
        """Return its interpreter."""
        return self.folder / "bin" / "python"

    @property
    def complete(self) -> bool:
        """Return whether it was made completely and its interpreter still exists."""
        return (self.folder / STAMP).exists() and self.python.exists()


def environment(checkout: Path = CHECKOUT) -> VirtualEnvironment:
    """Return the environment of this checkout, lock files and interpreter, whether it exists or not."""
    digest = hashlib.sha256()
    for name in (LOCK, INSTALLER_LOCK):
        digest.update((checkout / name).read_bytes())
    for part in (sys.version, os.path.realpath(sys.executable), str(checkout)):
        digest.update(part.encode() + b"\0")
    return VirtualEnvironment(cache_dir() / f"venv-{digest.hexdigest()[:16]}", checkout)


def make(wanted: VirtualEnvironment) -> None:
    """Make the environment if it is not complete; wait for another process that is making it."""
    with durable.lock(wanted.folder.with_name(f".{wanted.folder.name}.lock")):
        if wanted.complete:
            return
        if wanted.folder.exists():
            shutil.rmtree(wanted.folder)
        _build(wanted, state_dir() / "logs" / "environment.log")
        (wanted.folder / "checkout").write_text(f"{wanted.checkout}\n", encoding="utf-8")
        stamp = wanted.folder / f"{STAMP}.new"
        stamp.touch()
        os.sync()  # thousands of files: one call instead of one each
        stamp.rename(wanted.folder / STAMP)
        _remove_unused(wanted)


def variables(wanted: VirtualEnvironment, inherited: Mapping[str, str]) -> dict[str, str]:
    """Return the variables for a program that runs in the environment."""
    changed = dict(inherited)
    changed["VIRTUAL_ENV"] = str(wanted.folder)
    changed["PATH"] = f"{wanted.folder / 'bin'}{os.pathsep}{inherited.get('PATH', os.defpath)}"
    changed["PYSPARK_PYTHON"] = str(wanted.python)
    # The environment alone decides what is imported; a .pth file adds the checkout to it.
    for name in ("PYTHONHOME", "PYTHONPATH"):
        changed.pop(name, None)
    # Images of Python set it. Each command, and each of the tests' workers, would compile all sources again.
    changed.pop("PYTHONDONTWRITEBYTECODE", None)
    java = find_java()
    if java is not None:
        changed["JAVA_HOME"] = str(java.home)
    return changed


def mark_used(wanted: VirtualEnvironment) -> None:
    """Record that the environment is in use, so that it does not count as an old one."""
    with contextlib.suppress(OSError):  # another user's, or on a read-only disk: this user removes none there either
        os.utime(wanted.folder / STAMP)


def _build(wanted: VirtualEnvironment, log: Path) -> None:
    log.unlink(missing_ok=True)
    _create(wanted.folder, log)
    lock, installer_lock = wanted.checkout / LOCK, wanted.checkout / INSTALLER_LOCK
    # pyspark comes as source, whose "build" zips 450 MB of jars: without compression this takes 20 s less.
    build_settings = wanted.folder / "build.cfg"
    build_settings.write_text("[bdist_wheel]\ncompression=stored\n", encoding="utf-8")
    settings = {"DIST_EXTRA_CONFIG": str(build_settings)}
    pip: list[str | Path] = [wanted.python, "-m", "pip", "--no-input", "--disable-pip-version-check"]
    run_logged([*pip, "install", "--quiet", "--require-hashes", "-r", installer_lock], log, env=settings)
    downloads = wanted.folder.with_name(f"{wanted.folder.name}-downloads")
    try:
        run_logged(
            [
                *(wanted.folder / "bin" / "uv", "pip", "install", "--python", wanted.python),
                *("--require-hashes", "--build-constraints", installer_lock, "--compile-bytecode"),
                *("-r", lock, "-r", installer_lock),
            ],
            log,
            env={
                **settings,
                **uv_variables(_pip_settings(wanted.python)),
                "UV_CACHE_DIR": str(downloads),
                "UV_PYTHON_DOWNLOADS": "never",
                "UV_NO_PROGRESS": "1",
            },
        )
    except CommandError as error:
        # pip reads all settings of the user (keyrings, netrc, certificates); uv knows most of them.
        LOG.warning("uv could not install the environment (log: %s): trying pip, which takes a minute more", error.log)
        run_logged([*pip, "install", "--require-hashes", "-r", lock], log, env=settings)
    _put_on_path(wanted)
    shutil.rmtree(downloads, ignore_errors=True)


def _create(folder: Path, log: Path) -> None:
    log.parent.mkdir(parents=True, exist_ok=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        venv.create(folder, with_pip=True, symlinks=True)
    except subprocess.CalledProcessError as error:
        raise CommandError(f"{sys.executable} cannot make a virtual environment with pip: {error}") from error


def _pip_settings(python: Path) -> dict[str, str]:
    done = subprocess.run(
        [python, "-m", "pip", "config", "list"], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    return parse_pip_settings(done.stdout)


def _put_on_path(wanted: VirtualEnvironment) -> None:
    (packages,) = (wanted.folder / "lib").glob("python3*/site-packages")
    (packages / "testbed-checkout.pth").write_text(f"{wanted.checkout}\n", encoding="utf-8")
    script = wanted.folder / "bin" / "testbed"
    # The kernel ends the interpreter's path at a blank, and after 127 bytes. So a shell reads the second line, which is
    # a text without effect for Python.
    start = f"#!/bin/sh\n'''exec' {shlex.quote(str(wanted.python))} \"$0\" \"$@\"\n' '''\n"
    script.write_text(f"{start}import sys\n\nfrom testbed.cli.main import main\n\nsys.exit(main())\n", encoding="utf-8")
    script.chmod(0o755)


def _remove_unused(current: VirtualEnvironment) -> None:
    """Remove environments of this checkout that were not used for long, such as those of older lock files."""
    for stamp in current.folder.parent.glob(f"venv-*/{STAMP}"):
        folder = stamp.parent
        note = folder / "checkout"
        same = note.exists() and note.read_text(encoding="utf-8").strip() == str(current.checkout)
        if same and folder != current.folder and time.time() - stamp.stat().st_mtime > UNUSED_DAYS * 86_400:
            stamp.unlink()
            shutil.rmtree(folder)


def parse_pip_settings(listing: str) -> dict[str, str]:
    """Return the settings in the output of `pip config list`; duplicates have pip's precedence.

    pip lists `global.index-url='…'`, `install.index-url='…'`, `:env:.index-url='…'`. The command's own
    section precedes the global one, and the environment precedes both.
    """
    ranks = {"global": 0, "install": 1, ":env:": 2}
    found: dict[str, tuple[int, str]] = {}
    for line in listing.splitlines():
        key, equals, quoted = line.partition("=")
        section, dot, name = key.rpartition(".")
        rank = ranks.get(section)
        if not (equals and dot) or rank is None:
            continue
        try:
            value = str(ast.literal_eval(quoted))
        except (ValueError, SyntaxError):
            continue  # not a setting
        if name not in found or rank >= found[name][0]:
            found[name] = (rank, value)
    return {name: value for name, (_, value) in found.items()}


def uv_variables(pip: Mapping[str, str]) -> dict[str, str]:
    """Return uv's variables for pip's settings: indexes, local wheels, certificates, proxy."""
    names = {
        "index-url": "UV_DEFAULT_INDEX",
        "extra-index-url": "UV_INDEX",
        "find-links": "UV_FIND_LINKS",
        "trusted-host": "UV_INSECURE_HOST",
        "cert": "SSL_CERT_FILE",
        "client-cert": "SSL_CLIENT_CERT",
        "timeout": "UV_HTTP_TIMEOUT",
    }
    settings = {names[name]: " ".join(value.split()) for name, value in pip.items() if name in names and value.split()}
    if "UV_FIND_LINKS" in settings:
        settings["UV_FIND_LINKS"] = settings["UV_FIND_LINKS"].replace(" ", ",")
    if pip.get("no-index", "").lower() in ("1", "true", "yes", "on"):
        settings["UV_NO_INDEX"] = "1"
    if proxy := pip.get("proxy"):
        settings |= {"HTTP_PROXY": proxy, "HTTPS_PROXY": proxy}
    return settings
