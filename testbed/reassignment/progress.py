"""How far a move is, computed from what the cluster reports."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from testbed.kafka.errors import UNKNOWN_TOPIC_OR_PARTITION, KafkaError, UnreachableError
from testbed.kafka.types import AdminApi, PartitionMove, PartitionState, Reassignment, ReplicaLog, TopicPartition


@dataclass(frozen=True, slots=True)
class TraceEntry:
    """One partition as it was seen at one time (µs since the epoch); noted when it differs from before."""

    ts_us: int
    tp: TopicPartition
    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int | None


@dataclass(frozen=True, slots=True)
class Poll:
    """One look at the move: how many partitions are still listed as being reassigned."""

    ts_us: int
    in_flight: int
    total: int


@dataclass(frozen=True, slots=True)
class MoveProgress:
    """A finished move: when it was asked for and when it was done (µs since the epoch), and what was seen."""

    started_us: int
    done_us: int
    seconds: float
    polls: tuple[Poll, ...]
    trace: tuple[TraceEntry, ...]


def in_flight(moves: Iterable[PartitionMove], listed: Mapping[TopicPartition, Reassignment]) -> int:
    """Count the moves that are still listed."""
    return sum(move.tp in listed for move in moves)


def not_placed(
    moves: Sequence[PartitionMove],
    listed: Mapping[TopicPartition, Reassignment],
    states: Mapping[TopicPartition, PartitionState],
) -> list[str]:
    """Say for each move what the metadata still lacks: not listed, replicas = target, ISR ⊇ target."""
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
    return missing


def not_led(moves: Sequence[PartitionMove], states: Mapping[TopicPartition, PartitionState]) -> list[str]:
    """Say for each move that copies nothing what the metadata still lacks: replicas = target, led by its first."""
    missing = []
    for move in moves:
        state = states.get(move.tp)
        if state is None:
            missing.append(f"{move.tp}: no longer exists")
        elif state.replicas != move.target:
            missing.append(f"{move.tp}: replicas {list(state.replicas)}, not {list(move.target)}")
        elif state.leader != move.target[0]:
            by = "nobody" if state.leader is None else f"broker {state.leader}"
            missing.append(f"{move.tp}: led by {by}, not by {move.target[0]}")
    return missing


def removing_brokers(moves: Iterable[PartitionMove]) -> list[int]:
    """Return the brokers that lose a replica."""
    return sorted({broker for move in moves for broker in move.removing})


def not_removed(moves: Iterable[PartitionMove], logs: Mapping[int, Mapping[TopicPartition, ReplicaLog]]) -> list[str]:
    """Say which old replicas are not seen to be gone: still on a broker, or the broker gave no answer."""
    return [
        f"{move.tp}: the old replica on broker {broker} "
        + ("is still there" if broker in logs else "cannot be seen: no answer")
        for move in moves
        for broker in move.removing
        if broker not in logs or move.tp in logs[broker]
    ]


def observed(
    ts_us: int,
    moves: Iterable[PartitionMove],
    listed: Mapping[TopicPartition, Reassignment],
    states: Mapping[TopicPartition, PartitionState],
) -> list[TraceEntry]:
    """Return each moving partition as seen now."""
    entries = []
    for move in moves:
        state = states.get(move.tp)
        if state is not None:
            running = listed.get(move.tp)
            adding, removing = (running.adding, running.removing) if running else ((), ())
            entries.append(TraceEntry(ts_us, move.tp, state.replicas, adding, removing, state.isr, state.leader))
    return entries


def old_logs(admin: AdminApi, moves: Sequence[PartitionMove]) -> dict[int, dict[TopicPartition, ReplicaLog]]:
    """The logs of the moving topics on each broker that loses one; a broker that does not answer is not there."""
    topics = sorted({move.tp.topic for move in moves})
    found: dict[int, dict[TopicPartition, ReplicaLog]] = {}
    for broker in removing_brokers(moves):
        try:
            found |= admin.log_dirs([broker], topics)
        except UnreachableError:
            continue  # said by `not_removed`, which names the broker
    return found


def left_behind(admin: AdminApi, moves: Sequence[PartitionMove]) -> list[str]:
    """Which replicas that are to be removed are not seen to be gone. Raises `KafkaError`."""
    return not_removed(moves, old_logs(admin, moves))


def is_recreated(before: str | None, now: str) -> bool:
    """Whether a topic's id says that it was deleted and made again; not where one of the two is not known."""
    return bool(before) and bool(now) and before != now


def existing_partitions(admin: AdminApi, topics: Sequence[str]) -> dict[TopicPartition, PartitionState]:
    """As `Admin.partitions`; topics that do not exist have none. Raises `KafkaError`."""
    try:
        return admin.partitions(topics)
    except KafkaError as error:
        if error.name != UNKNOWN_TOPIC_OR_PARTITION:
            raise
        there = set(admin.topics())
        return admin.partitions([topic for topic in topics if topic in there])
