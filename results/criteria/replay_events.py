"""Faults, restarts and states of partitions over the time of a replay, from its events."""

from bisect import bisect_right
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import NamedTuple

from results.contract.steps import State
from results.criteria.quantities import US
from results.criteria.replayed_run import ReplayedRun
from results.criteria.step_measures import state_of

BEFORE_S, AFTER_S = 1.0, 12.0
"""Seconds around a disturbance that it explains: a broker is fenced after its session, a follower after its lag."""
FOREVER = 2**62
EARLY_S = 0.2
"""Seconds by which a reading may already show what the replay's clock puts after it."""
SETTLED_S = 2.0
"""Seconds after a disturbance from which a broker counts its quota as usual."""
KEEPS_QUOTA = (
    *("nic-rate", "nic-cut", "nic-down", "nic-impair", "uplink-rate", "uplink-cut", "cpu-limit", "disk-slow"),
    "client-stampede",
)
"""Kinds with which a process goes on, of replays whose events do not say so."""
CLOCK_SKEW = "clock-skew"
"""A kind that concerns every broker: the times of the metadata log are the controller's."""


@dataclass(frozen=True, slots=True)
class Disturbance:
    """A fault or a restart: from when to when (µs since the epoch), and the ids of the brokers that it affects.

    `controller`: it affects a controller, which then fences brokers whose heartbeats it missed. `keeps_quota`: brokers'
    processes go on, so each still knows what its quota counted, and answers may come late.
    """

    kind: str
    begin_us: int
    end_us: int
    brokers: frozenset[int]
    controller: bool = False
    keeps_quota: bool = False

    def resets_quota(self, broker: int, begin_us: int, end_us: int) -> bool:
        """Return whether the broker may have lost what its quota counted between two instants, or had another rate."""
        return (broker in self.brokers or self.kind == CLOCK_SKEW) and self.unsettles(begin_us, end_us)

    def unsettles(self, begin_us: int, end_us: int) -> bool:
        """Return whether leaders or quotas may have changed by it between two instants, on any broker."""
        before_us, after_us = self.begin_us - EARLY_S * US, self.end_us + SETTLED_S * US
        return not self.keeps_quota and before_us <= end_us and begin_us <= after_us

    def explains(self, us: int, brokers: Collection[int]) -> bool:
        """Return whether it explains what happened to one of these brokers at an instant."""
        during = self.begin_us - BEFORE_S * US <= us <= self.end_us + AFTER_S * US
        return during and (self.controller or not self.brokers.isdisjoint(brokers))


def unhealed(run: ReplayedRun, us: int) -> str:
    """Return which fault or restart was in force at an instant, in words; empty when none was."""
    found = [each.kind for each in disturbances(run) if each.begin_us <= us <= each.end_us]
    return f"{', '.join(found)} was in force when the final state was read" if found else ""


def disturbances(run: ReplayedRun) -> list[Disturbance]:
    """Return every disturbance of the timeline, in order; one that was not healed lasts for ever."""
    found: list[Disturbance] = []
    running: dict[str, Disturbance] = {}
    ends_of_faults = ("fault.healed", "fault.refused")
    ends_of_restarts = ("broker.serving", "broker.not_serving")
    for event in run.events("fault.injecting", *ends_of_faults, "broker.restarting", *ends_of_restarts):
        kind, us, detail = event["kind"], event["us"], event["detail"]
        name = f"restart {event['name']}" if kind.startswith("broker.") else str(detail.get("fault", ""))
        if kind in ("fault.injecting", "broker.restarting"):
            what, brokers = name.split(" ")[0], frozenset(detail.get("brokers", ()))
            keeps_quota = bool(detail.get("keeps_quota", what in KEEPS_QUOTA))
            controller = bool(detail.get("controller"))
            running.setdefault(name, Disturbance(what, us, FOREVER, brokers, controller, keeps_quota))
        elif name in running:
            found.append(replace(running.pop(name), end_us=us))
    return sorted([*found, *running.values()], key=lambda each: each.begin_us)


class TracedState(NamedTuple):
    """A partition's state from an instant on (µs since the epoch)."""

    us: int
    state: State


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
        ends = [*(each.us for each in self.states[1:]), until_us]
        yield from zip(self.states, ends, strict=True)

    def at(self, us: int) -> TracedState | None:
        """Return the state at an instant; None before the first."""
        place = bisect_right(self.states, us, key=lambda each: each.us)
        return self.states[place - 1] if place else None

    def between(self, begin_us: int, end_us: int) -> list[TracedState]:
        """Return the state at the first of two instants, if there is one, and each later one up to the second."""
        seen = [each for each in self.states if begin_us < each.us <= end_us]
        return [each for each in (self.at(begin_us), *seen) if each is not None]

    def led_by(self, broker: int, begin_us: int, end_us: int) -> bool:
        """Return whether a broker led in every state between two instants."""
        states = self.between(begin_us, end_us)
        return bool(states) and all(each.state.leader == broker for each in states)

    def falls(self, begin_us: int, end_us: int) -> Iterator[IsrFall]:
        """Yield each fall of the in-sync replicas between two instants."""
        for (_, before), (us, after) in pairwise(self.states):
            lost = tuple(b for b in before.isr if b not in after.isr and b in after.replicas)
            if lost and begin_us <= us <= end_us:
                yield IsrFall(us, lost, after.isr, before.leader)


def traces(run: ReplayedRun) -> list[PartitionTrace]:
    """Return the traces of all partitions of a run's metadata log."""
    found: dict[tuple[str, int], PartitionTrace] = {}
    for event in run.events("trace.log"):
        detail = event["detail"]
        if detail.get("gone"):
            continue
        topic, partition = detail["topic"], detail["partition"]
        trace = found.setdefault((topic, partition), PartitionTrace(topic, partition))
        trace.states.append(TracedState(event["us"], state_of(detail)))
    return [found[key] for key in sorted(found)]
