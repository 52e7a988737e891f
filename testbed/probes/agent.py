"""The agent on a host samples once a second: NIC counters, log sizes of replicas, its server's metrics and JVM.

Where that would take too much CPU time, it samples less often, at least once in five seconds. The testbed copies this
file to the host unchanged; it needs only Python's standard library. The agent prints one JSON line per sample:
{"t": µs since the epoch, "v": [[metric, topic, partition, label, value], …]}. It ends when its standard output is
closed, at the latest with the connection.

    agent.py '{"interval_s": 1.0, "log_dir": "/var/lib/kafka", "topics": ["t"], "devices": ["data0"], "jmx_port": 8778}'

On a host of the object store, `s3_port` replaces the log folder and the broker's port. With `ports`, connections of
the devices' addresses that use none of these are named.
"""

from __future__ import annotations

import fcntl
import json
import os
import pathlib
import re
import socket
import struct
import sys
import time
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # a machine that exists may have Python 3.7, which does not know `list[Any]`
    Value = list[Any]
    """[metric, topic, partition, label, value]; the middle three may be null."""

BROKER = "kafka.server:type=BrokerTopicMetrics,name="
REPLICAS = "kafka.server:type=ReplicaManager,name="
METRICS = {
    BROKER + "BytesInPerSec": ("Count", "broker.bytes_in"),
    BROKER + "BytesOutPerSec": ("Count", "broker.bytes_out"),
    BROKER + "ReplicationBytesInPerSec": ("Count", "broker.replication.bytes_in"),
    BROKER + "ReplicationBytesOutPerSec": ("Count", "broker.replication.bytes_out"),
    BROKER + "ReassignmentBytesInPerSec": ("Count", "broker.reassignment.bytes_in"),
    BROKER + "ReassignmentBytesOutPerSec": ("Count", "broker.reassignment.bytes_out"),
    REPLICAS + "IsrShrinksPerSec": ("Count", "broker.isr_shrinks"),
    REPLICAS + "IsrExpandsPerSec": ("Count", "broker.isr_expands"),
    REPLICAS + "UnderReplicatedPartitions": ("Value", "broker.under_replicated"),
    REPLICAS + "ReassigningPartitions": ("Value", "broker.reassigning"),
    "kafka.log:type=LogFlushStats,name=LogFlushRateAndTimeMs": ("Count", "broker.log_flushes"),
    "kafka.server:type=LeaderReplication": ("byte-rate", "broker.leader_replication.byte_rate"),
    "kafka.server:type=FollowerReplication": ("byte-rate", "broker.follower_replication.byte_rate"),
    "kafka.server:type=broker-metadata-metrics": ("last-applied-record-offset", "broker.metadata_offset"),
}
REQUEST = "kafka.network:type=RequestMetrics,name=TotalTimeMs,request="
OPERATORS = (
    "AlterPartitionReassignments",
    "ElectLeaders",
    "IncrementalAlterConfigs",
    "AlterConfigs",
    "AlterClientQuotas",
    "CreateTopics",
    "DeleteTopics",
)
"""What only operators ask for: the metadata log has the records that follow, and not who asked."""
REQUESTS = ("Produce", "FetchFollower", "FetchConsumer", "Metadata", "ListOffsets", "OffsetForLeaderEpoch", *OPERATORS)
"""The requests that are counted. Brokers of Kafka 3.9 to 4.3 have an MBean for each, from their start on.

Controllers alone answer AlterPartition: a host without one would answer each look with an error and its stack trace.
The records that it leads to are in `broker.metadata_offset`.
"""
LATENCIES = {
    REQUEST + "Produce": ("99thPercentile", "broker.produce.p99_ms"),
    REQUEST + "FetchConsumer": ("99thPercentile", "broker.fetch.p99_ms"),
}
"""Read only where the configuration says `latency`: runs measure latencies in the clients."""
STORE_PATH = "/minio/metrics/v3/api/requests"
STORE = {
    "minio_api_requests_total": "s3.requests",
    "minio_api_requests_4xx_errors_total": "s3.errors.4xx",
    "minio_api_requests_5xx_errors_total": "s3.errors.5xx",
    "minio_api_requests_canceled_total": "s3.canceled",
    "minio_api_requests_inflight_total": "s3.in_flight",
    "minio_api_requests_traffic_received_bytes": "s3.rx.bytes",
    "minio_api_requests_traffic_sent_bytes": "s3.tx.bytes",
    "minio_api_requests_ttfb_seconds_distribution": "s3.ttfb",
}
SERIES = re.compile(r"(\w+)(?:\{(.*)\})? (\S+)")
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
"""A line of Prometheus' text: name, labels, value; and one label in it."""
MAIN_CLASS = "kafka.Kafka"
PERFORMANCE_DATA = 0xCAFEC0C0
"""The first bytes of the file in which a JVM of OpenJDK keeps its counters."""
MEMORY = {
    "memory.events": {"max": "memory.limited", "oom_kill": "memory.killed"},
    "memory/memory.failcnt": {"": "memory.limited"},
    "memory/memory.oom_control": {"oom_kill": "memory.killed"},
}
"""How often a host's processes reached a limit of memory, and how many the kernel killed, in groups of version 2 and 1.

The kernel also counts a process that it kills because the whole machine has no memory left.
"""
MOST_S = 5.0
"""The longest time between two samples, whatever they cost."""
NOT_FOUND = 404
"""Jolokia's status, in its JSON, of an MBean or attribute that does not exist."""
REPLICA_DIR = re.compile(r"(.+)-(\d+)$")  # not `…-delete`, `…-future`, `…-stray`


