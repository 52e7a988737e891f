"""The most memory that a process and its descendants (Spark's JVM, Python's workers) had at once, from /proc."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

EVERY_S = 0.5


class Peak:
    """`bytes` is the most seen so far: proportional set sizes, so that shared pages count once."""

    def __init__(self) -> None:
        self.bytes = 0

    def look(self) -> None:
        """Read it once."""
        self.bytes = max(self.bytes, sum(_held(pid) for pid in family(os.getpid())))


@contextmanager
def peak() -> Iterator[Peak]:
    """Read it every half second over the block, and at its ends."""
    seen, done = Peak(), threading.Event()

    def watch() -> None:
        while not done.wait(EVERY_S):
            seen.look()

    watcher = threading.Thread(target=watch, daemon=True)
    seen.look()
    watcher.start()
    try:
        yield seen
    finally:
        done.set()
        watcher.join()
        seen.look()


def family(root: int) -> list[int]:
    """The process and all its descendants."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except (FileNotFoundError, ProcessLookupError):  # it ended meanwhile
                continue
            parents.setdefault(int(words[1]), []).append(int(entry.name))
    found = [root]
    for pid in found:
        found += parents.get(pid, [])
    return found


def _held(pid: int) -> int:
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except (FileNotFoundError, ProcessLookupError, PermissionError):  # it ended meanwhile, or is another user's
        return 0
    return 0
