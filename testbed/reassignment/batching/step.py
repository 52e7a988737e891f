"""KIP-435's step: a partition's next replica list on the way to its target. Pure.

Where the KIP's text, table and example contradict each other, the example decides; see `docs/kip435.md`.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import NamedTuple

Replicas = tuple[int, ...]


class PartitionView(NamedTuple):
    """The known state of a partition: its present replicas, its target replicas, and which are in sync."""

    current: Replicas
    target: Replicas
    isr: Collection[int]
    min_insync: int = 1


class Step(NamedTuple):
    """The next request for a partition: a whole replica list, preferred leader first."""

    current: Replicas
    replicas: Replicas

    @property
    def adding(self) -> Replicas:
        """Return the replicas that this step copies."""
        return tuple(broker for broker in self.replicas if broker not in self.current)

    @property
    def moves_leader(self) -> bool:
        """Return whether the step changes the preferred leader."""
        return self.replicas[0] != self.current[0]


@dataclass(frozen=True, slots=True)
class NoStep:
    """A partition that cannot take a step now; `reason` says why."""

    reason: str


def next_step(view: PartitionView, online: Collection[int], most_replicas: int | None) -> Step | NoStep | None:
    """Return the next step with at most `most_replicas` (R; None: no limit) new replicas, None when all is done.

    A step may add more than R replicas when that many are needed for `min.insync.replicas`; it drops none then.
    """
    current, target, isr, min_insync = view
    if current == target:
        return None
    limit = len(target) + len(current) if most_replicas is None else most_replicas
    missing = [broker for broker in target if broker not in current]
    reachable = [broker for broker in missing if broker in online]
    new_leader = target[0] not in current
    if new_leader and target[0] not in online:
        return NoStep(f"broker {target[0]}, the new preferred leader, is offline")
    short = max(0, min_insync - len([broker for broker in current if broker in isr]))
    dropped: list[int] = []
    if new_leader or (short and reachable):
        added = reachable[: max(short, int(new_leader))]
    else:
        added, dropped = _exchange(current, target, reachable, limit)
    kept = [broker for broker in current if broker not in dropped] if dropped else current
    ordered = [broker for broker in target if broker in kept or broker in added]
    replicas = (*ordered, *[broker for broker in kept if broker not in target])
    if replicas != current:
        return Step(current, replicas)
    offline = ", ".join(str(broker) for broker in missing if broker not in online)
    return NoStep(f"target offline: broker {offline}")


def leaves_enough(view: PartitionView, step: Step) -> bool:
    """Return whether a step leaves `min.insync.replicas` in sync, or as many as now if these are fewer.

    The controller of Kafka 4.3 completes a step when the added replicas are in sync, even if others are not.
    """
    if len(view.isr) >= len(view.current):
        return True
    adding = step.adding
    after = sum(broker in view.isr or broker in adding for broker in step.replicas)
    return after >= min(view.min_insync, len(view.isr))


def steps_to_target(view: PartitionView, online: Collection[int], most_replicas: int | None) -> Iterator[Step]:
    """Return all steps of a partition, when each step ends with its replicas in sync and no broker fails."""
    while isinstance(step := next_step(view, online, most_replicas), Step):
        yield step
        view = view._replace(current=step.replicas, isr=step.replicas)


def _exchange(current: Replicas, target: Replicas, reachable: list[int], limit: int) -> tuple[list[int], list[int]]:
    """Return the replicas to add and to drop, so that there are never fewer than before or in the target."""
    excess = [broker for broker in current if broker not in target]
    least = min(len(current), len(target))
    drop = min(limit, len(excess))
    while True:
        add = max(0, min(limit, len(reachable), len(target) - (len(current) - drop)))
        if len(current) - drop + add >= least:
            return reachable[:add], excess[:drop]
        drop -= 1


def check_target(target: Replicas, min_insync: int) -> str | None:
    """Return the mistake in a target: it is invalid, or could never accept a write. None without a mistake."""
    if not target:
        return "the target is empty"
    if len(set(target)) != len(target):
        return f"the target {list(target)} names a broker twice"
    if len(target) < min_insync:
        return f"the target {list(target)} has fewer replicas than min.insync.replicas, {min_insync}"
    return None
