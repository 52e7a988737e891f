"""A reassignment is asked for, throttled properly or not at all."""

import re
from dataclasses import dataclass
from typing import ClassVar

from testbed.incidents.operating import Operator
from testbed.incidents.words import AMOUNT, NAMES, split_names
from testbed.units import format_byte_rate, parse_byte_rate


@dataclass(frozen=True, slots=True)
class Move:
    """Every partition of the topics gets these hosts as its replicas, the preferred leader first.

    With a throttle the quota is set, and seen to be in force on every broker, before the move is asked for.
    """

    name: ClassVar[str] = "move"
    form: ClassVar[str] = "move TOPIC[, …] to HOST[, …] [throttled at RATE]"
    pattern: ClassVar[re.Pattern[str]] = re.compile(
        rf"move (?P<topics>{NAMES}) to (?P<hosts>{NAMES})(?: throttled at (?P<rate>{AMOUNT}))?"
    )

    topics: tuple[str, ...]
    hosts: tuple[str, ...]
    rate_bytes_per_s: int | None = None

    @classmethod
    def read(cls, found: re.Match[str]) -> "Move":
        """See `Phrase.read`."""
        hosts = split_names(found["hosts"])
        if len(set(hosts)) < len(hosts):
            raise ValueError("a host is given twice; allowed: each once")
        rate = None if found["rate"] is None else parse_byte_rate(found["rate"])
        return cls(split_names(found["topics"]), hosts, rate)

    def perform(self, operator: Operator) -> None:
        """See `Action.perform`."""
        operator.move(self.topics, self.hosts, self.rate_bytes_per_s)

    def __str__(self) -> str:
        throttled = f" throttled at {format_byte_rate(self.rate_bytes_per_s)}" if self.rate_bytes_per_s else ""
        return f"move {', '.join(self.topics)} to {', '.join(self.hosts)}{throttled}"


PHRASES = (Move,)
