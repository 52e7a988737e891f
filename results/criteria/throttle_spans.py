"""When which replication rate and list were in force in a replay, from the operator's events."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from results.criteria.quantities import US
from results.criteria.replayed_run import ReplayedRun

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
