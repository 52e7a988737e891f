"""What a producer did to one partition: which places were acknowledged, refused, or are in doubt. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

Span = tuple[int, int]
"""Places from the first up to, without, the second."""


def spans(places: Iterable[int]) -> tuple[Span, ...]:
    """Places in any order as spans."""
    found: list[list[int]] = []
    for place in sorted(places):
        if found and found[-1][1] == place:
            found[-1][1] += 1
        else:
            found.append([place, place + 1])
    return tuple((begin, end) for begin, end in found)


def count(spans: Iterable[Span]) -> int:
    """How many places they have."""
    return sum(end - begin for begin, end in spans)


@dataclass(frozen=True, slots=True)
class Written:
    """One producer's records of one partition.

    Every place below `settled` has an outcome: acknowledged, unless it is among `refused` (a broker or the client
    said no, or its transaction was aborted) or `doubtful` (no answer: it may or may not be there). From `settled` on
    all are in doubt, up to `sent`; None when the producer died and nobody knows how far it came.
    """

    producer: int
    name: str
    topic: str
    partition: int
    settled: int
    sent: int | None
    refused: tuple[Span, ...] = ()
    doubtful: tuple[Span, ...] = ()

    @property
    def acked(self) -> int:
        """How many records must be there."""
        return self.settled - count(self.refused) - count(self.doubtful)

    @property
    def in_doubt(self) -> int:
        """How many records may or may not be there, as far as they are known of."""
        return count(self.doubtful) + (max(0, self.sent - self.settled) if self.sent is not None else 0)
