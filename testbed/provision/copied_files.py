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
        self._digests: dict[Path, str] = {}

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
        place = f"{FOLDER}/{self._digests.setdefault(source, digest_of(source))}/{source.name}"
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
        shell.run("; ".join(script), timeout_s=COPY_S, stdin=_archive(source))


def digest_of(source: Path) -> str:
    """Return 24 hexadecimal digits over a file, or over all files of a folder with their paths."""
    files = sorted(path for path in source.rglob("*") if path.is_file()) if source.is_dir() else [source]
    lines = [f"{path.relative_to(source.parent)} {sha256_of(path)}" for path in files]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:24]


def _archive(source: Path) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", dereference=True) as archive:
        archive.add(source, source.name)
    return buffer.getvalue()
