"""The configuration that a KIP-73 throttle needs: keys, lists of throttled replicas, rates.

Pure, except for `read_configs` and `wait_for_configs`.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from testbed.errors import TestbedError
from testbed.kafka.admin import Admin
from testbed.kafka.types import ConfigResource, PartitionMove, Reassignment, TopicPartition
from testbed.wait import wait_for

LEADER_RATE = "leader.replication.throttled.rate"
FOLLOWER_RATE = "follower.replication.throttled.rate"
LEADER_REPLICAS = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS = "follower.replication.throttled.replicas"
LISTS = (LEADER_REPLICAS, FOLLOWER_REPLICAS)
"""The keys of a topic's lists of throttled replicas."""
EVERY_REPLICA = "*"
RATES = (LEADER_RATE, FOLLOWER_RATE)
EVERY_BROKER = ConfigResource("broker", "")
"""The default of all brokers: the only level that applies to a broker that joins later."""

MOST_BYTES = 32_767
"""The longest value of a configuration key: the controller refuses a longer one."""

ConfigValues = Mapping[ConfigResource, Mapping[str, str]]


class ThrottleError(TestbedError):
    """The throttle cannot be set as asked, or did not come into force."""


@dataclass(frozen=True, slots=True, order=True)
class ConfigChange:
    """One key of one resource: the value it had (None: not set) and the value it gets.

    ``earlier`` holds values that the throttle set before, any of which may still be in force. ``removed``: the process
    that set the key has deleted it without restoring the original.
    """

    resource: ConfigResource
    key: str
    original: str | None
    value: str
    earlier: tuple[str, ...] = ()
    removed: bool = False

    @property
    def ours(self) -> tuple[str | None, ...]:
        """Return every value that may be in force if no other tool has changed the key."""
        return (self.now, self.value, self.original, *self.earlier)

    @property
    def made(self) -> bool:
        """Return whether the throttle changed the key. A restore leaves a key alone whose value was right already."""
        return self.value != self.original or bool(self.earlier) or self.removed

    @property
    def now(self) -> str | None:
        """Return the value that should be set now; None: the key should not be set."""
        return None if self.removed else self.value


def throttled_replicas(
    moves: Iterable[PartitionMove], unthrottled: Collection[TopicPartition] = ()
) -> dict[str, dict[str, list[str]]]:
    """Return topic → key → ``partition:broker`` entries of the moves that add replicas.

    The leader's list holds the existing replicas, since any of them may become leader; the follower's the adding ones.
    """
    throttled: dict[str, dict[str, list[str]]] = {}
    for move in sorted(moves, key=lambda m: m.tp):
        if not move.adding or move.tp in unthrottled:
            continue
        keys = throttled.setdefault(move.tp.topic, {LEADER_REPLICAS: [], FOLLOWER_REPLICAS: []})
        keys[LEADER_REPLICAS] += [f"{move.tp.partition}:{broker}" for broker in move.current]
        keys[FOLLOWER_REPLICAS] += [f"{move.tp.partition}:{broker}" for broker in move.adding]
    return throttled


def merged(present: str | None, entries: Sequence[str]) -> str:
    """Return the present list with the entries appended, in order; a wildcard list stays as it is."""
    if present is not None and present.strip() == EVERY_REPLICA:
        return present
    there = _entries(present)
    known = set(there)
    return ",".join([*there, *(entry for entry in entries if entry not in known)])


def wanted_configs(
    moves: Sequence[PartitionMove],
    throttle_bytes_per_s: int,
    brokers: Iterable[int],
    present: ConfigValues,
    unthrottled: Collection[TopicPartition] = (),
    wildcard: Collection[str] = (),
    everywhere: bool = False,
) -> dict[ConfigResource, dict[str, str]]:
    """Return the required configuration: the lists of every moving topic, and both rates of the given brokers.

    For the ``wildcard`` topics every replica is throttled. With ``everywhere`` the rates are the default of brokers.
    ``present`` is set now. Raise `ThrottleError` when a list already has a replica that should stay unthrottled, or is
    longer than Kafka accepts.
    """
    if throttle_bytes_per_s < 1:
        raise ThrottleError(f"throttle of {throttle_bytes_per_s} B/s: must be 1 or more; without one, pass none")
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
        wanted[resource] = dict.fromkeys(RATES, str(throttle_bytes_per_s))
    return wanted


