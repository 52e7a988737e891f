"""What the model of all listed traffic says of a move, from the manifest alone."""

import math

from results.contract.manifest import Move
from results.contract.move import Expected
from results.contract.verdict import Direction

TIE = 0.02
"""Ends whose times differ by less are predicted to bind alike: a follower's receipt is its leader's sending."""


def binding_ends(move: Move, quota_bytes_per_s: float) -> frozenset[tuple[str, Direction]]:
    """The hosts and directions that need longest, or (several never end) whose keep-up is highest. Empty: no model."""
    busy = [e for e in move.expected if e.bytes > 0]
    longest = max((e.seconds(quota_bytes_per_s) for e in busy), default=0.0)
    if math.isinf(longest):
        stuck = [e for e in busy if math.isinf(e.seconds(quota_bytes_per_s))]
        highest = max(e.keepup_bytes_per_s for e in stuck)
        return frozenset((e.host, e.direction) for e in stuck if e.keepup_bytes_per_s >= (1 - TIE) * highest)
    return frozenset((e.host, e.direction) for e in busy if e.seconds(quota_bytes_per_s) >= (1 - TIE) * longest)


def carrying_all(move: Move) -> frozenset[tuple[str, Direction]]:
    """The hosts and directions through which everything goes that is copied, whichever batch it is in."""
    total = sum(e.bytes for e in move.expected if e.direction == "receive")
    return frozenset((e.host, e.direction) for e in move.expected if 0 < total == e.bytes)


def expected_of(move: Move, host: str, direction: Direction) -> Expected | None:
    """What the model says of one end."""
    return next((e for e in move.expected if (e.host, e.direction) == (host, direction)), None)
