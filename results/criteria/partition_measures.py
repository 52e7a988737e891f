"""How far one listed partition is ahead of the others that the same fetcher copies."""

from dataclasses import dataclass

import numpy as np

from results.contract.move import Flow, Move
from results.criteria.quantities import US
from results.criteria.series import Floats, Micros, RunSeries
from results.criteria.windows import longest_gap_s

OTHERS = 3
"""So many partitions must still be copied for their median to say how far a turn has come."""


@dataclass(frozen=True, slots=True)
class Lead:
    """The most bytes that one partition had more than the median of those still copied from one broker to another.

    `partition` had it at `at_s` (seconds after the start). `largest` is the largest partition's size at the start.
    """

    leader: str
    follower: str
    partitions: int
    bytes: float
    partition: str
    at_s: float
    largest: float
    longest_gap_s: float | None


def measure_leads(run: RunSeries, move: Move) -> tuple[Lead, ...]:
    """Return the lead of each pair of brokers between which listed partitions are copied."""
    started, done = run.event_us("move.started"), run.event_us("move.done") or run.last_us()
    if started is None or done is None:
        return ()
    flows = [flow for flow in move.flows if flow.kind == "throttled"]
    pairs = dict.fromkeys((flow.leader, flow.follower) for flow in flows)
    found = [
        _lead(run, [f for f in flows if (f.leader, f.follower) == pair], started, max(started, done)) for pair in pairs
    ]
    return tuple(lead for lead in found if lead is not None)


def _lead(run: RunSeries, flows: list[Flow], started: int, done: int) -> Lead | None:
    leader, follower = flows[0].leader, flows[0].follower
    copies, originals = run.logs_of(follower), run.logs_of(leader)
    places = [(flow.topic, partition) for flow in flows for partition in flow.partitions]
    places = [place for place in places if place in originals]
    looks = run.looked(follower)
    looks = looks[(looks > started) & (looks <= done)]
    if not places or not len(looks):
        return None
    sizes = np.array([_at(originals[place], np.array([started]))[0] for place in places])
    # What is written to a partition once it is copied is no lead.
    copied = np.array([_at(copies.get(place), looks) for place in places])
    copied = np.minimum(copied, sizes[:, None])
    open_ = copied < sizes[:, None]
    judged = np.count_nonzero(open_, axis=0) >= OTHERS
    if not judged.any():
        return None
    median = np.array(
        [np.median(column[still]) for column, still in zip(copied.T[judged], open_.T[judged], strict=True)]
    )
    ahead = copied[:, judged] - median
    place, look = np.unravel_index(int(np.argmax(ahead)), ahead.shape)
    topic, partition = places[int(place)]
    return Lead(
        leader=leader,
        follower=follower,
        partitions=len(places),
        bytes=float(ahead[place, look]),
        partition=f"{topic}-{partition}",
        at_s=(int(looks[judged][look]) - started) / US,
        largest=float(sizes.max()),
        longest_gap_s=longest_gap_s(looks, started, int(looks[judged][-1])),
    )


def _at(log: tuple[Micros, Floats] | None, instants: Micros) -> Floats:
    """The last size at or before each instant; 0 before the first, and of a log that never was."""
    if log is None:
        return np.zeros(len(instants))
    t, value = log
    at = np.searchsorted(t, instants, side="right") - 1
    return np.where(at >= 0, value[np.maximum(at, 0)], 0.0)
