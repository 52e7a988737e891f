"""What was in force when in a replay, from its events: faults, restarts, throttles, states of partitions."""

from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from results.criteria.quantities import US
from results.criteria.replayed_run import ReplayedRun

BEFORE_S, AFTER_S = 1.0, 12.0
"""Seconds around a disturbance that it explains: a broker is fenced after its session, a follower after its lag."""
FOREVER = 2**62
SETTLED_S = 2.0
"""Seconds after a disturbance from which a broker counts its quota as usual."""
KEEPS_QUOTA = ("nic-rate", "uplink-rate", "nic-cut", "nic-down", "uplink-cut", "cpu-limit")
"""Kinds after which a broker still knows what its quota counted."""


@dataclass(frozen=True, slots=True)
class Disturbance:
    """A fault or a restart: from when to when (µs since the epoch), and the ids of the brokers that it affects."""

    kind: str
    begin_us: int
    end_us: int
    brokers: frozenset[int]

    def resets_quota(self, begin_us: int, end_us: int) -> bool:
        """Return whether a broker may have lost what its quota counted between two instants, or had another rate."""
        before_us, after_us = self.begin_us - BEFORE_S * US, self.end_us + SETTLED_S * US
        return self.kind not in KEEPS_QUOTA and before_us <= end_us and begin_us <= after_us

    def explains(self, us: int, brokers: Collection[int]) -> bool:
        """Return whether it explains what happened to one of these brokers at an instant."""
        during = self.begin_us - BEFORE_S * US <= us <= self.end_us + AFTER_S * US
        return during and not self.brokers.isdisjoint(brokers)


def unhealed(run: ReplayedRun, us: int) -> str:
    """Return which fault or restart was in force at an instant, in words; empty when none was."""
    found = [each.kind for each in disturbances(run) if each.begin_us <= us <= each.end_us]
    return f"{', '.join(found)} was in force when the final state was read" if found else ""


def disturbances(run: ReplayedRun) -> list[Disturbance]:
    """Return every disturbance of the timeline, in order; one that was not healed lasts for ever."""
    found: list[Disturbance] = []
    running: dict[str, tuple[str, int, frozenset[int]]] = {}
    ends_of_faults = ("fault.healed", "fault.refused")
    for event in run.events("fault.injecting", *ends_of_faults, "broker.restarting", "broker.serving"):
        kind, us, detail = event["kind"], event["us"], event["detail"]
        starts = kind in ("fault.injecting", "broker.restarting")
        name = f"restart {event['name']}" if kind.startswith("broker.") else str(detail.get("fault", ""))
        if starts:
            running.setdefault(name, (name.split(" ")[0], us, frozenset(detail.get("brokers", ()))))
        elif name in running:
            what, begun_us, brokers = running.pop(name)
            found.append(Disturbance(what, begun_us, us, brokers))
    ends = [Disturbance(what, begun_us, FOREVER, brokers) for what, begun_us, brokers in running.values()]
    return sorted([*found, *ends], key=lambda each: each.begin_us)


SETTLE_S = 2.0
"""Seconds before and after a change within which a broker may apply either setting."""
RATE, LIST = "follower.replication.throttled.rate", "follower.replication.throttled.replicas"
REMOVED, UNKNOWN = "", "?"


@dataclass(frozen=True, slots=True)
class _Change:
    """A change of a key: requested and confirmed (µs since the epoch), and the value from then on."""

    begin_us: int
    end_us: int
    value: str


@dataclass(slots=True)
class _Setting:
    """The changes of a key in order. Before the first one the key is not set."""

    changes: list[_Change] = field(default_factory=list)

    def during(self, begin_us: int, end_us: int) -> set[str]:
        """Return every value that may have been in force at some time between two instants."""
        margin = round(SETTLE_S * US)
        found = {REMOVED}
        for change in self.changes:
            if change.begin_us - margin > end_us:
                break
            found = {change.value} if change.end_us + margin <= begin_us else {*found, change.value}
        return found


