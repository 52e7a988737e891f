"""When captured moves began and brokers stopped, by the logs: in seconds after the first move. Pure."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from testbed.incidents.broker_logs import LoggedIsr, LoggedMove, LogReport
from testbed.incidents.capture import BrokerOutage, CapturedCluster, CapturedTopic
from testbed.kafka.types import TopicPartition

_AT_ONCE_S = 1.0
"""Partitions of a topic that begin within this time begin at once, as far as a replay is concerned."""


@dataclass(frozen=True, slots=True)
class _Span:
    """The time of the captured moves; without an end (inf) while one runs at the end of the logs."""

    begin_us: int
    end_us: float

    def has(self, begin_us: int, end_us: int | None) -> bool:
        """Return whether a time from `begin_us` to `end_us` overlaps."""
        return (end_us is None or end_us > self.begin_us) and begin_us < self.end_us

    def after_s(self, at_us: int) -> float:
        """Return how long after the beginning a time is."""
        return (at_us - self.begin_us) / 1e6


def in_logged_time(cluster: CapturedCluster, logs: LogReport, moves: Iterable[LoggedMove]) -> CapturedCluster:
    """Return the cluster with the beginnings of its moves, the outages during these, and notes on what does not fit.

    `moves` are the logged reassignments.
    """
    topics, outages = cluster.topics, logs.outages()
    began = _began(topics, moves)
    if not began:
        notes = list(cluster.notes)
        if logs.accepted:
            notes.append(f"the logs have {logs.accepted} requests to move partitions, but not of which ones")
        if outages:
            notes.append(f"the logs have {len(outages)} outages of brokers, but not when these moves began")
        return replace(cluster, notes=tuple(notes))
    ends_us = [math.inf if each.ended_us is None else each.ended_us for each in began.values()]
    span = _Span(min(each.began_us for each in began.values()), max(ends_us))
    during = [
        each for each in outages if each.broker in cluster.brokers and span.has(each.stopped_us, each.returned_us)
    ]
    notes = [*cluster.notes, *_move_notes(topics, began, span), *_isr_notes(topics, logs.isrs, span)]
    if others := len(outages) - len(during):
        notes.append(f"{others} outages of brokers are not during these moves, or of other brokers: without these")
    timed = tuple(
        BrokerOutage(
            each.broker,
            span.after_s(each.stopped_us),
            None if each.returned_us is None else span.after_s(each.returned_us),
        )
        for each in during
    )
    return replace(cluster, topics=_timed(topics, began, span), outages=timed, notes=tuple(notes))


def _began(topics: Mapping[str, CapturedTopic], moves: Iterable[LoggedMove]) -> dict[TopicPartition, LoggedMove]:
    """Return the newest logged reassignment of each partition that has the captured target."""
    began: dict[TopicPartition, LoggedMove] = {}
    for move in moves:
        topic = topics.get(move.tp.topic)
        if topic is None or move.tp.partition >= len(topic.targets):
            continue
        target, before = topic.targets[move.tp.partition], topic.replicas[move.tp.partition]
        if target is None:
            continue
        added = move.adding == {*target} - {*before} and move.removing == {*before} - {*target}
        if added if move.target is None else {*move.target} == {*target}:
            began[move.tp] = move
    return began


def _timed(
    topics: Mapping[str, CapturedTopic], began: Mapping[TopicPartition, LoggedMove], span: _Span
) -> dict[str, CapturedTopic]:
    first: dict[str, int] = {}
    for tp, move in began.items():
        first[tp.topic] = min(first.get(tp.topic, move.began_us), move.began_us)
    return {
        name: replace(topic, begins_s=span.after_s(first[name])) if name in first else topic
        for name, topic in topics.items()
    }


def _move_notes(
    topics: Mapping[str, CapturedTopic], began: Mapping[TopicPartition, LoggedMove], span: _Span
) -> list[str]:
    notes: list[str] = []
    moving = sum(target is not None for topic in topics.values() for target in topic.targets)
    if unknown := moving - len(began):
        notes.append(f"the logs do not have the beginning of {unknown} of {moving} moves")
    spread_s: list[float] = []
    for name in topics:
        times = [move.began_us for tp, move in began.items() if tp.topic == name]
        if times and max(times) - min(times) > _AT_ONCE_S * 1e6:
            spread_s.append((max(times) - min(times)) / 1e6)
    if spread_s:
        notes.append(
            f"the partitions of {len(spread_s)} topics began to move over up to {max(spread_s):.1f} s; "
            "the replay moves each topic at once"
        )
    if cancelled := [move for move in began.values() if not move.completed and move.ended_us is not None]:
        first_s = min(span.after_s(move.ended_us or 0) for move in cancelled)
        notes.append(
            f"{len(cancelled)} moves were cancelled or replaced, the first of them {first_s:.1f} s after the first "
            "move began; the replay does not cancel"
        )
    return notes


def _isr_notes(topics: Mapping[str, CapturedTopic], isrs: Iterable[LoggedIsr], span: _Span) -> list[str]:
    during = [each for each in isrs if each.tp.topic in topics and span.has(each.at_us, each.at_us + 1)]
    notes: list[str] = []
    for what, chosen in (
        ("shrank", [each for each in during if each.shrinks]),
        ("grew", [each for each in during if not each.shrinks]),
    ):
        if chosen:
            times = [span.after_s(each.at_us) for each in chosen]
            count = len({each.tp for each in chosen})
            notes.append(
                f"the ISRs of {count} partitions {what} from {min(times):.1f} s to {max(times):.1f} s after the "
                "first move began; the replay has those of its own brokers"
            )
    return notes
