"""Which partitions take their next step now: KIP-435's batch within P, L and a cap for each broker. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from testbed.kafka.types import TopicPartition
from testbed.reassignment.batching.step import Step, Waiting

Reason = Literal["partitions", "leaders", "broker", "waiting"]


@dataclass(frozen=True, slots=True)
class Limits:
    """How much may be under way at once; None is no limit.

    R `replicas`: added in one step of a partition. P `partitions`: in flight. L `leaders`: steps in flight that
    move the preferred leader. `per_broker`: replicas that are being copied to any one broker.
    """

    replicas: int | None = None
    partitions: int | None = None
    leaders: int | None = None
    per_broker: int | None = None

    def __post_init__(self) -> None:
        for name, least in (("replicas", 1), ("partitions", 1), ("leaders", 0), ("per_broker", 1)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise ValueError(f"{name} is {value}; it must be at least {least}")


@dataclass(frozen=True, slots=True)
class Deferred:
    """A partition that takes no step now: by which limit, in words."""

    reason: Reason
    why: str


@dataclass(frozen=True, slots=True)
class Batch:
    """The steps to ask for now, and why the other partitions have none."""

    steps: Mapping[TopicPartition, Step]
    deferred: Mapping[TopicPartition, Deferred] = field(default_factory=dict)


def collect(
    wanted: Iterable[tuple[TopicPartition, Step | Waiting]],
    limits: Limits,
    in_flight: Mapping[TopicPartition, Step] | None = None,
) -> Batch:
    """Choose among `wanted`, in its order: leader movements first, then what moves none.

    What is `in_flight` holds its place under every limit. A step that would exceed a broker's cap is passed over; as a
    step adds at most one replica to a broker, no cap stops a move for ever.
    """
    running = in_flight or {}
    chosen: dict[TopicPartition, Step] = {}
    deferred: dict[TopicPartition, Deferred] = {}
    slots = None if limits.partitions is None else limits.partitions - len(running)
    leaders = None if limits.leaders is None else limits.leaders - sum(s.moves_leader for s in running.values())
    cap = limits.per_broker
    copying = Counter(broker for step in running.values() for broker in step.adding) if cap is not None else Counter()
    candidates = list(wanted)
    for turn in (True, False):
        for tp, step in candidates:
            if isinstance(step, Waiting):
                deferred[tp] = Deferred("waiting", step.reason)
                continue
            if step.moves_leader is not turn:
                continue
            full = [] if cap is None else [broker for broker in step.adding if copying[broker] >= cap]
            if slots is not None and slots <= 0:
                deferred[tp] = Deferred("partitions", f"{limits.partitions} partitions are in flight")
            elif turn and leaders is not None and leaders <= 0:
                deferred[tp] = Deferred("leaders", f"{limits.leaders} leader movements are in flight")
            elif full:
                deferred[tp] = Deferred("broker", f"broker {full[0]} receives {copying[full[0]]} replicas")
            else:
                chosen[tp] = step
                if cap is not None:
                    copying.update(step.adding)
                slots = None if slots is None else slots - 1
                leaders = leaders - 1 if turn and leaders is not None else leaders
    return Batch(chosen, deferred)
