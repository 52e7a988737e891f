"""When faults and restarts affected which brokers of a replay, from its events."""

from collections.abc import Collection
from dataclasses import dataclass

from results.criteria.quantities import US
from results.criteria.replayed_run import ReplayedRun

BEFORE_S, AFTER_S = 1.0, 12.0
"""Seconds around a disturbance that it explains: a broker is fenced after its session, a follower after its lag."""
KEEPS_QUOTA = ("nic-rate", "uplink-rate", "nic-cut", "nic-down", "uplink-cut")
"""Kinds after which a broker still knows what its quota counted."""


@dataclass(frozen=True, slots=True)
class Disturbance:
    """A fault or a restart: from when to when (µs since the epoch), and the ids of the brokers that it affects."""

    kind: str
    begin_us: int
    end_us: int
    brokers: frozenset[int]

    @property
    def resets_quota(self) -> bool:
        """Return whether a broker may have lost what its quota counted, or may have another rate."""
        return self.kind not in KEEPS_QUOTA

    def overlaps(self, begin_us: int, end_us: int) -> bool:
        """Return whether a part of it, or of the time that it explains, lies between two instants."""
        return self.begin_us - BEFORE_S * US <= end_us and begin_us <= self.end_us + AFTER_S * US

    def explains(self, us: int, brokers: Collection[int]) -> bool:
        """Return whether it explains what happened to one of these brokers at an instant."""
        return self.overlaps(us, us) and not self.brokers.isdisjoint(brokers)


def disturbances(run: ReplayedRun) -> list[Disturbance]:
    """Return every disturbance of the timeline, in order; one without an end lasts to the timeline's end."""
    found: list[Disturbance] = []
    running: dict[str, tuple[str, int, frozenset[int]]] = {}
    for event in run.events("fault.injecting", "fault.injected", "fault.healed", "broker.restarting", "broker.serving"):
        kind, us, detail = event["kind"], event["us"], event["detail"]
        starts = kind in ("fault.injecting", "broker.restarting")
        name = f"restart {event['name']}" if kind.startswith("broker.") else str(detail.get("fault", ""))
        if starts:
            running.setdefault(name, (name.split(" ")[0], us, frozenset(detail.get("brokers", ()))))
        elif kind in ("fault.healed", "broker.serving") and name in running:
            what, begun_us, brokers = running.pop(name)
            found.append(Disturbance(what, begun_us, us, brokers))
    ends = [Disturbance(what, begun_us, run.ended_us, brokers) for what, begun_us, brokers in running.values()]
    return sorted([*found, *ends], key=lambda each: each.begin_us)
