"""The testbed's folders: the XDG base directories, one folder `testbed` in each."""

import hashlib
import os
import shutil
from contextlib import suppress
from pathlib import Path

MACHINE_ID = Path("/etc/machine-id")
OWNER = "machine"
"""The file in the state folder with the digest of the machine whose folder it is."""


def _xdg(variable: str, fallback: str) -> Path:
    # The XDG specification: a relative path in the variable is invalid and must be ignored.
    value = os.environ.get(variable, "")
    base = Path(value) if value.startswith("/") else Path.home() / fallback
    return base / "testbed"


def cache_dir() -> Path:
    """Return the folder of files that can be made again: jars, images' recipes, archives.

    Machines of different architectures may share a home. Binaries and archives of one do not run on the other.
    """
    folder, architecture = _xdg("XDG_CACHE_HOME", ".cache"), os.uname().machine
    return folder if architecture == "x86_64" else folder / architecture


def state_dir() -> Path:
    """Return this machine's folder of running testbeds and unfinished moves: keys, addresses, journals.

    Machines may share a home. Here the containers and processes of another one would count as gone and dead. So the
    first machine that asks claims the folder by a file with its digest, and each other one has a folder in it.
    """
    folder, digest = _xdg("XDG_STATE_HOME", ".local/state"), machine_digest()
    return folder if not digest or _claimed(folder / OWNER, digest) == digest else folder / f"machine-{digest}"


def _claimed(owner: Path, digest: str) -> str:
    """Return the digest in the file `owner`; write this one where there is none and the folder can be written."""
    try:
        return owner.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        mine = owner.with_name(f"{OWNER}-{digest}-{os.getpid()}")
    try:
        owner.parent.mkdir(parents=True, exist_ok=True)
        mine.write_text(f"{digest}\n", encoding="ascii")
        with suppress(FileExistsError):
            os.link(mine, owner)  # whole or absent, also over NFS
        mine.unlink()
        return owner.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return digest  # whatever needs the folder fails by itself, and says why


def machine_digest() -> str:
    """Return a digest of this machine's id; empty where it has none, as in most containers."""
    try:
        identity = MACHINE_ID.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""
    return hashlib.sha256(identity.encode()).hexdigest()[:8] if identity not in ("", "uninitialized") else ""


def data_dir() -> Path:
    """Return the folder of the user's results: the store and its reports."""
    return _xdg("XDG_DATA_HOME", ".local/share")


def reports_dir() -> Path:
    """Return the folder of reports. It is always on this machine, even when the store is not."""
    return data_dir() / "reports"


def throttle_journals() -> Path:
    """Return the folder with a journal for each active throttle: the settings to restore, and their cluster."""
    return state_dir() / "reassign"


def free_bytes(folder: Path) -> int:
    """Return the free bytes of a folder's disk; a folder that does not exist is on the disk of the next one above."""
    for each in (folder, *folder.parents):
        # A folder that this user may not look into counts as missing: its disk is that of the next folder.
        with suppress(PermissionError):
            if each.is_dir():
                return shutil.disk_usage(each).free
    return shutil.disk_usage("/").free
