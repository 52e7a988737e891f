"""Statements that hold in every run of correct brokers, whatever an operator and faults did. `INVARIANTS` has them.

`testbed search` judges by them; an incident's file may expect them as any other expectation. They read the final state
of the cluster (`cluster.found`) and the metadata log (`trace.log`, `trace.compared`).
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from results.contract.steps import State
from results.contract.texts import plural, shortened
from results.contract.verdict import Finding
from results.criteria.partition_rules import unsound
from results.criteria.quantities import GAP_S, READING_S, US, size
from results.criteria.replay_events import CLOCK_SKEW, Disturbance, disturbances, traces, unhealed
from results.criteria.replayed_run import ReplayedRun
from results.criteria.step_measures import state_of
from results.criteria.throttle_bound import ThrottleBound
from results.criteria.timeline_expectation import TimelineExpectation

FOUND, COMPARED, CONVERGED = "cluster.found", "trace.compared", "replicas.converged"
SHOWN = 3
ALTERS_MOVES = "reassignment-alter"
"""The kind of fault after which a partition may have other replicas than the operator requested."""
APPLIED_S = 1.0
"""Seconds within which a leader knows of a change in the metadata log: milliseconds, on a machine that is not busy."""


class MovesComplete(TimelineExpectation):
    """At the end no reassignment runs, and each partition has the replicas of the last request or cancellation.

    A partition that no request named has those of the start. On shared storage that is not judged: the controller gives
    the partitions of a broker that is down to others.
    """

    key = "moves_ended"
    statement = "every reassignment ended as requested"
    evidence = True
    series = ("move.started", "move.cancelled", FOUND, "trace.log")
    unit = "partitions"

    def judge(self, run: ReplayedRun, _since_us: int) -> Finding:
        """See `TimelineExpectation.judge`; of every move, whenever the entry acted."""
        found, missing = _found(run)
        if found is None:
            return self.found("inconclusive", missing)
        expected, unknown = placements(run)
        if not expected and not unknown:
            return self.found("inconclusive", "no move was requested")
        wrong = [f"{name} is still being reassigned" for name in found["listed"]]
        for name, (replicas, ordered) in expected.items():
            state = found["states"].get(name)
            if name in found["listed"] or name in unknown or state is None:
                continue
            there = state["replicas"]
            same = there == replicas if ordered else sorted(there) == sorted(replicas)
            if not same:
                wrong.append(f"{name} has the replicas {there}, not {replicas}")
        wrong += _moved_besides(run, expected, found["states"])
        return _judged(self, wrong, f"{plural(len(expected), 'partition')} as requested last")


class IsrExplained(TimelineExpectation):
    """No in-sync set falls under min.insync.replicas, unless a fault or a restart affects a broker that is missing."""

    key = "isr_explained"
    statement = "in-sync replicas never under min.insync.replicas without a cause"
    timed = True
    shaped = False
    evidence = True
    series = ("trace.log", "fault.injected", "fault.healed")
    unit = "times"

    def judge(self, run: ReplayedRun, _since_us: int) -> Finding:
        """See `TimelineExpectation.judge`; over the whole timeline."""
        if not run.events("trace.log"):
            return self.found("inconclusive", "the metadata log was not read")
        known = disturbances(run)
        seen, wrong = 0, []
        for trace in traces(run):
            least = run.least_in_sync(trace.topic)
            for fall in trace.falls(run.started_us, run.ended_us):
                if len(fall.isr) >= least:
                    continue
                seen += 1
                affected = {*fall.lost, *(() if fall.led_by is None else (fall.led_by,))}
                if not any(each.explains(fall.us, affected) for each in known):
                    when = run.seconds(fall.us)
                    wrong.append(f"{trace.name} lost {list(fall.lost)} at {when:+.1f} s and has {list(fall.isr)}")
        holds = f"{plural(seen, 'time')} under min.insync.replicas, each with a cause"
        return _judged(self, wrong, holds, "without a fault or a restart: ")


class MinIsrEnforced(TimelineExpectation):
    """No leader appends a record while its partition has fewer in-sync replicas than min.insync.replicas.

    Every load has acks=all, so a leader refuses such a record before it appends it. Of a leader that a fault or a
    restart affects, nothing is judged: it may not know of the change. So it is where the controller goes on slowly.
    """

    key = "min_isr_enforced"
    statement = "no record accepted under min.insync.replicas"
    timed = True
    shaped = False
    evidence = True
    series = ("trace.log", "log.bytes")
    unit = "bytes"

    def judge(self, run: ReplayedRun, _since_us: int) -> Finding:
        """See `TimelineExpectation.judge`; over the whole timeline."""
        if not run.events("trace.log"):
            return self.found("inconclusive", "the metadata log was not read")
        known, hosts = disturbances(run), {broker: host for host, broker in run.brokers().items()}
        judged, grown, wrong, unread = 0, 0.0, list[str](), list[str]()
        for trace in traces(run):
            least = run.least_in_sync(trace.topic)
            for (since_us, state), until_us in trace.spans(run.ended_us):
                begin_us = run.spares.later(max(since_us, run.started_us), APPLIED_S)
                # A reading of logs has the instant of its middle, and the controller's clock may differ as much.
                end_us = min(until_us - round(READING_S * US), run.ended_us)
                # As in Kafka's `Partition.effectiveMinIsr`: more replicas than there are cannot be in sync.
                fewest = min(least, len(state.replicas))
                if not 0 < len(state.isr) < fewest or state.leader not in hosts or end_us <= begin_us:
                    continue
                if any(_hides(each, state.leader, begin_us, end_us) for each in known):
                    continue
                t, bytes_ = run.log_between(hosts[state.leader], trace.topic, trace.partition, begin_us, end_us)
                judged += len(t) > 1
                if len(t) < 2 and end_us - begin_us > GAP_S * US:
                    unread.append(f"{trace.name} from {run.seconds(begin_us):+.1f} s")
                more = float(np.maximum(np.diff(bytes_), 0).sum())
                grown += more
                if more:
                    wrong.append(
                        f"{trace.name} grew by {size(more)} from {run.seconds(begin_us):+.1f} s with {list(state.isr)} "
                        f"in sync of at least {fewest}"
                    )
        if wrong:
            return self.found("fail", "; ".join(shortened(wrong, SHOWN)), grown)
        if unread:
            why = f"under min.insync.replicas its leader's log was not read: {', '.join(shortened(unread, SHOWN))}"
            return self.found("inconclusive", why)
        return self.found("pass", f"{plural(judged, 'time')} under min.insync.replicas, without a new record", 0)


class MetadataReplayed(TimelineExpectation):
    """The metadata log, replayed from its beginning, gives the state that brokers describe."""

    key = "metadata_replayed"
    statement = "the metadata log replays to what brokers describe"
    evidence = True
    series = (COMPARED,)
    unit = "differences"

    def judge(self, run: ReplayedRun, _since_us: int) -> Finding:
        """See `TimelineExpectation.judge`; at the end."""
        compared = run.events(COMPARED)
        if not compared:
            return self.found("inconclusive", "the metadata log was not read")
        detail = compared[-1]["detail"]
        problem = unhealed(run, compared[-1]["us"])
        if problem or detail["equal"] is None:
            return self.found("inconclusive", problem or detail["problem"])
        return _judged(self, detail["differences"], "the log's last states are those that brokers describe")


class PartitionsSound(TimelineExpectation):
    """In each state of the metadata log, and at the end, a partition's ISR and leader are among its replicas.

    The leader is in sync, no replica is there twice, and what a reassignment adds or removes is a replica. The leader's
    epoch ascends only with a change. These are rules of the controller, whatever happens to brokers.
    """

    key = "partitions_sound"
    statement = "ISR and leader among the replicas, always"
    evidence = True
    series = ("trace.log", FOUND)
    unit = "states"

    def judge(self, run: ReplayedRun, _since_us: int) -> Finding:
        """See `TimelineExpectation.judge`; over the whole timeline."""
        if not run.events("trace.log"):
            return self.found("inconclusive", "the metadata log was not read")
        wrong, states = [], 0
        for trace in traces(run):
            states += len(trace.states)
            before: State | None = None
            for us, state in trace.states:
                if why := unsound(state) or _repeated(before, state):
                    wrong.append(f"{trace.name} at {run.seconds(us):+.1f} s {why}")
                before = state
        found, _missing = _found(run)
        for name, each in (found or {"states": {}})["states"].items():
            if why := unsound(state_of(each)):
                wrong.append(f"{name} at the end {why}")
        return _judged(self, wrong, f"{plural(states, 'state')}, each by the controller's rules")


class InSyncAtEnd(TimelineExpectation):
    """At the end every replica is in sync: a replica that was behind has caught up since the calm."""

    key = "in_sync_at_end"
    statement = "every replica in sync at the end"
    timed = True
    shaped = False
    evidence = True
    series = (FOUND,)
    unit = "partitions"

    def judge(self, run: ReplayedRun, _since_us: int) -> Finding:
        """See `TimelineExpectation.judge`; at the end."""
        return _at_end(self, run, _behind, "every replica is in sync")


class LogsRemoved(TimelineExpectation):
    """At the end no broker keeps the log of a partition of which it is no replica."""

    key = "logs_removed"
    statement = "logs of removed replicas deleted"
    evidence = True
    series = (FOUND,)
    unit = "logs"

    def judge(self, run: ReplayedRun, _since_us: int) -> Finding:
        """See `TimelineExpectation.judge`; at the end."""
        return _at_end(self, run, _logs_left, "each broker keeps the logs of its own replicas alone")


class PreferredLeaders(TimelineExpectation):
    """At the end the first replica of each partition leads it, where that replica is in sync.

    Not judged when a replica was out of sync when the preferred leaders were elected: it may have returned since.
    """

    key = "preferred_leaders"
    statement = "preferred leaders"
    evidence = True
    series = (FOUND, CONVERGED)
    unit = "partitions"

    def judge(self, run: ReplayedRun, _since_us: int) -> Finding:
        """See `TimelineExpectation.judge`; at the end."""
        if any(event["detail"].get("in_time") is False for event in run.events(CONVERGED)[-1:]):
            return self.found("inconclusive", "replicas were out of sync when the preferred leaders were elected")
        return _at_end(self, run, _otherwise_led, "each partition is led by its first replica")


INVARIANTS: tuple[type[TimelineExpectation], ...] = (
    MovesComplete,
    IsrExplained,
    MinIsrEnforced,
    PartitionsSound,
    InSyncAtEnd,
    ThrottleBound,
    MetadataReplayed,
    LogsRemoved,
    PreferredLeaders,
)
Placement = tuple[list[int], bool]
"""Replicas, and whether their order is known."""


def placements(run: ReplayedRun) -> tuple[Mapping[str, Placement], frozenset[str]]:
    """Return each moved partition's replicas after the last request, and the partitions for which they are unknown."""
    expected: dict[str, Placement] = {}
    unknown: set[str] = set()
    for event in run.events("move.started", "move.refused", "move.cancelled", "fault.injected", "fault.refused"):
        detail = event["detail"]
        if event["kind"].startswith("fault."):
            if str(detail.get("fault", "")).split(" ")[0] == ALTERS_MOVES:
                unknown |= {*expected}
        elif event["kind"] == "move.started":
            for partition, replicas in detail.get("targets", {}).items():
                name = f"{event['name']}-{partition}"
                unknown.discard(name)
                expected[name] = list(replicas), True
        elif event["kind"] == "move.refused":
            # Of a request that failed, some partitions may move all the same.
            unknown |= {name for name in expected if name.rpartition("-")[0] == event["name"]}
        else:
            for name, replicas in detail.get("kept", {}).items():
                unknown.discard(name)
                expected[name] = list(replicas), False
    return expected, frozenset(unknown)


