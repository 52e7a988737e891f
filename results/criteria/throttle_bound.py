"""The throttle's bound of any 11 s, on both sides of a copy, in a replay whose throttle changes at any time.

docs/throttle-bound.md derives the bounds. A log's growth counts where its replica is surely throttled.
"""

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

import numpy as np
from pydantic import Field

from results.contract.network import payload_rates
from results.contract.verdict import Direction, Finding
from results.criteria.phase_directions import NEVER_ABOVE, carried_within
from results.criteria.quantities import QUOTA_WINDOW_S, US, size
from results.criteria.replay_events import EARLY_S, PartitionTrace, disturbances, traces
from results.criteria.replayed_run import ReplayedRun
from results.criteria.sample_series import Series, summed
from results.criteria.timeline_expectation import Bytes, Count, TimelineExpectation

SETTLE_S = 2.0
"""Seconds after a change within which a broker may apply either setting, unless every broker reported it before."""
LOOK_S = 1.5
"""Seconds before and after a reading within which another host was read."""
REMOVED, UNKNOWN = "", "?"
Side = Literal["follower", "leader"]
SIDES: tuple[Side, ...] = get_args(Side)
DIRECTION_OF: dict[Side, Direction] = {"follower": "receive", "leader": "transmit"}


@dataclass(frozen=True, slots=True)
class _Change:
    """A change of a key: requested, and in force on every broker (µs since the epoch); the value from then on."""

    begin_us: int
    end_us: int
    value: str


