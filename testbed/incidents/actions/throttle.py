"""The operator's throttle: set for what moves now, raised, removed."""

import re
from dataclasses import dataclass
from typing import ClassVar

from testbed.incidents.operating import Operator
from testbed.incidents.words import AMOUNT, NAMES, split_names
from testbed.units import format_byte_rate, parse_byte_rate


@dataclass(frozen=True, slots=True)
class SetThrottle:
    """Rates on every live broker, and lists for the topics (without: all of the incident's).

    It returns when every live broker shows them, and cannot be done when one does not in 30 s. Entries do not wait for
    each other: an entry that moves meanwhile does so without the quota.
    """

    name: ClassVar[str] = "throttle-set"
    form: ClassVar[str] = "throttle set RATE [for TOPIC[, …]]"
    pattern: ClassVar[re.Pattern[str]] = re.compile(rf"throttle set (?P<rate>{AMOUNT})(?: for (?P<topics>{NAMES}))?")

    rate_bytes_per_s: int
    topics: tuple[str, ...] = ()

    @classmethod
    def read(cls, found: re.Match[str]) -> "SetThrottle":
        """See `Phrase.read`."""
        return cls(_rate(found["rate"]), split_names(found["topics"]) if found["topics"] else ())

    def perform(self, operator: Operator) -> None:
        """See `Action.perform`."""
        operator.set_throttle(self.rate_bytes_per_s, self.topics)

    def __str__(self) -> str:
        listed = f" for {', '.join(self.topics)}" if self.topics else ""
        return f"throttle set {format_byte_rate(self.rate_bytes_per_s)}{listed}"


@dataclass(frozen=True, slots=True)
class RaiseThrottle:
    """Another rate, up or down, on every live broker; the lists stay."""

    name: ClassVar[str] = "throttle-raise"
    form: ClassVar[str] = "throttle raise to RATE"
    pattern: ClassVar[re.Pattern[str]] = re.compile(rf"throttle raise to (?P<rate>{AMOUNT})")

    rate_bytes_per_s: int

    @classmethod
    def read(cls, found: re.Match[str]) -> "RaiseThrottle":
        """See `Phrase.read`."""
        return cls(_rate(found["rate"]))

    def perform(self, operator: Operator) -> None:
        """See `Action.perform`."""
        operator.raise_throttle(self.rate_bytes_per_s)

    def __str__(self) -> str:
        return f"throttle raise to {format_byte_rate(self.rate_bytes_per_s)}"


@dataclass(frozen=True, slots=True)
class RemoveThrottle:
    """Rates and lists are taken away, everywhere."""

    name: ClassVar[str] = "throttle-remove"
    form: ClassVar[str] = "throttle remove"
    pattern: ClassVar[re.Pattern[str]] = re.compile("throttle remove")

    @classmethod
    def read(cls, _found: re.Match[str]) -> "RemoveThrottle":
        """See `Phrase.read`."""
        return cls()

    def perform(self, operator: Operator) -> None:
        """See `Action.perform`."""
        operator.remove_throttle()

    def __str__(self) -> str:
        return self.form


def _rate(text: str) -> int:
    rate = parse_byte_rate(text)
    if rate < 1:
        raise ValueError("a throttle of nothing; allowed: 1B/s or more")
    return rate


PHRASES = (SetThrottle, RaiseThrottle, RemoveThrottle)