def _moved_besides(
    run: ReplayedRun, requested: Mapping[str, Placement], states: Mapping[str, Mapping[str, Any]]
) -> list[str]:
    """Return a line for each partition that no request named and that has other replicas than at the start."""
    if "software" in run.manifest.topology.document:  # AutoMQ
        return []
    found = []
    for trace in traces(run):
        first, last = trace.at(run.started_us), states.get(trace.name)
        if trace.name in requested or first is None or last is None:
            continue
        before, there = list(first.state.replicas), last["replicas"]
        if set(there) != set(before):
            found.append(f"{trace.name} has the replicas {there}, not {before}: no request named it")
    return found


def _found(run: ReplayedRun) -> tuple[Mapping[str, Any] | None, str]:
    """Return what was found at the end, or None and why there is nothing."""
    events = run.events(FOUND)
    if not events:
        return None, "the cluster's final state was not read"
    detail = events[-1]["detail"]
    problem = unhealed(run, events[-1]["us"]) or detail.get("problem")
    return (None, str(problem)) if problem else (detail, "")


def _at_end(
    expected: TimelineExpectation, run: ReplayedRun, wrong: Callable[[Mapping[str, Any]], list[str]], holds: str
) -> Finding:
    """Return the finding on the cluster's final state; `wrong` lists its deviations, `holds` says that it has none."""
    state, missing = _found(run)
    if state is None:
        return expected.found("inconclusive", missing)
    return _judged(expected, wrong(state), holds)


