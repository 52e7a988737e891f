"""The network of a run: its NICs as measured, and its shaping as the kernel had it. Rates are bits/s where so named."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from results.contract.verdict import Direction

When = Literal["before", "during", "after"]
FRAME_BYTES, FRAME_PAYLOAD_BYTES = 1514, 1448
"""A full Ethernet frame as a NIC counts it, at an MTU of 1500, and the TCP payload in it."""


@dataclass(frozen=True, slots=True)
class NicMeasurement:
    """One NIC, one direction, measured when nothing else used it.

    `payload_bytes_per_s` is the measured TCP payload rate; `ratio` is that over the declared payload rate, which is
    1448 of 1514 bytes. Both are None when the measurement did not succeed. `readings` are the ratios of all
    measurements in their order, of which `ratio` is the last; empty in runs that did not keep them.
    """

    host: str
    device: str
    direction: Direction
    declared_bps: int
    payload_bytes_per_s: float | None
    ratio: float | None
    seconds: float
    readings: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class LinkDifference:
    """A link that is not shaped as declared, or was changed: `found` says how.

    `place` is a host, a rack or the fabric. `direction` is None for a device that the topology does not shape.
    """

    place: str
    device: str
    direction: Direction | None
    found: str

    @property
    def link(self) -> tuple[str, str, Direction | None]:
        """Return the place, the device and the direction."""
        return self.place, self.device, self.direction

    @property
    def where(self) -> str:
        """Return the link as text: `b2 data0 receive`."""
        return " ".join(word for word in self.link if word)


@dataclass(frozen=True, slots=True)
class ShapingReading:
    """The kernel's shaping of all links compared with the declared one, at an RFC 3339 time in UTC.

    It is read before the run, after it, and whenever the kernel announced a change that no fault of the run explains.
    """

    at: str
    when: When
    differences: tuple[LinkDifference, ...] = ()


@dataclass(frozen=True, slots=True)
class NetworkRecord:
    """The shaping of a run in the order of the readings, and the NICs measured again after it (empty: not needed)."""

    readings: tuple[ShapingReading, ...]
    nics_after: tuple[NicMeasurement, ...] = ()

    def different(self) -> dict[tuple[str, str, Direction | None], list[tuple[ShapingReading, LinkDifference]]]:
        """Return, for each link that differed, the readings that found it, in order."""
        found: dict[tuple[str, str, Direction | None], list[tuple[ShapingReading, LinkDifference]]] = {}
        for reading in self.readings:
            for difference in reading.differences:
                found.setdefault(difference.link, []).append((reading, difference))
        return found


def payload_rates(nics: Iterable[NicMeasurement]) -> dict[tuple[str, Direction], float | None]:
    """Return host and direction → the payload rate that its NIC was measured to carry, in bytes/s."""
    return {(nic.host, nic.direction): nic.payload_bytes_per_s for nic in nics}


def ratios_text(nics: Iterable[NicMeasurement]) -> str:
    """Return the lowest and the highest ratio of NICs as text; empty without a ratio."""
    ratios = [nic.ratio for nic in nics if nic.ratio is not None]
    return f"{min(ratios):.3f} to {max(ratios):.3f}" if ratios else ""
