"""The frame of a criterion that is judged by what was seen, not by a measured value within a tolerance."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from results.contract.verdict import Direction, Finding, Verdict


def criterion(
    name: str,
    expected: object,
    verdict: Verdict,
    why: str,
    *,
    observed: float | str | None,
    series: tuple[str, ...],
    unit: str = "",
    tolerance: str = "none",
    host: str | None = None,
    direction: Direction | None = None,
) -> Finding:
    """A criterion; what is not given is as it is for most facts: of no host or direction, exact, without a unit."""
    return Finding(name, host, direction, str(expected), observed, unit, tolerance, verdict, why, series)


class End(Protocol):
    """Whatever is measured of one host in one direction."""

    @property
    def host(self) -> str:
        """The host."""

    @property
    def direction(self) -> Direction:
        """Transmit or receive."""


def of_end(
    name: str,
    end: End,
    expected: object,
    verdict: Verdict,
    why: str,
    *,
    observed: float | str | None,
    unit: str,
    tolerance: str,
    series: tuple[str, ...] = ("log.bytes",),
) -> Finding:
    """A criterion about one host and direction, with a value in a unit and a tolerance; most are of its logs."""
    return Finding(name, end.host, end.direction, str(expected), observed, unit, tolerance, verdict, why, series)


def not_judged(found: Finding, shaky: Sequence[Finding]) -> Finding:
    """The criterion left open, because those it stands on (one at least) are not firm."""
    first = shaky[0]
    where = " ".join(word for word in (first.host, first.direction) if word)
    why = f"not judged: {first.name} ({where}): {first.why}" if where else f"not judged: {first.name}: {first.why}"
    if len(shaky) > 1:
        why += f"; and {len(shaky) - 1} more"
    return replace(found, verdict="inconclusive", why=why)