def extended_lists(
    moves: Iterable[PartitionMove], ours: ConfigValues, present: ConfigValues
) -> dict[ConfigResource, dict[str, str]]:
    """Return the lists of the moves' topics: the present entries, the entries of `ours`, and the moves' replicas.

    Raise `ThrottleError` when a list would be longer than Kafka accepts.
    """
    wanted: dict[ConfigResource, dict[str, str]] = {}
    for topic, keys in throttled_replicas(moves).items():
        resource = ConfigResource.topic(topic)
        there, mine = present.get(resource, {}), ours.get(resource, {})
        wanted[resource] = {
            key: merged(there.get(key), list(dict.fromkeys([*_entries(mine.get(key)), *entries])))
            for key, entries in keys.items()
        }
    _refuse_too_long(wanted)
    return wanted


def at_rate(wanted: ConfigValues, throttle_bytes_per_s: int) -> dict[ConfigResource, dict[str, str]]:
    """Return the configuration of the same throttle with another rate."""
    if throttle_bytes_per_s < 1:
        raise ThrottleError(f"throttle of {throttle_bytes_per_s} B/s: must be 1 or more; to end it, restore it")
    return {
        resource: {key: str(throttle_bytes_per_s) if key in RATES else value for key, value in keys.items()}
        for resource, keys in wanted.items()
    }


def joined(done: Sequence[ConfigChange], wanted: ConfigValues, present: ConfigValues) -> tuple[ConfigChange, ...]:
    """Return the changes of a throttle that also covers ``wanted``, on resources where ``present`` is set now.

    A key that is in the journal keeps its original, and its value becomes an earlier one: some brokers may have it.
    """
    found = {(change.resource, change.key): change for change in done}
    for new in changes(wanted, present):
        known = found.get((new.resource, new.key), new)
        earlier = known.earlier if known.value == new.value else (*known.earlier, known.value)
        found[new.resource, new.key] = replace(known, value=new.value, earlier=earlier)
    return tuple(found.values())


def relied_on(done: Sequence[ConfigChange], present: ConfigValues) -> tuple[ConfigChange, ...]:
    """Return the changes, with the value that is set now as the original of each key that the throttle has not changed.

    The value of such a key was right when the throttle was set. Another tool may have changed it since.
    """
    return tuple(
        change
        if change.made or change.resource not in present
        else replace(change, original=present[change.resource].get(change.key))
        for change in done
    )


def settled(done: Sequence[ConfigChange]) -> tuple[ConfigChange, ...]:
    """Return the changes once every broker reports their values: earlier values cannot be in force any more."""
    return tuple(replace(change, earlier=()) for change in done)


def changes(wanted: ConfigValues, present: ConfigValues) -> tuple[ConfigChange, ...]:
    """Return a change of each wanted key. One whose value is right already is not `made`: the throttle relies on it."""
    return tuple(
        ConfigChange(resource, key, present.get(resource, {}).get(key), value)
        for resource, keys in wanted.items()
        for key, value in keys.items()
    )


def by_resource(found: Iterable[ConfigChange]) -> dict[ConfigResource, list[ConfigChange]]:
    """Return the changes by resource, in the order of each resource's first change."""
    grouped: dict[ConfigResource, list[ConfigChange]] = {}
    for change in found:
        grouped.setdefault(change.resource, []).append(change)
    return grouped


def not_in_force(wanted: ConfigValues, seen: ConfigValues) -> list[str]:
    """Return one line for each key that is not as wanted, with the value that is set instead."""
    return [
        f"{resource}: {key} is {shown(seen.get(resource, {}).get(key))}, not {shown(value)}"
        for resource, keys in wanted.items()
        for key, value in keys.items()
        if seen.get(resource, {}).get(key) != value
    ]


