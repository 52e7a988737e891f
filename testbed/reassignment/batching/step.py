"""One partition's next step towards its target, as KIP-435 has it. Pure.

Where the KIP's text, table and example contradict each other, the example decides; `docs/kip435.md` says how.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

Replicas = tuple[int, ...]


class View(NamedTuple):
    """What is known of a partition: its replicas now, where they shall be, which are in sync."""

    current: Replicas
    target: Replicas
    isr: Collection[int]
    min_insync: int = 1


class Step(NamedTuple):
    """What to ask for next: a whole replica list, preferred leader first."""

    current: Replicas
    replicas: Replicas

    @property
    def adding(self) -> Replicas:
        """The replicas that are copied in this step."""
        return tuple(broker for broker in self.replicas if broker not in self.current)

    @property
    def moves_leader(self) -> bool:
        """Whether the preferred leader becomes another one."""
        return self.replicas[0] != self.current[0]


@dataclass(frozen=True, slots=True)
class Waiting:
    """No step can be taken now; `reason` says why."""

    reason: str


def next_step(view: View, online: Collection[int], most_replicas: int | None) -> Step | Waiting | None:
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
        return Waiting(f"broker {target[0]}, the new preferred leader, is offline")
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
    return Waiting(f"target offline: broker {offline}")


def _exchange(current: Replicas, target: Replicas, reachable: list[int], limit: int) -> tuple[list[int], list[int]]:
    """Which replicas to add and which to drop, so that there are never fewer than there were or shall be."""
    excess = [broker for broker in current if broker not in target]
    least = min(len(current), len(target))
    drop = min(limit, len(excess))
    while True:
        add = max(0, min(limit, len(reachable), len(target) - (len(current) - drop)))
        if len(current) - drop + add >= least:
            return reachable[:add], excess[:drop]
        drop -= 1


def check_target(target: Replicas, min_insync: int) -> str | None:
    """Say what is wrong with a target, None when nothing is: it could never accept a write, or makes no sense."""
    if not target:
        return "the target is empty"
    if len(set(target)) != len(target):
        return f"the target {list(target)} names a broker twice"
    if len(target) < min_insync:
        return f"the target {list(target)} has fewer replicas than min.insync.replicas, {min_insync}"
    return None
