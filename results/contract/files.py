"""Where a store's files lie: a local folder, or an object store through pyarrow.

Both offer the same operations. The difference that matters is how one file becomes visible whole: a
local file is written aside, synced and renamed; an object appears with its one put.
"""

import contextlib
import errno
import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Protocol

from pyarrow import fs

from results.contract import durable


@dataclass(frozen=True, slots=True)
class Found:
    """A file under a folder: its path relative to the store's root, and when it was last written."""

    path: str
    modified: datetime


class Files(Protocol):
    """Operations on files named by paths relative to a root."""

    def claim(self, folder: str) -> None:
        """Make an empty folder for one writer; raises FileExistsError when anything is there already."""

    def put(self, path: str, data: bytes) -> None:
        """Write a file so that it is durable, and visible either whole or not at all."""

    def read(self, path: str) -> bytes:
        """The file's bytes; raises FileNotFoundError."""

    def read_part(self, path: str, offset: int, length: int) -> bytes:
        """`length` bytes of the file from `offset`, fewer where it ends before; raises FileNotFoundError."""

    def lock(self) -> AbstractContextManager[None]:
        """Held by whoever takes files away or replaces the index; raises BlockingIOError when another holds it."""

    def exists(self, path: str) -> bool:
        """Whether the file is there."""

    def discard(self, folder: str) -> None:
        """Remove a folder and everything in it, or a file; one that is not there is no error."""

    def list(self, folder: str) -> list[Found]:
        """Every file below a folder (none when there is no such folder); temporary ones included."""


class LocalFiles:
    """Files in a folder of this machine."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def claim(self, folder: str) -> None:
        """See Files; `mkdir` is what makes the claim exclusive."""
        path = self.root / folder
        durable.make_folder(path.parent)
        path.mkdir()
        durable.sync(path.parent)

    def put(self, path: str, data: bytes) -> None:
        """See Files."""
        durable.make_folder((self.root / path).parent)
        durable.write(self.root / path, data)

    def read(self, path: str) -> bytes:
        """See Files."""
        return (self.root / path).read_bytes()

    def read_part(self, path: str, offset: int, length: int) -> bytes:
        """See Files."""
        with (self.root / path).open("rb") as stream:
            stream.seek(offset)
            return stream.read(length)

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """See Files; a killed holder's lock is gone with it."""
        with durable.lock(self.root / ".lock", wait=False):
            yield

    def exists(self, path: str) -> bool:
        """See Files."""
        return (self.root / path).is_file()

    def discard(self, folder: str) -> None:
        """See Files."""
        path = self.root / folder
        with contextlib.suppress(FileNotFoundError):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()

    def list(self, folder: str) -> list[Found]:
        """See Files; an empty folder counts as itself, since a dead writer may leave just that."""
        top = str(self.root / folder)
        found = []
        for where, folders, names in os.walk(top, onerror=_unless_gone):
            empty = where != top and not folders and not names
            for path in [Path(where)] if empty else [Path(where, name) for name in names]:
                # Another writer's temporary file is renamed meanwhile, and a sweep takes away what was listed before.
                with contextlib.suppress(FileNotFoundError):
                    modified = datetime.fromtimestamp(path.stat().st_mtime, UTC)
                    found.append(Found(path.relative_to(self.root).as_posix(), modified))
        return found


class ObjectFiles:
    """Files in an object store (or any pyarrow file system); a key appears when its put is complete."""

    def __init__(self, filesystem: fs.FileSystem, root: str) -> None:
        self.filesystem = filesystem
        self.root = PurePosixPath(root)

    def claim(self, folder: str) -> None:
        """See Files; not exclusive between two writers at once: run ids carry a random token for that."""
        if self.list(folder):
            raise FileExistsError(errno.EEXIST, "already there", str(self.root / folder))

    def put(self, path: str, data: bytes) -> None:
        """See Files; one put."""
        key = self.root / path
        if self.filesystem.type_name != "s3":  # S3 has no folders; the others want them first
            self.filesystem.create_dir(str(key.parent), recursive=True)
        # One write of all bytes: leaving this block on an error could otherwise complete a partial upload.
        with self.filesystem.open_output_stream(str(key)) as stream:
            stream.write(data)

    def read(self, path: str) -> bytes:
        """See Files."""
        with self.filesystem.open_input_stream(str(self.root / path)) as stream:
            return bytes(stream.read())

    def read_part(self, path: str, offset: int, length: int) -> bytes:
        """See Files; one range of the object."""
        with self.filesystem.open_input_file(str(self.root / path)) as stream:
            stream.seek(min(offset, stream.size()))
            return bytes(stream.read(length))

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """See Files; an object. Not exclusive between two in the same instant, and a killed holder's stays."""
        with contextlib.suppress(FileNotFoundError):  # then it is free, or just given back
            holder = self.read("lock").decode(errors="replace")
            raise BlockingIOError(errno.EAGAIN, f"held since {holder}; remove it when that is dead", "lock")
        self.put("lock", f"{datetime.now(UTC).isoformat(timespec='seconds')} by {_who()}".encode())
        try:
            yield
        finally:
            self.discard("lock")

    def exists(self, path: str) -> bool:
        """See Files."""
        info = self.filesystem.get_file_info(str(self.root / path))
        return bool(info.type == fs.FileType.File)

    def discard(self, folder: str) -> None:
        """See Files."""
        key = str(self.root / folder)
        if self.filesystem.get_file_info(key).type == fs.FileType.File:
            self.filesystem.delete_file(key)
            return
        for found in self.list(folder):
            self.filesystem.delete_file(str(self.root / found.path))

    def list(self, folder: str) -> list[Found]:
        """See Files."""
        selector = fs.FileSelector(str(self.root / folder), allow_not_found=True, recursive=True)
        return [
            Found(str(PurePosixPath(i.path).relative_to(self.root)), i.mtime or datetime.now(UTC))
            for i in self.filesystem.get_file_info(selector)
            if i.type == fs.FileType.File
        ]


def _unless_gone(error: OSError) -> None:
    """What vanished meanwhile has nothing in it; what cannot be looked at may have, and is an error."""
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        raise error


def _who() -> str:
    return f"process {os.getpid()} on {socket.gethostname()}"
