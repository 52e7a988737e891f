"""Faults: put in as `testbed fault add` takes them, and healed."""

import re
from dataclasses import dataclass
from typing import ClassVar

from testbed.errors import UsageError
from testbed.faults.parse import kinds as fault_kinds
from testbed.faults.parse import parse_fault
from testbed.incidents.operating import Operator
from testbed.suggestions import choices, did_you_mean
from testbed.topology.model import Topology


@dataclass(frozen=True, slots=True)
class InjectFault:
    """A fault goes in, and is seen to have taken effect."""

    name: ClassVar[str] = "fault"
    form: ClassVar[str] = "FAULT NAME=VALUE …"
    pattern: ClassVar[re.Pattern[str]] = re.compile(r"(?P<text>(?P<kind>[a-z][a-z-]*)(?: \S+=\S+)*)")

    text: str

    @classmethod
    def read(cls, found: re.Match[str]) -> "InjectFault":
        """See `Phrase.read`."""
        known = sorted(fault_kinds())
        if found["kind"] not in known:
            near = did_you_mean(found["kind"], known)
            raise ValueError(f"{found['kind']} is neither an action nor a fault; faults are {choices(known)}{near}")
        try:
            parse_fault(found["text"])
        except UsageError as error:
            raise ValueError("; ".join(line.strip() for line in str(error).splitlines()[1:]) or str(error)) from None
        return cls(found["text"])

    @property
    def kind(self) -> str:
        """Which fault it is."""
        return parse_fault(self.text).kind

    def check(self, topology: Topology) -> None:
        """Raise `UsageError` when the topology cannot have the fault."""
        parse_fault(self.text).check(topology)

    def perform(self, operator: Operator) -> None:
        """See `Action.perform`."""
        operator.inject(self.text)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Heal:
    """All faults of the replay, or those of one kind, are healed: back to what the topology declares."""

    name: ClassVar[str] = "heal"
    form: ClassVar[str] = "heal [FAULT]"
    pattern: ClassVar[re.Pattern[str]] = re.compile(r"heal(?: (?P<kind>[a-z][a-z-]*))?")

    kind: str | None = None

    @classmethod
    def read(cls, found: re.Match[str]) -> "Heal":
        """See `Phrase.read`."""
        known = sorted(fault_kinds())
        if found["kind"] is not None and found["kind"] not in known:
            near = did_you_mean(found["kind"], known)
            raise ValueError(f"{found['kind']} is not a fault; allowed: {choices(known)}{near}")
        return cls(found["kind"])

    def perform(self, operator: Operator) -> None:
        """See `Action.perform`."""
        operator.heal(self.kind)

    def __str__(self) -> str:
        return f"heal {self.kind}" if self.kind else "heal"


PHRASES = (InjectFault, Heal)