def _judged(expected: TimelineExpectation, wrong: list[str], holds: str, failing: str = "") -> Finding:
    """Return a failure for deviations, after the words `failing`, or else a pass, since `holds`."""
    if wrong:
        return expected.found("fail", failing + "; ".join(shortened(wrong, SHOWN)), len(wrong))
    return expected.found("pass", holds, 0)


def _logs_left(state: Mapping[str, Any]) -> list[str]:
    return [
        f"broker {broker} keeps {name}"
        for broker, names in state["logs"].items()
        for name in names
        if name in state["states"] and int(broker) not in state["states"][name]["replicas"]
    ]


def _behind(state: Mapping[str, Any]) -> list[str]:
    return [
        f"{name} has {each['isr']} of {each['replicas']} in sync"
        for name, each in state["states"].items()
        if not {*each["replicas"]} <= {*each["isr"]}
    ]


def _hides(each: Disturbance, leader: int, begin_us: int, end_us: int) -> bool:
    """Return whether a disturbance may keep a leader from the metadata between two instants, or shift their times."""
    overlaps = each.begin_us - APPLIED_S * US <= end_us and begin_us <= each.end_us + APPLIED_S * US
    # A controller that has ended changes no ISR; the metadata log of one that is slow may come to the leader late.
    slow = each.controller and each.keeps_quota
    return overlaps and (leader in each.brokers or slow or each.kind == CLOCK_SKEW)


def _repeated(before: State | None, state: State) -> str:
    """Return that a record begins another epoch of the leader and changes nothing; empty for a change."""
    if before is None or state.leader_epoch == before.leader_epoch:
        return ""
    same = replace(before, leader_epoch=state.leader_epoch) == state
    return f"has the leader {state.leader} once more, and nothing else" if same else ""


def _otherwise_led(state: Mapping[str, Any]) -> list[str]:
    return [
        f"{name} is led by {'no broker' if each['leader'] is None else each['leader']}, replicas "
        f"{each['replicas']}, in sync {each['isr']}"
        for name, each in state["states"].items()
        if each["replicas"][0] in each["isr"] and each["leader"] != each["replicas"][0]
    ]
