"""The expectations of an incident's timeline: one class for each, judged from the stored run alone.

A class of this module or of `invariants` is found because it is there: `EXPECTATIONS` has each by its key in an
incident's file. The fields are what the file gives.
"""

from collections.abc import Mapping
from functools import partial
from typing import Annotated

import numpy as np
from pydantic import Field, StrictBool, model_validator

from results.contract.document import refusal
from results.contract.texts import counted, plural, shortened
from results.contract.verdict import Direction, Finding
from results.criteria.findings import SENT_AGAIN
from results.criteria.invariants import INVARIANTS
from results.criteria.quantities import DRIVER, NIC_BYTES, US
from results.criteria.replayed_run import ReplayedRun
from results.criteria.step_measures import UNREAD
from results.criteria.timeline_expectation import (
    Broker,
    BytesPerSecond,
    Count,
    Percent,
    Rack,
    Seconds,
    TimelineExpectation,
    Topic,
    Way,
)
from results.criteria.windows import windows, windows_within

BOUND_WINDOW_S, BOUND_SHARE = 3.0, 0.9
"""A limit binds when some 3 s carry at least this share of the declared rate."""
LEAST_RECORDS = 100
SHOWN = 3
UPLINK_METRIC: Mapping[Direction, str] = {"transmit": "uplink.tx.bytes", "receive": "uplink.rx.bytes"}


class MoveDone(TimelineExpectation):
    """Every move that was requested (or the topic's) completes in time, counted from the entry."""

    key = "move_done"
    timed = True
    series = ("move.started", "move.done", "move.cancelled")
    unit = "s"

    within: Annotated[Seconds, Field(description="Time after the entry.")]
    topic: Topic = None

    def judge(self, run: ReplayedRun, since_us: int) -> Finding:
        """See `TimelineExpectation.judge`."""
        # A topic that is moved a second time is to be done a second time: in order of time, the last request counts.
        requested = {event["name"]: event["us"] for event in run.events("move.started", name=self.topic)}
        if not requested:
            return self.found("inconclusive", "no such move was requested")
        done = {
            event["name"]: event["us"]
            for event in run.events("move.done")
            if event["name"] in requested and event["us"] >= requested[event["name"]]
        }
        if cancelled := sorted(_cancelled(run, requested) - done.keys()):
            return self.found("fail", f"{', '.join(cancelled)} not done, and cancelled", "not done")
        missing = ", ".join(sorted(requested.keys() - done.keys()))
        watched_s = run.lasted_s(since_us, run.ended_us)
        if missing and watched_s < self.within:
            why = f"{missing} not done, but watched for only {watched_s:.1f} s"
            return self.found("inconclusive", why, "not done")
        if missing:
            return self.found("fail", f"{missing} not done after {watched_s:.1f} s", "not done")
        took_s = round(run.lasted_s(since_us, max(done.values())), 3)
        why = f"{', '.join(sorted(requested))} done {took_s:.1f} s after the entry"
        return self.found("pass" if took_s <= self.within else "fail", why, took_s)

    def __str__(self) -> str:
        return f"move{_of(self.topic)} done within {self.within:g} s"


class ReassignmentCompleted(TimelineExpectation):
    """The controller lists no reassignment any more, counted from the entry, also when a replica is out of sync."""

    key = "reassignment_completed"
    timed = True
    series = ("move.started", "move.in_flight")
    unit = "s"

    within: Annotated[Seconds, Field(description="Time after the entry.")]
    topic: Topic = None

    def judge(self, run: ReplayedRun, since_us: int) -> Finding:
        """See `TimelineExpectation.judge`."""
        asked = [event for event in run.events("move.started", name=self.topic) if event["us"] <= run.ended_us]
        if not asked:
            return self.found("inconclusive", "no such move was requested")
        last_us = max(event["us"] for event in asked)
        polls = run.since(run.readings("move.in_flight", DRIVER, self.topic), last_us)
        listed = polls.value > 0
        if gap := run.gap(polls, last_us):
            return self.found("inconclusive", gap)
        if not listed.any():
            return self.found("inconclusive", "no poll saw the reassignment listed")
        watched_s = run.lasted_s(since_us, run.ended_us)
        if listed[-1]:
            why = f"{plural(round(polls.value[-1]), 'partition')} still listed after {watched_s:.1f} s"
            return self.found("fail" if watched_s >= self.within else "inconclusive", why, "listed")
        took_s = round(run.lasted_s(since_us, int(polls.t[np.flatnonzero(listed)[-1] + 1])), 3)
        why = f"none listed {took_s:.1f} s after the entry"
        return self.found("pass" if took_s <= self.within else "fail", why, took_s)

    def __str__(self) -> str:
        return f"reassignment{_of(self.topic)} completed within {self.within:g} s"


