"""A capture as two files that `testbed replay` plays: an incident and its topology. Pure, except `write_capture`."""

import math
import re
import shutil
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any

import yaml

from results.contract import durable
from results.contract.texts import counted, plural
from testbed.errors import TestbedError, UsageError
from testbed.incidents.capture import BrokerOutage, CapturedCluster, CapturedTopic, busiest_bytes
from testbed.incidents.model import MAX_BYTES, MAX_PARTITIONS, MOST_LOADS
from testbed.incidents.read import load
from testbed.incidents.scale_down import merged_outages
from testbed.software.kafka import DEFAULT_KAFKA
from testbed.topology.find import load_document
from testbed.units import format_bit_rate

INCIDENT, TOPOLOGY = "incident.yaml", "topology.yaml"
RECORD_BYTES, MOST_RECORDS_PER_S, MOST_RECORD_BYTES = 4096, 900, 2**20
LEAST_LOAD = 1000
"""B/s below which clients are left out."""
LEAST_SEGMENT = 2**20
LONGEST_S = 3600
BEGIN_S = 15
"""Seconds before the move. A broker that stops at 1 s is fenced by then: its session lasts 9 s, and 5 s are to spare.

Until a broker is fenced, the controller lists it, and its throttle cannot be set.
"""
LEAST_OUTAGE_S = 1.0
"""A killed process is gone by then, so that it can be started."""
LEAST_SERVING_S = 8.0
"""A broker that was restarted serves by then; an earlier kill would meet the restart. `testbed.search.space` has it."""
LOAD = "captured-load"
"""The topic of the first load, where the captured one has records. A captured topic of this name keeps it."""
NOT_KNOWN = "What would have been right is not known yet: this variant repeats the capture."


def host_names(cluster: CapturedCluster) -> dict[int, str]:
    """Return broker → the name of its host."""
    return {broker: f"b{number}" for number, broker in enumerate(sorted(cluster.brokers), 1)}


def topology_document(name: str, cluster: CapturedCluster, nic_bps: int, kafka: str = DEFAULT_KAFKA) -> dict[str, Any]:
    """Return the topology: one host for each broker, in the captured racks, with NICs of `nic_bps` bits/s."""
    names = host_names(cluster)
    racks = {rack: f"r{number}" for number, rack in enumerate(sorted(set(map(str, cluster.brokers.values()))), 1)}
    hosts: dict[str, Any] = {}
    stopped = {outage.broker for outage in cluster.outages}
    # A stopped host must not take the only controller along.
    controller = min(set(cluster.brokers) - stopped or cluster.brokers)
    for broker in sorted(cluster.brokers):
        role = "both" if broker == controller else "broker"
        hosts[names[broker]] = {"role": role, "rack": racks[str(cluster.brokers[broker])]}
    return {
        "name": name,
        "kafka": {"version": kafka},
        "racks": sorted(racks.values()),
        "defaults": {"nic": {"rate": format_bit_rate(nic_bps)}},
        "hosts": hosts,
    }


def check_hosts(nic_bps: int, kafka: str) -> None:
    """Raise `TopologyError` when no host can have this NIC or this release, before anything is asked of a cluster."""
    one = CapturedCluster({0: None}, {}, None)
    load_document(topology_document("capture", one, nic_bps, kafka), "--nic or --kafka")


