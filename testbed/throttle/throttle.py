"""A KIP-73 throttle on a running cluster: set, seen in force on every broker, and taken away again."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from testbed.kafka.errors import UNKNOWN_TOPIC_OR_PARTITION, KafkaError, UnreachableError
from testbed.kafka.types import AdminApi, ConfigResource, PartitionMove, TopicPartition
from testbed.owner import Owner
from testbed.throttle.configs import (
    EVERY_BROKER,
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    RATES,
    ConfigChange,
    ConfigValues,
    ThrottleError,
    at_rate,
    by_resource,
    changes,
    joined,
    not_in_force,
    read_configs,
    rechanged,
    relied_on,
    settled,
    wanted_configs,
    with_moves,
)
from testbed.throttle.journal import JournalFolder, ThrottleJournal, open_journals, refuse_shared
from testbed.throttle.recovery import Interference, Restored, restore
from testbed.wait import WaitTimeout, wait_for

EventSink = Callable[[str, str, Mapping[str, Any]], None]
_LISTS = (LEADER_REPLICAS, FOLLOWER_REPLICAS)
_SHOWN_PROBLEMS = 8


@dataclass(frozen=True, slots=True)
class BrokerThrottle:
    """What one broker says it has in force: rates in B/s (None: it has none), and lists by topic."""

    leader_rate_bytes_per_s: int | None
    follower_rate_bytes_per_s: int | None
    leader_replicas: Mapping[str, str]
    follower_replicas: Mapping[str, str]


class Throttle:
    """One throttle's life: `set`, `wait_in_force`, `change_rate` and `check` at will, `restore`.

    Changes only the keys it must, and only after its journal is on disk; restores exactly what was there. Not
    for use from several threads, except `check`.
    """

    def __init__(
        self,
        admin: AdminApi,
        journals: JournalFolder,
        on_event: EventSink | None = None,
        *,
        command_config: str | None = None,
    ) -> None:
        """``command_config`` is the file that says how to connect: noted for whoever must restore after a kill -9."""
        self._admin = admin
        self._journals = journals
        self._command_config = command_config
        self._on_event = on_event or (lambda _kind, _name, _detail: None)
        self._journal: ThrottleJournal | None = None
        self._wanted: ConfigValues = {}
        self._brokers: tuple[int, ...] = ()
        self._rate_bytes_per_s = 0
        self._overwritten: list[Interference] = []
        self._told: dict[int, str] = {}
        self.left_out: tuple[int, ...] = ()
        """Brokers that were not alive when it was set, and so have no rate: see `admit`."""

    def set(
        self,
        moves: Sequence[PartitionMove],
        rate_bytes_per_s: int,
        extra_brokers: Iterable[int] = (),
        unthrottled: Collection[TopicPartition] = (),
        wildcard: Collection[str] = (),
        *,
        everywhere: bool = False,
    ) -> None:
        """List the replicas that move and set both rates on every broker concerned, and on the extra ones.

        Of the ``wildcard`` topics every replica is listed (`*`). With ``everywhere`` the rates are the default of all
        brokers: also of those that are not there yet. Otherwise only brokers that are alive can be given a rate;
        the others are in `left_out` and in the event. Raises `ThrottleError` (nothing changed) when it cannot be
        done as asked, also while another living process throttles by the same keys, or `KafkaError`; then, as after
        any other end, `restore` puts back what was there.
        """
        if self._journal is not None:
            raise ThrottleError("this throttle is set already; restore it first")
        cluster, unthrottled = self._admin.cluster(), frozenset(unthrottled)
        concerned = {broker for move in moves for broker in (*move.current, *move.target)} | {*extra_brokers}
        # A broker's own configuration is taken by that broker alone: a dead one would refuse all the rest with it.
        dead = set() if everywhere else concerned - {broker.id for broker in cluster.brokers}
        self._brokers, self.left_out = tuple(sorted(concerned - dead)), tuple(sorted(dead))
        topics = sorted({move.tp.topic for move in moves} | {*wildcard})
        of_brokers = [EVERY_BROKER] if everywhere else [ConfigResource.broker(broker) for broker in self._brokers]
        with self._journals.held():
            present = self._present(topics, of_brokers)
            self._wanted = wanted_configs(
                moves, rate_bytes_per_s, self._brokers, present, unthrottled, wildcard, everywhere
            )
            others = [each for each in open_journals(self._journals) if each.cluster_id == cluster.cluster_id]
            refuse_shared(self._wanted, present, others)
            self._rate_bytes_per_s = rate_bytes_per_s
            todo = changes(self._wanted, present)
            noted = (*todo, *relied_on(self._wanted, present))
            new = ThrottleJournal.new(self._admin.bootstrap, cluster.cluster_id, noted)
            journal = replace(new, command_config=self._command_config)
            # Known before it is written: an interrupt during the write must still lead to its removal.
            self._journal = journal
            self._journals.write(journal)
            self._alter(todo)
        self._on_event(
            "throttle.set",
            "throttle",
            {
                "rate_bytes_per_s": rate_bytes_per_s,
                "brokers": list(self._brokers),
                "left_out": list(self.left_out),
                "changes": [[str(change.resource), change.key] for change in todo],
            },
        )

    def adopt(self, journal: ThrottleJournal) -> None:
        """Go on with the throttle of a process that is dead: it stays in force, and is restored by this one.

        What is missing of it is set again, on brokers that are alive; `wait_in_force` is the caller's. Raises
        `ThrottleError` when its owner is alive, when somebody has just put back what was there, or when this throttle
        is set already.
        """
        if self._journal is not None:
            raise ThrottleError("this throttle is set already; restore it first")
        with self._journals.held():
            if not self._journals.file(journal.id).exists():
                raise ThrottleError(f"the throttle on {journal.bootstrap} was put back meanwhile: set it anew")
            journal = self._journals.latest(journal)
            if journal.owner.alive():
                raise ThrottleError(
                    f"the throttle on {journal.bootstrap} is that of process {journal.owner.pid}: it runs"
                )
            wanted: dict[ConfigResource, dict[str, str]] = {}
            for change in journal.changes:
                wanted.setdefault(change.resource, {})[change.key] = change.value
            throttled = {int(r.name) for r in wanted if r.kind == "broker" and r.name}
            dead = throttled - {broker.id for broker in self._admin.cluster().brokers}
            self._brokers, self.left_out = tuple(sorted(throttled - dead)), tuple(sorted(dead))
            for broker in dead:
                del wanted[ConfigResource.broker(broker)]
            self._wanted = wanted
            rates = [int(keys[key]) for keys in wanted.values() for key in RATES if key in keys]
            self._rate_bytes_per_s = max(rates, default=0)
            self._write(replace(journal, owner=Owner.this_process()))
            # Its owner may have died in the middle of a change, or somebody has taken a part of it away since.
            of_brokers = [resource for resource in wanted if resource.kind == "broker"]
            self._alter(changes(wanted, self._present(self._topics(), of_brokers)))

    def admit(self, live: Collection[int]) -> tuple[int, ...]:
        """Give the rate to those of `left_out` that are alive now, in the journal first; returns them.

        One that cannot be given it stays left out, is told of in an event, and is tried again the next time. Does
        nothing while there is no throttle.
        """
        if self._journal is None:
            return ()
        return tuple(broker for broker in self.left_out if broker in live and self._admitted(broker))

    def _admitted(self, broker: int) -> bool:
        resource = ConfigResource.broker(broker)
        wanted = {resource: dict.fromkeys(RATES, str(self._rate_bytes_per_s))}
        assert self._journal is not None
        try:
            with self._journals.held():
                journal = self._journals.latest(self._journal)
                present = {resource: read_configs(self._admin, resource)}
                others = [each for each in open_journals(self._journals) if each.cluster_id == journal.cluster_id]
                refuse_shared(wanted, present, [each for each in others if each.id != journal.id])
                todo = changes(wanted, present)
                self._overwritten += self._interferences(journal, todo)
                self._write(replace(journal, changes=joined(journal.changes, wanted, present)))
                self._alter(todo)
        except (KafkaError, ThrottleError) as error:
            if self._told.get(broker) != str(error):
                self._told[broker] = str(error)
                self._on_event("note", "not throttled", {"broker": broker, "why": str(error)})
            return False
        self._wanted = {**self._wanted, **wanted}
        self._brokers = tuple(sorted({*self._brokers, broker}))
        self.left_out = tuple(each for each in self.left_out if each != broker)
        self._on_event("throttle.admitted", "throttle", {"broker": broker, "rate_bytes_per_s": self._rate_bytes_per_s})
        return True

    @property
    def lists(self) -> dict[str, Mapping[str, str]]:
        """Topic → key → the list that is to be in force; empty while there is no throttle."""
        wanted = {} if self._journal is None else self._wanted
        return {resource.name: keys for resource, keys in wanted.items() if resource.kind == "topic"}

    @property
    def rate_bytes_per_s(self) -> int | None:
        """The rate that was set last; None while there is no throttle."""
        return None if self._journal is None else self._rate_bytes_per_s

    def change_rate(self, rate_bytes_per_s: int, timeout_s: float) -> None:
        """Set another rate on the same brokers and wait until every one shows it, as `wait_in_force` does.

        The journal has both rates before the first is changed, and the new one alone once it is in force: killed at
        any point, what was there before the throttle is put back, and either rate is known as ours. Raises
        `ThrottleError`, `KafkaError`.
        """
        if self._journal is None:
            raise ThrottleError("there is no throttle whose rate could be changed: set one first")
        self._change(at_rate(self._wanted, rate_bytes_per_s), rate_bytes_per_s, timeout_s)

    def extend(self, moves: Sequence[PartitionMove], timeout_s: float) -> None:
        """List what these moves add as well, as `change_rate` changes the rate; the topics are listed already."""
        if self._journal is None:
            raise ThrottleError("there is no throttle that could list more: set one first")
        self._change(with_moves(self._wanted, moves), self._rate_bytes_per_s, timeout_s)

    def _change(self, after: dict[ConfigResource, dict[str, str]], rate_bytes_per_s: int, timeout_s: float) -> None:
        journal = self._journal
        assert journal is not None
        todo = changes(after, self._wanted)
        with self._journals.held():
            journal = self._journals.latest(journal)
            self._overwritten += self._interferences(journal, todo)
            journal = replace(journal, changes=rechanged(journal.changes, self._wanted, after))
            self._write(journal)
            self._on_event("throttle.changing", "throttle", {"rate_bytes_per_s": rate_bytes_per_s})
            self._alter(todo)
            # Not before: when one of them gave no answer, all are asked for again.
            self._wanted, self._rate_bytes_per_s = after, rate_bytes_per_s
        self.wait_in_force(timeout_s, otherwise="the move goes on")
        with self._journals.held():
            journal = self._journals.latest(journal)
            self._write(replace(journal, changes=settled(journal.changes)))

    def wait_in_force(
        self,
        timeout_s: float,
        interval_s: float = 0.05,
        *,
        brokers: Collection[int] | None = None,
        otherwise: str = "the move was not started",
    ) -> None:
        """Wait until every broker (or these) itself shows its rates, and the lists of every listed topic.

        A broker applies the metadata log in order on one thread, and begins with what DescribeConfigs shows.
        Once that shows the throttle, a reassignment asked for afterwards is applied after the throttle
        everywhere. Raises `ThrottleError` naming each broker and key that is missing.
        """

        asked = self._brokers if brokers is None else tuple(sorted(brokers))

        def missing() -> list[str]:
            problems = []
            for broker in asked:
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
                f"the throttle is not in force after {timeout_s:g} s, {otherwise}:\n  "
                + "\n  ".join(shown[:_SHOWN_PROBLEMS] + more)
            ) from error
        self._on_event(
            "throttle.in_force",
            "throttle",
            {"rate_bytes_per_s": self._rate_bytes_per_s, "brokers": list(asked)},
        )

    def check(self) -> dict[int, BrokerThrottle]:
        """Ask every broker what it has in force now, default level included."""
        return {broker: self._check_broker(broker) for broker in self._brokers}

    def restore(self, timeout_s: float = 15.0) -> Restored:
        """Put back what was there, see that it is, and remove the journal; does nothing when nothing was set.

        Raises `RestoreError`; the journal is kept then, for another attempt or for `recover`.
        """
        if self._journal is None:
            return Restored()
        with self._journals.held():
            done = restore(self._admin, self._journals.latest(self._journal).changes, timeout_s)
            done = replace(done, interferences=(*self._overwritten, *done.interferences))
            self._journals.remove(self._journal.id)
        self._journal = None
        self._on_event(
            "throttle.restored",
            "throttle",
            {"interferences": [str(found) for found in done.interferences], "gone": list(done.gone)},
        )
        return done

    def _check_broker(self, broker: int) -> BrokerThrottle:
        told = self._admin.broker_configs(broker, RATES)
        rates = [told.in_force(key) for key in (LEADER_RATE, FOLLOWER_RATE)]
        lists: dict[str, dict[str, str]] = {key: {} for key in _LISTS}
        for topic, seen in self._admin.topics_configs(self._topics(), _LISTS, broker).items():
            for key, value in seen.items():
                lists[key][topic] = value
        leader, follower = (None if rate is None else int(rate) for rate in rates)
        return BrokerThrottle(leader, follower, lists[LEADER_REPLICAS], lists[FOLLOWER_REPLICAS])

    def _missing_on(self, broker: int) -> list[str]:
        own = EVERY_BROKER if EVERY_BROKER in self._wanted else ConfigResource.broker(broker)
        seen = self._present(self._topics(), [own], broker)
        wanted = {resource: self._wanted[resource] for resource in seen}
        return [f"broker {broker} reports {problem}" for problem in not_in_force(wanted, seen)]

    def _present(
        self, topics: Sequence[str], of_brokers: Iterable[ConfigResource], from_broker: int | None = None
    ) -> dict[ConfigResource, dict[str, str]]:
        """What is set: the lists of all topics in few requests, and each broker's configuration from itself."""
        lists = self._admin.topics_configs(topics, _LISTS, from_broker)
        found = {ConfigResource.topic(topic): lists.get(topic, {}) for topic in topics}
        return found | {resource: read_configs(self._admin, resource, from_broker) for resource in of_brokers}

    def _topics(self) -> list[str]:
        return [resource.name for resource in self._wanted if resource.kind == "topic"]

    def _alter(self, todo: Sequence[ConfigChange]) -> None:
        for resource, mine in by_resource(todo).items():
            self._admin.alter_configs(resource, {change.key: change.value for change in mine})

    def _write(self, journal: ThrottleJournal) -> None:
        self._journal = journal
        self._journals.write(journal)

    def _interferences(self, journal: ThrottleJournal, todo: Sequence[ConfigChange]) -> list[Interference]:
        """What somebody else has made of the keys that are about to be overwritten."""
        ours = {(change.resource, change.key): change for change in journal.changes}
        found = []
        for resource, mine in by_resource(todo).items():
            there = read_configs(self._admin, resource)
            for change in mine:
                known = ours.get(
                    (resource, change.key), ConfigChange(resource, change.key, change.original, change.value)
                )
                if there.get(change.key) not in known.ours:
                    found.append(Interference(known, there.get(change.key)))
        return found