class QuotaBeforeMove(TimelineExpectation):
    """Before each move was requested every broker had reported the quota, and it still held for the topic."""

    key = "quota_before_move"
    statement = "throttle in force before the move"
    series = ("move.started", "throttle.set", "throttle.in_force", "throttle.removed")

    def judge(self, run: ReplayedRun, _since_us: int) -> Finding:
        """See `TimelineExpectation.judge`; of every move, whenever the entry acted.

        Only events of the timeline count: nothing waited for a quota that was there before.
        """
        moves = run.events("move.started")
        if not moves:
            return self.found("inconclusive", "no move was requested")
        since = [(move, run.quota_since_us(move["name"], move["us"])) for move in moves]
        without = [move for move, instant in since if instant is None]
        if without:
            named = [f"{move['name']} at {run.seconds(move['us']):.1f} s" for move in without]
            shown = ", ".join(shortened(named, SHOWN))
            why = f"requested when no quota of its topic was in force on every broker: {shown}"
            return self.found("fail", why, len(without), unit="moves")
        ahead_s = min(round((move["us"] - instant) / US, 3) for move, instant in since if instant is not None)
        why = f"in force {ahead_s:.1f} s before the move was requested" + (", at least" if len(moves) > 1 else "")
        return self.found("pass", why, ahead_s, unit="s before")


class ThrottleRemoved(TimelineExpectation):
    """At the timeline's end no broker has a replication rate, and no topic lists throttled replicas."""

    key = "throttle_removed"
    statement = "throttle removed"
    series = ("throttle.found",)
    unit = "left"

    def judge(self, run: ReplayedRun, _since_us: int) -> Finding:
        """See `TimelineExpectation.judge`; by what was read at the very end, before anything was restored."""
        found = run.events("throttle.found")
        if not found:
            return self.found("inconclusive", "the configuration was not read at the end")
        detail = found[-1]["detail"]
        if detail.get("unread"):
            return self.found("inconclusive", f"a part of the configuration could not be read: {detail['unread']}")
        left = list(detail["left"])
        if left:
            return self.found("fail", f"still set: {'; '.join(shortened(left, SHOWN))}", len(left))
        return self.found("pass", "no rate on any broker, no list on any topic", 0)


class MinIsr(TimelineExpectation):
    """At every poll each partition of the topic (or of all topics) has at least this many in-sync replicas."""

    key = "isr"
    series = ("topic.isr",)
    unit = "in sync"

    min: Annotated[Count, Field(description="The fewest in-sync replicas a partition may have.")]
    topic: Topic = None

    def judge(self, run: ReplayedRun, since_us: int) -> Finding:
        """See `TimelineExpectation.judge`."""
        topics = [self.topic] if self.topic else run.topics("topic.isr")
        by_topic = {t: run.since(run.readings("topic.isr", DRIVER, t), since_us) for t in topics}
        polls = [
            (float(v), int(us), t) for t, each in by_topic.items() for us, v in zip(each.t, each.value, strict=True)
        ]
        if not polls:
            return self.found("inconclusive", "no in-sync replicas were sampled")
        lowest, when_us, topic = min(polls)
        why = f"{topic} had {lowest:g} at {run.seconds(when_us):+.1f} s, the fewest of {plural(len(polls), 'poll')}"
        if lowest < self.min:
            return self.found("fail", why, lowest)
        gap = next((gap for each in by_topic.values() if (gap := run.gap(each, since_us))), None)
        return self.found("inconclusive" if gap else "pass", gap or why, lowest)

    def __str__(self) -> str:
        return f"isr never below {self.min}{_of(self.topic)}"