class ThrottleSpans:
    """One side's rate of each broker, and its list of each topic, over the timeline.

    A change that was requested and not confirmed leaves its keys unknown.
    """

    def __init__(self, run: ReplayedRun, side: Side) -> None:
        self._rate, self._list = f"{side}.replication.throttled.rate", f"{side}.replication.throttled.replicas"
        self._changes: dict[str, list[_Change]] = defaultdict(list)
        """Of each resource, in order. Before the first one its key is not set."""
        reported = [event["us"] for event in run.events("throttle.in_force")]
        requests = run.events("throttle.setting", "throttle.removing")
        requested: tuple[int, Mapping[str, Any]] | None = None
        for event in run.events("throttle.setting", "throttle.set", "throttle.removing", "throttle.removed"):
            us, detail = event["us"], event["detail"]
            if event["kind"] in ("throttle.setting", "throttle.removing"):
                self._unconfirmed(requested)
                requested = us, detail
                continue
            begin_us = us if requested is None else requested[0]
            requested = None
            # A report is about the last change before it: while one action waits, no other one sets a throttle.
            next_us = next((each["us"] for each in requests if each["us"] > us), run.ended_us)
            in_force = [report for report in reported if us <= report <= next_us]
            end_us = min([us + round(SETTLE_S * US), *in_force])
            for resource, value in self._values(detail):
                self._changes[resource].append(_Change(begin_us, end_us, value))
        self._unconfirmed(requested)

    def holds(self, topic: str, partition: int, broker: int, begin_us: int, end_us: int) -> bool:
        """Return whether a replica was throttled all the time between two instants, whatever a broker applied late."""
        rates = self._during(f"broker {broker}", begin_us, end_us)
        lists = self._during(f"topic {topic}", begin_us, end_us)
        known = rates.isdisjoint({REMOVED, UNKNOWN})
        return known and all(listed(value, partition, broker) for value in lists)

    def highest(self, broker: int, begin_us: int, end_us: int) -> int | None:
        """Return the highest rate that may have been in force between two instants, in bytes/s.

        Return None when no rate was, or when it is unknown.
        """
        found = self._during(f"broker {broker}", begin_us, end_us) - {REMOVED}
        return None if UNKNOWN in found else max(map(int, found), default=None)

    def _unconfirmed(self, requested: tuple[int, Mapping[str, Any]] | None) -> None:
        if requested is not None:
            us, detail = requested
            for resource, _value in self._values(detail):
                self._changes[resource].append(_Change(us, us, UNKNOWN))

    def _during(self, resource: str, begin_us: int, end_us: int) -> set[str]:
        """Return every value that may have been in force at some time between two instants."""
        found = {REMOVED}
        for change in self._changes.get(resource, ()):
            if change.begin_us - EARLY_S * US > end_us:
                break
            found = {change.value} if change.end_us <= begin_us else {*found, change.value}
        return found

    def _values(self, detail: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """Yield each resource of a change with its value: of its rate for a broker, of its list for a topic."""
        if "brokers" in detail:
            yield from ((f"broker {broker}", REMOVED) for broker in detail["brokers"])
            yield from ((f"topic {topic}", REMOVED) for topic in detail["topics"])
            return
        for resource, keys in detail.items():
            key = self._rate if resource.startswith("broker ") else self._list
            if key in keys:
                yield resource, keys[key]


def listed(value: str, partition: int, broker: int) -> bool:
    """Return whether a list of throttled replicas names this replica; `*` names every one."""
    return value == "*" or f"{partition}:{broker}" in value.split(",")


class ThrottleBound(TimelineExpectation):
    """In no 11 s a broker receives or sends more bytes of throttled replicas than the bound of docs/throttle-bound.md.

    The bytes are those of replicas out of sync.
    Windows in which the broker was restarted, killed or paused, or another client changed its rate, are not judged.
    While that happens to another broker, no bytes count.
    """

    key = "throttle_bound"
    statement = "throttled bytes within the bound of any 11 s"
    timed = True
    shaped = False
    evidence = True
    series = ("log.bytes", "throttle.set", "throttle.in_force")
    unit = "of the bound"

    response: Annotated[Bytes, Field(description="The brokers' replica.fetch.response.max.bytes.")]
    fetchers: Annotated[Count, Field(description="The fetchers of one broker: one for each other broker.")]

    def judge(self, run: ReplayedRun, _since_us: int) -> Finding:
        """See `TimelineExpectation.judge`; over the whole timeline, worst broker and side."""
        if not run.events("throttle.set"):
            return self.found("inconclusive", "no throttle was set")
        if not run.events("trace.log"):
            return self.found("inconclusive", "the metadata log was not read")
        record = run.manifest.incident
        assert record is not None
        copies = _Copies(run)
        shares = [share for side in SIDES for share in self._shares(copies, side, record.brokers)]
        if not shares:
            return self.found("inconclusive", "no byte surely came to a throttled replica out of sync")
        worst, why, _never = max(shares)
        if worst > 1:
            return self.found("fail", why, round(worst, 3))
        gaps = [gap for host in record.brokers if (gap := run.gap(run.readings("nic.rx.bytes", host), run.started_us))]
        if gaps:
            return self.found("inconclusive", gaps[0], round(worst, 3))
        if all(never for _share, _words, never in shares):
            why = f"the NICs carry no more than the bound in {QUOTA_WINDOW_S:g} s: {NEVER_ABOVE}; {why}"
            return self.found("inconclusive", why, round(worst, 3))
        return self.found("pass", why, round(worst, 3))

    def _shares(self, copies: "_Copies", side: Side, hosts: Sequence[str]) -> Iterator[tuple[float, str, bool]]:
        """Yield each window's bytes on each host as a share of its bound, and both in words.

        Yield also whether the host's NIC carries no more than the bound. Of one that was not measured this is False.
        """
        run, spans = copies.run, ThrottleSpans(copies.run, side)
        grown, word = (_received, "received") if side == "follower" else (_sent, "sent")
        carries, direction = payload_rates(run.manifest.nics), DIRECTION_OF[side]
        for host in hosts:
            broker, carried = run.broker_id(host), carries.get((host, direction))
            for begin_us, end_us, bytes_ in _windows(grown(copies, host, spans)):
                quota = spans.highest(broker, begin_us, end_us)
                if quota is None or any(each.resets_quota(broker, begin_us, end_us) for each in copies.known):
                    continue
                bound = self._bound(side, quota)
                when = f"{run.seconds(begin_us):+.1f} s to {run.seconds(end_us):+.1f} s"
                words = f"{host} {word} {size(bytes_)} from {when}, bound {size(bound)}"
                yield bytes_ / bound, words, carried_within(bound, QUOTA_WINDOW_S, carried) is not None

    def _bound(self, side: Side, quota: int) -> float:
        """Return the most bytes of any 11 s at a rate (bytes/s)."""
        if side == "follower":
            return quota * (QUOTA_WINDOW_S + 1) + self.fetchers * self.response
        return quota * QUOTA_WINDOW_S + (2 * self.fetchers - 1) * self.response + max(quota, self.response)


def _windows(series: Series) -> Iterator[tuple[int, int, float]]:
    """Yield each window of at most 11 s with bytes: from when, to when, and its bytes.

    The shorter ones count as well: the longest may contain a restart, or a higher rate.
    """
    last = np.searchsorted(series.t, series.oldest + round(QUOTA_WINDOW_S * US), side="right") - 1
    for i in range(len(series)):
        for j in range(i + 1, int(last[i]) + 1):
            if bytes_ := float(series.value[j] - series.value[i]):
                yield int(series.oldest[i]), int(series.t[j]), bytes_


class _Copies:
    """What replicas copied in a replay while they were out of sync, in times without a disturbance."""

    def __init__(self, run: ReplayedRun) -> None:
        self.run, self.known = run, disturbances(run)
        self._traces = {trace.name: trace for trace in traces(run)}

    def of(self, host: str, counts: Callable[[PartitionTrace, int, int], bool]) -> Series:
        """Return the cumulative bytes that a host's replicas copied, at each reading.

        `counts` decides by a partition's trace for the time of each growth between two readings.
        """
        run = self.run
        broker, t = run.broker_id(host), run.readings("nic.rx.bytes", host).t
        total = np.zeros(len(t))
        calm = [not any(each.unsettles(int(a), int(b)) for each in self.known) for a, b in itertools.pairwise(t)]
        for topic, partition, sizes in run.logs(host, t):
            trace = self._traces.get(f"{topic}-{partition}")
            if trace is None:
                continue
            more = np.maximum(np.diff(sizes), 0)
            for number in np.flatnonzero(more):
                span = _out_of_sync(trace, broker, int(t[number]), int(t[number + 1]))
                if calm[number] and span is not None and counts(trace, *span):
                    in_sync = span[1] < int(t[number + 1])
                    written = _written(run, trace, host, int(t[number]), int(t[number + 1])) if in_sync else 0.0
                    total[number + 1] += max(more[number] - written, 0.0)
        return Series(t, t, np.cumsum(total))


def _received(copies: _Copies, host: str, spans: ThrottleSpans) -> Series:
    """Return the cumulative bytes that a host's throttled replicas copied, at each reading."""
    broker = copies.run.broker_id(host)
    return copies.of(host, lambda trace, since, until: spans.holds(*_id(trace), broker, since, until))


def _sent(copies: _Copies, leader: str, spans: ThrottleSpans) -> Series:
    """Return the cumulative bytes that replicas copied from a leader that is throttled, at each reading."""
    broker = copies.run.broker_id(leader)

    def counts(trace: PartitionTrace, since_us: int, until_us: int) -> bool:
        return trace.led_by(broker, since_us, until_us) and spans.holds(*_id(trace), broker, since_us, until_us)

    parts = [copies.of(host, counts) for host in copies.run.brokers() if host != leader]
    return summed([part for part in parts if len(part)])


def _out_of_sync(trace: PartitionTrace, broker: int, begin_us: int, end_us: int) -> tuple[int, int] | None:
    """Return from when to when, of the time between two instants, a broker was a replica out of sync.

    It may be added after the first instant, and join the in-sync replicas before the second one. Return None when it
    was in sync before it was out of sync, or is no replica at the end.
    """
    states = trace.between(begin_us, end_us)
    if not states or broker not in states[-1].state.replicas:
        return None
    since_us = max(begin_us, next(us for us, state in states if broker in state.replicas))
    joined = next((number for number, each in enumerate(states) if broker in each.state.isr), len(states))
    if joined == 0 or not all(broker in state.isr for _us, state in states[joined:]):
        return None
    return since_us, states[joined].us if joined < len(states) else end_us


def _written(run: ReplayedRun, trace: PartitionTrace, copy: str, begin_us: int, end_us: int) -> float:
    """Return the most that another host's log of the partition grew around two instants: what was written meanwhile."""
    margin = round(LOOK_S * US)
    grown = [0.0]
    for host in run.brokers():
        if host != copy:
            _t, bytes_ = run.log_between(host, *_id(trace), begin_us - margin, end_us + margin)
            grown.append(float(np.maximum(np.diff(bytes_), 0).sum()))
    return max(grown)


def _id(trace: PartitionTrace) -> tuple[str, int]:
    return trace.topic, trace.partition
