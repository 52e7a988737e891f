"""What a producer has sent and not heard of: which records are settled, and how. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from testbed.workload.written import spans


@dataclass(slots=True)
class Outbox:
    """The places of every partition. A place is settled once, in whatever order answers come."""

    sent: dict[int, int]
    """Partition → the next place."""
    settled: dict[int, int] = field(default_factory=dict)
    """Partition → every place below has an outcome."""
    acked: int = 0
    refused: int = 0
    in_doubt: int = 0
    _early: dict[int, set[int]] = field(default_factory=dict)
    _refused: list[tuple[int, int]] = field(default_factory=list)
    _doubtful: list[tuple[int, int]] = field(default_factory=list)
    _changed: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.settled = dict.fromkeys(self.sent, 0)

    def ack(self, partition: int, place: int) -> None:
        """A record was acknowledged."""
        self.acked += 1
        self._settle(partition, place)

    def refuse(self, partition: int, place: int) -> None:
        """A record is certainly not there."""
        self.refused += 1
        self._refused.append((partition, place))
        self._settle(partition, place)

    def doubt(self, partition: int, place: int) -> None:
        """Nobody knows whether a record is there."""
        self.in_doubt += 1
        self._doubtful.append((partition, place))
        self._settle(partition, place)

    def _settle(self, partition: int, place: int) -> None:
        expected = self.settled[partition]
        self._changed.add(partition)
        if place != expected:
            self._early.setdefault(partition, set()).add(place)
            return
        expected += 1
        early = self._early.get(partition)
        while early and expected in early:
            early.remove(expected)
            expected += 1
        self.settled[partition] = expected

    @property
    def waiting(self) -> int:
        """Records without an outcome."""
        return sum(self.sent.values()) - self.acked - self.refused - self.in_doubt

    def doubt_the_rest(self) -> None:
        """Give up every record without an outcome."""
        for partition, sent in self.sent.items():
            early = self._early.get(partition, set())
            for place in [p for p in range(self.settled[partition], sent) if p not in early]:
                self.doubt(partition, place)

    def news(self) -> dict[str, Any]:
        """What has changed since it was asked for last, JSON-able; a parent adds it up with `Heard`."""
        found = {
            "settled": [(partition, self.settled[partition]) for partition in sorted(self._changed)],
            "refused": _by_partition(self._refused),
            "doubtful": _by_partition(self._doubtful),
        }
        self._changed.clear()
        self._refused.clear()
        self._doubtful.clear()
        return found


def _by_partition(places: Iterable[tuple[int, int]]) -> list[tuple[int, int, int]]:
    of: dict[int, list[int]] = {}
    for partition, place in places:
        of.setdefault(partition, []).append(place)
    return [(partition, begin, end) for partition, found in of.items() for begin, end in spans(found)]
