"""Changes of the cluster that other clients made while data moved, from the controller's metadata log."""

from dataclasses import dataclass
from typing import Literal

ChangeKind = Literal["throttle", "configuration", "reassignment", "deletion", "topic"]
"""`throttle`: of rates or lists of throttled replicas. `deletion`: of a topic of the run or of its records, or of what
decides which records stay. `topic`: another one was made, configured or deleted. `configuration`: of anything else, and
of clients' quotas."""


@dataclass(frozen=True, slots=True)
class ClusterChange:
    """A change that the run did not ask for. `ts_us` is when the controller wrote it (µs since the epoch).

    `partition` is that of a reassignment, as TOPIC-NUMBER; empty where it is not known.
    """

    ts_us: int
    kind: ChangeKind
    what: str
    partition: str = ""