class ThrottleSpans:
    """The follower's rate of each broker, and the list of each topic, over the timeline.

    A change that was requested and not confirmed leaves its keys unknown.
    """

    def __init__(self, run: ReplayedRun) -> None:
        self._settings: dict[str, _Setting] = {}
        requested: tuple[int, Mapping[str, Any]] | None = None
        for event in run.events("throttle.setting", "throttle.set", "throttle.removing", "throttle.removed"):
            us, detail = event["us"], event["detail"]
            if event["kind"] in ("throttle.setting", "throttle.removing"):
                self._unconfirmed(requested)
                requested = us, detail
            else:
                begin_us = us if requested is None else requested[0]
                requested = None
                for resource, value in _values(detail):
                    self._add(resource, _Change(begin_us, us, value))
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
            for resource, _value in _values(detail):
                self._add(resource, _Change(us, us, UNKNOWN))

    def _add(self, resource: str, change: _Change) -> None:
        self._settings.setdefault(resource, _Setting()).changes.append(change)

    def _during(self, resource: str, begin_us: int, end_us: int) -> set[str]:
        return self._settings.get(resource, _Setting()).during(begin_us, end_us)


def _values(detail: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield each resource of a change with its value: of its rate for a broker, of its list for a topic."""
    if "brokers" in detail:
        yield from ((f"broker {broker}", REMOVED) for broker in detail["brokers"])
        yield from ((f"topic {topic}", REMOVED) for topic in detail["topics"])
        return
    for resource, keys in detail.items():
        key = RATE if resource.startswith("broker ") else LIST
        if key in keys:
            yield resource, keys[key]


def listed(value: str, partition: int, broker: int) -> bool:
    """Return whether a list of throttled replicas names this replica; `*` names every one."""
    return value == "*" or f"{partition}:{broker}" in value.split(",")


@dataclass(frozen=True, slots=True)
class TracedState:
    """A partition from an instant on."""

    us: int
    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int | None
    removing: tuple[int, ...] = ()
    leader_epoch: int | None = None
    """None in a run that did not record it."""


@dataclass(frozen=True, slots=True)
class IsrFall:
    """Brokers that left the in-sync replicas and stayed replicas. `led_by` led before."""

    us: int
    lost: tuple[int, ...]
    isr: tuple[int, ...]
    led_by: int | None


@dataclass(frozen=True, slots=True)
class PartitionTrace:
    """One partition's states in order."""

    topic: str
    partition: int
    states: list[TracedState] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Return `topic-partition`."""
        return f"{self.topic}-{self.partition}"

    def spans(self, until_us: int) -> Iterator[tuple[TracedState, int]]:
        """Yield each state with its end; the last one ends at `until_us`."""
        ends = [*(state.us for state in self.states[1:]), until_us]
        yield from zip(self.states, ends, strict=True)

    def at(self, us: int) -> TracedState | None:
        """Return the state at an instant; None before the first."""
        place = bisect_right(self.states, us, key=lambda state: state.us)
        return self.states[place - 1] if place else None

    def out_of_sync(self, broker: int, begin_us: int, end_us: int) -> bool:
        """Return whether a broker was a replica out of sync at both instants and in no state between them in sync."""
        seen = [state for state in self.states if begin_us < state.us <= end_us]
        states = [state for state in (self.at(begin_us), *seen) if state is not None]
        return bool(states) and broker in states[-1].replicas and all(broker not in state.isr for state in states)

    def falls(self, begin_us: int, end_us: int) -> Iterator[IsrFall]:
        """Yield each fall of the in-sync replicas between two instants."""
        for before, after in zip(self.states, self.states[1:], strict=False):
            lost = tuple(b for b in before.isr if b not in after.isr and b in after.replicas)
            if lost and begin_us <= after.us <= end_us:
                yield IsrFall(after.us, lost, after.isr, before.leader)


def traces(run: ReplayedRun) -> list[PartitionTrace]:
    """Return the traces of all partitions of a run's metadata log."""
    found: dict[tuple[str, int], PartitionTrace] = {}
    for event in run.events("trace.log"):
        detail = event["detail"]
        if detail.get("gone"):
            continue
        topic, partition = detail["topic"], detail["partition"]
        trace = found.setdefault((topic, partition), PartitionTrace(topic, partition))
        trace.states.append(
            TracedState(
                event["us"],
                tuple(detail["replicas"]),
                tuple(detail["adding"]),
                tuple(detail["isr"]),
                detail["leader"],
                tuple(detail.get("removing", ())),
                detail.get("leader_epoch"),
            )
        )
    return [found[key] for key in sorted(found)]
