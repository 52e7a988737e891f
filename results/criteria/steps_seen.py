"""What is measured of a run of steps, as plain values: numpy, Spark and judgement share these types."""

from dataclasses import dataclass

from results.contract.steps import State


@dataclass(frozen=True, slots=True)
class Found:
    """Of one expectation (its step's place, its own): when a state as wanted was in force first; None: never.

    `last` is the state that was in force at the end of the span; None when the log has none of the partition.
    """

    step: int
    expectation: int
    us: int | None
    last: State | None


@dataclass(frozen=True, slots=True)
class Polled:
    """What Admin clients were told by one request: how often something new, and how much of it the log never had."""

    kind: str
    told: int
    unlike: int


@dataclass(frozen=True, slots=True)
class StepMeasures:
    """Everything measured of a run of steps."""

    found: tuple[Found, ...]
    polled: tuple[Polled, ...]
