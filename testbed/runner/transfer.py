"""Bytes from one host to another without Kafka: what the network carries, timed by the receiver."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from testbed.errors import TestbedError
from testbed.hosts import Host

PORT = 5210

# Runs on a host as it is, with that host's python3.
_RECEIVE = """
import json, socket, sys, time
server = socket.create_server((sys.argv[1], int(sys.argv[2])))
server.settimeout(10)
print("listening", flush=True)
connection, _ = server.accept()
connection.settimeout(10)
buffer, first, total = bytearray(1 << 18), 0, 0
begun = ended = None
while True:
    size = connection.recv_into(buffer)
    if not size:
        break
    ended = time.monotonic()
    if begun is None:
        begun, first = ended, size
    total += size
print(json.dumps({"bytes": total - first, "seconds": ended - begun if begun is not None else 0}), flush=True)
"""
_SEND = """
import socket, sys, time
connection = socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=10)
left, until, block = int(sys.argv[3]), time.monotonic() + float(sys.argv[4]), bytes(1 << 16)
while left > 0 and time.monotonic() < until:
    left -= connection.send(memoryview(block)[:left])
connection.close()
"""


@dataclass(frozen=True, slots=True)
class Transferred:
    """What the receiver counted after the first bytes had come, and for how long."""

    bytes: int
    seconds: float

    @property
    def bytes_per_s(self) -> float:
        """The payload's rate."""
        return self.bytes / self.seconds


def transfer(source: Host, target: Host, address: str, *, at_most_bytes: int, at_most_s: float) -> Transferred:
    """Send zeros from `source` to `target` at `address` until either limit. Raises `TestbedError` when it failed."""
    with _receiver(target, address) as lines:
        words = ["python3", "-c", _SEND, address, str(PORT), str(at_most_bytes), f"{at_most_s:g}"]
        source.run(words, timeout_s=at_most_s + 30)
        told = next(lines, "")
    try:
        found = Transferred(**json.loads(told))
    except (ValueError, TypeError) as error:
        raise TestbedError(f"{target.name}: the receiver of a transfer said {told!r}") from error
    if found.bytes <= 0 or found.seconds <= 0:
        raise TestbedError(f"{target.name}: nothing arrived of a transfer from {source.name}")
    return found


@contextmanager
def _receiver(target: Host, address: str) -> Iterator[Iterator[str]]:
    """A receiver that listens, and what it says from then on. It ends by itself, 10 s after the last byte."""
    process = target.spawn(["python3", "-c", _RECEIVE, address, str(PORT)])
    try:
        lines = process.lines()
        said = next(lines, "")
        if said.strip() != "listening":
            raise TestbedError(f"{target.name}: nobody listens at {address}:{PORT}; the receiver said {said!r}")
        yield lines
    finally:
        process.stop()
