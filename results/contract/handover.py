"""The record of handovers between brokers that share their storage: the steps of each partition. Pure.

Instants are microseconds since the epoch. Logs and the controller's records have whole milliseconds.
"""

from dataclasses import dataclass
from typing import Literal, get_args

Step = Literal["accepted", "seen", "closed", "elected", "opened", "produced", "fetched"]
STEPS: tuple[Step, ...] = get_args(Step)
TOLD: dict[Step, str] = {
    "accepted": "the controller accepted the command",
    "seen": "a broker saw it",
    "closed": "the old broker uploaded and closed the streams",
    "elected": "the controller elected the new leader",
    "opened": "the new broker opened and recovered the partition",
    "produced": "a record that the new broker wrote was acknowledged",
    "fetched": "a record that the new broker wrote was fetched",
}
"""The last two are the sixth step."""
AFTER: tuple[tuple[Step, Step], ...] = (
    ("accepted", "seen"),
    ("seen", "closed"),
    ("accepted", "elected"),
    ("accepted", "opened"),
    ("opened", "produced"),
    ("opened", "fetched"),
    ("elected", "fetched"),
)
"""What comes before what in every release. That of 2024 elects, then opens; those since open, then elect. Those that
hand a partition over before all is uploaded may open it before it is closed. An acknowledgement may come before the
record of the election is written, where the new broker leads before it learns so."""


@dataclass(frozen=True, slots=True)
class HandoverStep:
    """One step of one partition. `ts_us` is None when nothing matched; `looked_for` is what would have, and where."""

    step: Step
    ts_us: int | None
    looked_for: str
    host: str | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class PartitionHandover:
    """One partition's steps, in the order of `STEPS`.

    `clean` says whether it had been closed in order, as the new broker found it; None: it did not say. `close_ms` is
    what the old broker says that closing took. `longest_gap_s` is the longest time between two acknowledgements of
    this partition's records, from the command until the end; None without two.
    """

    topic: str
    partition: int
    source: str
    target: str
    steps: tuple[HandoverStep, ...]
    clean: bool | None = None
    close_ms: int | None = None
    longest_gap_s: float | None = None

    def at(self, step: Step) -> int | None:
        """Return when a step was; None when nothing matched."""
        return next((each.ts_us for each in self.steps if each.step == step), None)

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True)
class HandoverRecord:
    """A move of partitions on shared storage. `asked_us` is when it was asked for.

    `killed_us` is when the old broker, killed on purpose, was dead: it closes nothing then. `problems` are logs that
    could not be read whole, and the like: what was not found may have been there.
    """

    software: str
    asked_us: int
    partitions: tuple[PartitionHandover, ...]
    killed_us: int | None = None
    problems: tuple[str, ...] = ()