class FullyReplicated(TimelineExpectation):
    """At the last poll every partition has a leader and all its replicas in sync."""

    key = "fully_replicated"
    statement = "fully replicated at the end"
    series = ("topic.under_replicated", "topic.leaderless")
    unit = "partitions"

    def judge(self, run: ReplayedRun, _since_us: int) -> Finding:
        """See `TimelineExpectation.judge`."""
        topics, missing = run.topics("topic.under_replicated"), 0.0
        for topic in topics:
            last = run.readings("topic.under_replicated", DRIVER, topic)
            last = last.cut(len(last) - 1, len(last) - 1)
            if gap := run.gap(last, int(last.t[0])):
                return self.found("inconclusive", gap)
            # The ISR of a partition without a leader has the replica that was in sync last.
            led = run.readings("topic.leaderless", DRIVER, topic)
            missing += max(float(last.value[0]), float(led.value[-1]) if len(led) else 0.0)
        if not topics:
            return self.found("inconclusive", "replicas were not polled")
        why = f"{plural(round(missing), 'partition')} under-replicated or without a leader at the last poll"
        return self.found("pass" if missing == 0 else "fail", why, missing)


class MaxRate(TimelineExpectation):
    """No window carries more bytes than the rate allows: of a topic's logs on the host, or of its NIC."""

    key = "rate"
    timed = True
    series = ("log.bytes",)
    unit = "bytes/s"

    host: Annotated[Broker, Field(description="The broker.")]
    direction: Way
    max: Annotated[BytesPerSecond, Field(description="The highest rate allowed.")]
    window: Annotated[Seconds, Field(description="Over windows of this length, 2s or more.")]
    topic: Topic = None

    @model_validator(mode="after")
    def _measurable(self) -> "MaxRate":
        if self.topic and self.direction == "transmit":
            raise refusal("a topic's bytes are counted where its logs grow; allowed: receive, or no topic")
        if self.window < 2:
            raise refusal("the rate is sampled once a second; allowed: windows of 2s or more")
        return self

    def judge(self, run: ReplayedRun, since_us: int) -> Finding:
        """See `TimelineExpectation.judge`."""
        metric = "log.bytes" if self.topic else NIC_BYTES[self.direction]
        readings = run.since(run.readings(metric, self.host, self.topic), since_us)
        spans = windows_within(readings, self.window)
        found = partial(self.found, series=(metric,), host=self.host, direction=self.direction)
        if not len(spans.bytes):
            return found("inconclusive", "nothing was sampled")
        most = int(np.argmax(spans.bytes))
        size, rate = float(spans.bytes[most]), float(spans.bytes[most]) / self.window
        why = f"{size / 1e6:.1f} MB in the {self.window:g} s from {run.seconds(int(spans.start[most])):+.1f} s"
        if rate > self.max:
            return found("fail", why, rate)
        if gap := run.gap(readings, since_us):
            return found("inconclusive", gap, rate)
        if size <= 0:
            return found("inconclusive", "no byte was counted, so nothing was held back", rate)
        return found("pass", f"at most {why}", rate)

    def __str__(self) -> str:
        return (
            f"rate{_of(self.topic)} on {self.host} {self.direction} <= {self.max / 1e6:g} MB/s over {self.window:g} s"
        )