def _refuse_listed(
    moves: Iterable[PartitionMove], unthrottled: Collection[TopicPartition], present: ConfigValues
) -> None:
    there = {topic: present.get(ConfigResource.topic(topic), {}) for topic in {tp.topic for tp in unthrottled}}
    lists = {(topic, key): set(_entries(keys.get(key))) for topic, keys in there.items() for key in LISTS}
    for move in moves:
        if move.tp not in unthrottled:
            continue
        for key, brokers in ((LEADER_REPLICAS, move.current), (FOLLOWER_REPLICAS, move.adding)):
            listed = lists[move.tp.topic, key]
            named = {f"{move.tp.partition}:{broker}" for broker in brokers}
            if EVERY_REPLICA in listed or named & listed:
                raise ThrottleError(
                    f"topic {move.tp.topic} has {key}={shown(there[move.tp.topic][key])}, so {move.tp} cannot stay "
                    f"unthrottled; remove that, or put the partition into a topic of its own"
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


def shown(value: str | None) -> str:
    """Return a value for a message. A list of throttled replicas is long."""
    return "not set" if value is None else repr(value if len(value) <= 60 else value[:57] + "…")


def read_configs(admin: Admin, resource: ConfigResource, from_broker: int | None = None) -> dict[str, str]:
    """Return the resource's own configuration: a broker answers for itself, ``from_broker`` for all other resources."""
    if resource == EVERY_BROKER:
        asked = from_broker if from_broker is not None else min(broker.id for broker in admin.cluster().brokers)
        return dict(admin.broker_configs(asked).default)
    if resource.kind == "broker":
        return dict(admin.broker_configs(int(resource.name)).broker)
    return admin.topic_configs(resource.name, from_broker)


def wait_for_configs(admin: Admin, resource: ConfigResource, wanted: Mapping[str, str | None], what: str) -> None:
    """Wait until a resource reports these values (None: not set). Raise `WaitTimeout` naming `what` and the others."""

    def differing() -> list[str]:
        there = read_configs(admin, resource)
        return [f"{key} is {shown(there.get(key))}" for key, value in wanted.items() if there.get(key) != value]

    wait_for(differing, lambda left: not left, 15.0, 0.1, what)


class ListedReplicas:
    """The replicas that topics' lists of throttled replicas name; ``lists`` is topic → key → value."""

    def __init__(self, lists: Mapping[str, Mapping[str, str]]) -> None:
        self._entries = {
            (topic, key): set(_entries(value)) for topic, keys in lists.items() for key, value in keys.items()
        }

    def names(self, key: str, tp: TopicPartition, *brokers: int) -> bool:
        """Return whether a list names the partition's replicas on all of these brokers; `*` names every replica."""
        entries = self._entries.get((tp.topic, key), set())
        return EVERY_REPLICA in entries or {f"{tp.partition}:{broker}" for broker in brokers} <= entries

    def cover(self, tp: TopicPartition, existing: Iterable[int], adding: Iterable[int]) -> bool:
        """Return whether the lists name every replica of a copy: existing ones as leaders, adding ones as followers."""
        return self.names(LEADER_REPLICAS, tp, *existing) and self.names(FOLLOWER_REPLICAS, tp, *adding)


def unthrottled_partitions(
    running: Mapping[TopicPartition, Reassignment], listed: ListedReplicas
) -> tuple[TopicPartition, ...]:
    """Return the partitions that move without a throttle: their topic's lists lack at least one of their replicas."""
    found = []
    for tp, move in sorted(running.items()):
        # A move that only removes replicas copies nothing.
        if move.adding and not listed.cover(tp, move.existing, move.adding):
            found.append(tp)
    return tuple(found)


def listed_brokers(lists: Iterable[Mapping[str, str]]) -> set[int]:
    """Return the brokers that the topics' lists of throttled replicas name."""
    entries = (entry for keys in lists for value in keys.values() for entry in value.split(","))
    brokers = (entry.partition(":")[2].strip() for entry in entries)
    return {int(broker) for broker in brokers if broker.isdecimal()}


def missing_entries(wanted: str | None, there: str | None) -> int:
    """Return how many entries of a topic's wanted list the present list lacks."""
    entries = set(_entries(there))
    return 0 if EVERY_REPLICA in entries else len(set(_entries(wanted)) - entries)


def _entries(value: str | None) -> list[str]:
    return [entry.strip() for entry in (value or "").split(",") if entry.strip()]
