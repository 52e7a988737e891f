"""What a fault is: a value that says what goes wrong, and can do it, look whether it did, and undo it."""

from collections.abc import Callable
from dataclasses import MISSING, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

from testbed.errors import TestbedError
from testbed.topology.model import Topology

if TYPE_CHECKING:
    from testbed.provision.testbed import Testbed


class FaultDidNotFire(TestbedError):
    """A fault was put in but could not be seen to take effect: what is measured with it says nothing."""


class Fault(Protocol):
    """One thing that goes wrong: a frozen dataclass whose fields are its parameters (`parameter`).

    `testbed.faults.Faults` calls the methods in this order: `check`, `prepare`; then, with the fault on disk,
    `apply` and `verify`; at last `heal`.
    """

    kind: ClassVar[str]
    """Its name on a command line."""
    summary: ClassVar[str]
    """One line for people."""
    deadline_s: ClassVar[float] = 10.0
    """How long it may take to take effect."""
    hinders: ClassVar[bool] = False
    """Whether brokers may be fenced while it lasts: then nobody waits for them before it is healed."""
    asks_brokers: ClassVar[bool] = False
    """Whether healing it needs brokers that answer: it is then healed after those that hinder them."""

    def check(self, topology: Topology) -> None:
        """Raise `UsageError` when this topology cannot have it. Pure."""

    def prepare(self, testbed: "Testbed") -> Self:
        """Itself, with what must be known of the time before it (`remembered_field` fields). Changes nothing.

        Raises `TestbedError` when it could not take effect as things are now.
        """
        del testbed
        return self

    def apply(self, testbed: "Testbed") -> None:
        """Make it happen. Raises `TestbedError`."""

    def verify(self, testbed: "Testbed") -> str | None:
        """Look at the thing itself: None when it took effect, otherwise what was seen instead."""

    def heal(self, testbed: "Testbed") -> None:
        """Back to what the topology declares and the other active faults leave of it.

        Does nothing when that is so already; also right after an `apply` that was cut in the middle.
        """


def parameter(
    help: str, parse: Callable[[str], object], show: Callable[[Any], str] = str, *, default: Any = MISSING
) -> Any:
    """A field `name=VALUE` of a fault; `parse` raises ValueError with what is allowed, `show` is its inverse."""
    return field(default=default, metadata={"help": help, "parse": parse, "show": show})


def remembered_field(default: Any = None) -> Any:
    """A field that `prepare` sets; not part of what is written on a command line, but kept with the fault."""
    return field(default=default, metadata={"noted": True})
