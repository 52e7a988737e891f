"""What a check is, and what it finds."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from testbed.errors import TestbedError

EX_UNAVAILABLE = 69
FIX_ALL = "./run testbed doctor --fix"


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found: `what` in a sentence, and the command that mends it ("" where none can)."""

    name: str
    ok: bool
    what: str
    fix_command: str = ""
    required: bool = True


class CannotFix(TestbedError):
    """No program can mend this; the finding says what a person can do."""


class Check(ABC):
    """One thing a machine needs. A new check is one class in one file of `testbed/setup/checks`."""

    name: ClassVar[str]
    needs: ClassVar[tuple[str, ...]] = ()
    fixable: ClassVar[bool] = False
    doing: ClassVar[str] = ""  # what `fix` does, for people: "installing …"
    estimate_s: ClassVar[float] = 1.0  # of `fix`, until it was measured on this machine

    @abstractmethod
    def probe(self) -> Finding:
        """Look, changing nothing; fast. Never raises for what is merely absent."""

    def fix(self) -> None:
        """Put it right; raises TestbedError when that fails. Only called where `fixable`."""
        raise CannotFix(self.probe().what)

    def good(self, what: str) -> Finding:
        """A finding that all is well."""
        return Finding(self.name, True, what)

    def bad(self, what: str, fix_command: str = "", *, required: bool = True) -> Finding:
        """A finding that something is amiss; `fix_command` defaults to the doctor's own when it can."""
        return Finding(self.name, False, what, fix_command or (FIX_ALL if self.fixable else ""), required)
