"""The states of a partition over time, as the controller wrote them to the metadata log (`trace.log`)."""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

from results.criteria.replayed_run import ReplayedRun


@dataclass(frozen=True, slots=True)
class TracedState:
    """A partition from an instant on."""

    us: int
    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int | None


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
            )
        )
    return [found[key] for key in sorted(found)]
