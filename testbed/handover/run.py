"""One observed move on shared storage, from the probe's start to the steps of every partition."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from results.contract.handover import HandoverRecord
from testbed.errors import TestbedError
from testbed.handover.log_marks import HandoverMark, marks
from testbed.handover.probe import Probe
from testbed.handover.steps import HandoverPartition, handovers
from testbed.hosts import Shell
from testbed.kafka.capabilities import of_software
from testbed.kafka.types import PartitionMove
from testbed.probes.log_entries import entries
from testbed.probes.logwatch import LogPosition, mark_end, read_since
from testbed.probes.recorder import now_us
from testbed.provision.testbed import Testbed
from testbed.reassignment.driver import Driver, DriverError
from testbed.reassignment.metadata_log import Registration, read_history
from testbed.reassignment.plan import Plan
from testbed.throttle.journal import JournalFolder
from testbed.topology.host import names_by_id
from testbed.wait import WaitTimeout, wait_for
from testbed.workload.records import WrittenRecords

_SHOWN = 300


def moved(moves: Iterable[PartitionMove], hosts: Mapping[int, str]) -> tuple[HandoverPartition, ...]:
    """Return the moves of single replicas, by hosts. `hosts`: node id → host. Pure."""
    return tuple(
        HandoverPartition(move.tp, hosts[move.removing[0]], hosts[move.target[0]], move.target[0])
        for move in moves
        if move.removing
    )


class HandoverWatch:
    """An observation of the brokers' logs: `start` before the move, `finish` once when the move is over."""

    def __init__(self, testbed: Testbed) -> None:
        self._hosts: dict[str, Shell] = {name: testbed.hosts[name] for name in testbed.state.kafka}
        topology = testbed.topology
        controllers_first = dict.fromkeys(host.name for host in (*topology.controllers, *topology.brokers))
        self._readable = [self._hosts[name] for name in controllers_first]
        self._software = ", ".join(sorted(set(testbed.state.kafka.values())))
        self._marks: dict[str, LogPosition] = {}

    def start(self) -> None:
        """Record where each broker's log ends."""
        self._marks = {name: mark_end(host) for name, host in self._hosts.items()}

    def finish(
        self, moves: Sequence[HandoverPartition], asked_us: int, probe: Probe, *, killed_us: int | None = None
    ) -> HandoverRecord:
        """Return the steps of each move that was requested at `asked_us`; unreadable logs are among the problems.

        `killed_us` is when the old broker was killed on purpose.
        """
        said, problems = self._said()
        history, unread = self._history()
        problems += [unread] if unread else []
        found = handovers(moves, asked_us, history, said, probe.probed())
        return HandoverRecord(self._software, asked_us, found, killed_us, tuple(problems))

    def _said(self) -> tuple[list[HandoverMark], list[str]]:
        said: list[HandoverMark] = []
        problems: list[str] = []
        for name, host in self._hosts.items():
            mark = self._marks.get(name, LogPosition(0, "the watch was not started"))
            if mark.problem is not None:
                problems.append(f"{name}: {mark.problem}")
                continue
            try:
                text, problem = read_since(host, mark.offset)
            except TestbedError as error:
                problems.append(f"{name}: its log could not be read: {str(error)[-_SHOWN:]}")
                continue
            problems += [f"{name}: {problem}"] if problem else []
            said += marks(name, entries(text))
        return said, problems

    def _history(self) -> tuple[Sequence[Registration], str]:
        """Return every state of every partition in the controller's log, or the reason why it is unknown."""
        problems = []
        for host in self._readable:
            try:
                return read_history(host).changes, ""
            except TestbedError as error:
                problems.append(f"{host.name}: the metadata log could not be read: …{str(error)[-_SHOWN:]}")
        return (), "; ".join(problems) or "there is no host to read the metadata log on"


SETTLED_S = 30.0
LOOK_S = 0.1


@dataclass(frozen=True, slots=True)
class HandoverResult:
    """The result of a move. `why` says why it did not end in time; empty if it did.

    `written` are the probe's records, for the audit.
    """

    seen: HandoverRecord
    written: tuple[WrittenRecords, ...]
    why: str = ""


def watched_move(
    testbed: Testbed,
    plan: Plan,
    seed: int,
    *,
    timeout_s: float,
    accepted: Callable[[], int | None] = lambda: None,
) -> HandoverResult:
    """Execute a plan of single replicas, and return the steps of each.

    The function calls `accepted` once the controller has accepted the plan. `accepted` returns when it killed the old
    broker, or None if it did not. Raise `Driver`'s errors when the cluster refuses the plan.
    """
    with ExitStack() as stack:
        admin = stack.enter_context(testbed.admin())
        hosts = names_by_id(testbed.topology.brokers)
        watch = HandoverWatch(testbed)
        watch.start()
        probe = Probe(testbed.bootstrap, list(plan.targets), seed)
        probe.start()
        stack.callback(probe.stop)
        asked = []

        def record(kind: str, _name: str, _detail: Mapping[str, Any]) -> None:
            if kind == "move.started":  # the request is sent next
                asked.append(now_us())

        able = of_software(testbed.topology)
        driver = stack.enter_context(Driver(admin, JournalFolder(), on_event=record, able=able))
        epochs = {tp: len(each.received) for tp, each in probe.probed().items()}
        moves = driver.execute(plan, None)
        killed_us = accepted()
        why = ""
        try:
            driver.follow(timeout_s=timeout_s, interval_s=LOOK_S)
            done_us = now_us()
            # The consumer learns of the new leader by itself, later than the producer.
            wait_for(
                lambda: [
                    tp
                    for tp, each in probe.probed().items()
                    if not each.acked or each.acked[-1][1] < done_us or len(each.received) <= epochs[tp]
                ],
                lambda silent: not silent,
                SETTLED_S,
                LOOK_S,
                "an acknowledgement, and a record of the new leader fetched, in every partition after the move",
            )
        except (DriverError, WaitTimeout) as error:
            # Also after a failed move the result holds the steps so far.
            why = str(error)
        probe.stop()
        seen = watch.finish(moved(moves, hosts), asked[0], probe, killed_us=killed_us)
    return HandoverResult(seen, probe.written(), why)
