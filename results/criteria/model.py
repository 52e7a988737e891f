"""The quota window's bound, the model of all traffic that a quota records, and how well they predict moves. Pure.

`docs/throttle-bound.md` derives the bound.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from results.contract.move import Expected, Move, in_sync_through, throttled_through
from results.contract.verdict import Direction
from results.criteria.measures import MoveMeasures


def window_bound(
    quota_bytes_per_s: float,
    direction: Direction,
    *,
    fetchers: int,
    response_max_bytes: int,
    window_s: float,
    sample_s: float,
) -> float:
    """Return most throttled bytes that followers' logs may grow by in a window of at most `window_s` (Kafka: 11 s).

    `fetchers` is how many carry throttled bytes through this broker in this direction. The quota is a check before each
    fetch, after which one whole response per fetcher may follow; and the edges of Kafka's window are samples of
    `sample_s`, not instants. A window even a little longer than `window_s` is not covered.
    """
    in_window, in_sample = quota_bytes_per_s * window_s, quota_bytes_per_s * sample_s
    if direction == "receive":
        return in_window + in_sample + fetchers * response_max_bytes
    return in_window + (2 * fetchers - 1) * response_max_bytes + max(in_sample, response_max_bytes)


def bound_of(move: Move, host: str, direction: Direction, quota_bytes_per_s: float | None = None) -> float | None:
    """Return the window bound for one host in bytes; None when the manifest does not say its fetchers.

    The quota is the move's own unless given. A leader's followers cannot log more of what it sends than they may
    receive, unless some of them are in sync: nothing holds those back.
    """
    quota = move.quota_bytes_per_s if quota_bytes_per_s is None else quota_bytes_per_s
    bound = _bound(move, host, direction, quota)
    if bound is None or direction == "receive" or in_sync_through(move, host, direction):
        return bound
    followers = {f.follower for f in move.flows if f.kind == "throttled" and f.leader == host}
    received = [_bound(move, follower, "receive", quota) for follower in followers]
    known = [r for r in received if r is not None]
    return min(bound, sum(known)) if known and len(known) == len(received) else bound


def long_bound(
    move: Move, host: str, direction: Direction, quota_bytes_per_s: float, seconds: float, *, fresh: bool = False
) -> float | None:
    """Return most bytes in so long a time, of any length; None when the manifest does not say the host's fetchers.

    The time is covered by k windows, each of which may have one response per fetcher beyond the quota, and all of them
    together a sample's worth. What a leader sent may have come to the logs a response per fetcher later.
    With `fresh` the time is that from the start of a move, and a sensor that began with it bounds the bytes closer.
    """
    part = responses(move, host, direction)
    if part <= 0:
        return None
    windows = max(1, math.ceil(seconds / move.window_s))
    late = part if direction == "transmit" else 0.0
    most = quota_bytes_per_s * (windows * move.window_s + move.sample_s) + windows * part + late
    if not fresh or (ends := fresh_ends(move, host, direction)) is None:
        return most
    if move.wildcard:  # a broker that is filled fetches before the move is seen to start
        seconds += move.sample_s
    chained = written_unseen(move, host, direction)
    for follower in ends:
        several = raced(move, follower, "receive") * math.ceil(seconds / (move.window_s - move.sample_s))
        several += forgotten(move, follower, quota_bytes_per_s) * math.floor(seconds / move.window_s)
        chained += quota_bytes_per_s * max(seconds, move.sample_s) + responses(move, follower, "receive") + several
    return min(most, chained)


def forgotten(move: Move, follower: str, quota_bytes_per_s: float) -> float:
    """Return bytes beyond its quota that a follower's sensor may let pass in each window; 0 where every sample has a
    response.

    Where a response is worth more than a sample, expired samples stay empty. One of them may be the oldest: then a
    check counts the responses since its reset, and not the one before it, which is a window old.
    """
    part, window = responses(move, follower, "receive"), quota_bytes_per_s * move.window_s
    if part <= quota_bytes_per_s * move.sample_s:
        return 0.0
    return (math.floor(window / part) + 1) * part - window


def sampled(move: Move, host: str, direction: Direction, quota_bytes_per_s: float) -> bool:
    """Return whether a response of each fetcher is worth a sample of the quota at most: every sample then has one."""
    return responses(move, host, direction) <= quota_bytes_per_s * move.sample_s


def fresh_ends(move: Move, host: str, direction: Direction) -> tuple[str, ...] | None:
    """Return the followers whose sensors begin with the move and bound what passes a host; None: another sensor does.

    A follower's sensor begins with its first listed bytes, unless replicas in sync there are listed as well.
    """
    if in_sync_through(move, host, direction):
        return None
    flows = throttled_through(move, host, direction)
    followers = tuple(sorted({flow.follower for flow in flows}))
    fresh = all(_fetchers(move, each, "receive") and not in_sync_through(move, each, "receive") for each in followers)
    return followers if fresh else None


def raced(move: Move, host: str, direction: Direction) -> float:
    """Return bytes that may pass between a fetcher's check of the quota and its record: 0 for one fetcher without a
    load.

    Each other fetcher may add a response. Where producers write, replicas that have caught up are not checked any more:
    what is written to them between two responses that are checked passes as well.
    """
    return max(0, _fetchers(move, host, direction) - 1) * move.response_max_bytes + written_past(move)


def written_past(move: Move) -> float:
    """Return most bytes that producers write to replicas that have caught up, between two responses that are checked.

    The quota counts such bytes and never holds them back. Without a load it is 0.
    """
    between_s = move.response_max_bytes / move.quota_bytes_per_s
    return min(float(move.response_max_bytes), move.inbound_bytes_per_s * between_s)


SEEN_LATE_S = 2.0
"""Two readings: the last log of a leader that left, and the first look without it."""


def written_unseen(move: Move, host: str, direction: Direction) -> float:
    """Return most bytes that producers wrote to a log itself although they count as copied, over a whole move.

    When a partition's leader leaves, producers write to the next one, until it is seen that the old one is gone.
    """
    leaders = {flow.leader for flow in throttled_through(move, host, direction)}
    return move.inbound_bytes_per_s * SEEN_LATE_S * len(leaders)


def responses(move: Move, host: str, direction: Direction) -> float:
    """Return bytes of one response of each fetcher that carries listed bytes through a host; 0 when it has none."""
    return float(_fetchers(move, host, direction) * move.response_max_bytes)


def allowed(bound: float, in_sync_bytes: float) -> float:
    """Return most listed bytes of a window in which replicas in sync took `in_sync_bytes`.

    Those are recorded, so that what catches up has to wait for them, but they are never held back themselves: when
    what catches up has come first, and has taken the whole bound, they still take theirs in the rest of the window.
    """
    return bound + in_sync_bytes


def _fetchers(move: Move, host: str, direction: Direction) -> int:
    fetchers = move.fetchers.get(host)
    return 0 if fetchers is None else fetchers.transmit if direction == "transmit" else fetchers.receive


def _bound(move: Move, host: str, direction: Direction, quota_bytes_per_s: float) -> float | None:
    count = _fetchers(move, host, direction)
    if count < 1:
        return None
    return window_bound(
        quota_bytes_per_s,
        direction,
        fetchers=count,
        response_max_bytes=move.response_max_bytes,
        window_s=move.window_s,
        sample_s=move.sample_s,
    )


TIE = 0.02
"""Ends whose times differ by less are predicted to bind alike: a follower's receipt is its leader's sending."""


def bottlenecks(move: Move, quota_bytes_per_s: float) -> frozenset[tuple[str, Direction]]:
    """Return the hosts and directions that need longest; empty without a model.

    Of several that never end, those with the highest in-sync replication traffic.
    """
    busy = [e for e in move.expected if e.bytes > 0]
    longest = max((e.seconds(quota_bytes_per_s) for e in busy), default=0.0)
    if math.isinf(longest):
        stuck = [e for e in busy if math.isinf(e.seconds(quota_bytes_per_s))]
        highest = max(e.in_sync_bytes_per_s for e in stuck)
        return frozenset((e.host, e.direction) for e in stuck if e.in_sync_bytes_per_s >= (1 - TIE) * highest)
    return frozenset((e.host, e.direction) for e in busy if e.seconds(quota_bytes_per_s) >= (1 - TIE) * longest)


def carrying_all(move: Move) -> frozenset[tuple[str, Direction]]:
    """Return the hosts and directions through which everything goes that is copied, whichever batch it is in."""
    total = sum(e.bytes for e in move.expected if e.direction == "receive")
    return frozenset((e.host, e.direction) for e in move.expected if 0 < total == e.bytes)


def expected_of(move: Move, host: str, direction: Direction) -> Expected | None:
    """Return what the model says of one end."""
    return next((e for e in move.expected if (e.host, e.direction) == (host, direction)), None)


@dataclass(frozen=True, slots=True)
class DurationEstimate:
    """One move. Times are seconds; the error is predicted ÷ observed − 1. None: no such prediction, or not observed.

    `why` says why there is no prediction.
    """

    name: str
    predicted_s: float | None
    observed_s: float | None
    kip73_s: float | None
    error: float | None
    why: str = ""


def estimate(name: str, move: Move, measures: MoveMeasures) -> DurationEstimate:
    """Return a move's predictions and its duration. A move that was not seen to be done has no error."""
    observed_s = measures.moved_s if measures.done_s is not None else None
    kip73_s = _known(move.kip73_seconds)
    predicted_s = _known(move.model_seconds)
    why = "" if predicted_s is not None else move.model_why or "the run has no model"
    error = None if predicted_s is None or not observed_s else predicted_s / observed_s - 1
    return DurationEstimate(name, predicted_s, observed_s, kip73_s, error, why)


def worst(estimates: Iterable[DurationEstimate]) -> DurationEstimate | None:
    """Return the one that the model was furthest from; None when there is none that can be compared."""
    known = [(abs(e.error), e) for e in estimates if e.error is not None]
    return max(known, key=lambda found: found[0])[1] if known else None


def _known(seconds: float | None) -> float | None:
    return seconds if seconds is not None and math.isfinite(seconds) and seconds > 0 else None