def incident_document(name: str, cluster: CapturedCluster, nic_bps: int) -> tuple[dict[str, Any], list[str]]:
    """Return the incident, and what it lacks of the capture, in sentences.

    Raise `UsageError` when nothing moves, or when a topic is larger than a file may say.
    """
    moving = {topic: each for topic, each in cluster.topics.items() if each.moves}
    if not moving:
        raise UsageError(
            "nothing moves: the cluster lists no reassignment, or --scale-down merged its brokers; give a plan with "
            "--plan, or more brokers"
        )
    hosts = host_names(cluster)
    lost = list(cluster.notes)
    cluster, last_s = _in_reach(cluster, moving, lost)
    moving = {topic: cluster.topics[topic] for topic in moving}
    topics = {topic: _topic(topic, each, hosts, lost) for topic, each in cluster.topics.items()}
    throttle = cluster.throttle_bytes_per_s
    rate_bytes_per_s = min(throttle or math.inf, nic_bps / 8)
    # Twice what the copies need, and two minutes.
    whole = round(2 * busiest_bytes(moving.values()) / rate_bytes_per_s) + 120 + math.ceil(last_s)
    seconds = min(LONGEST_S, whole)
    if seconds < whole:
        lost.append(f"the move may take {whole} s; the replay ends after {seconds} s: use a smaller --scale-down")
    lost += _short_retentions(cluster, seconds + BEGIN_S)
    lost += _done_before(moving, rate_bytes_per_s)
    document: dict[str, Any] = {
        "name": name,
        "summary": f"A capture: {counted(len(moving), 'topic', 'moves')}.",
        "topology": TOPOLOGY,
        "lasts": f"{seconds + BEGIN_S}s",
        "parameters": {} if throttle is None else {"throttle": f"{throttle}B/s"},
        "state": {"topics": topics},
    }
    if loads := _loads(cluster, topics, lost):
        document["load"] = loads
    if throttle is not None and (unlisted := sum(not each.throttled for each in moving.values())):
        document["state"]["throttle"] = {"rate": "$throttle", "topics": []}
        lists = f"the lists of {plural(unlisted, 'topic')}"
        lost.append(f"{lists} name nothing that moves; the replay has the rates without lists")
    last = max(moving, key=lambda topic: (_ends_s(moving[topic], rate_bytes_per_s), moving[topic].begins_s))
    document["timeline"] = [
        *_moves(moving, hosts, throttle is not None, seconds),
        *_cancellations(moving, None if throttle is None else last),
        *_outages(_apart(cluster, lost), hosts),
        *([_clean_up(last, len(moving))] if throttle is not None and moving[last].cancelled_s is None else []),
        {"expect": [{"records_intact": {}}]},
    ]
    document["broken"] = {"summary": "The cluster as it was captured.", "expected_failures": []}
    document["fixed"] = {"summary": NOT_KNOWN}
    return document, lost


def _in_reach(
    cluster: CapturedCluster, moving: Mapping[str, CapturedTopic], lost: list[str]
) -> tuple[CapturedCluster, float]:
    """Return the cluster with its timeline in the first half of the longest replay, and the time of its last event."""
    returns = (each.returned_s or each.stopped_s for each in cluster.outages)
    last_s = max((*(each.last_s for each in moving.values()), *returns), default=0.0)
    if last_s <= LONGEST_S / 2:
        return cluster, max(0.0, last_s)
    factor = LONGEST_S / 2 / last_s
    lost.append(f"the timeline is × {factor:.3g}: it had {last_s:.0f} s, and a replay ends after {LONGEST_S} s")
    return cluster.in_time(factor), LONGEST_S / 2


def _moves(
    moving: Mapping[str, CapturedTopic], hosts: Mapping[int, str], throttled: bool, seconds: int
) -> list[dict[str, Any]]:
    together: dict[float, list[str]] = {}
    for topic, each in sorted(moving.items(), key=lambda item: item[1].begins_s):
        together.setdefault(round(each.begins_s, 1), []).append(topic)
    return [
        {
            "name": "move" if number == 1 else f"move-{number}",
            "at": _at(begins_s),
            "do": [{"move": _move(topic, moving[topic], hosts, throttled)} for topic in topics],
            # Whole seconds that end with the replay at the latest.
            **_done(topics, moving, f"{seconds - math.ceil(begins_s)}s"),
        }
        for number, (begins_s, topics) in enumerate(together.items(), 1)
    ]


def _move(name: str, topic: CapturedTopic, hosts: Mapping[int, str], throttled: bool) -> dict[str, Any]:
    limit = {"throttle": "$throttle"} if throttled and topic.throttled else {}
    placed = [to or was for to, was in zip(topic.targets, topic.replicas, strict=True)]
    return {"topics": [name], "hosts": _turns(placed, hosts), **limit}


def _done(topics: Sequence[str], moving: Mapping[str, CapturedTopic], within: str) -> dict[str, Any]:
    """Return the expectation that moves end. Where one is cancelled, it names each of the others of `topics`."""
    if all(each.cancelled_s is None for each in moving.values()):
        return {"expect": [{"move_done": {"within": within}}]}
    ending = [topic for topic in topics if moving[topic].cancelled_s is None]
    expected = [{"move_done": {"within": within, "topic": topic}} for topic in ending]
    return {"expect": expected} if expected else {}


def _cancellations(moving: Mapping[str, CapturedTopic], last: str | None) -> list[dict[str, Any]]:
    """Return an entry for each topic whose move is cancelled, as long after a poll has seen it in flight as it was.

    A fixed time may be before the request, which waits for the throttle. The cancellation of `last` ends the throttle.
    """
    cancelled = ((topic, each.last_s - each.begins_s) for topic, each in moving.items() if each.cancelled_s is not None)
    return [
        {
            "name": f"cancel-{number}",
            "at": {"in_flight": {"topic": topic, "above": 0}},
            "delay": f"{round(delay_s, 1):g}s",
            "do": [{"cancel": {"topics": [topic]}}, *([{"remove_throttle": {}}] if topic == last else [])],
        }
        for number, (topic, delay_s) in enumerate(cancelled, 1)
    ]


