"""A KIP-73 throttle on a running cluster: set, seen in force on every broker, and taken away again."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from testbed.kafka.errors import UNKNOWN_TOPIC_OR_PARTITION, KafkaError, UnreachableError
from testbed.kafka.types import AdminApi, ConfigResource, TopicPartition
from testbed.reassignment.changes import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    ThrottleError,
    Wanted,
    changes,
    not_in_force,
    wanted_configs,
)
from testbed.reassignment.journal import Journal, JournalFolder
from testbed.reassignment.plan import Move
from testbed.reassignment.restore import Restored, read_configs, restore
from testbed.wait import WaitTimeout, wait_for

EventSink = Callable[[str, str, Mapping[str, Any]], None]
_SHOWN_PROBLEMS = 8


@dataclass(frozen=True, slots=True)
class BrokerThrottle:
    """What one broker says it has in force: rates in B/s (None: it has none), and lists by topic."""

    leader_rate_bytes_per_s: int | None
    follower_rate_bytes_per_s: int | None
    leader_replicas: Mapping[str, str]
    follower_replicas: Mapping[str, str]


class Throttle:
    """One throttle's life: `set`, `wait_in_force`, `check` at will, `restore`.

    Changes only the keys it must, and only after its journal is on disk; restores exactly what was there. Not
    for use from several threads, except `check`.
    """

    def __init__(self, admin: AdminApi, journals: JournalFolder, on_event: EventSink | None = None) -> None:
        self._admin = admin
        self._journals = journals
        self._on_event = on_event or (lambda _kind, _name, _detail: None)
        self._journal: Journal | None = None
        self._wanted: Wanted = {}
        self._brokers: tuple[int, ...] = ()

    def set(
        self,
        moves: Sequence[Move],
        rate_bytes_per_s: int,
        extra_brokers: Iterable[int] = (),
        unthrottled: Collection[TopicPartition] = (),
    ) -> None:
        """List the replicas that move and set both rates on every broker concerned, and on the extra ones.

        Raises `ThrottleError` (nothing changed) when it cannot be done as asked, or `KafkaError`; then, as
        after any other end, `restore` puts back what was there.
        """
        if self._journal is not None:
            raise ThrottleError("this throttle is set already; restore it first")
        concerned = {broker for move in moves for broker in (*move.current, *move.target)}
        self._brokers = tuple(sorted(concerned | {*extra_brokers}))
        resources = [ConfigResource.topic(topic) for topic in sorted({move.tp.topic for move in moves})]
        resources += [ConfigResource.broker(broker) for broker in self._brokers]
        present = {resource: read_configs(self._admin, resource) for resource in resources}
        self._wanted = wanted_configs(moves, rate_bytes_per_s, self._brokers, present, unthrottled)
        todo = changes(self._wanted, present)
        journal = Journal.new(self._admin.bootstrap, self._admin.cluster().cluster_id, todo)
        # Known before it is written: an interrupt during the write must still lead to its removal.
        self._journal = journal
        self._journals.write(journal)
        for resource in dict.fromkeys(change.resource for change in todo):
            self._admin.alter_configs(
                resource, {change.key: change.value for change in todo if change.resource == resource}
            )
        self._on_event(
            "throttle.set",
            "throttle",
            {
                "rate_bytes_per_s": rate_bytes_per_s,
                "brokers": list(self._brokers),
                "changes": [[str(change.resource), change.key] for change in todo],
            },
        )

    def wait_in_force(self, timeout_s: float, interval_s: float = 0.05) -> None:
        """Wait until every broker itself shows its rates, and the lists of every moving topic.

        A broker applies the metadata log in order on one thread, and begins with what DescribeConfigs shows.
        Once that shows the throttle, a reassignment asked for afterwards is applied after the throttle
        everywhere. Raises `ThrottleError` naming each broker and key that is missing.
        """

        def missing() -> list[str]:
            problems = []
            for broker in self._brokers:
                try:
                    problems += self._missing_on(broker)
                except KafkaError as error:
                    # A broker may be slow to answer or to hear of a topic; what else it says will not change.
                    if not isinstance(error, UnreachableError) and error.name != UNKNOWN_TOPIC_OR_PARTITION:
                        raise
                    problems.append(str(error))
            return problems

        try:
            wait_for(missing, lambda problems: not problems, timeout_s, interval_s, "the throttle in force")
        except WaitTimeout as error:
            shown = list(error.last_seen)
            more = [f"and {len(shown) - _SHOWN_PROBLEMS} more"] if len(shown) > _SHOWN_PROBLEMS else []
            raise ThrottleError(
                f"the throttle is not in force after {timeout_s:g} s, the move was not started:\n  "
                + "\n  ".join(shown[:_SHOWN_PROBLEMS] + more)
            ) from error
        self._on_event("throttle.in_force", "throttle", {"brokers": list(self._brokers)})

    def check(self) -> dict[int, BrokerThrottle]:
        """Ask every broker what it has in force now, default level included."""
        return {broker: self._check_broker(broker) for broker in self._brokers}

    def restore(self, timeout_s: float = 15.0) -> Restored:
        """Put back what was there, see that it is, and remove the journal; does nothing when nothing was set.

        Raises `RestoreError`; the journal is kept then, for another attempt or for `recover`.
        """
        if self._journal is None:
            return Restored()
        done = restore(self._admin, self._journal.changes, timeout_s)
        self._journals.remove(self._journal.id)
        self._journal = None
        self._on_event(
            "throttle.restored",
            "throttle",
            {"interferences": [str(found) for found in done.interferences], "gone": list(done.gone)},
        )
        return done

    def _check_broker(self, broker: int) -> BrokerThrottle:
        told = self._admin.broker_configs(broker)
        rates = [told.in_force(key) for key in (LEADER_RATE, FOLLOWER_RATE)]
        lists: dict[str, dict[str, str]] = {LEADER_REPLICAS: {}, FOLLOWER_REPLICAS: {}}
        for topic in self._topics():
            seen = self._admin.topic_configs(topic, broker)
            for key, by_topic in lists.items():
                if key in seen:
                    by_topic[topic] = seen[key]
        leader, follower = (None if rate is None else int(rate) for rate in rates)
        return BrokerThrottle(leader, follower, lists[LEADER_REPLICAS], lists[FOLLOWER_REPLICAS])

    def _missing_on(self, broker: int) -> list[str]:
        resources = [ConfigResource.topic(topic) for topic in self._topics()]
        resources.append(ConfigResource.broker(broker))
        seen = {resource: read_configs(self._admin, resource, broker) for resource in resources}
        wanted = {resource: self._wanted[resource] for resource in resources}
        return [f"broker {broker} reports {problem}" for problem in not_in_force(wanted, seen)]

    def _topics(self) -> list[str]:
        return [resource.name for resource in self._wanted if resource.kind == "topic"]
