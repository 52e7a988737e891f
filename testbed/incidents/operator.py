"""The operator of a replay: performs the timeline's actions on a cluster, and restores everything at the end."""

import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

from testbed.errors import TestbedError
from testbed.faults.active_faults import Faults
from testbed.faults.fault import Fault
from testbed.faults.parse import as_text, parameters
from testbed.incidents.cluster_poll import ClusterPoll
from testbed.kafka.admin import Admin
from testbed.kafka.cancellation import cancel_running
from testbed.kafka.errors import KafkaError, UnreachableError
from testbed.kafka.types import ConfigResource, PartitionMove
from testbed.provision.kafka_nodes import silent
from testbed.provision.testbed import Testbed
from testbed.reassignment.plan import Plan, moves
from testbed.throttle.configs import (
    EVERY_REPLICA,
    LISTS,
    RATES,
    ConfigChange,
    ConfigValues,
    merged,
    not_in_force,
    read_configs,
    throttled_replicas,
)
from testbed.throttle.journal import JournalFolder, ThrottleJournal
from testbed.throttle.recovery import RESTORE_TIMEOUT_S, restore
from testbed.topology.host import node_ids
from testbed.topology.model import Topology
from testbed.wait import WaitTimeout, wait_for

IN_FORCE_S, SERVING_S, DELETED_S, ELECTED_S = 30.0, 60.0, 8.0, 5.0
LOOK_S = 0.2
EventSink = Callable[[str, str, Mapping[str, Any]], None]


def rates_on(brokers: Collection[int], rate_bytes_per_s: int) -> dict[ConfigResource, dict[str, str]]:
    """Return both rates for each of these brokers."""
    return {ConfigResource.broker(b): dict.fromkeys(RATES, str(rate_bytes_per_s)) for b in sorted(brokers)}


def lists_for(
    topics: Collection[str], moves: Mapping[str, Sequence[PartitionMove]]
) -> dict[ConfigResource, dict[str, str]]:
    """Return the lists of these topics: the moving replicas, or every replica of a topic without a move."""
    wanted: dict[ConfigResource, dict[str, str]] = {}
    for topic in sorted(topics):
        listed = throttled_replicas(moves.get(topic, ())).get(topic)
        entries = {key: merged(None, found) for key, found in listed.items()} if listed else {}
        wanted[ConfigResource.topic(topic)] = entries or dict.fromkeys(LISTS, EVERY_REPLICA)
    return wanted


def affected_nodes(fault: Fault, topology: Topology) -> dict[str, Any]:
    """Return what a fault affects, by the hosts and racks that its parameters name. Pure.

    `brokers` are the ids of the brokers, all when none is named. `controller` says whether a controller is named,
    `keeps_quota` whether brokers' processes go on.
    """
    given = {each.name: getattr(fault, each.name) for each in parameters(type(fault))}
    words = {word for value in given.values() for word in (value if isinstance(value, tuple) else (value,))}
    hosts = [host for host in topology.hosts if host.name in words or host.rack in words]
    ids = node_ids(topology.brokers)
    named = [ids[host.name] for host in hosts if host.name in ids]
    # A cut affects both sides; of a fault that names no broker the testbed cannot tell.
    brokers = sorted(ids.values()) if not named or "peers" in given else named
    controller = any(host.is_controller for host in hosts)
    return {"brokers": brokers, "controller": controller, "keeps_quota": fault.keeps_quota}