def _done_before(moving: Mapping[str, CapturedTopic], rate_bytes_per_s: float) -> list[str]:
    """Return the cancellations for which a move may be too short in the replay, by its size and the rate."""
    return [
        f"{name}: by its size and rate the move may be done before it is cancelled, "
        f"{topic.last_s - topic.begins_s:.1f} s after it began"
        for name, topic in moving.items()
        if topic.cancelled_s is not None and _copied_s(topic, rate_bytes_per_s) < topic.last_s - topic.begins_s
    ]


def _copied_s(topic: CapturedTopic, rate_bytes_per_s: float) -> float:
    return busiest_bytes([topic]) / rate_bytes_per_s


def _ends_s(topic: CapturedTopic, rate_bytes_per_s: float) -> float:
    """Return when the move of a topic ends: with its cancellation, or by its size and the rate."""
    copied_s = _copied_s(topic, rate_bytes_per_s) if topic.cancelled_s is None else 0.0
    return topic.last_s + copied_s


def _apart(cluster: CapturedCluster, lost: list[str]) -> tuple[BrokerOutage, ...]:
    """Return the outages that a replay can tell apart."""
    apart = merged_outages(cluster.outages, {broker: broker for broker in cluster.brokers}, LEAST_SERVING_S)
    if joined := len(cluster.outages) - len(apart):
        lost.append(
            f"{joined} outages are one with the outage before: the broker would serve for {LEAST_SERVING_S:g} s or less"
        )
    return apart


def _outages(outages: Sequence[BrokerOutage], hosts: Mapping[int, str]) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = []
    for number, each in enumerate(outages, 1):
        host = hosts[each.broker]
        entries.append({"name": f"stop-{number}", "at": _at(each.stopped_s), "do": {"broker_kill": {"host": host}}})
        if each.returned_s is not None:
            after_s = max(each.returned_s, each.stopped_s + LEAST_OUTAGE_S)
            entries.append({"name": f"return-{number}", "at": _at(after_s), "do": {"restart": {"host": host}}})
    return entries


def _clean_up(last: str, moves: int) -> dict[str, Any]:
    """Return the entry that removes the throttle: when the move has ended that ends last.

    The end of all moves so far is no such time: a small one may end before the next one is requested.
    """
    share = "done" if moves == 1 else {"share": "done", "topic": last}
    return {"name": "clean-up", "at": {"move_progress": share}, "optional": True, "do": {"remove_throttle": {}}}


def _at(after_s: float) -> str:
    """Return the time in the replay of what was so long after the first move; 1 s of what was before that."""
    return "1s" if after_s < 0 else f"{round(BEGIN_S + after_s, 1):g}s"


def _turns(placed: Sequence[Sequence[int]], hosts: Mapping[int, str]) -> list[Any]:
    """Return the hosts of each partition; one list when it is the same for all."""
    named = [[hosts[broker] for broker in each] for each in placed]
    return named[0] if all(each == named[0] for each in named) else named


def _topic(name: str, topic: CapturedTopic, hosts: Mapping[int, str], lost: list[str]) -> dict[str, Any]:
    partitions, size = len(topic.replicas), sum(topic.size_bytes)
    if partitions > MAX_PARTITIONS:
        raise UsageError(
            f"{name} has {partitions} partitions, allowed: {MAX_PARTITIONS}; name other topics with --topic"
        )
    if size > MAX_BYTES:
        raise UsageError(
            f"{name} has {size / 1e9:.3g} GB, allowed: {MAX_BYTES / 1e9:g} GB; use --scale-down, or name other topics "
            "with --topic"
        )
    largest, mean = max(topic.size_bytes), size / partitions
    if mean and largest > 1.5 * mean:
        lost.append(f"{name}: its largest partition has {largest / mean:.1f} times the mean; the replay's are equal")
    found: dict[str, Any] = {"partitions": partitions, "replicas": _turns(topic.replicas, hosts)}
    if size:
        found["size"] = f"{size}B"
    configs = dict(topic.configs)
    if "compact" in configs.get("cleanup.policy", ""):
        del configs["cleanup.policy"]
        lost.append(f"{name}: it is not compacted, since a compacted topic refuses the replay's records without keys")
    if int(configs.get("segment.bytes", LEAST_SEGMENT)) < LEAST_SEGMENT:
        configs["segment.bytes"] = str(LEAST_SEGMENT)
        lost.append(f"{name}: its segments have {LEAST_SEGMENT} bytes, the least since Kafka 4.0")
    if configs:
        found["configs"] = configs
    return found


