"""The steps of each handover, from the metadata log, the brokers' marks and the probe's answers. Pure."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from results.contract.handover import STEPS, HandoverStep, PartitionHandover, Step
from results.contract.steps import LINGER_US
from testbed.handover.log_marks import HandoverMark, Kind
from testbed.kafka.types import TopicPartition
from testbed.reassignment.metadata_log import Registration

ROUNDING_US = 1_000
"""The µs by which a log's milliseconds may precede the instant of the request."""
COMMON: Kind = "deleting"
"""The one mark that names no partition: it may concern any."""


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
    `received`: offset, leader epoch and instant of the first fetched record of each leader epoch.
    """

    acked: Sequence[tuple[int | None, int]] = ()
    received: Sequence[tuple[int, int, int]] = ()


@dataclass(slots=True)
class _Evidence:
    """The evidence on one partition from the request of its move on, with the controller's records of the change."""

    moved: HandoverPartition
    marks: Sequence[HandoverMark]
    probed: ProbeAnswers
    asked_us: int
    accepted: Registration | None
    elected: Registration | None
    found: dict[Step, HandoverStep] = field(default_factory=dict)

    @property
    def since_us(self) -> int:
        """Return the earliest instant of a broker's reaction: that of the record, or else that of the request."""
        return self.asked_us if self.accepted is None else self.accepted.ts_us

    def note(self, step: Step, ts_us: int | None, looked_for: str, host: str | None = None, detail: str = "") -> None:
        self.found[step] = HandoverStep(step, ts_us, looked_for, host, detail)

    def of(self, host: str, kind: Kind, since_us: int | None = None, until_us: int | None = None) -> list[HandoverMark]:
        """Return the marks of a kind for this partition on a host, in order."""
        tp, since = self.moved.tp, self.since_us if since_us is None else since_us
        return [
            mark
            for mark in self.marks
            if mark.host == host
            and mark.kind == kind
            and (mark.tp == tp or tp in mark.tps or kind == COMMON)
            and mark.ts_us >= since - ROUNDING_US
            and (until_us is None or mark.ts_us <= until_us + ROUNDING_US)
        ]

    def first(self, host: str, kind: Kind) -> HandoverMark | None:
        """Return the first mark of a kind for this partition on a host."""
        return next(iter(self.of(host, kind)), None)


def handover(
    moved: HandoverPartition,
    asked_us: int,
    history: Sequence[Registration],
    marks: Sequence[HandoverMark],
    probed: ProbeAnswers | None = None,
) -> PartitionHandover:
    """Return one partition's steps. `history` are its states in the controller's log, `marks` those of all hosts.

    A step without evidence has no instant; it names the evidence that was missing.
    """
    accepted = _record(history, asked_us, lambda state: moved.target_id in state.replicas)
    elected = _record(history, asked_us, lambda state: state.leader == moved.target_id)
    evidence = _Evidence(moved, marks, probed or ProbeAnswers(), asked_us, accepted, elected)
    for find in (_controller, _closed, _seen, _opened, _probe):
        find(evidence)
    loaded, recovered = (evidence.first(moved.target, kind) for kind in ("meta-loaded", "recovered"))
    closed = evidence.first(moved.source, "closed")
    return PartitionHandover(
        moved.tp.topic,
        moved.tp.partition,
        moved.source,
        moved.target,
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


def _record(
    history: Iterable[Registration], asked_us: int, wanted: Callable[[Registration], bool]
) -> Registration | None:
    """Return the first record since the request that has the wanted state while the one before it does not.

    A record has the instant at which its batch began.
    """
    first_us = asked_us - LINGER_US - ROUNDING_US
    before: Registration | None = None
    for state in history:
        changed = before is None or not wanted(before)
        if state.ts_us >= first_us and changed and wanted(state):
            return state
        before = state
    return None


def _controller(e: _Evidence) -> None:
    changes: tuple[tuple[Step, Registration | None, str], ...] = (
        ("accepted", e.accepted, "among the replicas"),
        ("elected", e.elected, "as the leader"),
    )
    for step, state, change in changes:
        looked_for = f"a record of the controller that has broker {e.moved.target_id} {change}"
        if state is None:
            e.note(step, None, looked_for)
        else:
            e.note(step, state.ts_us, looked_for, None, f"offset {state.offset}, leader epoch {state.leader_epoch}")


def _closed(e: _Evidence) -> None:
    source = e.moved.source
    mark = e.first(source, "closed") or e.first(source, "stream-closed")
    looked_for = f"`partition {e.moved.tp} is closed, cost … ms` or `log closed` on {source}"
    if mark is None:
        e.note("closed", None, looked_for)
    else:
        took = "" if mark.ms is None else f"took {mark.ms} ms"
        e.note("closed", mark.ts_us, looked_for, source, took)


def _seen(e: _Evidence) -> None:
    """Note when a broker saw the record: the old one deletes the partition, or either one logs the change."""
    source, target, closed = e.moved.source, e.moved.target, e.found["closed"].ts_us
    # The old broker may log only the number of partitions: take its last such line before it closed the partition.
    seen = [] if closed is None else e.of(source, "deleting", until_us=closed)[-1:]
    seen += [mark for host in (source, target) for mark in e.of(host, "transition")[:1]]
    mark = min(seen, key=lambda each: each.ts_us, default=None)
    looked_for = (
        f"`Transitioning partition(s) info: …` with {e.moved.tp} on {source} or {target}, "
        f"`Deleting … partition(s).` on {source}"
    )
    if mark is None:
        e.note("seen", None, looked_for)
    else:
        e.note("seen", mark.ts_us, looked_for, mark.host, mark.said)


def _opened(e: _Evidence) -> None:
    target = e.moved.target
    looked_for = f"`opened existing meta stream …`, then `loaded log meta: …` of {e.moved.tp} on {target}"
    meta = e.first(target, "meta-opened")
    loaded = [] if meta is None else [mark for mark in e.of(target, "loaded", meta.ts_us) if mark.epoch == meta.epoch]
    if meta is None or not loaded:
        e.note("opened", None, looked_for)
        return
    waited = "" if meta.ms is None else f", waited {meta.ms} ms for the old broker to close it"
    at_us = loaded[-1].ts_us
    e.note("opened", at_us, looked_for, target, f"{(at_us - meta.ts_us) // 1000} ms of recovery{waited}")


def _probe(e: _Evidence) -> None:
    """Note the first record of the new leader: its epoch differs from those of the old leader."""
    target = e.moved.target
    fetched = f"a record of the probe with the leader epoch of {target}, fetched by its consumer"
    produced = f"the acknowledgement of the first record of the probe that has the leader epoch of {target}"
    # A release that elects last opens the partition, and may write, in the epoch without a leader.
    first = e.accepted if e.accepted is not None and e.accepted.leader is None else e.elected
    news = [] if first is None else [each for each in e.probed.received if each[1] >= first.leader_epoch]
    offset = min((offset for offset, _epoch, _us in news), default=None)
    acked = [us for at, us in e.probed.acked if offset is not None and at is not None and at >= offset]
    place = "" if offset is None else f"offset {offset}"
    e.note("produced", min(acked, default=None), produced, target, place)
    e.note("fetched", min((us for _offset, _epoch, us in news), default=None), fetched, target, place)
