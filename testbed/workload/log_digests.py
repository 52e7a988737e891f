"""The digests of logs, on the host of the broker that has them.

The testbed passes this file's source to the host's Python, which needs only its standard library. The arguments are the
broker's data folder, the port of its metrics and, on standard input, a JSON list of the folders of partitions in it. It
prints a JSON object: folder → the first segment's name, the bytes of all segments, their digest, and the offset at
which the broker lets the log begin. It leaves out a log that it cannot read to its end, as when Kafka deletes a segment
meanwhile.
"""

import contextlib
import hashlib
import json
import pathlib
import sys
import urllib.request
from typing import Any

_CHUNK = 1 << 20
_ANSWER_S = 30.0
_FOUND = 200
_START = "kafka.log:type=Log,name=LogStartOffset,topic={0},partition={2}"


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


def log_starts(port: int, folders: "list[str]") -> "list[int]":
    """Return the first offset of each log, as the broker has it: records below it are deleted, also in a segment.

    Raise `ValueError` for a log that the broker does not have, and `OSError` when it does not answer.
    """
    if not folders:
        return []
    names = [_START.format(*folder.rpartition("-")) for folder in folders]
    wanted = json.dumps([{"type": "read", "mbean": name, "attribute": "Value"} for name in names]).encode()
    call = urllib.request.Request(f"http://127.0.0.1:{port}/jolokia/", wanted, {"Content-Type": "application/json"})
    with urllib.request.urlopen(call, timeout=_ANSWER_S) as answer:
        replies = json.load(answer)
    for number, reply in enumerate(replies):
        if reply.get("status") != _FOUND:
            raise ValueError(f"the broker has no {names[number]}: status {reply.get('status')}")
    return [int(reply["value"]) for reply in replies]


def main() -> None:
    """Print the digests and the starts of the wanted logs."""
    found = digests(pathlib.Path(sys.argv[1]), json.load(sys.stdin))
    starts = dict(zip(found, log_starts(int(sys.argv[2]), list(found))))  # noqa: B905 - also for Python 3.9
    print(json.dumps({folder: [*each, starts[folder]] for folder, each in found.items()}))


if __name__ == "__main__":
    main()
