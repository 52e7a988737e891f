"""What is installed in a root file system, as one digest: the same for two that were made at different times."""

import hashlib
import tarfile
from pathlib import Path

from testbed.software.errors import SoftwareError

STATUS = "./var/lib/dpkg/status"


def installed(status: str) -> tuple[str, ...]:
    """`name version architecture` of every installed package of a dpkg status file, in order. Pure."""
    found = []
    for paragraph in status.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in paragraph.splitlines() if ": " in line and line[0] != " ")
        if fields.get("Status", "").endswith(" installed"):
            found.append(f"{fields['Package']} {fields['Version']} {fields['Architecture']}")
    return tuple(sorted(found))


def contents_digest(root: Path, recipe: str) -> str:
    """`sha256:…` of what the recipe installed into the root file system's tar. Raises `SoftwareError` when it has no
    packages."""
    with tarfile.open(root) as tar:
        member = next((m for m in tar if m.name in (STATUS, STATUS.removeprefix("./"))), None)
        stream = tar.extractfile(member) if member is not None else None
        packages = installed(stream.read().decode()) if stream is not None else ()
    if not packages:
        raise SoftwareError(f"{root.name} has no installed packages: the image's root file system was not made whole")
    return "sha256:" + hashlib.sha256("\n".join((recipe, *packages)).encode()).hexdigest()
