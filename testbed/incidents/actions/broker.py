"""What an operator does to a broker and to leaders."""

import re
from dataclasses import dataclass
from typing import ClassVar

from testbed.incidents.operating import Operator
from testbed.incidents.words import NAME, NAMES, split_names


@dataclass(frozen=True, slots=True)
class Restart:
    """Kafka on the host is stopped if it runs, started, and seen to be unfenced."""

    name: ClassVar[str] = "restart"
    form: ClassVar[str] = "restart HOST"
    pattern: ClassVar[re.Pattern[str]] = re.compile(rf"restart (?P<host>{NAME})")

    host: str

    @classmethod
    def read(cls, found: re.Match[str]) -> "Restart":
        """See `Phrase.read`."""
        return cls(found["host"])

    def perform(self, operator: Operator) -> None:
        """See `Action.perform`."""
        operator.restart(self.host)

    def __str__(self) -> str:
        return f"restart {self.host}"


@dataclass(frozen=True, slots=True)
class ElectPreferred:
    """The first replica of each partition becomes its leader."""

    name: ClassVar[str] = "elect-preferred"
    form: ClassVar[str] = "elect-preferred [TOPIC[, …]]"
    pattern: ClassVar[re.Pattern[str]] = re.compile(rf"elect-preferred(?: (?P<topics>{NAMES}))?")

    topics: tuple[str, ...] = ()

    @classmethod
    def read(cls, found: re.Match[str]) -> "ElectPreferred":
        """See `Phrase.read`."""
        return cls(split_names(found["topics"]) if found["topics"] else ())

    def perform(self, operator: Operator) -> None:
        """See `Action.perform`."""
        operator.elect_preferred(self.topics)

    def __str__(self) -> str:
        return " ".join(["elect-preferred", ", ".join(self.topics)]).strip()


@dataclass(frozen=True, slots=True)
class Cancel:
    """Every reassignment of the incident's topics that has not arrived goes back to where it came from."""

    name: ClassVar[str] = "cancel"
    form: ClassVar[str] = "cancel"
    pattern: ClassVar[re.Pattern[str]] = re.compile("cancel")

    @classmethod
    def read(cls, _found: re.Match[str]) -> "Cancel":
        """See `Phrase.read`."""
        return cls()

    def perform(self, operator: Operator) -> None:
        """See `Action.perform`."""
        operator.cancel()

    def __str__(self) -> str:
        return self.form


PHRASES = (Restart, ElectPreferred, Cancel)
