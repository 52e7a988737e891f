"""Every listed partition is held back: none is copied ahead of the others.

A fetch takes the partitions of a broker in turn, one response each. With responses much smaller than a partition all
listed partitions of a fetcher advance alike. One that the throttle does not hold back is fetched alone whenever the
quota is exceeded. It is copied whole before most others have had a turn.
"""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from results.contract.move import Flow, Move
from results.contract.verdict import Finding, Power, Verdict
from results.criteria.criterion import RATES, Criterion
from results.criteria.findings import finding, gap_text
from results.criteria.quantities import US, at, size
from results.criteria.run_view import RunView
from results.criteria.sample_series import RunSeries, at_instants
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
    nothing = np.empty(0, np.int64), np.empty(0)
    sizes = np.array([at_instants(*originals[place], np.array([started]))[0] for place in places])
    # What is written to a partition once it is copied is no lead.
    copied = np.array([at_instants(*copies.get(place, nothing), looks) for place in places])
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


TURNS = 3
"""Responses by which one partition may lead: one of its turn, one because the first responses reorder the partitions
(those without data go to the end, too), and one because a turn may be shared by the end of another log."""


def _judge(lead: Lead | None, move: Move) -> Finding:
    verdict: Verdict = "inconclusive"
    least = TURNS * move.response_max_bytes
    if lead is None:
        why = "no partition's log was seen to grow, or too few at the same time"
    elif lead.bytes <= least and (gap := gap_text(lead.longest_gap_s)):
        why = gap
    else:
        verdict = "fail" if lead.bytes > least else "pass"
        why = f"{lead.partition} was {size(lead.bytes)} ahead of the median of {lead.partitions} at {at(lead.at_s)}"
    return finding(
        "listed-partitions-throttled",
        f"no listed partition leads the others by more than {TURNS} responses, {size(least)}",
        verdict,
        why,
        observed=lead.bytes if lead else None,
        unit="bytes",
        host=lead.follower if lead else None,
        direction="receive" if lead else None,
        tolerance="none beyond the turns",
        power=_power(lead, least) if lead else None,
        series=("log.bytes",),
    )


def _power(lead: Lead, least: int) -> Power | None:
    """Return the power: a partition that is copied whole at once leads by its size, while most others have nothing."""
    if lead.largest <= least:
        return None
    text = f"would have failed from {size(least)} on that one partition is ahead; the largest has {size(lead.largest)}"
    return Power(float(least), "bytes", text)


def _skips(run: RunView) -> str | None:
    """Return why the partitions of a move do not take turns, or are too small for a lead to show."""
    move = run.move
    if run.batched:
        return "a move in steps copies one batch after the other"
    if run.manifest.parameters.get("storage") == "tiered":
        return "a tiered log is copied from its local part on, which need not be a response long"
    flows = [flow for flow in move.flows if flow.kind == "throttled"]
    for follower in {flow.follower for flow in flows}:
        leaders = {flow.leader for flow in flows if flow.follower == follower}
        fetchers = move.fetchers.get(follower)
        if fetchers is None:
            return f"the manifest names no fetcher of {follower}"
        if fetchers.receive > len(leaders):
            return "a follower has several fetchers for one leader, and each has turns of its own"
    pairs: Counter[tuple[str, str]] = Counter()
    for flow in flows:
        pairs[flow.leader, flow.follower] += len(flow.partitions)
    if 0 < max(pairs.values(), default=0) < OTHERS:
        return f"no broker copies {OTHERS} partitions or more from one other: there is no median to lead"
    partitions = sum(len(flow.partitions) for flow in flows)
    copied = sum(each.bytes for each in move.expected if each.direction == "receive") or move.total_log_bytes
    each, least = copied / max(1, partitions), TURNS * move.response_max_bytes
    if each <= least:
        return f"a partition has {size(each)}: it must be larger than {TURNS} responses, {size(least)}"
    return None


CRITERION = Criterion(
    name="listed-partitions-throttled",
    title="Every listed partition is held back",
    section=RATES,
    judge=lambda run: [_judge(lead, run.move) for lead in measure_leads(run.series, run.move) or (None,)],
    skips=_skips,
    catches="A listed partition that the throttle does not hold back.",
    smallest="one partition of more than three responses",
)
