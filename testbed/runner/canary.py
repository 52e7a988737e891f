"""A short look at the machine, Kafka apart: CPU, memory, fsync, network. What it means is judged elsewhere.

Taken with every Kafka stopped, so that an idle broker is no part of it either.
"""

import hashlib
import json
import mmap
import os
import statistics
import time
from pathlib import Path

from testbed.errors import TestbedError
from testbed.kafka.node import DATA_DIR
from testbed.network.shape import payload_bytes_per_s
from testbed.provision.machine import without_cpu_limits
from testbed.provision.testbed import Testbed
from testbed.runner.transfer import transfer
from testbed.setup.checks.machine import available_bytes
from testbed.topology.host import Host
from testbed.topology.links import NicUse

CPU_ROUNDS, CPU_BLOCKS = 15, 96
MIB, GIB = 1 << 20, 1 << 30
MEMORY_BYTES = 2 * GIB
MEMORY_PART = 4
"""At most this part of what is available is written."""
MEMORY_S = 5.0
NIC_S = 1.0
TRANSFER_S = 1.0
"""So many seconds' worth of the declared rate is transferred."""
UNSHAPED_BYTES_PER_S = 200_000_000

# Runs on a host as it is. At most a second: a slow disk shall not make the look a long one.
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
    """Seconds that a fixed piece of work takes on one core: the median of several rounds."""
    block = bytes(range(256)) * 4096
    rounds = []
    for _ in range(CPU_ROUNDS):
        digest, begun = hashlib.sha256(), time.perf_counter()
        for _ in range(CPU_BLOCKS):
            digest.update(block)
        rounds.append(time.perf_counter() - begun)
    return statistics.median(rounds)


def memory_s() -> float:
    """Seconds in which a GiB of memory is written that nobody used: page cache and heaps are made of it.

    A hypervisor that has to provide it first takes ten times as long as one that left it there, and may do either: on
    its NIC's rate a follower then waits between two fetches, while everything else stays as fast as it was.
    """
    free = available_bytes(Path("/proc/meminfo").read_text())
    blocks, block = max(1, min(MEMORY_BYTES, free // MEMORY_PART) // MIB), b"\1" * MIB
    with mmap.mmap(-1, blocks * MIB) as memory:
        begun = time.perf_counter()
        while memory.tell() < len(memory) and time.perf_counter() - begun < MEMORY_S:
            memory.write(block)
        return (time.perf_counter() - begun) / memory.tell() * GIB


def fsync_s(testbed: Testbed) -> float:
    """Seconds of one fsync after 4 KiB, where the first broker keeps its data: the median of up to 100."""
    host = testbed.hosts[testbed.topology.brokers[0].name]
    # Appending, as a log does.
    told = host.run(["python3", "-c", _FSYNC, f"{DATA_DIR}/.canary"]).stdout
    try:
        return float(json.loads(told))
    except ValueError as error:
        raise TestbedError(f"{host.name}: the fsync canary said {told!r}") from error


def ends(testbed: Testbed) -> tuple[Host, Host]:
    """Between which hosts the network is looked at: two brokers, of one rack if there are such."""
    first, *others = testbed.topology.brokers
    if not others:
        raise TestbedError(f"{testbed.name} has one broker only: there is no network to look at")
    return first, next((host for host in others if host.rack == first.rack), others[0])


def ideal_bytes_per_s(source: Host, target: Host) -> float:
    """The payload that the slower end declares to carry, of the NICs that replicas are copied on."""
    sends, receives = source.nic_for(NicUse.REPLICATION)[1].tx_bps, target.nic_for(NicUse.REPLICATION)[1].rx_bps
    rates = [rate for rate in (sends, receives) if rate]
    return payload_bytes_per_s(min(rates)) if rates else float(UNSHAPED_BYTES_PER_S)


def network(testbed: Testbed) -> tuple[float, float]:
    """(nic, transfer): a second of sending one way as a share of the declared rate, and a fixed number of bytes the
    other way as a multiple of the time they should take.
    """
    first, second = ends(testbed)
    hosts = testbed.hosts
    # The address alone says which NIC is used.
    at_first, at_second = (str(testbed.plan.data_ip(h.name, h.nic_for(NicUse.REPLICATION)[0])) for h in (first, second))
    back, there = ideal_bytes_per_s(second, first), ideal_bytes_per_s(first, second)
    nic = transfer(hosts[second.name], hosts[first.name], at_first, at_most_bytes=10**12, at_most_s=NIC_S)
    size = int(there * TRANSFER_S)
    fixed = transfer(hosts[first.name], hosts[second.name], at_second, at_most_bytes=size, at_most_s=30.0)
    return nic.bytes_per_s / back, fixed.seconds / (fixed.bytes / there)


def look(testbed: Testbed) -> dict[str, float]:
    """All canaries, one after the other, some 6 s. Raises `TestbedError` when one could not be read."""
    # A host may have few CPUs by its topology: that is the variant's, and nothing of the machine.
    with without_cpu_limits(testbed.engine, testbed.name, testbed.topology.hosts):
        return _look(testbed)


def _look(testbed: Testbed) -> dict[str, float]:
    os.sync()  # what the last run wrote is not to be paid for by the canary
    cpu, memory, fsync = cpu_s(), memory_s(), fsync_s(testbed)
    nic, fixed = network(testbed)
    return {"cpu": cpu, "memory": memory, "fsync": fsync, "nic": nic, "transfer": fixed}
