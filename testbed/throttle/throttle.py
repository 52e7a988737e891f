"""A KIP-73 throttle on a running cluster: set it, wait until every broker reports it in force, restore."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from results.contract.texts import shortened
from testbed.kafka.admin import Admin
from testbed.kafka.errors import UNKNOWN_TOPIC_OR_PARTITION, KafkaError, UnreachableError
from testbed.kafka.types import ConfigResource, PartitionMove, TopicPartition
from testbed.owner import Owner
from testbed.throttle.configs import (
    EVERY_BROKER,
    LISTS,
    RATES,
    ConfigChange,
    ConfigValues,
    ListedReplicas,
    ThrottleError,
    at_rate,
    by_resource,
    changes,
    extended_lists,
    joined,
    listed_brokers,
    not_in_force,
    read_configs,
    relied_on,
    settled,
    wanted_configs,
)
from testbed.throttle.journal import JournalFolder, ThrottleJournal, open_journals, refuse_shared
from testbed.throttle.recovery import RESTORE_TIMEOUT_S, Interference, RestoreResult, restore
from testbed.wait import WaitTimeout, wait_for

EventSink = Callable[[str, str, Mapping[str, Any]], None]
_SHOWN_PROBLEMS = 8
_INTERVAL_S = 0.05


class Throttle:
    """One throttle: `set`, `wait_in_force`, any number of `change_rate` and `extend`, `restore`. Not thread-safe.

    It changes only the keys that it must, only after its journal is on disk, and restores exactly the originals.
    """

    def __init__(
        self,
        admin: Admin,
        journals: JournalFolder,
        on_event: EventSink | None = None,
        *,
        command_config: str | None = None,
    ) -> None:
        """Make a throttle. The journal names ``command_config``, the client's properties file, for a later recovery."""
        self._admin = admin
        self._journals = journals
        self._command_config = command_config
        self._on_event = on_event or (lambda _kind, _name, _detail: None)
        self._journal: ThrottleJournal | None = None
        self._wanted: ConfigValues = {}
        self._brokers: tuple[int, ...] = ()
        self._throttle_bytes_per_s = 0
        self._overwritten: list[Interference] = []
        self._refusals: dict[int, str] = {}
        self._extending = False
        """Whether not every broker has reported the lists of the last `extend`."""
        self.left_out: tuple[int, ...] = ()
        """Brokers that had no rate yet: they were not alive when the throttle was set, or joined later. See `admit`."""

    def set(
        self,
        moves: Sequence[PartitionMove],
        throttle_bytes_per_s: int,
        extra_brokers: Iterable[int] = (),
        unthrottled: Collection[TopicPartition] = (),
        wildcard: Collection[str] = (),
        *,
        everywhere: bool = False,
    ) -> None:
        """Throttle the replicas that move, and set both rates on every broker concerned and on ``extra_brokers``.

        For the ``wildcard`` topics every replica is throttled (`*`). With ``everywhere`` the rates become the default
        of all brokers, also of brokers that join later. Otherwise brokers that are not alive are in `left_out`. Raise
        `ThrottleError` (nothing changed) when the throttle is impossible, or when another live process throttles by the
        same keys; and `KafkaError`. After any of these `restore` restores the originals.
        """
        if self._journal is not None:
            raise ThrottleError("this throttle is set already; restore it first")
        cluster, unthrottled = self._admin.cluster(), frozenset(unthrottled)
        concerned = {broker for move in moves for broker in (*move.current, *move.target)} | {*extra_brokers}
        # Only the broker itself accepts its own configuration: with a dead one the whole request would fail.
        dead = set() if everywhere else concerned - {broker.id for broker in cluster.brokers}
        self._brokers, self.left_out = tuple(sorted(concerned - dead)), tuple(sorted(dead))
        topics = sorted({move.tp.topic for move in moves} | {*wildcard})
        of_brokers = [EVERY_BROKER] if everywhere else [ConfigResource.broker(broker) for broker in self._brokers]
        with self._journals.held():
            present = self._present(topics, of_brokers)
            self._wanted = wanted_configs(
                moves, throttle_bytes_per_s, self._brokers, present, unthrottled, wildcard, everywhere
            )
            others = [each for each in open_journals(self._journals) if each.cluster_id == cluster.cluster_id]
            refuse_shared(self._wanted, present, others)
            self._throttle_bytes_per_s = throttle_bytes_per_s
            journaled = changes(self._wanted, present)
            todo = [change for change in journaled if change.made]
            bootstrap, cluster_id = self._admin.bootstrap, cluster.cluster_id
            self._write(ThrottleJournal.new(bootstrap, cluster_id, journaled, self._command_config))
            self._alter(todo)
        self._on_event(
            "throttle.set",
            "throttle",
            {
                "rate_bytes_per_s": throttle_bytes_per_s,
                "brokers": list(self._brokers),
                "left_out": list(self.left_out),
                "changes": [[str(change.resource), change.key] for change in todo],
            },
        )

    def adopt(self, journal: ThrottleJournal) -> None:
        """Take over the throttle of a dead process: it stays in force, and this process restores it.

        Missing keys are set again on live brokers; the caller must `wait_in_force`. A value of another tool is
        overwritten, and `restore` reports it. Raise `ThrottleError` when the owner is alive, if another process has
        just restored the originals, or if this throttle is set already.
        """
        if self._journal is not None:
            raise ThrottleError("this throttle is set already; restore it first")
        with self._journals.held():
            if not self._journals.file(journal.id).exists():
                raise ThrottleError(f"the throttle on {journal.bootstrap} was restored meanwhile: set it again")
            journal = self._journals.latest(journal)
            if journal.owner.alive() and journal.owner != Owner.this_process():
                raise ThrottleError(
                    f"process {journal.owner.pid}, which runs, has set the throttle on {journal.bootstrap}; "
                    "wait for it, or end it"
                )
            by = by_resource(journal.changes)
            wanted = {resource: {change.key: change.value for change in mine} for resource, mine in by.items()}
            self._brokers = tuple(sorted(int(r.name) for r in wanted if r.kind == "broker" and r.name))
            # The lists name each broker concerned. One that was dead when the throttle was set has no rate to adopt.
            listed = listed_brokers(keys for resource, keys in wanted.items() if resource.kind == "topic")
            left_out: set[int] = set() if EVERY_BROKER in wanted else listed - set(self._brokers)
            self._wanted, self.left_out = wanted, tuple(sorted(left_out))
            self._leave_out_gone()
            rates = [int(keys[key]) for keys in self._wanted.values() for key in RATES if key in keys]
            self._throttle_bytes_per_s = max(rates, default=0)
            self._write(replace(journal, owner=Owner.this_process()))
            # The owner may have died within a change, or another tool may have removed a part since.
            of_brokers = [resource for resource in self._wanted if resource.kind == "broker"]
            present = self._present(self._topics(), of_brokers)
            todo = [change for change in changes(self._wanted, present) if change.made]
            self._overwritten += self._interferences(journal, todo)
            self._alter(todo)

    def admit(self, live: Collection[int]) -> tuple[int, ...]:
        """Set the rate on brokers of `left_out` that are alive now, in the journal first, and return these brokers.

        A broker that refuses the rate stays in `left_out` until the next call; an event says why. Without a throttle
        nothing happens.
        """
        if self._journal is None:
            return ()
        return tuple(broker for broker in self.left_out if broker in live and self._admitted(broker))

    def _admitted(self, broker: int) -> bool:
        resource = ConfigResource.broker(broker)
        try:
            with self._journals.held():
                wanted = {resource: dict.fromkeys(RATES, str(self._throttle_bytes_per_s))}
                self._add(wanted, {resource: read_configs(self._admin, resource)})
        except (KafkaError, ThrottleError) as error:
            if self._refusals.get(broker) != str(error):
                self._refusals[broker] = str(error)
                self._on_event("note", "not throttled", {"broker": broker, "why": str(error)})
            return False
        self._brokers = tuple(sorted({*self._brokers, broker}))
        self.left_out = tuple(each for each in self.left_out if each != broker)
        self._on_event(
            "throttle.admitted", "throttle", {"broker": broker, "rate_bytes_per_s": self._throttle_bytes_per_s}
        )
        return True

    def extend(self, moves: Sequence[PartitionMove], timeout_s: float) -> None:
        """Add the replicas of these moves to the topics' lists, and wait until every broker reports the lists.

        Other clients may have moved the partitions since `set`. Brokers without a rate get it, as by `admit`. Without a
        throttle, or if the lists name all replicas, nothing happens. Raise `ThrottleError` when the lists cannot be
        extended or are not in force in time, and `KafkaError`. The next call then tries again.
        """
        if self._journal is None:
            return
        listed = ListedReplicas(self.lists)
        new = [move for move in moves if move.adding and not listed.cover(move.tp, move.current, move.adding)]
        if not new and not self._extending:
            return
        self._extending = True
        self._leave_out_gone()
        if new:
            self._list(new)
        self.admit({broker.id for broker in self._admin.cluster().brokers})
        self._wait_reported(self._brokers, timeout_s, "the steps wait for it")
        self._settle()
        self._extending = False

    def _list(self, moves: Sequence[PartitionMove]) -> None:
        """Write the lists with the replicas of these moves; put brokers without a rate into `left_out`."""
        with self._journals.held():
            present = self._present(sorted({move.tp.topic for move in moves}), ())
            self._add(extended_lists(moves, self._wanted, present), present)
        if EVERY_BROKER not in self._wanted:
            concerned = {broker for move in moves for broker in (*move.current, *move.adding)}
            self.left_out = tuple(sorted({*self.left_out, *concerned - {*self._brokers}}))
        named = ", ".join(shortened(sorted(move.tp for move in moves), _SHOWN_PROBLEMS))
        why = f"another client has changed {named}: the throttle now lists the present replicas, too"
        self._on_event("throttle.extended", "throttle", {"partitions": len(moves), "why": why})

    def _add(self, wanted: ConfigValues, present: ConfigValues) -> None:
        """Set these keys as well, in the journal first. The caller holds the journals' lock."""
        assert self._journal is not None
        journal = self._journals.latest(self._journal)
        journal = replace(journal, changes=relied_on(journal.changes, present))
        others = [each for each in open_journals(self._journals) if each.cluster_id == journal.cluster_id]
        refuse_shared(wanted, present, [each for each in others if each.id != journal.id])
        todo = [change for change in changes(wanted, present) if change.made]
        self._overwritten += self._interferences(journal, todo)
        self._write(replace(journal, changes=joined(journal.changes, wanted, present)))
        self._alter(todo)
        self._wanted = {**self._wanted, **wanted}

    @property
    def lists(self) -> dict[str, Mapping[str, str]]:
        """Return topic → key → the list that should be in force; empty without a throttle."""
        wanted = {} if self._journal is None else self._wanted
        return {resource.name: keys for resource, keys in wanted.items() if resource.kind == "topic"}

    @property
    def throttle_bytes_per_s(self) -> int | None:
        """Return the rate that was set last, in B/s; None without a throttle."""
        return None if self._journal is None else self._throttle_bytes_per_s

    def change_rate(self, throttle_bytes_per_s: int, timeout_s: float) -> None:
        """Set another rate on the same brokers and wait until every broker reports it, as `wait_in_force` does.

        The journal holds both rates before the first change, and only the new one once it is in force. So a recovery
        after a kill at any point restores the originals, and recognizes either rate as the throttle's. Raise
        `ThrottleError` or `KafkaError` when the change fails.
        """
        if self._journal is None:
            raise ThrottleError("there is no throttle whose rate could change: set one first")
        journal = self._journal
        self._leave_out_gone()
        after = at_rate(self._wanted, throttle_bytes_per_s)
        with self._journals.held():
            journal = self._journals.latest(journal)
            present = self._present(self._topics(), [resource for resource in after if resource.kind == "broker"])
            # Keys, as those of the lists, that another tool has changed or that a failed restore has put back.
            lost = {(each.resource, each.key): each.original for each in changes(after, present) if each.made}
            # A key that was right without this throttle gets its value now: what is there becomes the original.
            done = tuple(
                replace(each, original=lost[key])
                if not each.made and (key := (each.resource, each.key)) in lost
                else each
                for each in journal.changes
            )
            every = joined(done, after, self._wanted)
            # Also keys whose last change got no answer: which value is in force there is not known.
            todo = [each for each in every if each.earlier or (each.resource, each.key) in lost]
            self._overwritten += self._interferences(replace(journal, changes=done), todo)
            journal = replace(journal, changes=every)
            self._write(journal)
            self._on_event("throttle.changing", "throttle", {"rate_bytes_per_s": throttle_bytes_per_s})
            self._alter(todo)
            # Only now: if one broker gave no answer, the next call alters all of them again.
            self._wanted, self._throttle_bytes_per_s = after, throttle_bytes_per_s
        self.wait_in_force(timeout_s, otherwise="the move goes on")
        self._settle()

    def _settle(self) -> None:
        """Drop earlier values from the journal: every broker reports the present ones."""
        assert self._journal is not None
        with self._journals.held():
            journal = self._journals.latest(self._journal)
            self._write(replace(journal, changes=settled(journal.changes)))

    def _leave_out_gone(self) -> None:
        """Leave out brokers that are not alive and topics that were deleted: neither takes another rate.

        The journal keeps them, and `admit` sets the rate on such a broker once it is back.
        """
        topics = set(self._admin.topics())
        self._wanted = {r: keys for r, keys in self._wanted.items() if r.kind != "topic" or r.name in topics}
        if EVERY_BROKER in self._wanted:
            return
        dead = set(self._brokers) - {broker.id for broker in self._admin.cluster().brokers}
        self._wanted = {
            r: keys for r, keys in self._wanted.items() if r not in {ConfigResource.broker(broker) for broker in dead}
        }
        self._brokers = tuple(broker for broker in self._brokers if broker not in dead)
        self.left_out = tuple(sorted({*self.left_out, *dead}))

    def wait_in_force(
        self,
        timeout_s: float,
        *,
        brokers: Collection[int] | None = None,
        otherwise: str = "the move was not started",
    ) -> None:
        """Wait until every broker (or these) itself reports its rates, and the lists of every throttled topic.

        A broker applies the metadata log in order on one thread, and DescribeConfigs shows what it has applied. So a
        reassignment that is requested afterwards comes after the throttle on every broker. Raise `ThrottleError`
        naming each broker and key that is missing.
        """
        asked = self._brokers if brokers is None else tuple(sorted(brokers))
        self._wait_reported(asked, timeout_s, otherwise)
        self._on_event(
            "throttle.in_force", "throttle", {"rate_bytes_per_s": self._throttle_bytes_per_s, "brokers": list(asked)}
        )

    def _wait_reported(self, asked: Sequence[int], timeout_s: float, otherwise: str) -> None:
        def missing() -> list[str]:
            problems = []
            for broker in asked:
                try:
                    problems += self._missing_on(broker)
                except KafkaError as error:
                    # A broker may be slow to answer or to learn of a topic; any other error is permanent.
                    if not isinstance(error, UnreachableError) and error.name != UNKNOWN_TOPIC_OR_PARTITION:
                        raise
                    problems.append(str(error))
            return problems

        try:
            wait_for(missing, lambda problems: not problems, timeout_s, _INTERVAL_S, "the throttle in force")
        except WaitTimeout as error:
            shown = "\n  ".join(shortened(error.last_seen, _SHOWN_PROBLEMS))
            raise ThrottleError(
                f"the throttle is not in force after {timeout_s:g} s, {otherwise}:\n  {shown}"
            ) from error

    def restore(self, timeout_s: float = RESTORE_TIMEOUT_S) -> RestoreResult:
        """Restore the originals, verify them, and remove the journal; without a throttle do nothing.

        Raise `RestoreError` when this fails; the journal then stays, for another attempt or for `recover`.
        """
        if self._journal is None:
            return RestoreResult()
        with self._journals.held():
            done = restore(self._admin, self._journals.latest(self._journal).changes, timeout_s)
            done = replace(done, interferences=(*self._overwritten, *done.interferences))
            self._overwritten = []
            self._journals.remove(self._journal.id)
        self._journal, self._extending = None, False
        self._on_event(
            "throttle.restored",
            "throttle",
            {"interferences": [str(found) for found in done.interferences], "gone": list(done.gone)},
        )
        return done

    def _missing_on(self, broker: int) -> list[str]:
        own = EVERY_BROKER if EVERY_BROKER in self._wanted else ConfigResource.broker(broker)
        seen = self._present(self._topics(), () if own == EVERY_BROKER else [own], broker)
        if own == EVERY_BROKER:
            # A value of the broker's own prevails over the default of all.
            configs = self._admin.broker_configs(broker, RATES)
            seen[own] = {key: value for key in RATES if (value := configs.in_force(key)) is not None}
        wanted = {resource: self._wanted[resource] for resource in seen}
        return [f"broker {broker} reports {problem}" for problem in not_in_force(wanted, seen)]

    def _present(
        self, topics: Sequence[str], of_brokers: Iterable[ConfigResource], from_broker: int | None = None
    ) -> dict[ConfigResource, dict[str, str]]:
        """Return the present configuration: all topics' lists in few requests, and each broker's as it reports it."""
        lists = self._admin.topics_configs(topics, LISTS, from_broker)
        found = {ConfigResource.topic(topic): lists.get(topic, {}) for topic in topics}
        return found | {resource: read_configs(self._admin, resource, from_broker) for resource in of_brokers}

    def _topics(self) -> list[str]:
        return [resource.name for resource in self._wanted if resource.kind == "topic"]

    def _alter(self, todo: Sequence[ConfigChange]) -> None:
        for resource, mine in by_resource(todo).items():
            self._admin.alter_configs(resource, {change.key: change.value for change in mine})

    def _write(self, journal: ThrottleJournal) -> None:
        # Stored before the write: an interrupt during the write must still lead to the journal's removal.
        self._journal = journal
        self._journals.write(journal)

    def _interferences(self, journal: ThrottleJournal, todo: Sequence[ConfigChange]) -> list[Interference]:
        """Return the keys that another tool has changed and that the restore will overwrite."""
        ours = {(change.resource, change.key): change for change in journal.changes}
        found = []
        for resource, mine in by_resource(todo).items():
            there = read_configs(self._admin, resource)
            for change in mine:
                known = ours.get((resource, change.key), change)
                if there.get(change.key) not in known.ours:
                    found.append(Interference(known, there.get(change.key)))
        return found
