"""The digests of logs, on the host of the broker that has them.

The testbed passes this file's source to the host's Python, which needs only its standard library. The arguments are the
broker's data folder and, on standard input, a JSON list of the folders of partitions in it. It prints a JSON object:
folder → the first segment's name, the bytes of all segments, and their digest. It leaves out a log that it cannot read
to its end, as when Kafka deletes a segment meanwhile.
"""

import contextlib
import hashlib
import json
import pathlib
import sys
from typing import Any

_CHUNK = 1 << 20


def digest(folder: pathlib.Path) -> "list[Any] | None":
    """Return the first segment's name, the bytes and the digest of the log in a folder; None without a segment.

    Segments count as one sequence of bytes: a follower may begin a segment at another offset than its leader.
    """
    segments = sorted(folder.glob("*.log"))
    if not segments:
        return None
    hashed, size = hashlib.blake2b(digest_size=16), 0
    for segment in segments:
        with segment.open("rb") as file:
            for chunk in iter(lambda: file.read(_CHUNK), b""):
                hashed.update(chunk)
                size += len(chunk)
    return [segments[0].name, size, hashed.hexdigest()]


def digests(root: pathlib.Path, folders: "list[str]") -> "dict[str, Any]":
    """Return folder → `digest`, of the folders that have a log."""
    found = {}
    for folder in folders:
        with contextlib.suppress(FileNotFoundError):
            found[folder] = digest(root / folder)
    return {folder: each for folder, each in found.items() if each is not None}


if __name__ == "__main__":
    print(json.dumps(digests(pathlib.Path(sys.argv[1]), json.load(sys.stdin))))
