"""The driver of a plan: it sets the throttle, waits until it is in force, moves, follows, and always restores."""

import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType

from results.contract.texts import shortened
from testbed.errors import TestbedError
from testbed.kafka.admin import Admin
from testbed.kafka.cancellation import cancel_running
from testbed.kafka.capabilities import ON_DISK, Capability, require
from testbed.kafka.errors import KafkaError, UnreachableError
from testbed.kafka.partitions import existing_partitions
from testbed.kafka.types import PartitionMove, PartitionState, Reassignment, TopicPartition
from testbed.reassignment.plan import Plan, moves, refuse_log_dirs
from testbed.reassignment.progress import Poll, already_moving, is_recreated, left_behind, not_led, not_placed
from testbed.signals import TerminationGuard, deferred_signals
from testbed.throttle.journal import JournalFolder
from testbed.throttle.recovery import RestoreResult
from testbed.throttle.throttle import EventSink, Throttle
from testbed.wait import wait_for

IN_FORCE_S = 30.0
_SHOWN = 8


class DriverError(TestbedError):
    """A move was refused, or did not end in time."""


class MoveTimeout(DriverError):
    """A move did not end in time."""


class Driver:
    """A context manager that moves partitions under a throttle, and restores the originals, however the block ends.

        with Driver(admin, JournalFolder(), on_event=record) as driver:
            driver.execute(plan, throttle_bytes_per_s=10_000_000)
            seconds = driver.follow(timeout_s=300)
        restored = driver.restored

    Within the block SIGTERM unwinds as Ctrl-C does; during the restore both are deferred. If an error is raised
    already, a failed restore is added to it as a note, and the journal stays for `recover`. A move that still runs when
    an error ends the block continues without its throttle; with ``cancel_on_error`` the driver cancels it first, if the
    cluster can. A request beyond the capabilities in ``able`` raises `LacksCapability`.
    """

    def __init__(
        self,
        admin: Admin,
        journals: JournalFolder,
        *,
        on_event: EventSink | None = None,
        cancel_on_error: bool = False,
        able: Collection[Capability] = ON_DISK,
    ) -> None:
        self._admin = admin
        self._able = frozenset(able)
        self._on_event = on_event or (lambda _kind, _name, _detail: None)
        self._cancel_on_error = cancel_on_error
        self._guard = TerminationGuard()
        self._moves: tuple[PartitionMove, ...] = ()
        self._topic_ids: dict[str, str] = {}
        self._started_s = 0.0
        self._asked = False
        self.throttle = Throttle(admin, journals, self._on_event)
        self.restored: RestoreResult | None = None
        self.not_restored: TestbedError | None = None
        """The error of a failed restore: raised, or added as a note to another error."""

    def __enter__(self) -> "Driver":
        self._guard.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            with deferred_signals():
                self._end(error)
        finally:
            self._guard.__exit__(kind, error, trace)

    def execute(
        self,
        plan: Plan,
        throttle_bytes_per_s: int | None,
        unthrottled: Collection[TopicPartition] = (),
        wildcard: Collection[str] = (),
    ) -> tuple[PartitionMove, ...]:
        """Start the plan under its throttle and return its moves, once the controller has accepted every one.

        The throttle is in force on all live brokers before the driver requests the move. It covers every replica that
        moves except those of the ``unthrottled`` partitions, and all replicas of the ``wildcard`` topics. Raise
        `DriverError` or `PlanError` (nothing changed) when another reassignment runs, when a target broker is not
        alive, or when the plan names log directories.
        """
        if self._asked:
            raise DriverError("this driver has carried out a plan already; make another for the next")
        if throttle_bytes_per_s is not None:
            self._require(Capability.THROTTLES_REPLICATION, "a throttled move")
        self._moves = self._accepted(plan)
        if throttle_bytes_per_s is not None and self._moves:
            live = [broker.id for broker in self._admin.cluster().brokers]
            self.throttle.set(self._moves, throttle_bytes_per_s, live, unthrottled, wildcard)
            self.throttle.wait_in_force(IN_FORCE_S)
        self._started_s = time.monotonic()
        self._on_event(
            "move.started", "move", {"partitions": len(self._moves), "throttle_bytes_per_s": throttle_bytes_per_s}
        )
        self._asked = True
        self._admin.alter_reassignments({move.tp: move.target for move in self._moves})
        return self._moves

    def follow(
        self, on_poll: Callable[[Poll], None] | None = None, *, timeout_s: float, interval_s: float = 0.5
    ) -> float:
        """Poll every ``interval_s`` until the move is done, and return the seconds since its request.

        A move is done once the controller lists none of the partitions, the replicas of each are its target and in
        sync, one of them leads, and the old replicas' logs are gone from their brokers; on shared storage, when the
        target leads. An exception from ``on_poll`` ends `follow`; a poll without an answer is repeated.

        Raise `MoveTimeout` naming what was missing at the deadline, and `DriverError` naming which request the cluster
        refused, or, if everything else has arrived, which topics were deleted meanwhile. `follow` does not wait for a
        topic that was created again.
        """
        if not self._asked:
            raise DriverError("nothing to follow: execute a plan first")
        missed = _Missed()
        deadline = time.monotonic() + timeout_s
        # The loop checks the deadline itself: a timeout within `on_poll` is not a timeout of the move.
        missing = wait_for(
            lambda: self._poll_once(missed, on_poll),
            lambda missing: not missing or time.monotonic() >= deadline,
            math.inf,
            interval_s,
            "the move",
        )
        if missing:
            shown = "\n  ".join(shortened(missing, _SHOWN))
            raise MoveTimeout(f"the move is not done after {timeout_s:g} s:\n  {shown}")
        if missed.gone:
            raise DriverError(
                f"topics that were being moved have been deleted: {', '.join(map(missed.name, sorted(missed.gone)))}; "
                f"what was moved of other topics has arrived"
            )
        seconds = time.monotonic() - self._started_s
        self._on_event("move.done", "move", {"seconds": round(seconds, 3)})
        return seconds

    def change_rate(self, throttle_bytes_per_s: int) -> None:
        """Change the throttle's rate while the move runs; return once every broker reports it.

        Call it from `on_poll`, not from another thread.
        """
        self.throttle.change_rate(throttle_bytes_per_s, IN_FORCE_S)

    def cancel(self, tps: Collection[TopicPartition] | None = None) -> int:
        """Cancel the reassignments in flight, of these partitions of the plan or of all.

        Return how many the controller cancelled; others may end meanwhile.
        """
        self._require(Capability.CANCELS_REASSIGNMENTS, "cancelling a move")
        running = self._admin.reassignments(sorted({move.tp.topic for move in self._moves}))
        wanted = {move.tp for move in self._moves} if tps is None else set(tps)
        mine = [move.tp for move in self._moves if move.tp in running and move.tp in wanted]
        return len(cancel_running(self._admin, mine))

    def _accepted(self, plan: Plan) -> tuple[PartitionMove, ...]:
        refuse_log_dirs(plan)
        running = self._admin.reassignments()
        if running:
            raise DriverError(f"{already_moving(running)}; wait for them or cancel them")
        states = self._admin.partitions(plan.topics())
        self._topic_ids = {tp.topic: state.topic_id for tp, state in states.items()}
        todo = moves(plan, states)
        several = next((move for move in todo if len(move.target) > 1), None)
        if several is not None:
            self._require(Capability.REPLICATES, f"{several.tp} with replicas on {list(several.target)}")
        live = {broker.id for broker in self._admin.cluster().brokers}
        dead = sorted({broker for move in todo for broker in move.target} - live)
        if dead:
            raise DriverError(f"brokers {dead} are targets of the plan but not alive; live are {sorted(live)}")
        return todo

    def _poll_once(self, missed: "_Missed", on_poll: Callable[[Poll], None] | None) -> list[str]:
        """Poll once, and return one line for each missing condition."""
        try:
            listed, states = self._ask()
        except UnreachableError as error:
            return [str(error)]
        again = {
            tp.topic for tp, found in states.items() if is_recreated(self._topic_ids.get(tp.topic), found.topic_id)
        }
        for topic in sorted(again - missed.again):
            self._on_event("note", "deleted", {"why": f"topic {topic} was deleted and made again: it is another one"})
        missed.again |= again
        listed = {tp: found for tp, found in listed.items() if tp.topic not in missed.again}
        states = {tp: found for tp, found in states.items() if tp.topic not in missed.again}
        if on_poll is not None:
            on_poll(Poll(time.time_ns() // 1000, self._in_flight(listed, states)))
        # A topic is gone if two polls have not found it: one broker's metadata may be behind.
        existing = {tp.topic for tp in states}
        gone = {move.tp.topic for move in self._moves} - existing
        there = [
            move for move in self._moves if move.tp.topic in existing or move.tp.topic not in missed.gone | missed.again
        ]
        missed.gone = gone
        # The log directories are requested only once nothing else is missing: that request is expensive.
        if Capability.MOVES_DATA not in self._able:
            return not_led(there, states)
        return not_placed(there, listed, states) or self._not_removed(there)

    def _in_flight(
        self, listed: Mapping[TopicPartition, Reassignment], states: Mapping[TopicPartition, PartitionState]
    ) -> int:
        """Return how many partitions have not arrived."""
        if Capability.LISTS_REASSIGNMENTS in self._able:
            return sum(move.tp in listed for move in self._moves)
        return len(not_led(self._moves, states))

    def _require(self, capability: Capability, what: str) -> None:
        require([capability], self._able, what, "this cluster")

    def _ask(self) -> tuple[dict[TopicPartition, Reassignment], dict[TopicPartition, PartitionState]]:
        topics = sorted({move.tp.topic for move in self._moves})
        try:
            if self.throttle.left_out:
                self.throttle.admit({broker.id for broker in self._admin.cluster().brokers})
            return self._admin.reassignments(topics), existing_partitions(self._admin, topics)
        except UnreachableError:
            raise
        except KafkaError as error:
            raise DriverError(f"the move cannot be followed: {error}") from error

    def _not_removed(self, there: Sequence[PartitionMove]) -> list[str]:
        try:
            return left_behind(self._admin, there)
        except KafkaError as error:
            raise DriverError(f"whether the old replicas are gone cannot be seen: {error}") from error

    def _end(self, error: BaseException | None) -> None:
        failures: list[TestbedError] = []
        cancels = self._cancel_on_error and Capability.CANCELS_REASSIGNMENTS in self._able
        try:
            if error is not None and cancels and self._asked:
                count = self.cancel()
                self._on_event("note", "cancelled", {"partitions": count})
        except TestbedError as failure:
            failures.append(failure)
        finally:  # whatever the client or the sink of events raised, the throttle must not stay
            try:
                self.restored = self.throttle.restore()
            except TestbedError as failure:
                self.not_restored = failure
                failures.append(failure)
        for failed in failures:
            self._on_event("note", "restore failed", {"why": str(failed)})
            if error is not None:
                error.add_note(str(failed))
        if failures and error is None:
            raise failures[0]


@dataclass(slots=True)
class _Missed:
    """The topics of a move that are not there any more."""

    gone: set[str] = field(default_factory=set)
    """Topics that the last poll has not found."""
    again: set[str] = field(default_factory=set)
    """Topics that were deleted and created again."""

    def name(self, topic: str) -> str:
        """Return the name of a deleted topic, for a message."""
        return f"{topic} (made again since)" if topic in self.again else topic
