"""The clocks of a run on several machines."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class ClockReading:
    """By how much the clock of `machine` was ahead of the clock of the machine of the testbed, before or after a run.

    It is known to ± `unsure_s` seconds. `offset_s` is None when it could not be measured; `why` then says the reason.
    """

    machine: str
    when: Literal["before", "after"]
    offset_s: float | None
    unsure_s: float
    why: str = ""

    @property
    def most_s(self) -> float | None:
        """Return the largest offset that the reading allows, in seconds; None when it was not measured."""
        return None if self.offset_s is None else abs(self.offset_s) + self.unsure_s
