"""The definition of a defect: what a broker does wrong, where that shows, and which criteria should find it."""

import math
from dataclasses import dataclass
from typing import Literal

Kind = Literal["throttle", "pace", "placement", "data", "cost"]
"""What a defect spoils."""
NodeKind = Literal["brokers", "controllers"]
"""The nodes that have a defect when the user names no host."""


@dataclass(frozen=True, slots=True)
class DefectParameter:
    """A setting of a defect: a number between two bounds, a whole one, or a text when there are no bounds."""

    name: str
    default: str
    unit: str
    bounds: tuple[float, float] | None = None
    whole: bool = False

    def checked(self, text: str) -> str:
        """Return the value unchanged. Raise ValueError, which names the allowed values, when it is wrong."""
        if self.bounds is None:
            if not set(text).isdisjoint(",;") or not text.isprintable():
                raise ValueError("expected a text without commas and semicolons")
            return text
        lowest, highest = self.bounds
        kind = "whole number" if self.whole else "number"
        try:
            value = float(int(text) if self.whole else text)
        except ValueError:
            value = math.nan
        if not lowest <= value <= highest:
            raise ValueError(f"expected a {kind} from {lowest:g} to {highest:g}")
        return text


def number(name: str, default: float, unit: str, lowest: float, highest: float) -> DefectParameter:
    """Return a parameter that takes any number from `lowest` to `highest`."""
    return DefectParameter(name, f"{default:g}", unit, (lowest, highest))


def whole(name: str, default: int, unit: str, lowest: int, highest: int) -> DefectParameter:
    """Return a parameter that takes a whole number from `lowest` to `highest`."""
    return DefectParameter(name, str(default), unit, (lowest, highest), whole=True)


def text(name: str, default: str, meaning: str) -> DefectParameter:
    """Return a parameter that takes a text; `meaning` stands in the place of a unit."""
    return DefectParameter(name, default, meaning)


ONE_PARTITION = (
    whole("partition", 0, "the partition's number", 0, 2**31 - 1),
    text("topic", "", "the topic; empty for every topic"),
)
"""The parameters of a defect of one partition."""


@dataclass(frozen=True, slots=True)
class Exposure:
    """The run in which a defect shows: an experiment with settings, of one profile."""

    experiment: str = "kip73-two-node"
    settings: tuple[str, ...] = ("fetch=tuned", "rate=10MB/s")
    profile: str = "ci"
    topology: str | None = None
    """A ready topology that replaces the experiment's own."""


UNDER_LOAD = Exposure(
    "kip73-two-node-produce", ("fetch=tuned", "rate=5MB/s", "preload=30s", "partitions=20", "inbound=500kB/s")
)
"""A short move of partitions that clients write to and read."""
UNTHROTTLED = Exposure("s3-reassign", ("storage=disk", "size=500MB", "partitions=20"), topology="two-brokers")
"""A move of the logs at the NIC's rate: what costs time or CPU shows in it."""


@dataclass(frozen=True, slots=True)
class Defect:
    """One way in which a broker is wrong on purpose."""

    name: str
    kind: Kind
    summary: str
    """One line for users."""
    parameters: tuple[DefectParameter, ...] = ()
    found_by: tuple[str, ...] = ()
    """The criteria, and for a comparison the measures, that are expected to find it."""
    shown_by: Exposure = Exposure()
    hosts: NodeKind = "brokers"
    sizes: tuple[str, ...] = ("",)
    """The parameters with which `testbed selftest` plays it, as `key=value,…` each; empty for the defaults."""

    def parameter(self, name: str) -> DefectParameter | None:
        """Return the parameter of this name, or None."""
        return next((each for each in self.parameters if each.name == name), None)
