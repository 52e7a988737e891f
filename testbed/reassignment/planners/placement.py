"""Where replicas lie while a plan is made: counts per broker, and what racks allow. Pure."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping

from testbed.kafka.types import TopicPartition

Replicas = tuple[int, ...]
Assignment = Mapping[TopicPartition, Replicas]
Racks = Mapping[int, str | None]


class Placement:
    """An assignment being changed. Only brokers of `racks` receive replicas; one without a rack is a rack by itself."""

    def __init__(self, assignment: Assignment, racks: Racks) -> None:
        self.replicas: dict[TopicPartition, list[int]] = {tp: list(r) for tp, r in sorted(assignment.items())}
        self._rack = {broker: rack if rack is not None else f"broker {broker}" for broker, rack in racks.items()}
        self.brokers = tuple(sorted(racks))
        self._racks = len(set(self._rack.values()))
        self.count = Counter(broker for replicas in self.replicas.values() for broker in replicas)
        self.led = Counter(replicas[0] for replicas in self.replicas.values() if replicas)

    def crowding(self, tp: TopicPartition, broker: int, without: int | None = None) -> int:
        """How many replicas of a partition beyond its fair share a rack would hold with one on this broker, too.

        0 is no crowding. `without` is a replica that would go.
        """
        others = [other for other in self.replicas[tp] if other != without]
        share = math.ceil((len(others) + 1) / self._racks)
        mine = sum(self._rack.get(other) == self._rack[broker] for other in others) + 1
        return max(0, mine - share)

    def crowded(self, tp: TopicPartition) -> bool:
        """Whether some rack holds more than its fair share of a partition's replicas."""
        held = Counter(self._rack[broker] for broker in self.replicas[tp] if broker in self._rack)
        return bool(held) and max(held.values()) > math.ceil(len(self.replicas[tp]) / self._racks)

    def best(self, tp: TopicPartition, without: int | None = None, among: Iterable[int] | None = None) -> int | None:
        """The broker for one more replica: least crowding first, then fewest replicas, then the lowest id."""
        free = [broker for broker in (among or self.brokers) if broker not in self.replicas[tp]]
        return min(free, key=lambda b: (self.crowding(tp, b, without), self.count[b], b), default=None)

    def add(self, tp: TopicPartition, broker: int) -> None:
        """Put one more replica at the end."""
        self.replicas[tp].append(broker)
        self.count[broker] += 1
        if len(self.replicas[tp]) == 1:
            self.led[broker] += 1

    def remove(self, tp: TopicPartition, broker: int) -> None:
        """Take a replica away."""
        self._reorder(tp, [other for other in self.replicas[tp] if other != broker])
        self.count[broker] -= 1

    def replace(self, tp: TopicPartition, old: int, new: int) -> None:
        """Put a replica where another was, its place in the order included."""
        self._reorder(tp, [new if broker == old else broker for broker in self.replicas[tp]])
        self.count[old] -= 1
        self.count[new] += 1

    def lead(self, tp: TopicPartition, broker: int) -> None:
        """Make one of its replicas a partition's preferred leader."""
        self._reorder(tp, [broker, *(other for other in self.replicas[tp] if other != broker)])

    def changed(self, before: Assignment) -> dict[TopicPartition, Replicas]:
        """The partitions that no longer lie as they did."""
        now = {tp: tuple(replicas) for tp, replicas in self.replicas.items()}
        return {tp: replicas for tp, replicas in now.items() if replicas != before[tp]}

    def _reorder(self, tp: TopicPartition, replicas: list[int]) -> None:
        if self.replicas[tp]:
            self.led[self.replicas[tp][0]] -= 1
        if replicas:
            self.led[replicas[0]] += 1
        self.replicas[tp] = replicas