class NicBound(TimelineExpectation):
    """The host's NIC is measured to be the limit; with `expected: false` it never is."""

    key = "nic_bound"
    timed = True
    series = ("nic.tx.bytes", "nic.rx.bytes")
    unit = "of declared"

    host: Annotated[Broker, Field(description="The broker.")]
    direction: Way
    expected: Annotated[StrictBool, Field(description="Whether it is to be the limit.")] = True

    def judge(self, run: ReplayedRun, since_us: int) -> Finding:
        """See `TimelineExpectation.judge`."""
        declared = {(nic.host, nic.direction): nic.declared_bps for nic in run.manifest.nics}
        bps = declared.get((self.host, self.direction))
        return _bound(self, self.host, NIC_BYTES[self.direction], bps, run, since_us)

    def __str__(self) -> str:
        return f"{'' if self.expected else 'not '}nic-bound {self.host} {self.direction}"


class UplinkBound(TimelineExpectation):
    """The rack's uplink is measured to be the limit (transmit: out of the rack); with `expected: false` it never is."""

    key = "uplink_bound"
    timed = True
    series = ("uplink.tx.bytes", "uplink.rx.bytes")
    unit = "of declared"

    rack: Annotated[Rack, Field(description="The rack; its uplink has a declared rate.")]
    direction: Way
    expected: Annotated[StrictBool, Field(description="Whether it is to be the limit.")] = True

    def judge(self, run: ReplayedRun, since_us: int) -> Finding:
        """See `TimelineExpectation.judge`."""
        record = run.manifest.incident
        bps = None if record is None else record.uplinks_bps.get(self.rack, {}).get(self.direction)
        return _bound(self, self.rack, UPLINK_METRIC[self.direction], bps, run, since_us)

    def __str__(self) -> str:
        return f"{'' if self.expected else 'not '}uplink-bound {self.rack} {self.direction}"


class RecordsIntact(TimelineExpectation):
    """Every record that was acknowledged is read back once, unchanged, in order; replicas in sync have equal logs."""

    key = "records_intact"
    series = ("manifest.facts.records",)
    unit = "wrong"

    def judge(self, run: ReplayedRun, _since_us: int) -> Finding:
        """See `TimelineExpectation.judge`; of every record, written before the entry or after it."""
        records = run.manifest.facts.records
        if records is None:
            whys = "".join(f": {event['detail'].get('why')}" for event in run.events(UNREAD)[:1])
            return self.found("inconclusive", f"the records were not read back{whys}")
        if records.expected <= 0:
            return self.found("inconclusive", "none were written")
        wrong = records.wrong
        why = (
            f"{records.found} of {records.expected} found; {records.lost} lost, {records.duplicated} duplicated, "
            f"{records.corrupt} corrupt" + (f", {records.reordered} after a later record" if records.reordered else "")
        )
        for line in (*records.digest_mismatches, *records.first)[:SHOWN]:
            why += f"; {line}"
        gave_up = sum(int(e["detail"]["sent"]) - int(e["detail"]["acknowledged"]) for e in run.events("load.done"))
        if gave_up and wrong and wrong == records.duplicated + records.reordered and records.found == records.expected:
            # A producer that gives up a record begins a new epoch: the brokers cannot know what it had sent before.
            why += f"; a producer gave up {plural(gave_up, 'record')}, and may have sent others twice"
            return self.found("inconclusive", why, wrong)
        if wrong and wrong == records.sent_again and records.found == records.expected:
            return self.found("inconclusive", f"{why}; {SENT_AGAIN}", wrong)
        if not wrong and records.uncompared:
            return self.found("inconclusive", f"{why}; the replicas' logs were not compared: {records.uncompared}", 0)
        # Also without a reported loss: a record that was written and is not found is not there.
        return self.found("pass" if wrong == 0 and records.found == records.expected else "fail", why, wrong)

    def __str__(self) -> str:
        return "no records lost"


