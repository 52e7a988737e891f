"""The steps of each handover, from the metadata log, the brokers' marks and the probe's answers. Pure."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from results.contract.handover import STEPS, HandoverStep, PartitionHandover, Step
from testbed.handover.lines import HandoverMark, Kind
from testbed.kafka.types import TopicPartition
from testbed.reassignment.metadata_log import Registration

ROUNDING_US = 1_000
"""The µs by which a log's milliseconds may precede the instant of the request."""
COMMON: Kind = "deleting"
"""The one mark that names no partition: it may concern any."""
_CONTROLLER = "the controller"


@dataclass(frozen=True, slots=True)
class HandoverPartition:
    """A partition that a handover moves from one host to another."""

    tp: TopicPartition
    source: str
    target: str
    target_id: int


@dataclass(frozen=True, slots=True)
class ProbeAnswers:
    """The probe's answers of one partition.

    `acked`: offset and instant of every acknowledgement, by instant; a broker may acknowledge without an offset: None.
    `received`: offset, leader epoch and instant of
    the first fetched record of each leader epoch.
    """

    acked: Sequence[tuple[int | None, int]] = ()
    received: Sequence[tuple[int, int, int]] = ()


@dataclass(slots=True)
class _Evidence:
    """The evidence on one partition from the request of its move on."""

    moved: HandoverPartition
    history: Sequence[Registration]
    marks: Sequence[HandoverMark]
    probed: ProbeAnswers
    asked_us: int
    found: dict[Step, HandoverStep] = field(default_factory=dict)

    def note(self, step: Step, ts_us: int | None, looked_for: str, host: str | None = None, detail: str = "") -> None:
        self.found[step] = HandoverStep(step, ts_us, looked_for, host, detail)

    def first(self, host: str, *kinds: Kind, since_us: int, until_us: int | None = None) -> HandoverMark | None:
        """Return the first mark of these kinds for this partition on a host."""
        return next((mark for mark in self._of(host, kinds, since_us, until_us)), None)

    def last(
        self, host: str, *kinds: Kind, since_us: int, until_us: int | None = None, epoch: int | None = None
    ) -> HandoverMark | None:
        """Return the last such mark, in one leader epoch or in any."""
        found = [mark for mark in self._of(host, kinds, since_us, until_us) if epoch is None or mark.epoch == epoch]
        return max(found, key=lambda mark: mark.ts_us, default=None)

    def _of(self, host: str, kinds: Sequence[Kind], since_us: int, until_us: int | None) -> list[HandoverMark]:
        tp = self.moved.tp
        return [
            mark
            for mark in self.marks
            if mark.host == host
            and mark.kind in kinds
            and (mark.tp == tp or tp in mark.tps or mark.kind == COMMON)
            and mark.ts_us >= since_us - ROUNDING_US
            and (until_us is None or mark.ts_us <= until_us + ROUNDING_US)
        ]


def handover(
    moved: HandoverPartition,
    asked_us: int,
    history: Iterable[Registration],
    marks: Iterable[HandoverMark],
    probed: ProbeAnswers | None = None,
) -> PartitionHandover:
    """Return one partition's steps. `history` are its states in the controller's log, `marks` those of all hosts.

    A step without evidence has no instant; it names the evidence that was missing.
    """
    evidence = _Evidence(moved, tuple(history), tuple(marks), probed or ProbeAnswers(), asked_us)
    for find in (_accepted, _closed, _seen, _elected, _opened, _probe):
        find(evidence)
    target, since_us = moved.target, _since(evidence)
    loaded = evidence.first(target, "meta-loaded", since_us=since_us)
    recovered = evidence.first(target, "recovered", since_us=since_us)
    closed = evidence.first(moved.source, "closed", since_us=since_us)
    return PartitionHandover(
        moved.tp.topic,
        moved.tp.partition,
        moved.source,
        target,
        tuple(evidence.found[step] for step in STEPS),
        clean=False if recovered is not None else None if loaded is None else loaded.clean,
        close_ms=None if closed is None else closed.ms,
        longest_gap_s=longest_gap_s([us for _offset, us in evidence.probed.acked], asked_us),
    )


def handovers(
    moves: Sequence[HandoverPartition],
    asked_us: int,
    history: Sequence[Registration],
    marks: Sequence[HandoverMark],
    probed: Mapping[TopicPartition, ProbeAnswers],
) -> tuple[PartitionHandover, ...]:
    """Return the steps of all partitions; this sorts the evidence by partition once."""
    states: dict[TopicPartition, list[Registration]] = {}
    for state in history:
        states.setdefault(state.tp, []).append(state)
    own: dict[TopicPartition, list[HandoverMark]] = {}
    common: list[HandoverMark] = []
    for mark in marks:
        for tp in {mark.tp} if mark.tp is not None else mark.tps:
            own.setdefault(tp, []).append(mark)
        if mark.kind == COMMON:
            common.append(mark)
    return tuple(
        handover(
            move,
            asked_us,
            states.get(move.tp, ()),
            sorted([*own.get(move.tp, ()), *common], key=lambda mark: mark.ts_us),
            probed.get(move.tp),
        )
        for move in moves
    )


