"""The timeline of captured moves from the logs: begins and cancellations of moves, and stops of brokers. Pure.

Times are in seconds after the first move.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from results.contract.texts import counted, plural
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
        return (end_us is None or end_us > self.begin_us) and begin_us < self.end_us

    def after_s(self, at_us: int) -> float:
        return (at_us - self.begin_us) / 1e6


def in_logged_time(cluster: CapturedCluster, logs: LogReport, moves: Iterable[LoggedMove]) -> CapturedCluster:
    """Return the cluster with the times of its moves, the outages during these, and notes on what does not fit.

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
    of_topic: dict[str, list[LoggedMove]] = {}
    for tp, move in began.items():
        of_topic.setdefault(tp.topic, []).append(move)
    notes = [*cluster.notes, *_move_notes(topics, of_topic, span)]
    cancelled_us = _cancelled(of_topic, notes)
    notes += _isr_notes(topics, logs.isrs, span)
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
    found = {
        name: replace(
            topic,
            begins_s=span.after_s(min(move.began_us for move in of_topic[name])),
            cancelled_s=span.after_s(cancelled_us[name]) if name in cancelled_us else None,
        )
        if name in of_topic
        else topic
        for name, topic in topics.items()
    }
    return replace(cluster, topics=found, outages=timed, notes=tuple(notes))


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


def _cancelled(of_topic: Mapping[str, Sequence[LoggedMove]], notes: list[str]) -> dict[str, int]:
    """Return when the last move of a topic was cancelled; `notes` get what the replay does not repeat of it.

    A topic of which a move went on is left out: the replay cancels all moves of a topic.
    """
    found: dict[str, int] = {}
    ends: list[list[int]] = []
    alone = 0
    for name, moves in of_topic.items():
        ends_us = [move.ended_us for move in moves if move.cancelled and move.ended_us is not None]
        if not ends_us:
            continue
        if any(move.ended_us is None or move.ended_us > max(ends_us) for move in moves):
            alone += len(ends_us)
            continue
        found[name] = max(ends_us)
        ends.append(ends_us)
    if alone:
        notes.append(
            f"{counted(alone, 'move', 'was')} cancelled while others of the topic went on; "
            "the replay does not cancel those"
        )
    if spread_s := _spreads_s(ends):
        notes.append(
            f"the moves of {plural(len(spread_s), 'topic')} were cancelled over up to {max(spread_s):.1f} s; "
            "the replay cancels those of a topic at once, with the last"
        )
    return found


def _spreads_s(topics_us: Iterable[Sequence[int]]) -> list[float]:
    """Return how far apart the times of each topic are, where that is more than `_AT_ONCE_S`."""
    apart_s = [(max(times_us) - min(times_us)) / 1e6 for times_us in topics_us]
    return [each for each in apart_s if each > _AT_ONCE_S]


def _move_notes(
    topics: Mapping[str, CapturedTopic], of_topic: Mapping[str, Sequence[LoggedMove]], span: _Span
) -> list[str]:
    notes: list[str] = []
    began = [move for moves in of_topic.values() for move in moves]
    moving = sum(target is not None for topic in topics.values() for target in topic.targets)
    if unknown := moving - len(began):
        notes.append(f"the logs do not have the beginning of {unknown} of {plural(moving, 'move')}")
    if spread_s := _spreads_s([move.began_us for move in moves] for moves in of_topic.values()):
        notes.append(
            f"the partitions of {plural(len(spread_s), 'topic')} began to move over up to {max(spread_s):.1f} s; "
            "the replay moves each topic at once"
        )
    if replaced := [move for move in began if not move.completed and not move.cancelled]:
        first_s = min(span.after_s(move.ended_us or 0) for move in replaced)
        notes.append(
            f"{counted(len(replaced), 'move', 'was')} replaced by others, the first of them {first_s:.1f} s after "
            "the first move began; the replay does not have the others"
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
                f"the ISRs of {plural(count, 'partition')} {what} from {min(times):.1f} s to {max(times):.1f} s after "
                "the first move began; the replay has those of its own brokers"
            )
    return notes
