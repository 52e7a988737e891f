"""An incident as it is carried out: immutable, with everything that a file may leave out filled in."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from testbed.document import Path
from testbed.incidents.actions import Action
from testbed.incidents.expectations import Expectation
from testbed.incidents.trigger import Trigger
from testbed.topology.model import Topology

Practice = Literal["faulty", "remedy"]
PRACTICES: tuple[Practice, ...] = ("faulty", "remedy")


@dataclass(frozen=True, slots=True)
class TopicState:
    """A topic before the incident. `placement` has each partition's hosts, the preferred leader first."""

    name: str
    placement: tuple[tuple[str, ...], ...]
    records: int
    """In each partition."""
    record_bytes: int
    configs: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def bytes(self) -> int:
        """Of all records, each counted once."""
        return len(self.placement) * self.records * self.record_bytes


@dataclass(frozen=True, slots=True)
class InitialThrottle:
    """A throttle that was there already: every broker at this rate, and every replica of the topics listed."""

    rate_bytes_per_s: int
    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class State:
    """What the cluster looks like when the incident begins."""

    topics: tuple[TopicState, ...]
    properties: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Broker properties over the topology's."""
    throttle: InitialThrottle | None = None


@dataclass(frozen=True, slots=True)
class Load:
    """One open-loop producer: records of `record_bytes` at a steady rate, whatever the cluster does."""

    rate_bytes_per_s: int
    topic: str
    record_bytes: int = 1024


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the timeline: when, what is done, what is expected from then on.

    `deadline_s` is counted from the beginning; a trigger that has not come by then leaves the replay inconclusive,
    unless the entry is optional. `place` is where it stands in its file.
    """

    name: str
    trigger: Trigger
    actions: tuple[Action, ...]
    expectations: tuple[Expectation, ...]
    deadline_s: float
    delay_s: float = 0.0
    optional: bool = False
    place: Path = ()


@dataclass(frozen=True, slots=True)
class Incident:
    """One practice of an incident, ready to be replayed. `fails` are the expectations this practice is to fail."""

    name: str
    practice: Practice
    summary: str
    practice_summary: str
    topology: Topology
    state: State
    load: Load | None
    entries: tuple[Entry, ...]
    lasts_s: float
    settle_s: float
    fails: tuple[str, ...]
    parameters: Mapping[str, str] = field(default_factory=dict, hash=False)
    reference: str = ""
    document: Mapping[str, Any] = field(default_factory=dict, hash=False, compare=False)

    def topic(self, name: str) -> TopicState:
        """The topic of this name; KeyError when there is none."""
        for topic in self.state.topics:
            if topic.name == name:
                return topic
        raise KeyError(name)


@dataclass(frozen=True, slots=True)
class IncidentFile:
    """Both practices of one file."""

    faulty: Incident
    remedy: Incident

    def practice(self, name: Practice) -> Incident:
        """One of them."""
        return self.faulty if name == "faulty" else self.remedy