def longest_gap_s(acked_us: Sequence[int], since_us: int) -> float | None:
    """Return the longest time between two acknowledgements that ends after `since_us`, in seconds; None without two."""
    in_order = sorted(acked_us)
    gaps = [after - before for before, after in pairwise(in_order) if after >= since_us]
    return max(gaps) / 1e6 if gaps else None


def _accepted(e: _Evidence) -> None:
    looked_for = f"a record of {_CONTROLLER} that has broker {e.moved.target_id} among the replicas"
    state = _record(e, lambda state: e.moved.target_id in state.replicas)
    e.note("accepted", None if state is None else state.ts_us, looked_for, detail=_of_record(state))


def _elected(e: _Evidence) -> None:
    looked_for = f"a record of {_CONTROLLER} that has broker {e.moved.target_id} as the leader"
    state = _record(e, lambda state: state.leader == e.moved.target_id)
    e.note("elected", None if state is None else state.ts_us, looked_for, detail=_of_record(state))


def _record(e: _Evidence, wanted: Callable[[Registration], bool]) -> Registration | None:
    """Return the first record since the request that has the wanted state while the one before it does not."""
    before: Registration | None = None
    for state in e.history:
        changed = before is None or not wanted(before)
        if state.ts_us >= e.asked_us - ROUNDING_US and changed and wanted(state):
            return state
        before = state
    return None


def _of_record(state: Registration | None) -> str:
    return "" if state is None else f"offset {state.offset}, leader epoch {state.leader_epoch}"


def _since(e: _Evidence) -> int:
    """Return the earliest instant of a broker's reaction: that of the record, or else that of the request."""
    accepted = e.found["accepted"].ts_us
    return e.asked_us if accepted is None else accepted


def _closed(e: _Evidence) -> None:
    source, since_us = e.moved.source, _since(e)
    mark = e.first(source, "closed", since_us=since_us) or e.first(source, "stream-closed", since_us=since_us)
    looked_for = f"`partition {e.moved.tp} is closed, cost … ms` or `log closed` on {source}"
    if mark is None:
        e.note("closed", None, looked_for)
    else:
        took = "" if mark.ms is None else f"took {mark.ms} ms"
        e.note("closed", mark.ts_us, looked_for, source, took)


def _seen(e: _Evidence) -> None:
    """Note when a broker saw the record: the old one deletes the partition, or either one logs the change."""
    source, target, since_us = e.moved.source, e.moved.target, _since(e)
    closed = e.found["closed"].ts_us
    # The old broker may log only the number of partitions: take its last such line before it closed the partition.
    deleting = None if closed is None else e.last(source, "deleting", since_us=since_us, until_us=closed)
    seen = [deleting, *(e.first(host, "transition", since_us=since_us) for host in (source, target))]
    mark = min((each for each in seen if each is not None), key=lambda each: each.ts_us, default=None)
    looked_for = (
        f"`Transitioning partition(s) info: …` with {e.moved.tp} on {source} or {target}, "
        f"`Deleting … partition(s).` on {source}"
    )
    if mark is None:
        e.note("seen", None, looked_for)
    else:
        e.note("seen", mark.ts_us, looked_for, mark.host, mark.said)


def _opened(e: _Evidence) -> None:
    target, since_us = e.moved.target, _since(e)
    meta = e.first(target, "meta-opened", since_us=since_us)
    loaded = None if meta is None else e.last(target, "loaded", since_us=meta.ts_us, epoch=meta.epoch)
    looked_for = f"`opened existing meta stream …`, then `loaded log meta: …` of {e.moved.tp} on {target}"
    if meta is None or loaded is None:
        e.note("opened", None, looked_for)
        return
    waited = "" if meta.ms is None else f", waited {meta.ms} ms for the old broker to close it"
    e.note("opened", loaded.ts_us, looked_for, target, f"{(loaded.ts_us - meta.ts_us) // 1000} ms of recovery{waited}")


def _probe(e: _Evidence) -> None:
    """Note the first record of the new leader: its epoch differs from those of the old leader."""
    state = _record(e, lambda state: e.moved.target_id in state.replicas)
    elected = _record(e, lambda state: state.leader == e.moved.target_id)
    target = e.moved.target
    fetched = f"a record of the probe with the leader epoch of {target}, fetched by its consumer"
    produced = f"the acknowledgement of the first record of the probe that has the leader epoch of {target}"
    # A release that elects last opens the partition, and may write, in the epoch without a leader.
    epoch = _epoch(state, elected)
    news = [] if epoch is None else [each for each in e.probed.received if each[1] >= epoch]
    offset = min((offset for offset, _epoch, _us in news), default=None)
    acked = [us for at, us in e.probed.acked if offset is not None and at is not None and at >= offset]
    e.note("produced", min(acked, default=None), produced, target, _at_offset(offset))
    e.note("fetched", min((us for _offset, _epoch, us in news), default=None), fetched, target, _at_offset(offset))


def _epoch(accepted: Registration | None, elected: Registration | None) -> int | None:
    """Return the lowest leader epoch in which only the new broker writes; None if it is unknown."""
    if accepted is not None and accepted.leader is None:
        return accepted.leader_epoch
    return None if elected is None else elected.leader_epoch


def _at_offset(offset: int | None) -> str:
    return "" if offset is None else f"offset {offset}"
