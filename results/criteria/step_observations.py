"""What is measured of a run of steps, as plain data: each expectation, and the answers to Admin clients."""

from dataclasses import dataclass

from results.contract.steps import State


@dataclass(frozen=True, slots=True)
class StepObservation:
    """Of one expectation (its step's place, its own): when a state as wanted was in force first; None: never.

    `last` is the state that was in force at the end of the span; None when the log has none of the partition.
    `never_came` follows from the order of the log alone, without any clock: from the step on there is no such state,
    and none can follow.
    """

    step: int
    expectation: int
    us: int | None
    last: State | None
    never_came: bool = False


@dataclass(frozen=True, slots=True)
class PollAgreement:
    """What one request answered Admin clients: how often something new, and how much of it the log did not have yet.

    The log has none of the `unknown` answers at any time.
    """

    kind: str
    answers: int
    unlike: int
    unknown: int = 0


@dataclass(frozen=True, slots=True)
class StepMeasures:
    """Everything measured of a run of steps."""

    found: tuple[StepObservation, ...]
    polled: tuple[PollAgreement, ...]
