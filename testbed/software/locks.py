"""A lock between processes and threads, held on a file; the kernel lets go of it when its holder dies."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Hold the exclusive lock on `path` (made when absent); waits for whoever has it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # A descriptor of its own per holder: flock() then also keeps threads of one process apart.
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
