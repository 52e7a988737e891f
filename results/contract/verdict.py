"""A finding: what a criterion expected, what was observed, and the verdict; and the verdict of a whole run."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

Verdict = Literal["pass", "fail", "inconclusive"]
Direction = Literal["transmit", "receive"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
DIRECTIONS: tuple[Direction, ...] = get_args(Direction)


@dataclass(frozen=True, slots=True)
class Power:
    """The smallest defect that a criterion would have found in this run: `value` in `unit`, and a sentence."""

    value: float
    unit: str
    text: str


@dataclass(frozen=True, slots=True)
class Finding:
    """A criterion's verdict for one run.

    `observed` is a number in `unit`, or words, or None when nothing could be observed. `series` names the
    metrics (and manifest parts) it was computed from. `power` is that of a pass; None without a size.
    """

    name: str
    host: str | None
    direction: Direction | None
    expected: str
    observed: float | str | None
    unit: str
    tolerance: str
    verdict: Verdict
    why: str
    series: tuple[str, ...]
    power: Power | None = None

    def __post_init__(self) -> None:
        if self.verdict not in VERDICTS:
            raise ValueError(f"criterion {self.name!r}: verdict {self.verdict!r} is none of {', '.join(VERDICTS)}")
        if self.verdict == "pass" and self.observed is None:
            raise ValueError(f"criterion {self.name!r}: nothing was observed, so it cannot pass")

    @property
    def where(self) -> str:
        """Return the host and the direction as text: `b2 transmit`; empty without them."""
        return " ".join(word for word in (self.host, self.direction) if word)

    @property
    def label(self) -> str:
        """Return the name with the place in brackets, if there is one."""
        return f"{self.name} ({self.where})" if self.where else self.name


def overall(criteria: Iterable[Finding]) -> Verdict:
    """Return the run's verdict: any fail fails it; else anything inconclusive, or nothing judged, leaves it open."""
    verdicts = [c.verdict for c in criteria]
    if "fail" in verdicts:
        return "fail"
    if "inconclusive" in verdicts or not verdicts:
        return "inconclusive"
    return "pass"
