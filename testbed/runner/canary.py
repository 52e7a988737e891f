"""Canaries measure the machine without Kafka (CPU, memory, fsync, network). The store keeps the readings with each run.

Every Kafka is stopped while a canary runs, so that no idle broker affects it. `results` judges the readings.
"""

import contextlib
import hashlib
import json
import mmap
import os
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from results.contract.canaries import canary_bytes, path_of, put_canaries, to_bytes
from results.contract.store import Store, StoreError
from testbed.errors import TestbedError
from testbed.hosts import Host
from testbed.kafka.node import DATA_DIR
from testbed.network.shape import payload_bytes_per_s
from testbed.probes.machine import LoadReading, fingerprint
from testbed.provision.machine import without_cpu_limits
from testbed.provision.testbed import Testbed
from testbed.runner.journal import CampaignState, SlotRun
from testbed.topology.host import DeclaredHost
from testbed.topology.links import NicUse

PORT = 5210

# Runs on an unprepared host, with the host's python3.
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
class ByteTransfer:
    """Bytes and seconds that the receiver counted after its first read."""

    bytes: int
    seconds: float

    @property
    def bytes_per_s(self) -> float:
        """Return the rate of the payload, in bytes per second."""
        return self.bytes / self.seconds


def transfer(source: Host, target: Host, address: str, *, at_most_bytes: int, at_most_s: float) -> ByteTransfer:
    """Send zeros from `source` to `target` until either limit; return what arrived. Raise `TestbedError` on failure."""
    with _receiver(target, address) as lines:
        words = ["python3", "-c", _SEND, address, str(PORT), str(at_most_bytes), f"{at_most_s:g}"]
        source.run(words, timeout_s=at_most_s + 30)
        line = next(lines, "")
    try:
        found = ByteTransfer(**json.loads(line))
    except (ValueError, TypeError) as error:
        raise TestbedError(f"{target.name}: the receiver of a transfer said {line!r}") from error
    if found.bytes <= 0 or found.seconds <= 0:
        raise TestbedError(f"{target.name}: nothing arrived of a transfer from {source.name}")
    return found


@contextmanager
def _receiver(target: Host, address: str) -> Iterator[Iterator[str]]:
    """Start a receiver and yield its further output lines. The receiver ends 10 s after the last byte."""
    process = target.spawn(["python3", "-c", _RECEIVE, address, str(PORT)])
    try:
        lines = process.lines()
        said = next(lines, "")
        if said.strip() != "listening":
            raise TestbedError(f"{target.name}: no server listens at {address}:{PORT}; the receiver said {said!r}")
        yield lines
    finally:
        process.stop()


CPU_ROUNDS, CPU_BLOCKS = 15, 96
MIB, GIB = 1 << 20, 1 << 30
MEMORY_BYTES = 2 * GIB
MEMORY_PART = 4
"""The divisor of the available memory: at most a quarter is written."""
MEMORY_S = 5.0
NIC_S = 1.0
TRANSFER_S = 1.0
"""The amount of one transfer, in seconds at the declared rate."""
UNSHAPED_BYTES_PER_S = 200_000_000

# Runs on an unprepared host. It takes at most 1 s, so that a slow disk does not prolong the canary.
_FSYNC = """
import json, os, sys, time
path, block, times = sys.argv[1], bytes(4096), []
descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
end = time.monotonic() + 1
while len(times) < 100 and time.monotonic() < end:
    os.write(descriptor, block)
    begun = time.perf_counter()
    os.fsync(descriptor)
    times.append(time.perf_counter() - begun)
os.close(descriptor)
os.unlink(path)
print(json.dumps(sorted(times)[len(times) // 2]))
"""


def cpu_s() -> float:
    """Return the seconds that a fixed piece of work takes on one core: the median of several rounds."""
    block = bytes(range(256)) * 4096
    rounds = []
    for _ in range(CPU_ROUNDS):
        digest, begun = hashlib.sha256(), time.perf_counter()
        for _ in range(CPU_BLOCKS):
            digest.update(block)
        rounds.append(time.perf_counter() - begun)
    return statistics.median(rounds)


