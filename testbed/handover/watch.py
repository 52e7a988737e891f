"""Watching a move on a running testbed: the brokers' logs from a mark on, the metadata log, and the probe's answers."""

from collections.abc import Iterable, Mapping, Sequence

from results.contract.handover import HandoverSeen
from testbed.errors import TestbedError
from testbed.handover.lines import Mark as Said
from testbed.handover.lines import marks
from testbed.handover.probe import Probe
from testbed.handover.steps import Moved, handovers
from testbed.hosts import Shell
from testbed.kafka.types import PartitionMove
from testbed.probes.logwatch import LogPosition, entries, mark_end, read_since
from testbed.provision.testbed import Testbed
from testbed.reassignment.metadata_log import Registration, read_history

_SHOWN = 300


def moved(moves: Iterable[PartitionMove], hosts: Mapping[int, str]) -> tuple[Moved, ...]:
    """The moves of single replicas, by hosts. `hosts`: node id → host. Pure."""
    return tuple(
        Moved(move.tp, hosts[move.removing[0]], hosts[move.target[0]], move.target[0])
        for move in moves
        if move.removing
    )


class HandoverWatch:
    """From `start` on what the brokers say counts; `finish` once, when the move is over."""

    def __init__(self, testbed: Testbed) -> None:
        self._hosts: dict[str, Shell] = {name: testbed.hosts[name] for name in testbed.state.kafka}
        topology = testbed.topology
        readable = [host.name for host in (*topology.controllers, *topology.brokers)]
        self._readable = [self._hosts[name] for name in dict.fromkeys(readable)]
        self._software = ", ".join(sorted(set(testbed.state.kafka.values())))
        self._marks: dict[str, LogPosition] = {}

    def start(self) -> None:
        """Note where each broker's log ends."""
        self._marks = {name: mark_end(host) for name, host in self._hosts.items()}

    def finish(
        self,
        moves: Sequence[Moved],
        asked_us: int,
        probe: Probe | None = None,
        *,
        killed_us: int | None = None,
    ) -> HandoverSeen:
        """The steps of each move that was asked for at `asked_us`; what could not be read is among the problems.

        `killed_us` is when the old broker was killed on purpose.
        """
        said, problems = self._said()
        history, unread = self._history()
        problems += [unread] if unread else []
        probed = {} if probe is None else probe.probed()
        if probe is None:
            problems.append("there was no probe")
        found = handovers(moves, asked_us, history, said, probed)
        return HandoverSeen(self._software, asked_us, found, killed_us, tuple(problems))

    def _said(self) -> tuple[list[Said], list[str]]:
        said: list[Said] = []
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
        """Every state of every partition in the controller's log, or why it is not known."""
        problems = []
        for host in self._readable:
            try:
                return read_history(host).changes, ""
            except TestbedError as error:
                problems.append(f"{host.name}: the metadata log could not be read: …{str(error)[-_SHOWN:]}")
        return (), "; ".join(problems) or "there is no host to read the metadata log on"
