"""The progress of a move, computed from the cluster's reports."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from results.contract.texts import counted, shortened
from testbed.kafka.admin import Admin
from testbed.kafka.errors import LogDirError, UnreachableError
from testbed.kafka.types import PartitionMove, PartitionState, Reassignment, ReplicaLog, TopicPartition


@dataclass(frozen=True, slots=True)
class TraceEntry:
    """The state of one partition at one time (µs since the epoch), recorded when it changes."""

    ts_us: int
    tp: TopicPartition
    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int | None


@dataclass(frozen=True, slots=True)
class Poll:
    """One poll of the move: the number of partitions that the controller still lists."""

    ts_us: int
    in_flight: int


def not_placed(
    moves: Sequence[PartitionMove],
    listed: Mapping[TopicPartition, Reassignment],
    states: Mapping[TopicPartition, PartitionState],
) -> list[str]:
    """Return one line for each condition that a move still lacks.

    It is not listed, replicas = target, ISR ⊇ target, and one of them leads.
    """
    missing = []
    for move in moves:
        state = states.get(move.tp)
        if move.tp in listed:
            missing.append(f"{move.tp}: still being reassigned")
        elif state is None:
            missing.append(f"{move.tp}: no longer exists")
        elif state.replicas != move.target:
            missing.append(f"{move.tp}: replicas {list(state.replicas)}, not {list(move.target)}")
        elif not set(move.target) <= set(state.isr):
            missing.append(f"{move.tp}: ISR {list(state.isr)} lacks {sorted(set(move.target) - set(state.isr))}")
        elif state.leader not in move.target:
            missing.append(f"{move.tp}: led by {_leader(state)}, not by one of {list(move.target)}")
    return missing


def _leader(state: PartitionState) -> str:
    return "no broker" if state.leader is None else f"broker {state.leader}"


def not_led(moves: Sequence[PartitionMove], states: Mapping[TopicPartition, PartitionState]) -> list[str]:
    """Return one line for each condition that a move without a copy lacks: replicas = target, led by its first."""
    missing = []
    for move in moves:
        state = states.get(move.tp)
        if state is None:
            missing.append(f"{move.tp}: no longer exists")
        elif state.replicas != move.target:
            missing.append(f"{move.tp}: replicas {list(state.replicas)}, not {list(move.target)}")
        elif state.leader != move.target[0]:
            missing.append(f"{move.tp}: led by {_leader(state)}, not by {move.target[0]}")
    return missing


def left_behind(admin: Admin, moves: Sequence[PartitionMove]) -> list[str]:
    """Return one line for each old replica that is still on a broker, or whose broker gives no answer.

    A log in a folder that is offline does not count: until the disk is replaced, no broker can delete it. Raise
    `KafkaError`.
    """
    topics = sorted({move.tp.topic for move in moves})
    logs: dict[int, dict[TopicPartition, ReplicaLog]] = {}
    for broker in sorted({broker for move in moves for broker in move.removing}):
        try:
            logs |= admin.log_dirs([broker], topics)
        except LogDirError as error:
            logs |= error.found
        except UnreachableError:
            continue  # named below
    return [
        f"{move.tp}: the old replica on broker {broker} "
        + ("is still there" if broker in logs else "cannot be seen: no answer")
        for move in moves
        for broker in move.removing
        if broker not in logs or move.tp in logs[broker]
    ]


def already_moving(running: Collection[TopicPartition]) -> str:
    """Return that these partitions are being reassigned already, for a message; it names the first of them."""
    return f"{counted(len(running), 'partition', 'is')} being reassigned already ({', '.join(shortened(running, 8))})"


def is_recreated(before: str | None, now: str) -> bool:
    """Return whether a topic was deleted and created again, by its id; False if either id is unknown."""
    return bool(before) and bool(now) and before != now
