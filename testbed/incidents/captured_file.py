"""A capture as two files that `testbed replay` plays: an incident and its topology. Pure, except `write_capture`."""

import math
import shutil
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml

from results.contract import durable
from testbed.errors import UsageError
from testbed.incidents.capture import CapturedCluster, CapturedTopic
from testbed.incidents.model import MAX_BYTES, MAX_PARTITIONS
from testbed.software.kafka import DEFAULT_KAFKA
from testbed.units import format_bit_rate

INCIDENT, TOPOLOGY = "incident.yaml", "topology.yaml"
RECORD_BYTES, MOST_RECORDS_PER_S, MOST_RECORD_BYTES = 4096, 900, 2**20
LEAST_LOAD = 1000
"""B/s below which clients are left out."""
LONGEST_S = 3600
BEGIN_S = 10
"""Seconds before the move."""
NOT_KNOWN = "What would have been right is not known yet: this variant repeats the capture."


def host_names(cluster: CapturedCluster) -> dict[int, str]:
    """Return broker → the name of its host."""
    return {broker: f"b{number}" for number, broker in enumerate(sorted(cluster.brokers), 1)}


def topology_document(name: str, cluster: CapturedCluster, nic_bps: int, kafka: str = DEFAULT_KAFKA) -> dict[str, Any]:
    """Return the topology: one host for each broker, in the captured racks, with NICs of `nic_bps` bits/s."""
    names = host_names(cluster)
    racks = {rack: f"r{number}" for number, rack in enumerate(sorted(set(map(str, cluster.brokers.values()))), 1)}
    hosts: dict[str, Any] = {}
    for number, broker in enumerate(sorted(cluster.brokers)):
        hosts[names[broker]] = {"role": "broker" if number else "both", "rack": racks[str(cluster.brokers[broker])]}
    return {
        "name": name,
        "kafka": {"version": kafka},
        "racks": sorted(racks.values()),
        "defaults": {"nic": {"rate": format_bit_rate(nic_bps)}},
        "hosts": hosts,
    }


def incident_document(
    name: str, cluster: CapturedCluster, nic_bps: int, notes: Sequence[str] = ()
) -> tuple[dict[str, Any], list[str]]:
    """Return the incident, and what it lacks of the capture, in sentences.

    Raise `UsageError` when nothing moves, or when a topic is larger than a file may say.
    """
    moving = {topic: each for topic, each in cluster.topics.items() if each.moves}
    if not moving:
        raise UsageError("nothing moves: the cluster lists no reassignment; give the plan of one with --plan")
    hosts = host_names(cluster)
    lost = [*cluster.notes, *notes]
    topics = {topic: _topic(topic, each, hosts, lost) for topic, each in cluster.topics.items()}
    throttle = cluster.throttle_bytes_per_s
    seconds = _seconds(moving, throttle or nic_bps / 8)
    document: dict[str, Any] = {
        "name": name,
        "summary": f"A capture: {len(moving)} topics move.",
        "topology": TOPOLOGY,
        "lasts": f"{seconds + BEGIN_S}s",
        "parameters": {} if throttle is None else {"throttle": f"{throttle}B/s"},
        "state": {"topics": topics},
    }
    load = _load(cluster, topics, lost)
    if load is not None:
        document["load"] = load
    limit = {} if throttle is None else {"throttle": "$throttle"}
    actions = [
        {"move": {"topics": [topic], "hosts": _turns([to or was for to, was in _pairs(each)], hosts), **limit}}
        for topic, each in moving.items()
    ]
    document["timeline"] = [
        {"name": "move", "at": f"{BEGIN_S}s", "do": actions, "expect": [{"move_done": {"within": f"{seconds}s"}}]},
        *(
            []
            if throttle is None
            else [
                {"name": "clean-up", "at": {"move_progress": "done"}, "optional": True, "do": {"remove_throttle": {}}}
            ]
        ),
        {"expect": [{"records_intact": {}}]},
    ]
    document["broken"] = {"summary": "The cluster as it was captured.", "expected_failures": []}
    document["fixed"] = {"summary": NOT_KNOWN}
    return document, lost


def _pairs(topic: CapturedTopic) -> list[tuple[tuple[int, ...] | None, tuple[int, ...]]]:
    return list(zip(topic.targets, topic.replicas, strict=True))


