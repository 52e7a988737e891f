"""Which configuration a KIP-73 throttle needs, given what is there. Pure."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from testbed.errors import TestbedError
from testbed.kafka.types import ConfigResource, TopicPartition
from testbed.reassignment.plan import Move

LEADER_RATE = "leader.replication.throttled.rate"
FOLLOWER_RATE = "follower.replication.throttled.rate"
LEADER_REPLICAS = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS = "follower.replication.throttled.replicas"
EVERY_REPLICA = "*"

Wanted = Mapping[ConfigResource, Mapping[str, str]]


class ThrottleError(TestbedError):
    """The throttle cannot be set as asked, or did not come into force."""


@dataclass(frozen=True, slots=True, order=True)
class Change:
    """One key of one resource: the value it had (None: not set there) and the one it gets."""

    resource: ConfigResource
    key: str
    original: str | None
    value: str


def throttled_replicas(
    moves: Iterable[Move], unthrottled: Collection[TopicPartition] = ()
) -> dict[str, dict[str, list[str]]]:
    """Return topic → key → ``partition:broker`` entries: only replicas that move are listed.

    On the leader's side these are the existing replicas of the moving partitions, any of which may come to
    lead; on the follower's side the adding replicas. A move that adds nothing, and an unthrottled one, lists
    nothing.
    """
    listed: dict[str, dict[str, list[str]]] = {}
    for move in sorted(moves, key=lambda m: m.tp):
        if not move.adding or move.tp in unthrottled:
            continue
        keys = listed.setdefault(move.tp.topic, {LEADER_REPLICAS: [], FOLLOWER_REPLICAS: []})
        keys[LEADER_REPLICAS] += [f"{move.tp.partition}:{broker}" for broker in move.current]
        keys[FOLLOWER_REPLICAS] += [f"{move.tp.partition}:{broker}" for broker in move.adding]
    return listed


def merged(present: str | None, entries: Sequence[str]) -> str:
    """Add entries to a list that may be there already, keeping its order; the wildcard stays what it is."""
    if present is not None and present.strip() == EVERY_REPLICA:
        return present
    kept = [entry.strip() for entry in (present or "").split(",") if entry.strip()]
    return ",".join([*kept, *(entry for entry in entries if entry not in kept)])


def wanted_configs(
    moves: Sequence[Move],
    rate_bytes_per_s: int,
    brokers: Iterable[int],
    present: Wanted,
    unthrottled: Collection[TopicPartition] = (),
) -> dict[ConfigResource, dict[str, str]]:
    """Return what must be in force: the lists of every moving topic, and both rates of every broker given.

    ``present`` is what is set now. Raises `ThrottleError` when a replica that was to stay unthrottled is
    listed already, by name or by the wildcard.
    """
    if rate_bytes_per_s < 1:
        raise ThrottleError(f"throttle of {rate_bytes_per_s} B/s: must be 1 or more; without one, pass none")
    wanted: dict[ConfigResource, dict[str, str]] = {}
    for topic, keys in throttled_replicas(moves, unthrottled).items():
        resource = ConfigResource.topic(topic)
        there = present.get(resource, {})
        wanted[resource] = {key: merged(there.get(key), entries) for key, entries in keys.items()}
    _refuse_listed(moves, unthrottled, present)
    for broker in sorted(brokers):
        rate = str(rate_bytes_per_s)
        wanted[ConfigResource.broker(broker)] = {LEADER_RATE: rate, FOLLOWER_RATE: rate}
    return wanted


def changes(wanted: Wanted, present: Wanted) -> tuple[Change, ...]:
    """Return what has to be altered: the keys whose value differs. What is right already is left alone."""
    return tuple(
        Change(resource, key, present.get(resource, {}).get(key), value)
        for resource, keys in wanted.items()
        for key, value in keys.items()
        if present.get(resource, {}).get(key) != value
    )


def not_in_force(wanted: Wanted, seen: Wanted) -> list[str]:
    """Say, for each key that is not as wanted, what is there instead."""
    return [
        f"{resource}: {key} is {_shown(seen.get(resource, {}).get(key))}, not {_shown(value)}"
        for resource, keys in wanted.items()
        for key, value in keys.items()
        if seen.get(resource, {}).get(key) != value
    ]


def _refuse_listed(moves: Iterable[Move], unthrottled: Collection[TopicPartition], present: Wanted) -> None:
    for move in moves:
        if move.tp not in unthrottled:
            continue
        there = present.get(ConfigResource.topic(move.tp.topic), {})
        for key, brokers in ((LEADER_REPLICAS, move.current), (FOLLOWER_REPLICAS, move.adding)):
            listed = {entry.strip() for entry in there.get(key, "").split(",")}
            named = {f"{move.tp.partition}:{broker}" for broker in brokers}
            if EVERY_REPLICA in listed or named & listed:
                raise ThrottleError(
                    f"topic {move.tp.topic} has {key}={there[key]}, so {move.tp} cannot stay unthrottled; "
                    f"remove that, or put the partition into a topic of its own"
                )


def _shown(value: str | None) -> str:
    if value is None:
        return "not set"
    return repr(value if len(value) <= 60 else value[:57] + "…")
