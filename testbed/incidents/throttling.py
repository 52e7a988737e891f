"""An operator's throttle: set, changed and removed at will; at the end all is as it was before the first change."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from testbed.kafka.errors import KafkaError, UnreachableError
from testbed.kafka.types import AdminApi, ConfigResource, PartitionMove
from testbed.throttle.configs import (
    EVERY_REPLICA,
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    ConfigChange,
    ConfigValues,
    merged,
    not_in_force,
    read_configs,
    throttled_replicas,
)
from testbed.throttle.journal import JournalFolder, ThrottleJournal
from testbed.throttle.recovery import restore
from testbed.wait import wait_for

RATES, LISTS = (LEADER_RATE, FOLLOWER_RATE), (LEADER_REPLICAS, FOLLOWER_REPLICAS)
EventSink = Callable[[str, str, Mapping[str, Any]], None]


def rates_on(brokers: Collection[int], rate_bytes_per_s: int) -> dict[ConfigResource, dict[str, str]]:
    """Both rates on these brokers."""
    return {ConfigResource.broker(b): dict.fromkeys(RATES, str(rate_bytes_per_s)) for b in sorted(brokers)}


def lists_for(
    topics: Collection[str], moves: Mapping[str, Sequence[PartitionMove]]
) -> dict[ConfigResource, dict[str, str]]:
    """The replicas that move, of topics a move was asked for; every replica of the others."""
    wanted: dict[ConfigResource, dict[str, str]] = {}
    for topic in sorted(topics):
        listed = throttled_replicas(moves.get(topic, ())).get(topic)
        entries = {key: merged(None, found) for key, found in listed.items()} if listed else {}
        wanted[ConfigResource.topic(topic)] = entries or dict.fromkeys(LISTS, EVERY_REPLICA)
    return wanted


class OperatorThrottle:
    """Every change is journaled before it is made, so that `restore`, or `reassign recover`, can take it back.

    Unlike `testbed.throttle.throttle` it waits for nothing unless asked: operators do not, either.
    """

    def __init__(self, admin: AdminApi, journals: JournalFolder, on_event: EventSink) -> None:
        self._admin, self._journals, self._on_event = admin, journals, on_event
        self._originals: dict[ConfigResource, dict[str, str]] = {}
        self._set: dict[tuple[ConfigResource, str], str] = {}
        self._removed: set[tuple[ConfigResource, str]] = set()
        self._journal: ThrottleJournal | None = None

    def set(self, wanted: ConfigValues) -> None:
        """Set these keys. Raises `KafkaError`."""
        with self._journals.held():
            self._look_up(wanted)
            for resource, keys in wanted.items():
                for key, value in keys.items():
                    self._set[resource, key] = value
                    self._removed.discard((resource, key))
            self._write()
            for resource, keys in wanted.items():
                self._admin.alter_configs(resource, dict(keys))
        self._on_event("throttle.set", "throttle", {str(r): dict(k) for r, k in wanted.items()})

    def wait_in_force(self, wanted: ConfigValues, brokers: Collection[int], timeout_s: float) -> None:
        """Wait until every broker itself shows its rates and all lists; raises `WaitTimeout`."""

        def missing() -> list[str]:
            problems = []
            for broker in sorted(brokers):
                resources = [r for r in wanted if r.kind == "topic" or r == ConfigResource.broker(broker)]
                try:
                    seen = {resource: read_configs(self._admin, resource, broker) for resource in resources}
                    problems += not_in_force({resource: wanted[resource] for resource in resources}, seen)
                except UnreachableError as error:
                    problems.append(str(error))
            return problems

        wait_for(missing, lambda problems: not problems, timeout_s, 0.05, "the throttle to be in force")
        self._on_event("throttle.in_force", "throttle", {"brokers": sorted(brokers)})

    def remove(self, brokers: Collection[int], topics: Collection[str]) -> None:
        """Take rates and lists away from these, whoever set them. Raises `KafkaError`."""
        keys_of = {ConfigResource.broker(b): RATES for b in sorted(brokers)}
        keys_of |= {ConfigResource.topic(topic): LISTS for topic in sorted(topics)}
        with self._journals.held():
            self._look_up(keys_of)
            for resource, keys in keys_of.items():
                there = read_configs(self._admin, resource)
                present = [key for key in keys if key in there]
                for key in present:
                    self._set.setdefault((resource, key), there[key])
                    self._removed.add((resource, key))
                self._write()
                self._admin.alter_configs(resource, {}, present)
        self._on_event("throttle.removed", "throttle", {"brokers": sorted(brokers), "topics": sorted(topics)})

    def look(self, brokers: Collection[int], topics: Collection[str]) -> None:
        """Note, as an event, what is set now; what could not be asked is noted, too."""
        left, unread = [], []
        resources = [ConfigResource.broker(b) for b in sorted(brokers)]
        for resource in [*resources, *map(ConfigResource.topic, sorted(topics))]:
            try:
                there = read_configs(self._admin, resource)
            except KafkaError as error:
                unread.append(str(error))
                continue
            left += [f"{resource}: {key}" for key in (*RATES, *LISTS) if there.get(key)]
        self._on_event("throttle.found", "throttle", {"left": left, "unread": unread})

    def restore(self, timeout_s: float = 15.0) -> None:
        """Put everything back as it was before the first change. Raises `RestoreError`; the journal stays then."""
        if self._journal is None:
            return
        with self._journals.held():
            self._look_up(())
            restore(self._admin, self._changes(), timeout_s)
            self._journals.remove(self._journal.id)
            self._journal = None
        self._on_event("throttle.restored", "throttle", {})

    def _look_up(self, resources: Iterable[ConfigResource]) -> None:
        """Know what was there before the first change; the journal knows better where a fault beneath was healed."""
        for change in self._journals.latest(self._journal).changes if self._journal else ():
            found = {key: value for key, value in self._originals[change.resource].items() if key != change.key}
            now = {} if change.original is None else {change.key: change.original}
            self._originals[change.resource] = found | now
        for resource in resources:
            if resource not in self._originals:
                self._originals[resource] = read_configs(self._admin, resource)

    def _changes(self) -> tuple[ConfigChange, ...]:
        return tuple(
            ConfigChange(
                resource, key, self._originals[resource].get(key), value, removed=(resource, key) in self._removed
            )
            for (resource, key), value in self._set.items()
        )

    def _write(self) -> None:
        if self._journal is None:
            self._journal = ThrottleJournal.new(self._admin.bootstrap, self._admin.cluster().cluster_id, ())
        # The same id: each write takes the place of the one before, whole.
        old = self._journal
        self._journal = ThrottleJournal(old.id, old.bootstrap, old.cluster_id, self._changes(), old.owner)
        self._journals.write(self._journal)
