"""The pace of a copy that the topology's declared delays allow: a fetch waits for its answer, one round trip."""

import math

from results.contract.move import Move, throttled_through
from results.contract.verdict import Direction
from results.criteria.model import bottlenecks
from results.criteria.quantities import rate


def pace(move: Move, host: str, direction: Direction) -> float:
    """Return the most bytes per second that delays let through a host; infinite where none is declared on the way.

    A fetcher has one fetch on its way: what comes in a round trip is at most a response, and at most what its socket
    holds. Fetchers add up.
    """
    trips = {(trip.leader, trip.follower): trip for trip in move.round_trips}
    pairs = sorted({(flow.leader, flow.follower) for flow in throttled_through(move, host, direction)})
    found = 0.0
    for leader, follower in pairs:
        if (leader, follower) not in trips:
            return math.inf
        trip, fetchers = trips[leader, follower], move.fetchers.get(follower)
        leaders = {flow.leader for flow in throttled_through(move, follower, "receive")}
        each = fetchers.receive / len(leaders) if fetchers is not None else 1.0
        found += each * trip.bytes / trip.seconds
    return found if pairs else math.inf


def slower_than_quota(move: Move, host: str, direction: Direction, quota_bytes_per_s: float) -> str:
    """Return why a copy cannot use its quota there although nothing is wrong; empty where delays allow the quota."""
    most = pace(move, host, direction)
    if most >= quota_bytes_per_s:
        return ""
    longest = max(trip.seconds for trip in move.round_trips)
    return (
        f"round trips of up to {longest * 1000:g} ms, which the topology declares, allow at most {rate(most)} there: "
        f"less than the quota of {rate(quota_bytes_per_s)}"
    )


def slower_move(move: Move) -> str:
    """Return the same of the ends that decide how long a move takes; empty where delays allow the quota."""
    quota = move.quota_bytes_per_s
    reasons = (slower_than_quota(move, host, way, quota) for host, way in sorted(bottlenecks(move, quota)))
    return next((why for why in reasons if why), "")