class MaxProduceLatency(TimelineExpectation):
    """This share of the load's records is acknowledged in time, counted from when each was due."""

    key = "produce_latency"
    timed = True
    series = ("client.produce.latency",)
    unit = "s"

    percentile: Annotated[Percent, Field(description="The share of the records.")]
    max: Annotated[Seconds, Field(description="The highest latency allowed.")]

    def judge(self, run: ReplayedRun, since_us: int) -> Finding:
        """See `TimelineExpectation.judge`; of records due from the entry on."""
        # A record without an acknowledgement has its age at the end.
        due, latency_s = run.latencies()
        late = latency_s[(due >= since_us) & (due <= run.ended_us)]
        if len(late) < LEAST_RECORDS:
            due_then = counted(len(late), "record", "was")
            return self.found("inconclusive", f"only {due_then} due; at least {LEAST_RECORDS} are needed")
        seen, median = (float(np.quantile(late, q, method="inverted_cdf")) for q in (self.percentile, 0.5))
        why = (
            f"{self.percentile:g} of {len(late)} records within {seen * 1000:.0f} ms; "
            f"median {median * 1000:.0f} ms, slowest {float(np.max(late)) * 1000:.0f} ms"
        )
        return self.found("pass" if seen <= self.max else "fail", why, round(seen, 4))

    def __str__(self) -> str:
        return f"produce latency of {self.percentile * 100:g}% <= {self.max * 1000:g} ms"


class AllAcknowledged(TimelineExpectation):
    """No record of the load is refused or given up."""

    key = "all_acknowledged"
    statement = "every record acknowledged"
    series = ("load.done",)
    unit = "missing"

    def judge(self, run: ReplayedRun, _since_us: int) -> Finding:
        """See `TimelineExpectation.judge`; over the whole load."""
        loads = [event["detail"] for event in run.events("load.done")]
        sent, acknowledged = (sum(int(each[key]) for each in loads) for key in ("sent", "acknowledged"))
        if not loads or not all(each["sent"] for each in loads):
            return self.found("inconclusive", "there was no load" if not sent else "a load sent nothing")
        error = next((each["error"] for each in loads if each.get("error")), "")
        why = f"{acknowledged} of {sent} records acknowledged" + (f"; first: {error}" if error else "")
        return self.found("pass" if sent == acknowledged and not error else "fail", why, sent - acknowledged)


EXPECTATIONS: Mapping[str, type[TimelineExpectation]] = {
    each.key: each for each in sorted(TimelineExpectation.__subclasses__(), key=lambda each: each in INVARIANTS)
}
"""Every expectation by its key in a file."""


def _cancelled(run: ReplayedRun, requested: Mapping[str, int]) -> set[str]:
    """Return the topics whose last request was cancelled by the timeline; the testbed cancels what is left after it."""
    return {
        topic
        for event in run.events("move.cancelled")
        for topic in (name.rpartition("-")[0] for name in event["detail"].get("kept", {}))
        if topic in requested and requested[topic] <= event["us"] <= run.ended_us
    }


def _of(topic: str | None) -> str:
    return f" of {topic}" if topic else ""


def _bound(
    what: NicBound | UplinkBound, where: str, metric: str, bps: int | None, run: ReplayedRun, since_us: int
) -> Finding:
    """Judge whether the fastest window carried nearly the declared rate."""
    found = partial(what.found, series=(metric,), host=where, direction=what.direction)
    if bps is None:
        return found("inconclusive", f"{where} has no declared rate")
    readings = run.since(run.readings(metric, where), since_us)
    spans = windows(readings, BOUND_WINDOW_S)
    if not len(spans.bytes):
        return found("inconclusive", "nothing was sampled")
    top = int(np.argmax(spans.rate))
    share = float(spans.rate[top]) * 8 / bps
    begun_s = run.seconds(int(spans.start[top]))
    why = f"the fastest {BOUND_WINDOW_S:g} s, from {begun_s:+.1f} s, had {share * 100:.0f} % of {bps / 1e6:g} Mbit/s"
    binds = share >= BOUND_SHARE
    gap = run.gap(readings, since_us)
    if gap and not binds:
        return found("inconclusive", gap, share)
    return found("pass" if binds == what.expected else "fail", why, share)
