"""Real hands on a real cluster."""

import threading
from collections.abc import Callable

from testbed.errors import TestbedError
from testbed.faults.faults import Faults
from testbed.faults.parse import parse_fault
from testbed.incidents.throttling import OperatorThrottle, lists_for, rates_on
from testbed.incidents.watch import Watch
from testbed.kafka.admin import Admin
from testbed.kafka.types import PartitionMove, TopicPartition
from testbed.provision.serving import silent
from testbed.provision.testbed import Testbed
from testbed.reassignment.plan import Plan, moves
from testbed.wait import wait_for

IN_FORCE_S, SERVING_S = 30.0, 60.0


class ClusterOperator:
    """Carries actions out; safe to use from several threads, one action at a time on the throttle."""

    def __init__(
        self,
        testbed: Testbed,
        admin: Admin,
        topics: tuple[str, ...],
        watch: Watch,
        throttle: OperatorThrottle,
        event: Callable[..., None],
    ) -> None:
        self._testbed, self._admin, self._topics = testbed, admin, topics
        self._watch, self._throttle, self._event = watch, throttle, event
        self._ids = {host.name: host.node_id for host in testbed.topology.brokers if host.node_id is not None}
        self._faults = Faults(testbed)
        self._mine: dict[int, str] = {}
        self._lock = threading.Lock()

    def move(self, topics: tuple[str, ...], hosts: tuple[str, ...], rate_bytes_per_s: int | None) -> None:
        """See `Operator.move`."""
        target = tuple(self._ids[host] for host in hosts)
        states = self._admin.partitions(list(topics))
        todo = moves(Plan(dict.fromkeys(states, target)), states)
        if not todo:
            raise TestbedError(f"move {', '.join(topics)}: every partition is on {', '.join(hosts)} already")
        by_topic: dict[str, tuple[PartitionMove, ...]] = {}
        for move in todo:
            by_topic[move.tp.topic] = (*by_topic.get(move.tp.topic, ()), move)
        if rate_bytes_per_s is not None:
            live = self._live()
            wanted = lists_for(by_topic, by_topic) | rates_on(live, rate_bytes_per_s)
            with self._lock:
                self._throttle.set(wanted)
                self._throttle.wait_in_force(wanted, live, IN_FORCE_S)
        self._watch.ask(by_topic)
        for topic, each in by_topic.items():
            self._event("move.started", topic, {"partitions": len(each), "throttle_bytes_per_s": rate_bytes_per_s})
        self._admin.alter_reassignments({move.tp: move.target for move in todo})

    def set_throttle(self, rate_bytes_per_s: int, topics: tuple[str, ...]) -> None:
        """See `Operator.set_throttle`; returns when it is in force, which is noted."""
        live = self._live()
        wanted = lists_for(topics or self._topics, self._watch.asked()) | rates_on(live, rate_bytes_per_s)
        with self._lock:
            self._throttle.set(wanted)
            self._throttle.wait_in_force(wanted, live, IN_FORCE_S)

    def raise_throttle(self, rate_bytes_per_s: int) -> None:
        """See `Operator.raise_throttle`."""
        with self._lock:
            self._throttle.set(rates_on(self._live(), rate_bytes_per_s))

    def remove_throttle(self) -> None:
        """See `Operator.remove_throttle`."""
        with self._lock:
            self._throttle.remove(self._live(), self._topics)

    def restart(self, host: str) -> None:
        """See `Operator.restart`."""
        node = self._testbed.node(host)
        if node.pid() is not None:
            node.stop()
        node.start()
        wait_for(lambda: silent(self._testbed, [host]), lambda found: not found, SERVING_S, 0.2, f"{host} to serve")
        self._event("broker.serving", host, {}, host)

    def elect_preferred(self, topics: tuple[str, ...]) -> None:
        """See `Operator.elect_preferred`."""
        self._admin.elect_preferred(self._admin.partitions(list(topics or self._topics)))

    def cancel(self) -> None:
        """See `Operator.cancel`."""
        running: dict[TopicPartition, None] = dict.fromkeys(self._admin.reassignments(list(self._topics)))
        if running:
            self._admin.alter_reassignments(running)
            self._event("move.cancelled", "move", {"partitions": len(running)})
        self._watch.forget()

    def inject(self, fault: str) -> None:
        """See `Operator.inject`."""
        parsed = parse_fault(fault)
        self._mine[self._faults.add(parsed)] = parsed.kind
        self._event("fault.injected", fault)

    def heal(self, kind: str | None = None) -> None:
        """See `Operator.heal`; does nothing to faults of others."""
        active = {entry.id for entry in self._faults.list()}
        for fault_id in [each for each, known in self._mine.items() if kind in (None, known)]:
            if fault_id in active:  # else somebody has healed it already
                self._faults.clear(fault_id)
            self._event("fault.healed", self._mine.pop(fault_id))

    def put_back(self) -> list[str]:
        """Heal everything, whatever the timeline left; returns what could not be put back."""
        problems: list[str] = []
        steps = (self.heal, self._testbed.start_kafka, self.cancel, self._throttle.restore)
        for step in steps:
            try:
                step()
            except TestbedError as error:
                problems.append(str(error))
        return problems

    def _live(self) -> list[int]:
        return [broker.id for broker in self._admin.cluster().brokers]