def memory_s() -> float:
    """Return the seconds that it takes to write 1 GiB of unused memory. Page cache and JVMs use such memory.

    If the hypervisor has to provide the memory first, writing takes ten times as long. A follower at its NIC's rate
    then waits between two fetches, while everything else stays as fast as before.
    """
    free = int(LoadReading.here().gauges.get("memory.available", 0))
    blocks, block = max(1, min(MEMORY_BYTES, free // MEMORY_PART) // MIB), b"\1" * MIB
    with mmap.mmap(-1, blocks * MIB) as memory:
        begun = time.perf_counter()
        while memory.tell() < len(memory) and time.perf_counter() - begun < MEMORY_S:
            memory.write(block)
        return (time.perf_counter() - begun) / memory.tell() * GIB


def fsync_s(testbed: Testbed) -> float:
    """Return the seconds of one fsync after 4 KiB in the first broker's data directory: the median of up to 100."""
    host = testbed.hosts[testbed.topology.brokers[0].name]
    # The file is appended to, as a log is.
    output = host.run(["python3", "-c", _FSYNC, f"{DATA_DIR}/.canary"]).stdout
    try:
        return float(json.loads(output))
    except ValueError as error:
        raise TestbedError(f"{host.name}: the fsync canary said {output!r}") from error


def ends(testbed: Testbed) -> tuple[DeclaredHost, DeclaredHost]:
    """Return the two hosts whose connection is measured: two brokers, of one rack if possible."""
    first, *others = testbed.topology.brokers
    if not others:
        raise TestbedError(f"{testbed.name} has one broker only: there is no network to look at")
    return first, next((host for host in others if host.rack == first.rack), others[0])


def ideal_bytes_per_s(source: DeclaredHost, target: DeclaredHost) -> float:
    """Return the payload rate, in bytes per second, that the slower replication NIC of the two hosts declares."""
    sends, receives = source.nic_for(NicUse.REPLICATION)[1].tx_bps, target.nic_for(NicUse.REPLICATION)[1].rx_bps
    rates = [rate for rate in (sends, receives) if rate]
    return payload_bytes_per_s(min(rates)) if rates else float(UNSHAPED_BYTES_PER_S)


def network(testbed: Testbed) -> tuple[float, float]:
    """Return (nic, transfer).

    `nic` is the rate of 1 s of sending one way, as a share of the declared rate. `transfer` is the time of a fixed
    number of bytes the other way, as a multiple of the expected time.
    """
    first, second = ends(testbed)
    hosts = testbed.hosts
    # The address alone decides which NIC is used.
    at_first, at_second = (str(testbed.plan.data_ip(h.name, h.nic_for(NicUse.REPLICATION)[0])) for h in (first, second))
    back, there = ideal_bytes_per_s(second, first), ideal_bytes_per_s(first, second)
    nic = transfer(hosts[second.name], hosts[first.name], at_first, at_most_bytes=10**12, at_most_s=NIC_S)
    size = int(there * TRANSFER_S)
    fixed = transfer(hosts[first.name], hosts[second.name], at_second, at_most_bytes=size, at_most_s=30.0)
    return nic.bytes_per_s / back, fixed.seconds / (fixed.bytes / there)


def look(testbed: Testbed) -> dict[str, float]:
    """Return the readings of all canaries, which take about 6 s, one by one. Raise `TestbedError` when one fails."""
    # A topology may limit a host's CPUs; that is a property of the variant, and not of the machine.
    with without_cpu_limits(testbed.engine, testbed.name, testbed.topology.hosts):
        os.sync()  # the canary must not wait for writes of the last run
        cpu, memory, fsync = cpu_s(), memory_s(), fsync_s(testbed)
        nic, fixed = network(testbed)
    return {"cpu": cpu, "memory": memory, "fsync": fsync, "nic": nic, "transfer": fixed}


NIC_LOWEST, NIC_HIGHEST = 0.90, 1.10
"""Wider than the limits that a run is judged by: a canary of 1 s is less precise than a run's own measurement."""


def environment_key(fields: Mapping[str, Any]) -> str:
    """Return the short name of an environment class; environments with the same fields have the same name."""
    text = json.dumps(dict(fields), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def classify(machine: Mapping[str, Any], engine: str, storage_driver: str, image: str, nic: float) -> dict[str, Any]:
    """Return the fields of an environment class, with nothing in which variants differ; `nic` is the canary's. Pure."""
    network = "as declared" if NIC_LOWEST <= nic <= NIC_HIGHEST else "off its rate"
    return {**machine, "engine": engine, "storage_driver": storage_driver, "image": image, "network": network}


def environment(testbed: Testbed, nic: float) -> dict[str, Any]:
    """Return the fields of the current environment class of `testbed`."""
    platform = testbed.provider.platform()
    return classify(fingerprint(), platform.engine, platform.storage_driver, testbed.state.digests["image"], nic)


def keep_canaries(store: Store, run_id: str, read: Mapping[str, float], progress: Callable[[str], None]) -> None:
    """Store the readings with the run. If the store fails, report it as progress and go on: the run itself is kept."""
    try:
        put_canaries(store, run_id, read)
    except (OSError, StoreError) as error:
        progress(f"the canaries' readings of {run_id} could not be stored: {error}")


def discard_canaries(store: Store, run_id: str) -> None:
    """Remove the readings of a run that failed. Readings that cannot be removed are harmless."""
    with contextlib.suppress(OSError, StoreError):
        if run_id not in store.runs():
            store.files.discard(path_of(run_id))


def keep_readings(store: Store, state: CampaignState, progress: Callable[[str], None]) -> None:
    """Store the readings around each run, unless they are stored: a resumed campaign has more than before."""
    try:
        kept = {ran.done.run_id: canary_bytes(store, ran.done.run_id) for ran in state.ran.values()}
    except (OSError, StoreError) as error:
        progress(f"the stored readings of canaries could not be read: {error}")
        return
    for ran in state.ran.values():
        run_id, read = ran.done.run_id, around(ran)
        if read and kept[run_id] != to_bytes(read):
            keep_canaries(store, run_id, read, progress)


def around(ran: SlotRun) -> Mapping[str, float]:
    """Return each canary's median over the readings before and after a run. Pure."""
    return medians([each.reading for each in (*ran.before, *ran.after)])


def medians(readings: Sequence[Mapping[str, float]]) -> Mapping[str, float]:
    """Return each canary's median over some readings. Pure."""
    names = sorted({name for reading in readings for name in reading})
    return {name: statistics.median([reading[name] for reading in readings if name in reading]) for name in names}
