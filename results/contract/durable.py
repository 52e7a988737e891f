"""Files that survive a crash of the process or the machine, and locks that end with their holder.

Only the standard library is imported here: the set-up uses this module before anything is installed.
"""

import contextlib
import fcntl
import os
import secrets
from collections.abc import Iterator
from io import FileIO
from pathlib import Path

TEMPORARY = ".tmp"
"""The suffix of a file that is being written; after a kill it may be removed."""


def write(path: Path, data: str | bytes, mode: int | None = None) -> None:
    """Write a file so that it is complete under its name or absent, and on disk on return.

    The folder must exist. After an error or an interruption no temporary file is left.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}{TEMPORARY}")
    try:
        with temporary.open("xb") as stream:
            if mode is not None:
                os.fchmod(stream.fileno(), mode)
            stream.write(data.encode() if isinstance(data, str) else data)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.rename(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync(path.parent)


def temporaries(path: Path) -> list[Path]:
    """Return what writers of `path` have not finished: they write now, or were killed."""
    return sorted(path.parent.glob(f".{path.name}.*{TEMPORARY}"))


def append(stream: FileIO, data: bytes) -> None:
    """Append to a file at its position, durably. After an error (OSError) the file is as it was before."""
    end, left = stream.tell(), data
    try:
        while left:
            left = left[stream.write(left) :]
        os.fsync(stream.fileno())
    except OSError:
        stream.truncate(end)
        stream.seek(end)
        raise


def make_folder(path: Path, mode: int = 0o777) -> None:
    """Make a folder with its parents, all of them with this mode and on disk on return."""
    if not path.is_dir():
        make_folder(path.parent, mode)
        path.mkdir(mode=mode, exist_ok=True)
        sync(path.parent)


def sync(path: Path) -> None:
    """Bring a file or a folder to disk. A rename or removal survives a crash once its folder is synchronised."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def lock(path: Path, *, wait: bool = True, remove: bool = False) -> Iterator[None]:
    """Hold the exclusive lock on `path`, which is made when absent, for the block; then remove the file if asked.

    Raise BlockingIOError when another process or thread holds it and `wait` is false.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = _locked(path, wait=wait)
    try:
        yield
    finally:
        try:
            if remove:  # while it is locked: only the holder removes the file
                path.unlink(missing_ok=True)
        finally:
            os.close(descriptor)


def _locked(path: Path, *, wait: bool) -> int:
    """Return a descriptor of the file at `path`, locked.

    The holder before may have removed the file after it was opened here: a lock on that one excludes no other process.
    """
    while True:
        # A descriptor for each holder: flock() then also separates threads of one process.
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            lock_file(descriptor, path, wait=wait)
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), path.stat()):
                    return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def lock_file(descriptor: int, path: Path, *, wait: bool) -> None:
    """Lock an open file. An error of its file system, such as one without locks, names it."""
    try:
        lock_descriptor(descriptor, wait=wait)
    except OSError as error:
        raise type(error)(error.errno, error.strerror, str(path)) from error


def lock_descriptor(descriptor: int, *, wait: bool = True) -> None:
    """Lock an open file until it is closed; the kernel releases the lock when its holder dies. Raise as `lock`."""
    fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