def _loads(cluster: CapturedCluster, topics: dict[str, Any], lost: list[str]) -> list[dict[str, Any]]:
    """Return a load for each of the busiest topics, or for an empty one like it where the topic has records."""
    inbound = {name: round(sum(topic.inbound_bytes_per_s)) for name, topic in cluster.topics.items()}
    written = [name for name, rate in inbound.items() if rate >= LEAST_LOAD]
    chosen = sorted(written, key=lambda name: (-inbound[name], name))[:MOST_LOADS]
    others = sum(inbound.values()) - sum(inbound[name] for name in chosen)
    if chosen and others >= LEAST_LOAD:
        lost.append(f"clients write {others} B/s to other topics; the replay writes to the {len(chosen)} busiest")
    return [_load(name, inbound[name], topics, lost) for name in chosen]


def _load(name: str, rate: int, topics: dict[str, Any], lost: list[str]) -> dict[str, Any]:
    """Return the load of one topic; `topics` gets the empty one where the topic has records."""
    to = name
    if "size" in topics[name]:
        names = (LOAD if number == 1 else f"{LOAD}-{number}" for number in count(1))
        to = next(each for each in names if each not in topics)
        topics[to] = {key: value for key, value in topics[name].items() if key != "size"}
        lost.append(f"{name}: what clients write goes to {to}, an empty topic on the same brokers, which does not move")
    least = math.ceil(rate / MOST_RECORDS_PER_S)
    record = RECORD_BYTES if least <= RECORD_BYTES else 1 << (least - 1).bit_length()
    if record > MOST_RECORD_BYTES:
        raise UsageError(
            f"clients write {rate} B/s to {name}; a load has at most 900 MB/s: use --scale-down with --rates"
        )
    return {"produce": f"{rate}B/s", "to": to, "record_size": f"{record}B"}


def _short_retentions(cluster: CapturedCluster, lasts_s: int) -> list[str]:
    """Return the topics whose records the brokers may delete before the replay reads them back."""
    kept_ms = {name: int(topic.configs.get("retention.ms", "-1")) for name, topic in cluster.topics.items()}
    return [
        f"{name}: brokers retain records for {kept} ms, and the replay may last {lasts_s} s: it may miss deleted ones"
        for name, kept in kept_ms.items()
        if 0 <= kept < lasts_s * 1000
    ]


def write_capture(
    folder: Path, name: str, cluster: CapturedCluster, nic_bps: int, at: datetime, kafka: str = DEFAULT_KAFKA
) -> list[str]:
    """Write both files into a new folder, whole or not at all; return what they lack.

    Raise `UsageError` for files that would not replay, and `TestbedError` when they cannot be written.
    """
    incident, lost = incident_document(name, cluster, nic_bps)
    topology = topology_document(name, cluster, nic_bps, kafka)
    if folder.exists():
        raise UsageError(f"{folder} exists: give another folder with --out")
    head = [f"Captured at {at:%Y-%m-%dT%H:%M:%SZ}.", *(f"Not as captured: {each}." for each in lost)]
    comment = "".join(f"# {line}\n" for line in head)
    # In a folder that exists, so that an error leaves none behind.
    half = next(each for each in folder.absolute().parents if each.exists()) / f".{folder.name}.half"
    shutil.rmtree(half, ignore_errors=True)
    try:
        half.mkdir()
        durable.write(half / TOPOLOGY, _yaml(topology))
        durable.write(half / INCIDENT, comment + _yaml(incident))
        load(half / INCIDENT)
        folder.parent.mkdir(parents=True, exist_ok=True)
        half.rename(folder)
    except UsageError as error:
        wrong = str(error).replace(f"{half}/", "")
        raise UsageError(
            f"nothing is written, because the files would not replay; change --scale-down, --topic, --nic or --kafka:\n"
            f"{wrong}"
        ) from error
    except OSError as error:
        raise TestbedError(f"{folder}: it cannot be written: {error.strerror}; make room, or use --out") from error
    finally:
        shutil.rmtree(half, ignore_errors=True)
    return lost


class _Plain(yaml.SafeDumper):
    """Write every list out: who edits the hosts of one topic must not change another's."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - of the base class
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    """Return a string's node, in quotes where the reader would take it for a number: PyYAML writes `1e3` without."""
    quoted = re.fullmatch(r"[-+]?[0-9.]+[eE][-+]?[0-9]+", text)
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="'" if quoted else None)


_Plain.add_representer(str, _text)


def _yaml(document: Mapping[str, Any]) -> str:
    return yaml.dump(document, Dumper=_Plain, sort_keys=False, width=120)
