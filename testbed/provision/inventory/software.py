"""The testbed's software on a machine that exists: copied over SSH, one folder for each content, and linked.

A folder is named by the digest of its content, so that what is there is not copied again. Each testbed that uses it is
a file in `DIGEST.users`; the last one to go removes the folder, unless the topology keeps it.
"""

import hashlib
import io
import shlex
import tarfile
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from testbed.hosts import Shell
from testbed.hosts.relocation import PathRelocation

COPY_S = 600.0


@dataclass(frozen=True, slots=True)
class SoftwareCopy:
    """A file or folder of this machine, the path of it in a container, and the digest of its content."""

    source: Path
    target: str
    digest: str

    @classmethod
    def of(cls, source: Path, target: str) -> "SoftwareCopy":
        """Return the copy with its digest."""
        return cls(source, target, content_digest(source))


@cache
def content_digest(source: Path) -> str:
    """Return a digest over the names and contents of a file or of all files of a folder."""
    total = hashlib.sha256()
    paths = sorted(path for path in source.rglob("*") if path.is_file()) if source.is_dir() else [source]
    for path in paths:
        with path.open("rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
        total.update(f"{path.relative_to(source)} {content}\n".encode())
    return total.hexdigest()[:20]


@cache
def archive(source: Path) -> bytes:
    """Return a tar archive with the file, or with the folder's content."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        tar.add(source, arcname=source.name if source.is_file() else ".", filter=_as_root)
    return buffer.getvalue()


def _as_root(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    entry.mode |= 0o444 | (0o111 if entry.isdir() else 0)
    return entry


def copy_software(host: Shell, relocation: PathRelocation, parent: str, copies: Iterable[SoftwareCopy]) -> int:
    """Copy what the host does not have yet, and link it to its path; return the bytes that were sent.

    `parent` is the folder of all software on the host.
    """
    sent = 0
    for copy in copies:
        folder = f"{parent}/{copy.digest}"
        user = shlex.quote(f"{folder}.users/{relocation.mark}")
        # Its user first: another testbed that ends now must not remove what this one finds.
        begin = f"mkdir -p {shlex.quote(folder + '.users')} && : > {user}; test -d {shlex.quote(folder)}"
        if host.run(begin, check=False).exit_status != 0:
            content = archive(copy.source)
            partial, whole = shlex.quote(f"{folder}.partial"), shlex.quote(folder)
            unpack = f"rm -rf {partial} && mkdir -p {partial} && tar -x -f - -C {partial} && mv {partial} {whole}"
            host.run(unpack, stdin=content, timeout_s=COPY_S)
            sent += len(content)
        there = f"{folder}/{copy.source.name}" if copy.source.is_file() else folder
        # The link's path is one of the testbed's own: the host places it under the testbed's folder.
        host.run(f"mkdir -p {shlex.quote(str(Path(copy.target).parent))} && ln -sfn {shlex.quote(there)} {copy.target}")
    return sent