def log_sizes(log_dir: str, topics: list[str]) -> dict[tuple[str, int], int]:
    """Return (topic, partition) -> bytes of its log segments, for each replica in `log_dir`.

    A broker that formats its directory itself makes it at its first start. Until then it has no replica.
    """
    sizes: dict[tuple[str, int], int] = {}
    wanted = set(topics)
    try:
        entries = list(os.scandir(log_dir))
    except FileNotFoundError:
        return sizes
    for entry in entries:
        match = REPLICA_DIR.fullmatch(entry.name)
        if not match or match.group(1) not in wanted:
            continue
        try:
            with os.scandir(entry.path) as files:
                segments = [file for file in files if file.name.endswith(".log")]
        except FileNotFoundError:
            continue  # the replica was deleted during the listing
        sizes[match.group(1), int(match.group(2))] = sum(map(segment_size, segments))
    return sizes


def segment_size(segment: os.DirEntry[str]) -> int:
    """Return a segment's bytes; 0 for one that a tiered log has just given up."""
    try:
        return segment.stat().st_size
    except FileNotFoundError:
        return 0


def read(path: str) -> str:
    """Return the text of a file. Raise `OSError`, or `ValueError` when it is not text."""
    with open(path) as file:
        return file.read()


def counters(device: str) -> list[int]:
    """Return (received, sent) bytes of a NIC in this namespace."""
    return [int(read("/sys/class/net/%s/statistics/%s" % (device, name))) for name in ("rx_bytes", "tx_bytes")]


def free_bytes(log_dir: str) -> int | None:
    """Return the bytes that the file system of the logs has left for a broker; None before there is a directory."""
    try:
        found = os.statvfs(log_dir)
    except OSError:
        return None
    return found.f_bavail * found.f_frsize


SIOCGIFADDR = 0x8915
MAPPED = "0000000000000000FFFF0000"
"""The begin, in /proc/net/tcp6, of an IPv4 address that an IPv6 socket has."""
ESTABLISHED = "01"
MOST_FOREIGN = 5


