"""The files of a store: in a local folder, or in an object store through pyarrow.

They differ in how one file becomes visible whole: a local file is renamed when it is on disk; an object
appears with its one put.
"""

import contextlib
import errno
import os
import shutil
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePath

import pyarrow as pa
from pyarrow import fs

from results.contract import durable


@dataclass(frozen=True, slots=True)
class FileStatus:
    """A file below a folder: its path relative to the store's root, and when it was last written."""

    path: str
    modified: datetime


class Files:
    """Files named by paths relative to a root of any pyarrow file system, with the semantics of an object store.

    A file appears when its put is complete.
    """

    def __init__(self, filesystem: fs.FileSystem, root: PurePath) -> None:
        self.filesystem = filesystem
        self.root = root

    def _key(self, path: str) -> PurePath:
        """Return where a path of the store is. Raise FileNotFoundError for one outside: a manifest may name any."""
        inside = PurePath(path)
        if inside.is_absolute() or ".." in inside.parts or "\0" in path:
            raise FileNotFoundError(errno.ENOENT, "outside of the store", path)
        return self.root / inside

    def claim(self, folder: str) -> None:
        """Make an empty folder for one writer. Raise FileExistsError when anything is there already.

        In an object store two writers at once both get it: run ids carry a random token for that.
        """
        if self.list(folder):
            raise FileExistsError(errno.EEXIST, "already there", str(self.root / folder))

    def put(self, path: str, data: bytes) -> None:
        """Write a file durably, so that it is visible either whole or not at all."""
        key = self._key(path)
        if self.filesystem.type_name != "s3":  # S3 has no folders; the others need them first
            self.filesystem.create_dir(str(key.parent), recursive=True)
        # One write of all bytes: leaving this block on an error could otherwise complete a partial upload.
        with self.filesystem.open_output_stream(str(key)) as stream:
            stream.write(data)

    def read(self, path: str) -> bytes:
        """Return the file's bytes. Raise FileNotFoundError."""
        with self.filesystem.open_input_stream(str(self._key(path))) as stream:
            return bytes(stream.read())

    def open(self, path: str) -> pa.NativeFile:
        """Open a file of which only parts are read. Raise FileNotFoundError."""
        return self.filesystem.open_input_file(str(self._key(path)))

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the lock for removing files and replacing the index. Raise BlockingIOError when another holds it.

        In an object store the lock is an object: two that start in the same instant both get it, and a killed holder's
        stays.
        """
        with contextlib.suppress(FileNotFoundError):  # then the lock is free
            holder = self.read("lock").decode(errors="replace")
            raise BlockingIOError(errno.EAGAIN, f"held since {holder}; remove it when that is dead", "lock")
        holder = f"process {os.getpid()} on {socket.gethostname()}"
        self.put("lock", f"{datetime.now(UTC).isoformat(timespec='seconds')} by {holder}".encode())
        try:
            yield
        finally:
            self.discard("lock")

    def exists(self, path: str) -> bool:
        """Return whether the file is there."""
        info = self.filesystem.get_file_info(str(self._key(path)))
        return bool(info.type == fs.FileType.File)

    def discard(self, folder: str) -> None:
        """Remove a folder and everything in it, or a file; one that is absent is no error."""
        if self.exists(folder):
            self.filesystem.delete_file(str(self._key(folder)))
            return
        for found in self.list(folder):
            self.filesystem.delete_file(str(self.root / found.path))

    def list(self, folder: str) -> list[FileStatus]:
        """Return every file below a folder, temporary ones included; an absent folder has none."""
        selector = fs.FileSelector(str(self._key(folder)), allow_not_found=True, recursive=True)
        return [
            FileStatus(str(PurePath(i.path).relative_to(self.root)), i.mtime or datetime.now(UTC))
            for i in self.filesystem.get_file_info(selector)
            if i.type == fs.FileType.File
        ]


class LocalFiles(Files):
    """Files in a folder of this machine: claims and locks are exclusive, and a put survives a power cut."""

    root: Path

    def __init__(self, root: Path) -> None:
        super().__init__(fs.LocalFileSystem(), root)

    def claim(self, folder: str) -> None:
        """See Files; `mkdir` makes the claim exclusive."""
        path = Path(self._key(folder))
        durable.make_folder(path.parent)
        path.mkdir()
        durable.sync(path.parent)

    def put(self, path: str, data: bytes) -> None:
        """See Files."""
        target = Path(self._key(path))
        durable.make_folder(target.parent)
        durable.write(target, data)

    def read(self, path: str) -> bytes:
        """See Files; other errors are those of the operating system, by their class."""
        return Path(self._key(path)).read_bytes()

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """See Files."""
        with durable.lock(self.root / ".lock", wait=False):
            yield

    def discard(self, folder: str) -> None:
        """See Files."""
        path = Path(self._key(folder))
        with contextlib.suppress(FileNotFoundError):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()

    def list(self, folder: str) -> list[FileStatus]:
        """See Files; count an empty folder as a file, since a killed writer may leave only that."""
        top = str(self._key(folder))
        found = []
        for where, folders, names in os.walk(top, onerror=_raise_unless_absent):
            empty = where != top and not folders and not names
            for path in [Path(where)] if empty else [Path(where, name) for name in names]:
                # Another writer may rename its temporary file meanwhile, and a sweep may remove a listed file.
                with contextlib.suppress(FileNotFoundError):
                    modified = datetime.fromtimestamp(path.stat().st_mtime, UTC)
                    found.append(FileStatus(path.relative_to(self.root).as_posix(), modified))
        return found


def _raise_unless_absent(error: OSError) -> None:
    """Raise the error unless the folder vanished meanwhile: one that cannot be listed may not be empty."""
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        raise error