class OperatorThrottle:
    """The throttle as an operator sets, changes and removes it, in any order, including an earlier throttle.

    `Throttle` keeps one throttle in force for one move. This class makes exactly the changes of the timeline. It writes
    every change to the journal before it makes it, so that `restore` or `reassign recover` can revert the change.
    """

    def __init__(self, admin: Admin, journals: JournalFolder, on_event: EventSink) -> None:
        self._admin, self._journals, self._on_event = admin, journals, on_event
        self._journal: ThrottleJournal | None = None

    def set(self, wanted: ConfigValues) -> None:
        """Set these keys. Raise `KafkaError` when a broker refuses them."""
        detail = {str(r): dict(k) for r, k in wanted.items()}
        self._on_event("throttle.setting", "throttle", detail)
        with self._journals.held():
            known = self._known()
            for resource, keys in wanted.items():
                there = {} if all((resource, key) in known for key in keys) else read_configs(self._admin, resource)
                for key, value in keys.items():
                    change = known.get((resource, key), ConfigChange(resource, key, there.get(key), value))
                    known[resource, key] = replace(change, value=value, removed=False)
            self._write(known)
            for resource, keys in wanted.items():
                self._admin.alter_configs(resource, dict(keys))
        self._on_event("throttle.set", "throttle", detail)

    def wait_in_force(self, wanted: ConfigValues, brokers: Collection[int], timeout_s: float) -> None:
        """Wait until every broker reports its rates and all lists. Raise `WaitTimeout` after `timeout_s` seconds."""

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
        """Remove all rates and lists of these brokers and topics, including foreign ones. Raise `KafkaError`."""
        keys_of = {ConfigResource.broker(b): RATES for b in sorted(brokers)}
        keys_of |= {ConfigResource.topic(topic): LISTS for topic in sorted(topics)}
        detail = {"brokers": sorted(brokers), "topics": sorted(topics)}
        self._on_event("throttle.removing", "throttle", detail)
        with self._journals.held():
            known = self._known()
            for resource, keys in keys_of.items():
                there = read_configs(self._admin, resource)
                present = [key for key in keys if key in there]
                for key in present:
                    change = known.get((resource, key), ConfigChange(resource, key, there[key], there[key]))
                    known[resource, key] = replace(change, removed=True)
                self._write(known)
                self._admin.alter_configs(resource, {}, present)
        self._on_event("throttle.removed", "throttle", detail)

    def record_left(self, brokers: Collection[int], topics: Collection[str]) -> None:
        """Record, as an event, the remaining keys and the resources that could not be read."""
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

    def restore(self) -> None:
        """Restore the original configuration. Raise `RestoreError` on failure; the journal stays then."""
        if self._journal is None:
            return
        with self._journals.held():
            restore(self._admin, tuple(self._known().values()), RESTORE_TIMEOUT_S)
            self._journals.remove(self._journal.id)
            self._journal = None
        self._on_event("throttle.restored", "throttle", {})

    def _known(self) -> dict[tuple[ConfigResource, str], ConfigChange]:
        """Return the changes so far. The heal of an earlier fault corrects their originals in the journal on disk."""
        changes = () if self._journal is None else self._journals.latest(self._journal).changes
        return {(change.resource, change.key): change for change in changes}

    def _write(self, known: Mapping[tuple[ConfigResource, str], ConfigChange]) -> None:
        # With the same id each write replaces the previous journal as a whole.
        old = self._journal or ThrottleJournal.new(self._admin.bootstrap, self._admin.cluster().cluster_id, ())
        self._journal = replace(old, changes=tuple(known.values()))
        self._journals.write(self._journal)


