"""The files that hosts mount, copied to the other machines of a testbed, where they stay for the next one.

A mounted folder of the software cache has one folder for each artefact, whose name identifies its content. Only the
artefacts in use are copied, each into the same folder. So another release can be added while hosts run. Other files are
copied into a folder that is named by their digest.
"""

import hashlib
import io
import shlex
import tarfile
import threading
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path

from testbed.provision.engines import EngineGroup
from testbed.software.cache import sha256_of

FOLDER = "/var/lib/testbed/software"
"""The folder on another machine with the files of hosts."""
COPY_S = 600.0


class CopiedFiles:
    """The copies on all other machines; `artefacts` are the folders of the software cache that hosts use."""

    def __init__(self, group: EngineGroup, artefacts: Collection[Path]) -> None:
        self._group, self._artefacts = group, tuple(artefacts)
        self._locks = {name: threading.Lock() for name in group.shells}

    def mounts(self, machine: str, mounts: Mapping[str, str]) -> dict[str, str]:
        """Return path on `machine` → path in the container, for the same by paths on this machine; copy what lacks."""
        with self._locks[machine]:
            return {self._copied(machine, Path(source)): target for source, target in mounts.items()}

    def add(self, machine: str) -> None:
        """Copy the artefacts to `machine`, into folders that its hosts have mounted."""
        with self._locks[machine]:
            for artefact in self._artefacts:
                self._copy(machine, artefact, f"{FOLDER}/{artefact.parent.name}/{artefact.name}")

    def _copied(self, machine: str, source: Path) -> str:
        inside = [artefact for artefact in self._artefacts if artefact.parent == source]
        for artefact in inside:
            self._copy(machine, artefact, f"{FOLDER}/{source.name}/{artefact.name}")
        if inside:
            return f"{FOLDER}/{source.name}"
        place = f"{FOLDER}/{content_digest(source)}/{source.name}"
        self._copy(machine, source, place)
        return place

    def _copy(self, machine: str, source: Path, place: str) -> None:
        shell = self._group.shells[machine]
        if shell.run(["test", "-e", place], check=False).exit_status == 0:
            return
        final, parent = shlex.quote(place), shlex.quote(place.rpartition("/")[0])
        # One rename makes it whole; what a killed command left is removed when it is old.
        script = (
            f"set -e; mkdir -p {parent}; find {FOLDER} -maxdepth 1 -name 'part-*' -mmin +60 -exec rm -rf {{}} +",
            f"t=$(mktemp -d {FOLDER}/part-XXXXXX); tar -x -C $t",
            f"mv -T $t/{shlex.quote(source.name)} {final} || test -e {final}; rm -rf $t",
        )
        shell.run("; ".join(script), timeout_s=COPY_S, stdin=archive(source, source.name))


@cache
def content_digest(source: Path) -> str:
    """Return 20 hexadecimal digits over the names and contents of a file, or of all files of a folder."""
    paths = sorted(path for path in source.rglob("*") if path.is_file()) if source.is_dir() else [source]
    lines = [f"{path.relative_to(source)} {sha256_of(path)}\n" for path in paths]
    return hashlib.sha256("".join(lines).encode()).hexdigest()[:20]


def archive(source: Path, name: str) -> bytes:
    """Return a tar archive with a file or folder under this name; everybody may read all of it."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", dereference=True) as tar:
        tar.add(source, name, filter=_as_root)
    return buffer.getvalue()


def _as_root(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    entry.mode |= 0o444 | (0o111 if entry.isdir() else 0)
    return entry
