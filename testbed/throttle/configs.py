"""The configuration that a KIP-73 throttle needs: keys, lists of throttled replicas, rates.

Pure, except for `read_configs`.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from testbed.errors import TestbedError
from testbed.kafka.types import AdminApi, ConfigResource, PartitionMove, Reassignment, TopicPartition

LEADER_RATE = "leader.replication.throttled.rate"
FOLLOWER_RATE = "follower.replication.throttled.rate"
LEADER_REPLICAS = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS = "follower.replication.throttled.replicas"
EVERY_REPLICA = "*"
RATES = (LEADER_RATE, FOLLOWER_RATE)
EVERY_BROKER = ConfigResource("broker", "")
"""The default of all brokers: the only one that a broker which is not there yet can be given."""

MOST_BYTES = 32_767
"""The longest value of a configuration key: the controller refuses a longer one."""

ConfigValues = Mapping[ConfigResource, Mapping[str, str]]


class ThrottleError(TestbedError):
    """The throttle cannot be set as asked, or did not come into force."""


@dataclass(frozen=True, slots=True, order=True)
class ConfigChange:
    """One key of one resource: the value it had (None: not set there) and the one it gets.

    ``earlier`` are values that we set before, of which any may still be there while ``value`` takes their place.
    ``removed``: whoever set it has taken it away again, without putting the original back. With the original as its
    value it is what was right already: noted because the throttle needs it, and left alone at the end.
    """

    resource: ConfigResource
    key: str
    original: str | None
    value: str
    earlier: tuple[str, ...] = ()
    removed: bool = False

    @property
    def ours(self) -> tuple[str | None, ...]:
        """Every value that may be found without somebody else having changed it."""
        return (self.now, self.value, self.original, *self.earlier)

    @property
    def made(self) -> bool:
        """Whether anything was changed: not where the value was right already."""
        return self.value != self.original or bool(self.earlier) or self.removed

    @property
    def now(self) -> str | None:
        """What should be there now; None: nothing."""
        return None if self.removed else self.value


def throttled_replicas(
    moves: Iterable[PartitionMove], unthrottled: Collection[TopicPartition] = ()
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
    known = set(kept)
    return ",".join([*kept, *(entry for entry in entries if entry not in known)])


def wanted_configs(
    moves: Sequence[PartitionMove],
    rate_bytes_per_s: int,
    brokers: Iterable[int],
    present: ConfigValues,
    unthrottled: Collection[TopicPartition] = (),
    wildcard: Collection[str] = (),
    everywhere: bool = False,
) -> dict[ConfigResource, dict[str, str]]:
    """Return what must be in force: the lists of every moving topic, and both rates of every broker given.

    Of the ``wildcard`` topics every replica is listed, whether it moves or not. With ``everywhere`` the rates are
    the default of all brokers instead of each one's own. ``present`` is what is set now. Raises `ThrottleError`
    when a replica that was to stay unthrottled is listed already, by name or by the wildcard, and when a list is
    longer than Kafka takes.
    """
    if rate_bytes_per_s < 1:
        raise ThrottleError(f"throttle of {rate_bytes_per_s} B/s: must be 1 or more; without one, pass none")
    wanted: dict[ConfigResource, dict[str, str]] = {}
    for topic, keys in throttled_replicas(moves, unthrottled).items():
        resource = ConfigResource.topic(topic)
        there = present.get(resource, {})
        wanted[resource] = {key: merged(there.get(key), entries) for key, entries in keys.items()}
    _refuse_listed(moves, unthrottled, present)
    for topic in sorted(wildcard):
        wanted[ConfigResource.topic(topic)] = {LEADER_REPLICAS: EVERY_REPLICA, FOLLOWER_REPLICAS: EVERY_REPLICA}
    _refuse_too_long(wanted)
    for resource in [EVERY_BROKER] if everywhere else [ConfigResource.broker(broker) for broker in sorted(brokers)]:
        wanted[resource] = dict.fromkeys(RATES, str(rate_bytes_per_s))
    return wanted


def with_moves(wanted: ConfigValues, moves: Iterable[PartitionMove]) -> dict[ConfigResource, dict[str, str]]:
    """The same throttle that lists what these moves add as well.

    Raises `ThrottleError` for a topic of which it lists nothing, and when a list is longer than Kafka takes.
    """
    after = {resource: dict(keys) for resource, keys in wanted.items()}
    for topic, keys in throttled_replicas(moves).items():
        there = after.get(ConfigResource.topic(topic))
        if there is None:
            raise ThrottleError(f"topic {topic} is not throttled: none of its partitions was to be held back")
        there.update({key: merged(there.get(key), entries) for key, entries in keys.items()})
    _refuse_too_long(after)
    return after


def at_rate(wanted: ConfigValues, rate_bytes_per_s: int) -> dict[ConfigResource, dict[str, str]]:
    """The same throttle with another rate."""
    if rate_bytes_per_s < 1:
        raise ThrottleError(f"throttle of {rate_bytes_per_s} B/s: must be 1 or more; to end it, restore it")
    return {
        resource: {key: str(rate_bytes_per_s) if key in RATES else value for key, value in keys.items()}
        for resource, keys in wanted.items()
    }


def rechanged(done: Sequence[ConfigChange], before: ConfigValues, after: ConfigValues) -> tuple[ConfigChange, ...]:
    """The changes of a throttle of which ``before`` is in force, while ``after`` takes its place.

    Originals stay what they were. A key that was right by chance, and so was not changed, is changed now.
    """
    known = {(change.resource, change.key): change for change in done}
    found = dict(known)
    for resource, keys in after.items():
        for key, value in keys.items():
            was = before[resource][key]
            if value == was:
                continue
            change = known.get((resource, key), ConfigChange(resource, key, was, was))
            found[resource, key] = replace(change, value=value, earlier=(*change.earlier, change.value))
    return tuple(found.values())


def joined(done: Sequence[ConfigChange], wanted: ConfigValues, present: ConfigValues) -> tuple[ConfigChange, ...]:
    """The changes of a throttle that takes in more: ``wanted``, of resources of which ``present`` is set now.

    The original of what was journaled before stays: it was changed while its broker was alive the last time.
    """
    found = {(change.resource, change.key): change for change in done}
    for new in (*changes(wanted, present), *relied_on(wanted, present)):
        known = found.get((new.resource, new.key), new)
        earlier = known.earlier if known.value == new.value else (*known.earlier, known.value)
        found[new.resource, new.key] = replace(known, value=new.value, earlier=earlier)
    return tuple(found.values())


def settled(done: Sequence[ConfigChange]) -> tuple[ConfigChange, ...]:
    """The same changes once every broker shows their values: nothing earlier can be there any more."""
    return tuple(replace(change, earlier=()) for change in done)


def changes(wanted: ConfigValues, present: ConfigValues) -> tuple[ConfigChange, ...]:
    """Return what has to be altered: the keys whose value differs. What is right already is left alone."""
    return tuple(
        ConfigChange(resource, key, present.get(resource, {}).get(key), value)
        for resource, keys in wanted.items()
        for key, value in keys.items()
        if present.get(resource, {}).get(key) != value
    )


def relied_on(wanted: ConfigValues, present: ConfigValues) -> tuple[ConfigChange, ...]:
    """Return what is right already: whoever takes it away must learn that a throttle needs it."""
    return tuple(
        ConfigChange(resource, key, value, value)
        for resource, keys in wanted.items()
        for key, value in keys.items()
        if present.get(resource, {}).get(key) == value
    )


def by_resource(found: Iterable[ConfigChange]) -> dict[ConfigResource, list[ConfigChange]]:
    """Group changes by whose configuration they are of, in the order in which each comes first."""
    grouped: dict[ConfigResource, list[ConfigChange]] = {}
    for change in found:
        grouped.setdefault(change.resource, []).append(change)
    return grouped


def not_in_force(wanted: ConfigValues, seen: ConfigValues) -> list[str]:
    """Say, for each key that is not as wanted, what is there instead."""
    return [
        f"{resource}: {key} is {_shown(seen.get(resource, {}).get(key))}, not {_shown(value)}"
        for resource, keys in wanted.items()
        for key, value in keys.items()
        if seen.get(resource, {}).get(key) != value
    ]


def _refuse_listed(
    moves: Iterable[PartitionMove], unthrottled: Collection[TopicPartition], present: ConfigValues
) -> None:
    topics = {tp.topic for tp in unthrottled}
    lists = {
        (topic, key): {entry.strip() for entry in present.get(ConfigResource.topic(topic), {}).get(key, "").split(",")}
        for topic in topics
        for key in (LEADER_REPLICAS, FOLLOWER_REPLICAS)
    }
    for move in moves:
        if move.tp not in unthrottled:
            continue
        there = present.get(ConfigResource.topic(move.tp.topic), {})
        for key, brokers in ((LEADER_REPLICAS, move.current), (FOLLOWER_REPLICAS, move.adding)):
            listed = lists[move.tp.topic, key]
            named = {f"{move.tp.partition}:{broker}" for broker in brokers}
            if EVERY_REPLICA in listed or named & listed:
                raise ThrottleError(
                    f"topic {move.tp.topic} has {key}={there[key]}, so {move.tp} cannot stay unthrottled; "
                    f"remove that, or put the partition into a topic of its own"
                )


def _refuse_too_long(wanted: ConfigValues) -> None:
    for resource, keys in wanted.items():
        for key, value in keys.items():
            size = len(value.encode())
            if size > MOST_BYTES:
                raise ThrottleError(
                    f"{resource}: {key} would be {size} bytes, and Kafka takes {MOST_BYTES} at most; nothing was "
                    f"changed. Split the plan so that fewer of the topic's partitions move at once, or list every "
                    f"replica of it (`{EVERY_REPLICA}`, a wildcard topic)"
                )


def _shown(value: str | None) -> str:
    if value is None:
        return "not set"
    return repr(value if len(value) <= 60 else value[:57] + "…")


def read_configs(admin: AdminApi, resource: ConfigResource, from_broker: int | None = None) -> dict[str, str]:
    """Return what is set on the resource itself: a broker asked itself, all else as the given one has it."""
    if resource == EVERY_BROKER:
        asked = from_broker if from_broker is not None else min(broker.id for broker in admin.cluster().brokers)
        return dict(admin.broker_configs(asked).default)
    if resource.kind == "broker":
        return dict(admin.broker_configs(int(resource.name)).broker)
    return admin.topic_configs(resource.name, from_broker)


def unthrottled_partitions(
    listed: Mapping[TopicPartition, Reassignment], lists: Mapping[str, Mapping[str, str]]
) -> tuple[TopicPartition, ...]:
    """Return the partitions that move without a throttle: not every replica concerned is in its topic's lists.

    ``lists`` is what is set on each topic.
    """
    entries = {
        topic: (_entries(keys.get(LEADER_REPLICAS)), _entries(keys.get(FOLLOWER_REPLICAS)))
        for topic, keys in lists.items()
    }
    found = []
    for tp, running in sorted(listed.items()):
        leaders, followers = entries.get(tp.topic, (set(), set()))
        existing = [broker for broker in running.replicas if broker not in running.adding]
        if not (_has(leaders, tp, existing) and _has(followers, tp, running.adding)):
            found.append(tp)
    return tuple(found)


def missing_entries(wanted: str | None, there: str | None) -> int:
    """Return how many entries of a topic's wanted list are not in the list that is there."""
    entries = _entries(there)
    return 0 if EVERY_REPLICA in entries else len(_entries(wanted) - entries)


def _entries(value: str | None) -> set[str]:
    return {entry.strip() for entry in (value or "").split(",")} - {""}


def _has(entries: set[str], tp: TopicPartition, brokers: Iterable[int]) -> bool:
    return EVERY_REPLICA in entries or {f"{tp.partition}:{broker}" for broker in brokers} <= entries
