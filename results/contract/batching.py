"""Observations of a reassignment that was carried out in steps: polls of the controller's list."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """KIP-435's limits as they were asked for; None is no limit.

    `replicas` (R) are added by one step of a partition, `partitions` (P) in flight at once, `leaders` (L) of them
    moving the preferred leader.
    """

    replicas: int | None
    partitions: int | None
    leaders: int | None


@dataclass(frozen=True, slots=True)
class BatchingPolls:
    """A move as it was listed, poll by poll; instants are not kept here, the trace is among the run's events.

    `gap_s` is the longest time between two polls, None with fewer than two. `most_in_flight` partitions were listed at
    once, `most_leaders` of them in a step that moves the preferred leader. `most_added` replicas were added by one
    step; `added_over` names the steps that added more than R without having to, for `min.insync.replicas`.
    `fetching` is the most replicas that fetched from one partition's leader at once. `steps` were seen, of `partitions`
    partitions. `astray` says where a partition ended otherwise than the plan has it, `again` which replica was copied
    that had been one before.
    """

    mode: str
    limits: Limits
    polls: int
    gap_s: float | None
    partitions: int
    steps: int
    most_in_flight: int
    most_leaders: int
    most_added: int
    fetching: int
    added_over: tuple[str, ...] = ()
    astray: tuple[str, ...] = ()
    again: tuple[str, ...] = ()
