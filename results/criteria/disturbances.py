"""When faults and restarts affected which brokers of a replay, from its events."""

from collections.abc import Collection
from dataclasses import dataclass

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
