"""KIP-435's batch: the partitions that take their next step now, within the limits of what is in flight. Pure.

The order and the limits are those of the KIP; see `docs/kip435.md`.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from results.contract.texts import counted, plural
from testbed.kafka.types import TopicPartition
from testbed.reassignment.batching.step import NoStep, Step


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """The most that may be in flight at once; None is no limit.

    R `replicas`: added in one step of a partition. P `partitions`: in flight. L `leaders`: steps in flight that change
    the preferred leader. `per_broker`: replicas in copy to any one broker. `starts`: copying steps that begin in one
    turn, when slots are refilled; then steps do not end all together, and something is always being copied.
    """

    replicas: int | None = None
    partitions: int | None = None
    leaders: int | None = None
    per_broker: int | None = None
    starts: int | None = None

    def __post_init__(self) -> None:
        for name, least in (("replicas", 1), ("partitions", 1), ("leaders", 0), ("per_broker", 1), ("starts", 1)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise ValueError(f"{name} is {value}; it must be at least {least}")


@dataclass(frozen=True, slots=True)
class Batch:
    """The steps to request now, and the reason why each other partition has none."""

    steps: Mapping[TopicPartition, Step]
    deferred: Mapping[TopicPartition, str] = field(default_factory=dict)


def choose_batch(
    wanted: Iterable[tuple[TopicPartition, Step | NoStep]],
    limits: BatchLimits,
    in_flight: Mapping[TopicPartition, Step] | None = None,
) -> Batch:
    """Return the batch from `wanted`, in its order: leader movements first, then other steps.

    The forecast of a large plan makes the same choice by queues; `tests/reassignment/batching` compares both.

    Partitions that are `in_flight` count under every limit but `starts`. The batch skips a step that would exceed a
    broker's cap. A step adds at most one replica to a broker, so no cap stops a move for ever.
    """
    running = in_flight or {}
    chosen: dict[TopicPartition, Step] = {}
    deferred: dict[TopicPartition, str] = {}
    slots = _most(limits.partitions) - len(running)
    leaders = _most(limits.leaders) - sum(s.moves_leader for s in running.values())
    cap, starts = limits.per_broker, _most(limits.starts)
    copying = Counter(broker for step in running.values() for broker in step.adding) if cap is not None else Counter()
    candidates = list(wanted)
    for moves_leader in (True, False):
        for tp, step in candidates:
            if isinstance(step, NoStep):
                deferred[tp] = step.reason
                continue
            if step.moves_leader is not moves_leader:
                continue
            full = [] if cap is None else [broker for broker in step.adding if copying[broker] >= cap]
            if slots <= 0:
                deferred[tp] = f"{counted(limits.partitions or 0, 'partition', 'is')} in flight"
            elif step.adding and starts <= 0:
                deferred[tp] = f"{counted(limits.starts or 0, 'copy', 'begins')} in this turn, the most permitted"
            elif moves_leader and leaders <= 0:
                deferred[tp] = f"{counted(limits.leaders or 0, 'leader movement', 'is')} in flight"
            elif full:
                deferred[tp] = f"broker {full[0]} receives {plural(copying[full[0]], 'replica')}"
            else:
                chosen[tp] = step
                if cap is not None:
                    copying.update(step.adding)
                slots -= 1
                starts -= bool(step.adding)
                leaders -= moves_leader
    return Batch(chosen, deferred)


def _most(limit: int | None) -> float:
    return math.inf if limit is None else limit