class ClusterOperator:
    """The operator of a cluster. Several threads may use it; it performs one action at a time on the throttle.

    Every action raises `TestbedError` when it fails.
    """

    def __init__(
        self,
        testbed: Testbed,
        admin: Admin,
        topics: tuple[str, ...],
        poll: ClusterPoll,
        event: Callable[..., None],
    ) -> None:
        self._testbed, self._admin, self._topics = testbed, admin, topics
        self._poll, self._event = poll, event
        self._ids = node_ids(testbed.topology.brokers)
        self._throttle = OperatorThrottle(admin, JournalFolder(), event)
        self._faults = Faults(testbed)
        self._injected: dict[int, Fault] = {}
        self._lock, self._fault_lock = threading.Lock(), threading.Lock()
        self._acting: dict[int, str] = {}
        """Thread → the action that it performs."""

    @contextmanager
    def acting(self, action: object) -> Iterator[None]:
        """Perform an action inside this context: until its end `converge` waits for it."""
        thread = threading.get_ident()
        self._acting[thread] = str(action)
        try:
            yield
        finally:
            del self._acting[thread]

    def move(self, topics: tuple[str, ...], hosts: tuple[tuple[str, ...], ...], rate_bytes_per_s: int | None) -> None:
        """Request a reassignment to these hosts, for the partitions in turn.

        With a rate, the throttle is in force on every live broker before the request.
        """
        targets = [tuple(self._ids[host] for host in each) for each in hosts]
        states = self._admin.partitions(list(topics))
        todo = moves(Plan({tp: targets[tp.partition % len(targets)] for tp in states}), states)
        if not todo:
            raise TestbedError(f"move {', '.join(topics)}: every partition is there already")
        by_topic: dict[str, tuple[PartitionMove, ...]] = {}
        for move in todo:
            by_topic[move.tp.topic] = (*by_topic.get(move.tp.topic, ()), move)
        if rate_bytes_per_s is not None:
            self._set_and_wait(lists_for(by_topic, by_topic), rate_bytes_per_s, self._live())
        self._poll.follow(by_topic)
        for topic, each in by_topic.items():
            detail = {
                "partitions": len(each),
                "throttle_bytes_per_s": rate_bytes_per_s,
                "targets": {move.tp.partition: move.target for move in each},
            }
            self._event("move.started", topic, detail)
        try:
            self._admin.alter_reassignments({move.tp: move.target for move in todo})
        except KafkaError as error:
            self._poll.forget(by_topic)
            for topic in by_topic:
                self._event("move.refused", topic, {"error": str(error)})
            raise

    def set_throttle(self, rate_bytes_per_s: int, topics: tuple[str, ...]) -> None:
        """Set rates and lists for these topics (none: all of the incident's); return when they are in force."""
        lists = lists_for(topics or self._topics, self._poll.requested())
        self._set_and_wait(lists, rate_bytes_per_s, self._live())

    def set_initial_throttle(self, rate_bytes_per_s: int, topics: Collection[str]) -> None:
        """Set the throttle with which the incident begins, on every broker; return when it is in force."""
        self._set_and_wait(lists_for(topics, {}), rate_bytes_per_s, list(self._ids.values()))

    def change_throttle(self, rate_bytes_per_s: int) -> None:
        """Set another rate on every live broker."""
        with self._lock:
            self._throttle.set(rates_on(self._live(), rate_bytes_per_s))

    def remove_throttle(self) -> None:
        """Remove the rates of every live broker and the lists of the incident's topics."""
        with self._lock:
            self._throttle.remove(self._live(), self._topics)

    def restart(self, host: str) -> None:
        """Stop Kafka if it runs, start it, and wait until the broker is unfenced."""
        controller = self._testbed.topology.host(host).is_controller
        self._event("broker.restarting", host, {"brokers": [self._ids[host]], "controller": controller}, host)
        ended = "broker.not_serving"  # such as one that a fault kills meanwhile
        try:
            self._faults.restart(host)
            wait_for(lambda: silent(self._testbed, [host]), lambda found: not found, SERVING_S, 0.2, f"{host} to serve")
            ended = "broker.serving"
        finally:
            self._event(ended, host, {}, host)

    def elect_preferred(self, topics: tuple[str, ...]) -> None:
        """Elect the preferred leaders of these topics (none: all of the incident's)."""
        self._admin.elect_preferred(self._admin.partitions(list(topics or self._topics)))

    def cancel(self, topics: tuple[str, ...] = ()) -> None:
        """Cancel every reassignment of these topics (none: all of the incident's) that is not complete."""
        running = self._admin.reassignments(list(topics or self._topics))
        if running:
            try:
                # The others have ended since they were listed: they have the replicas that were requested.
                cancelled = cancel_running(self._admin, running)
            except KafkaError as error:
                # Without an answer the controller may have cancelled them all the same.
                for topic in sorted({tp.topic for tp in running}):
                    self._event("move.refused", topic, {"error": str(error)})
                raise
            kept = {str(tp): list(each.existing) for tp, each in running.items() if tp in cancelled}
            self._event("move.cancelled", "move", {"partitions": len(kept), "kept": kept})
        self._poll.forget(topics or None)

    def converge(self, within_s: float) -> None:
        """Wait until no other action and no reassignment runs and every replica is in sync; elect preferred leaders.

        Record what did not come in time, and raise no error for it. The replay waits for no move any more.
        """
        topics, own = list(self._topics), threading.get_ident()

        def missing() -> list[str]:
            if busy := [f"{action} is not done" for thread, action in list(self._acting.items()) if thread != own]:
                return busy
            try:
                listed, states = self._admin.reassignments(topics), self._admin.partitions(topics)
            except KafkaError as error:
                return [str(error)]
            return [f"{tp} is being reassigned" for tp in listed] + [
                f"{tp} has {list(state.isr)} of {list(state.replicas)} in sync"
                for tp, state in states.items()
                if set(state.isr) != set(state.replicas)
            ]

        problems: list[str] = []
        in_time = True
        try:
            wait_for(missing, lambda found: not found, within_s, LOOK_S, "every replica in sync")
        except WaitTimeout:
            problems, in_time = missing(), False
        try:
            self.elect_preferred(self._topics)
            wait_for(self._not_preferred, lambda found: not found, ELECTED_S, LOOK_S, "the preferred leaders")
        except (KafkaError, WaitTimeout) as error:
            problems.append(str(error))
        with suppress(KafkaError):  # expectations judge the logs that are left
            self._wait_for_deletions()
        self._poll.forget()
        self._event("replicas.converged", "replicas", {"missing": problems, "in_time": in_time})

    def _not_preferred(self) -> list[str]:
        states = self._admin.partitions(list(self._topics)).values()
        return [str(state.tp) for state in states if state.leader != state.replicas[0]]

    def inject(self, fault: Fault) -> None:
        """Inject a fault; return when it has taken effect."""
        detail = self._affected(fault)
        with self._fault_lock:
            self._event("fault.injecting", as_text(fault), detail)
            try:
                self._injected[self._faults.add(fault)] = fault
            except TestbedError as error:
                self._event("fault.refused", as_text(fault), {**detail, "error": str(error)})
                raise
            self._event("fault.injected", as_text(fault), detail)

    def heal(self, kind: str | None = None) -> None:
        """Heal all faults of this replay, or its faults of one kind; one that another entry injects now, too."""
        with self._fault_lock:
            active = {entry.id for entry in self._faults.list()}
            for fault_id in [each for each, known in self._injected.items() if kind in (None, known.kind)]:
                if fault_id in active:  # otherwise a user has healed it already
                    self._faults.clear(fault_id)
                fault = self._injected.pop(fault_id)
                self._event("fault.healed", fault.kind, self._affected(fault))

    def record_found(self) -> None:
        """Record the final state of the cluster: reassignments, partitions, and the logs on each broker."""
        topics = list(self._topics)
        try:
            self._wait_for_deletions()
            listed, states = self._admin.reassignments(topics), self._admin.partitions(topics)
            logs = self._admin.log_dirs(list(self._ids.values()), topics)
        except KafkaError as error:
            self._event("cluster.found", "cluster", {"problem": str(error)})
            return
        detail = {
            "listed": [str(tp) for tp in listed],
            "states": {
                str(tp): {"replicas": list(state.replicas), "isr": list(state.isr), "leader": state.leader}
                for tp, state in states.items()
            },
            "logs": {str(broker): [str(tp) for tp in found] for broker, found in logs.items()},
        }
        self._event("cluster.found", "cluster", detail)

    def _wait_for_deletions(self) -> None:
        """Wait a while for old logs: a broker deletes a log some time after its replica was removed."""
        topics = list(self._topics)

        def strays() -> list[str]:
            states, logs = self._admin.partitions(topics), self._admin.log_dirs(list(self._ids.values()), topics)
            return [
                f"broker {broker} keeps {tp}"
                for broker, found in logs.items()
                for tp in found
                if tp in states and broker not in states[tp].replicas
            ]

        with suppress(WaitTimeout):
            wait_for(strays, lambda found: not found, DELETED_S, LOOK_S, "old logs to be deleted")

    def _affected(self, fault: Fault) -> dict[str, Any]:
        return {"fault": as_text(fault), **affected_nodes(fault, self._testbed.topology)}

    def record_throttle_left(self) -> None:
        """Record the remains of a throttle on any broker and topic."""
        self._throttle.record_left(self._ids.values(), self._topics)

    def restore(self) -> list[str]:
        """Heal the faults, start Kafka, cancel moves and restore the throttle; return the failures."""
        problems: list[str] = []
        for step in (self.heal, self._testbed.start_kafka, self.cancel, self._throttle.restore):
            try:
                step()
            except TestbedError as error:
                problems.append(str(error))
        return problems

    def _set_and_wait(self, lists: ConfigValues, rate_bytes_per_s: int, brokers: Collection[int]) -> None:
        wanted = {**lists, **rates_on(brokers, rate_bytes_per_s)}
        with self._lock:
            self._throttle.set(wanted)
            self._throttle.wait_in_force(wanted, brokers, IN_FORCE_S)

    def _live(self) -> list[int]:
        return [broker.id for broker in self._admin.cluster().brokers]
