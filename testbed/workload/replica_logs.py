"""The comparison of the logs of a partition's replicas in sync, byte by byte.

Consumers read the leader's log alone. A follower appends the leader's batches as they are: their headers, with the
offsets and the leader epoch, are the same on all replicas, and so is each record. Only the segments may differ. The
offset at which the log starts is the leader's as well; a broker has it in memory, and its segments do not show it.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from operator import not_
from pathlib import Path

from results.contract.manifest import Records
from testbed.errors import TestbedError
from testbed.hosts import Shell
from testbed.kafka.admin import Admin
from testbed.kafka.node import DATA_DIR
from testbed.kafka.types import TopicPartition
from testbed.provision.testbed import Testbed
from testbed.software.jvm import AGENT_PORT
from testbed.topology.host import names_by_id
from testbed.wait import WaitTimeout, wait_for
from testbed.workload import log_digests
from testbed.workload.producer_epochs import batch_headers, dump_log

EQUAL_S = 40.0
"""A replica that has lacked the end of the log for 30 s (`replica.lag.time.max.ms`) is not in sync any more."""
_LOOK_S = 1.0
_READ_S = 300.0
_DUMPED = 3
"""The number of partitions whose first difference is read: each takes two JVMs."""
_SHOWN = ("baseOffset", "lastOffset", "count", "producerId", "CreateTime", "size", "crc", "isvalid")


@dataclass(frozen=True, slots=True)
class LogDigest:
    """A replica's log: the name of its first segment, its bytes, and their digest.

    The broker gives no record below the offset `start`, which may be within a segment.
    """

    first: str
    bytes: int
    digest: str
    start: int


ReplicaLogs = Mapping[str, LogDigest]
"""The logs of a partition's replicas in sync by host, the leader's first."""


def unlike(logs: ReplicaLogs) -> str:
    """Return the first follower whose log is another one than its leader's; empty if there is none. Pure.

    A follower takes over where its leader's log starts. The bytes of logs with different first segments cannot be
    compared: each broker deletes old segments at a time of its own.
    """
    leader = next(iter(logs.values()), None)
    return next((host for host, log in logs.items() if leader and _differs(log, leader)), "")


def _differs(log: LogDigest, leader: LogDigest) -> bool:
    return log.start != leader.start or (log.first == leader.first and log != leader)


def first_difference(leader: Iterable[str], follower: Iterable[str]) -> str:
    """Return the first batch in which two dumps of logs differ, as both have it; empty if they do not. Pure."""
    for one, other in zip_longest(map(_anywhere, batch_headers(leader)), map(_anywhere, batch_headers(follower))):
        if one != other:
            shown = [name for name in _SHOWN if (one or {}).get(name) != (other or {}).get(name)] or ["baseOffset"]
            return f"at offset {(one or other or {})['baseOffset']}: {_text(other, shown)}, not {_text(one, shown)}"
    return ""


def _anywhere(header: dict[str, str]) -> dict[str, str]:
    header.pop("position", None)  # of its own segment
    return header


def _text(batch: Mapping[str, str] | None, shown: Sequence[str]) -> str:
    return "no batch" if batch is None else " ".join(f"{name} {batch.get(name)}" for name in shown)


def replica_differences(
    testbed: Testbed, admin: Admin, topics: Sequence[str], timeout_s: float = EQUAL_S
) -> tuple[str, ...]:
    """Return a line for each partition whose replicas in sync have different logs, also after `timeout_s` seconds.

    Call it when no client writes any more. Raise `TestbedError` when a host's logs cannot be read.
    """
    names, hosts = names_by_id(testbed.topology.brokers), testbed.hosts
    left: set[TopicPartition] | None = None

    def look() -> dict[TopicPartition, ReplicaLogs]:
        """Return the logs that differ; after the first look only the partitions that differed are read."""
        nonlocal left
        replicas = {
            tp: [names[broker] for broker in (state.leader, *state.isr) if broker in names]
            for tp, state in admin.partitions(topics).items()
            if state.leader in names and len(state.isr) > 1 and (left is None or tp in left)
        }
        folders: dict[str, list[str]] = {}
        for tp, of in replicas.items():
            for host in dict.fromkeys(of):
                folders.setdefault(host, []).append(str(tp))
        read = {host: read_digests(hosts[host], wanted) for host, wanted in folders.items()}
        logs = {
            tp: {host: read[host][str(tp)] for host in of if str(tp) in read[host]}
            for tp, of in replicas.items()
            if str(tp) in read[of[0]]
        }
        found: dict[TopicPartition, ReplicaLogs] = {tp: each for tp, each in sorted(logs.items()) if unlike(each)}
        left = set(found)
        return found

    try:
        wait_for(look, not_, timeout_s, _LOOK_S, "equal logs of all replicas in sync")
    except WaitTimeout as error:
        found: dict[TopicPartition, ReplicaLogs] = error.last_seen
        lines = {tp: _line(tp, logs) for tp, logs in found.items()}
        for tp in list(lines)[:_DUMPED]:
            lines[tp] += _detail(tp, [hosts[host] for host in (next(iter(found[tp])), unlike(found[tp]))])
        return tuple(lines.values())
    return ()


def left_isr(testbed: Testbed, admin: Admin, topics: Sequence[str], timeout_s: float = EQUAL_S) -> tuple[str, ...]:
    """Return a line for each replica on a live broker that is not in sync, also after `timeout_s` seconds.

    A replica that does not follow its leader leaves the ISR, and its log is compared with none. A replica of a broker
    that is down has no line, nor has any while a partition is being reassigned. Call it when no client writes any more.
    """
    names = names_by_id(testbed.topology.brokers)

    def look() -> tuple[str, ...]:
        if admin.reassignments(topics):
            return ()
        live = {broker.id for broker in admin.brokers()}
        return tuple(
            f"{tp} on {names.get(broker, broker)}"
            for tp, state in sorted(admin.partitions(topics).items())
            for broker in state.replicas
            if broker in live and broker not in state.isr
        )

    try:
        wait_for(look, not_, timeout_s, _LOOK_S, "all replicas to be in sync")
    except WaitTimeout as error:
        found: tuple[str, ...] = error.last_seen
        return found
    return ()


def with_replicas(
    records: Records, testbed: Testbed, admin: Admin, topics: Sequence[str], *, in_sync: bool = False
) -> Records:
    """Return the account of the records with the replicas in sync whose logs differ, or why they were not compared.

    With `in_sync` it has the replicas that are not in sync as well: nothing that the run did explains them.
    """
    found = records
    try:
        found = replace(found, digest_mismatches=replica_differences(testbed, admin, topics))
        return replace(found, out_of_sync=left_isr(testbed, admin, topics)) if in_sync else found
    except TestbedError as error:
        return replace(found, uncompared=" ".join(str(error).split()))


def _line(tp: TopicPartition, logs: ReplicaLogs) -> str:
    leader, follower = next(iter(logs)), unlike(logs)
    one, other = logs[leader], logs[follower]
    if other.start != one.start:
        return (
            f"{tp}: the log on {follower} starts at offset {other.start}, not at {one.start} as on its leader, {leader}"
        )
    sizes = other.bytes, one.bytes
    bytes_of = "" if sizes[0] == sizes[1] else f" ({sizes[0]} bytes, not {sizes[1]})"
    return f"{tp}: the log on {follower}{bytes_of} is not that of its leader, {leader}"


def _detail(tp: TopicPartition, hosts: Sequence[Shell]) -> str:
    try:
        where = first_difference(*(dump_log(host, str(tp)) for host in hosts))
    except TestbedError as error:
        where = f"the logs could not be dumped: {error}"
    return f", {where}" if where else ""


def read_digests(host: Shell, folders: Sequence[str]) -> dict[str, LogDigest]:
    """Return the digests of logs by the folders of their partitions, without those that the host does not have."""
    source = Path(log_digests.__file__).read_text(encoding="utf-8")
    stdin = json.dumps(list(folders)).encode()
    command = ["python3", "-c", source, DATA_DIR, str(AGENT_PORT)]
    said = host.run(command, timeout_s=_READ_S, stdin=stdin).stdout
    return {folder: LogDigest(*each) for folder, each in json.loads(said).items()}