def address_of(device: str) -> str:
    """Return the IPv4 address of a NIC as /proc/net/tcp has it; empty without one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        try:
            answer = fcntl.ioctl(any_socket, SIOCGIFADDR, struct.pack("256s", device.encode()[:15]))
        except OSError:
            return ""
    return "%08X" % struct.unpack("=I", answer[20:24])[0]


def foreign_connections(addresses: list[str], ports: list[int], net: str = "/proc/net") -> list[Value]:
    """Return the connections of these addresses to others that have no port of `ports` at either end, at most five."""
    found: list[Value] = []
    for name in ("tcp", "tcp6"):
        try:
            rows = [line.split() for line in read("%s/%s" % (net, name)).splitlines()[1:]]
        except OSError:
            continue
        for _number, local, remote, state, *_rest in rows:
            (own, own_port), (other, other_port) = (end.replace(MAPPED, "", 1).split(":") for end in (local, remote))
            used = int(own_port, 16), int(other_port, 16)
            if state == ESTABLISHED and own in addresses and own != other and not set(used) & set(ports):
                peer = socket.inet_ntoa(struct.pack("=I", int(other, 16)))
                found.append(["nic.foreign", None, None, "port %d with %s port %d" % (used[0], peer, used[1]), 1.0])
    return found[:MOST_FOREIGN]


PROTOCOLS: dict[str, dict[str, tuple[str, ...]]] = {
    "nic.datagrams": {"Icmp": ("InMsgs", "OutMsgs"), "Udp": ("InDatagrams", "NoPorts", "OutDatagrams")},
    "tcp.opened": {"Tcp": ("ActiveOpens",)},
}
"""What the kernel counts of this host: messages of ICMP and UDP, both ways; TCP connections that it began to open."""


def protocol_counts(net: str = "/proc/net") -> list[Value]:
    """Return a value for each metric of `PROTOCOLS`; an empty list where nothing counts them."""
    try:
        rows = [line.split() for line in read("%s/snmp" % net).splitlines()]
    except OSError:
        return []
    found = dict.fromkeys(PROTOCOLS, 0)
    for names, counts in zip(rows[::2], rows[1::2]):
        for metric, wanted in PROTOCOLS.items():
            mine = wanted.get(names[0].rstrip(":"), ())
            found[metric] += sum(int(count) for name, count in zip(names, counts) if name in mine)
    return [[metric, None, None, None, count] for metric, count in found.items()]


def device_bytes(proc: str = "/proc") -> tuple[int, int] | None:
    """Return bytes that this host's Java processes read from devices and wrote to them; None without such a process.

    What comes from the page cache is not read. The kernel counts a page as written when a process makes it dirty.
    """
    found = None
    for entry in os.scandir(proc):
        if not entry.name.isdigit():
            continue
        try:
            if read(entry.path + "/comm").strip() != "java":
                continue
            fields = dict(line.split(": ") for line in read(entry.path + "/io").splitlines())
        except (OSError, ValueError):
            continue  # it has ended meanwhile, or the kernel gives no number
        before = found or (0, 0)
        found = before[0] + int(fields["read_bytes"]), before[1] + int(fields["write_bytes"])
    return found


def asked(latency: bool = False) -> list[tuple[str, str, str, str | None]]:
    """Return the MBean, attribute, metric and label of each value that a sample has of a broker."""
    found: list[tuple[str, str, str, str | None]] = []
    for table in (METRICS, LATENCIES) if latency else (METRICS,):
        found += [(name, attribute, metric, None) for name, (attribute, metric) in table.items()]
    return found + [(REQUEST + name, "Count", "broker.requests", name) for name in REQUESTS]


def metrics(port: int, latency: bool = False) -> list[Value]:
    """Return the broker's metrics in one bulk request; an empty list while the broker does not answer."""
    wanted = asked(latency)
    requests = [{"type": "read", "mbean": name, "attribute": attribute} for name, attribute, _, _ in wanted]
    call = urllib.request.Request(
        "http://127.0.0.1:%d/jolokia/" % port, json.dumps(requests).encode(), {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(call, timeout=0.8) as answer:
            answers = json.load(answer)
    except (urllib.error.URLError, TimeoutError, ConnectionError, ValueError):
        return []
    found: list[Value] = []
    for (_, attribute, metric, label), reply in zip(wanted, answers):
        if reply.get("status") != 200:
            # A rate that was never used does not exist yet (404): nothing was throttled, the rate is 0. After any other
            # status the rate is unknown: a gap.
            if attribute == "byte-rate" and reply.get("status") == NOT_FOUND:
                found.append([metric, None, None, label, 0.0])
        elif reply["value"] is not None:
            found.append([metric, None, None, label, reply["value"]])
    return found


def performance_counters(data: bytes) -> dict[str, Any]:
    """Return the counters and texts of a JVM's performance data: a file that the JVM maps into its memory.

    Reading it costs the JVM nothing. Raise `ValueError` or `struct.error` for anything else, or a half-written file.
    """
    magic, little = struct.unpack_from(">IB", data, 0)
    if magic != PERFORMANCE_DATA:
        raise ValueError("not a JVM's performance data: it begins with %#x" % magic)
    order = "<" if little else ">"
    at, count = struct.unpack_from(order + "ii", data, 24)
    found: dict[str, Any] = {}
    for _ in range(count):
        length, name_at, vector, kind, _flags, _unit, _varies, value_at = struct.unpack_from(order + "iii4bi", data, at)
        name = data[at + name_at : data.index(b"\0", at + name_at)].decode()
        begin = at + value_at
        if kind == ord("J") and not vector:
            found[name] = struct.unpack_from(order + "q", data, begin)[0]
        elif kind == ord("B"):
            found[name] = data[begin : begin + vector].split(b"\0")[0].decode(errors="replace")
        if length <= 0:
            raise ValueError("an entry of %d bytes" % length)
        at += length
    return found


def jvm_values(counters: dict[str, Any]) -> list[Value]:
    """Return a broker's pauses, collections and heap since its start; times in seconds, sizes in bytes.

    A pause is a safepoint: it includes the wait for all threads to stop. Collections that stop the broker are pauses.
    """
    second = counters["sun.os.hrt.frequency"]
    found: list[Value] = []
    if "sun.rt.safepointTime" in counters:
        stopped = counters["sun.rt.safepointTime"] + counters["sun.rt.safepointSyncTime"]
        found.append(["jvm.pause.seconds", None, None, None, stopped / second])
        found.append(["jvm.pauses", None, None, None, counters["sun.rt.safepoints"]])
    for number, label in enumerate(("young", "full")):
        base = "sun.gc.collector.%d." % number
        if base + "time" in counters:
            found.append(["jvm.collection.seconds", None, None, label, counters[base + "time"] / second])
            found.append(["jvm.collections", None, None, label, counters[base + "invocations"]])
    if "sun.gc.generation.1.space.0.used" in counters:
        # The JVM writes it at the end of each collection.
        found.append(["jvm.old.used", None, None, None, counters["sun.gc.generation.1.space.0.used"]])
        found.append(["jvm.old.max", None, None, None, counters["sun.gc.generation.1.maxCapacity"]])
    return found


def process_values(proc: str, pid: str) -> list[Value]:
    """Return what the kernel says of a process. Raise `OSError` when it has ended.

    That is its CPU time in seconds, its memory that no file backs (resident or swapped), whether a signal has stopped
    it, and how many CPUs it may use. Nothing counts how long it is stopped: a stop between two samples is not seen.
    """
    # Its name, in brackets, may contain anything. User and system time are the 14th and the 15th field.
    state, *fields = read("%s/%s/stat" % (proc, pid)).rpartition(")")[2].split()
    status = dict(line.split(":", 1) for line in read("%s/%s/status" % (proc, pid)).splitlines() if ":" in line)
    cpus = bin(int(status["Cpus_allowed"].strip().replace(",", ""), 16)).count("1")
    return [
        ["jvm.cpu.seconds", None, None, None, (int(fields[10]) + int(fields[11])) / os.sysconf("SC_CLK_TCK")],
        ["jvm.memory.bytes", None, None, None, sum(_bytes(status.get(name)) for name in ("RssAnon", "VmSwap"))],
        ["jvm.stopped", None, None, None, float(state in "Tt")],
        ["jvm.cpus", None, None, None, cpus],
    ]


def _bytes(kilobytes: str | None) -> int:
    return int(kilobytes.split()[0]) * 1024 if kilobytes else 0


def throttled_seconds(groups: str = "/sys/fs/cgroup") -> float | None:
    """Return for how long a CPU limit held back this host's processes, in seconds; None where nothing counts it.

    The control groups are of version 2 or 1. In a container the highest that is seen is the container's own.
    """
    for name, key, unit in (("cpu.stat", "throttled_usec", 1e6), ("cpu/cpu.stat", "throttled_time", 1e9)):
        try:
            counted = dict(line.split() for line in read("%s/%s" % (groups, name)).splitlines())
        except (OSError, ValueError):
            continue
        if key in counted:
            return int(counted[key]) / unit
    return None


def limited(groups: str = "/sys/fs/cgroup") -> list[Value]:
    """Return what the kernel counts of this host's memory (`MEMORY`), and whether the rate of a disk is limited.

    What the kernel does not say is left out.
    """
    found: list[Value] = []
    for name, wanted in MEMORY.items():
        try:
            lines = read("%s/%s" % (groups, name)).splitlines()
        except OSError:
            continue
        counts = {key: count for key, _, count in (line.rpartition(" ") for line in lines)}
        found += [[metric, None, None, None, int(counts[key])] for key, metric in wanted.items() if key in counts]
    for names in (["io.max"], ["blkio/blkio.throttle.%s_bps_device" % way for way in ("read", "write")]):
        try:
            text = "".join(read("%s/%s" % (groups, name)) for name in names)
        except OSError:
            continue
        found.append(["disk.limited", None, None, None, float(bool(text.strip()))])
    return found


def jvm_metrics(folder: str = "/tmp", proc: str = "/proc") -> list[Value]:
    """Return `jvm_values` of this host's broker or controller, its CPU time, memory and restraint; empty without one.

    A JVM that was killed leaves its file.
    """
    for path in pathlib.Path(folder).glob("hsperfdata_*/*"):
        try:
            if read("%s/%s/comm" % (proc, path.name)).strip() != "java":
                continue
            counters = performance_counters(path.read_bytes())
            if counters.get("sun.rt.javaCommand", "").split(" ")[0] == MAIN_CLASS:
                return [*jvm_values(counters), *process_values(proc, path.name)]
        except (OSError, ValueError, LookupError, struct.error):
            continue  # it has ended, or it has just begun
    return []


def store_metrics(port: int) -> list[Value]:
    """Return the counters of the object store's server since its start; an empty list while it does not answer.

    An operation has a counter from its first request on.
    """
    try:
        with urllib.request.urlopen("http://127.0.0.1:%d%s" % (port, STORE_PATH), timeout=0.8) as answer:
            lines = answer.read().decode().splitlines()
    except (urllib.error.URLError, TimeoutError, ConnectionError, ValueError):
        return []
    found: list[Value] = []
    for line in lines:
        match = SERIES.fullmatch(line)
        if not match or match.group(1) not in STORE:
            continue
        labels = dict(LABEL.findall(match.group(2) or ""))
        if labels.get("type", "s3") == "s3":
            words = [labels[name] for name in ("name", "le") if name in labels]
            found.append([STORE[match.group(1)], None, None, " ".join(words) or None, float(match.group(3))])
    return found


def clock_offset() -> float:
    """Return CLOCK_REALTIME less CLOCK_MONOTONIC in seconds: constant unless a process sets or slews the clock."""
    tries = []
    for _ in range(3):
        before, wall, after = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
        tries.append((after - before, wall - (before + after) // 2))
    return min(tries)[1] / 1e9  # the reading that was interrupted for the shortest time


def sample(config: dict[str, Any]) -> dict[str, Any]:
    """Return one sample. Each value has the instant of its reading; `t` is in their middle."""
    begun = time.time_ns()
    values: list[Value] = []
    for device in config["devices"]:
        received, sent = counters(device)
        values.append(["nic.rx.bytes", None, None, device, received])
        values.append(["nic.tx.bytes", None, None, device, sent])
    if config.get("log_dir"):
        for (topic, partition), size in sorted(log_sizes(config["log_dir"], config["topics"]).items()):
            values.append(["log.bytes", topic, partition, None, size])
        free = free_bytes(config["log_dir"])
        if free is not None:
            values.append(["disk.free.bytes", None, None, None, free])
        moved = device_bytes()
        if moved is not None:
            values.append(["io.read_bytes", None, None, None, moved[0]])
            values.append(["io.write_bytes", None, None, None, moved[1]])
    if config.get("ports"):
        values += foreign_connections([address_of(device) for device in config["devices"]], config["ports"])
        values += protocol_counts()
    # The byte counts above need their own instant: the requests below take some milliseconds longer.
    instant = (begun + time.time_ns()) // 2
    if config.get("log_dir"):
        values += jvm_metrics()
        throttled = throttled_seconds()
        if throttled is not None:
            values.append(["cpu.throttled.seconds", None, None, None, throttled])
        values += limited()
    values.append(["clock.offset", None, None, None, clock_offset()])
    if config.get("jmx_port"):
        values += metrics(config["jmx_port"], config.get("latency", False))
    if config.get("s3_port"):
        since = time.monotonic()
        values += store_metrics(config["s3_port"])
        values.append(["s3.answer.seconds", None, None, None, time.monotonic() - since])
    return {"t": instant // 1000, "v": values}


def next_due(due: float, now: float, interval: float, spent: float = 0.0, cpus: float = 0.0) -> float:
    """Return when the next sample is due, after one that was due at `due` and took `spent` seconds of CPU time.

    The samples after a late one keep their interval. With `cpus`, the CPUs that the agent may use on average, a costly
    sample is followed by a longer rest: a host with thousands of replicas would else be slowed down by its own agent.
    """
    kept = max(due + interval, now - interval)
    return max(kept, due + min(MOST_S, spent / cpus)) if cpus else kept


def main() -> None:
    """Sample at whole multiples of the interval until the output is closed."""
    config = json.loads(sys.argv[1])
    due = time.monotonic()
    late = 0.0
    while True:
        before = time.process_time()
        try:
            answer = sample(config)
            answer["v"].append(["agent.late", None, None, None, late])
        except OSError as error:  # the next sample may succeed, and the reason must reach the recorder
            answer = {"t": time.time_ns() // 1000, "error": str(error)}
        try:
            print(json.dumps(answer, separators=(",", ":")), flush=True)
        except BrokenPipeError:
            return
        spent = time.process_time() - before
        due = next_due(due, time.monotonic(), config["interval_s"], spent, config.get("cpus", 0.0))
        # Only a sleep that is too long counts: a reading may wait for a broker or a disk, which Kafka makes slow.
        now = time.monotonic()
        time.sleep(max(0.0, due - now))
        late = max(0.0, time.monotonic() - max(due, now))


if __name__ == "__main__":
    main()