def _turns(placed: Sequence[Sequence[int]], hosts: Mapping[int, str]) -> list[Any]:
    """Return the hosts of each partition; one list when it is the same for all."""
    named = [[hosts[broker] for broker in each] for each in placed]
    return named[0] if all(each == named[0] for each in named) else named


def _topic(name: str, topic: CapturedTopic, hosts: Mapping[int, str], lost: list[str]) -> dict[str, Any]:
    partitions, size = len(topic.replicas), sum(topic.size_bytes)
    if partitions > MAX_PARTITIONS or size > MAX_BYTES:
        most = f"{MAX_PARTITIONS} partitions and {MAX_BYTES / 1e9:g} GB"
        raise UsageError(
            f"{name} has {partitions} partitions and {size / 1e9:.3g} GB; an incident's topic has at most {most}: "
            "use --scale-down, or name other topics with --topic"
        )
    largest, mean = max(topic.size_bytes), size / partitions
    if mean and largest > 1.5 * mean:
        lost.append(f"{name}: its largest partition has {largest / mean:.1f} times the mean; the replay's are equal")
    found: dict[str, Any] = {"partitions": partitions, "replicas": _turns(topic.replicas, hosts)}
    if size:
        found["size"] = f"{size}B"
    if topic.configs:
        found["configs"] = dict(topic.configs)
    return found


def _load(cluster: CapturedCluster, topics: dict[str, Any], lost: list[str]) -> dict[str, Any] | None:
    """Return the load on the busiest topic; that one starts empty, or has an empty one like it next to it."""
    inbound = {name: sum(topic.inbound_bytes_per_s) for name, topic in cluster.topics.items()}
    busiest = max(inbound, key=lambda name: inbound[name])
    rate = round(inbound[busiest])
    if rate < LEAST_LOAD:
        return None
    others = round(sum(inbound.values()) - inbound[busiest])
    if others >= LEAST_LOAD:
        lost.append(f"clients write {others} B/s to other topics; the replay writes to {busiest} alone")
    to = busiest
    if "size" in topics[busiest]:
        to = "captured-load"
        topics[to] = {key: value for key, value in topics[busiest].items() if key != "size"}
        lost.append(
            f"{busiest}: what clients write goes to {to}, an empty topic on the same brokers, which does not move"
        )
    least = math.ceil(rate / MOST_RECORDS_PER_S)
    record = RECORD_BYTES if least <= RECORD_BYTES else 1 << (least - 1).bit_length()
    if record > MOST_RECORD_BYTES:
        raise UsageError(f"clients write {rate} B/s to {busiest}; a load has at most 900 MB/s: use --scale-down")
    return {"produce": f"{rate}B/s", "to": to, "record_size": f"{record}B"}


def _seconds(moving: Mapping[str, CapturedTopic], rate_bytes_per_s: float) -> int:
    """Return how long the replay lasts at most: twice what the busiest new broker takes, and two minutes."""
    arriving: dict[int, int] = {}
    for topic in moving.values():
        for to, was, size in zip(topic.targets, topic.replicas, topic.size_bytes, strict=True):
            for broker in set(to or ()) - set(was):
                arriving[broker] = arriving.get(broker, 0) + size
    return min(LONGEST_S, round(2 * max(arriving.values(), default=0) / rate_bytes_per_s) + 120)


def write_capture(
    folder: Path,
    name: str,
    cluster: CapturedCluster,
    nic_bps: int,
    at: datetime,
    notes: Sequence[str],
    kafka: str = DEFAULT_KAFKA,
) -> list[str]:
    """Write both files into a new folder, whole or not at all; return what they lack. Raise `UsageError`."""
    incident, lost = incident_document(name, cluster, nic_bps, notes)
    topology = topology_document(name, cluster, nic_bps, kafka)
    if folder.exists():
        raise UsageError(f"{folder} exists: give another folder with --out")
    head = [f"Captured at {at:%Y-%m-%dT%H:%M:%SZ}.", *(f"Not as captured: {each}." for each in lost)]
    comment = "".join(f"# {line}\n" for line in head)
    half = folder.with_name(f".{folder.name}.half")
    shutil.rmtree(half, ignore_errors=True)
    half.mkdir(parents=True)
    try:
        durable.write(half / TOPOLOGY, yaml.safe_dump(topology, sort_keys=False))
        durable.write(half / INCIDENT, comment + yaml.safe_dump(incident, sort_keys=False, width=120))
        half.rename(folder)
    except BaseException:
        shutil.rmtree(half, ignore_errors=True)
        raise
    return lost
