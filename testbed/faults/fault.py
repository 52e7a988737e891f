"""A fault: a value that can be applied, verified and healed."""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field
from typing import Any, ClassVar, Self

from testbed.errors import TestbedError
from testbed.faults.parameters import known_hosts, machine_of, name
from testbed.hosts import Shell
from testbed.provision.testbed import Testbed
from testbed.topology.model import Topology


class FaultDidNotFire(TestbedError):
    """A fault was applied but its effect could not be verified: measurements with it are void."""


def parameter(
    help: str, parse: Callable[[str], object], show: Callable[[Any], str] = str, *, default: Any = MISSING
) -> Any:
    """Return a field `name=VALUE`; `parse` raises ValueError naming the allowed values, `show` is its inverse."""
    return field(default=default, metadata={"help": help, "parse": parse, "show": show})


def remembered_field(default: Any = None) -> Any:
    """Return a field that `prepare` sets: no parameter on a command line, but a part of the fault's entry."""
    return field(default=default, metadata={"noted": True})


@dataclass(frozen=True)
class Fault:
    """One fault: a frozen dataclass whose fields are its parameters (`parameter`).

    `testbed.faults.Faults` calls the methods in this order: `check`, `lacking_in`, `prepare`; then, with the fault on
    disk, `apply` and `verify`; finally `heal`. Most faults define `settle` instead of `apply` and `heal`.
    """

    kind: ClassVar[str]
    """The fault's name on a command line."""
    summary: ClassVar[str]
    """One line for users."""
    deadline_s: ClassVar[float] = 10.0
    """The longest time that the fault may need to take effect."""
    hinders: ClassVar[bool] = False
    """Whether brokers may be fenced during the fault: `Faults` then waits for them only after the heal."""
    asks_brokers: ClassVar[bool] = False
    """Whether the heal needs brokers that answer: it then comes after the heal of faults that hinder them."""
    keeps_quota: ClassVar[bool] = False
    """Whether brokers' processes go on during the fault: each knows what its quotas have counted. Replays record it."""
    momentary: ClassVar[bool] = False
    """Whether the fault is over when its effect is verified, as a restart is: nothing is left to heal."""

    def check(self, topology: Topology) -> None:
        """Raise `UsageError` when this topology cannot have the fault. Pure."""

    @classmethod
    def lacking(cls) -> str:
        """Return what this machine lacks for every fault of this kind; empty when it has everything."""
        return ""

    @classmethod
    def lacking_on(cls, shell: Shell | None) -> str:
        """Return what another machine with hosts lacks for every fault of this kind; empty when it has everything.

        `shell` is a shell as root on it; None: it is not asked, and nothing is known. What most kinds need, they need
        of this machine, also for hosts on others.
        """
        del shell
        return cls.lacking()

    @classmethod
    def unavailable(cls, topology: Topology, shells: Mapping[str, Shell]) -> str:
        """Return why no host of a topology can have a fault of this kind; empty when one can, or when it is not known.

        `shells` has a shell as root on each other machine of a testbed that is up. No other machine is asked.
        """
        if why := cls.absent_from(topology):
            return why
        found = {}
        for machine in dict.fromkeys(machine_of(topology, host.name) for host in topology.hosts):
            try:
                found[machine] = cls.lacking_on(shells.get(machine)) if machine else cls.lacking()
            except TestbedError as error:
                found[machine] = str(error)
        if not all(found.values()):
            return ""
        names = [f"{machine}: {why}" if machine else why for machine, why in found.items()]
        return "; ".join(names) if len(set(found.values())) > 1 else next(iter(found.values()), "")

    def lacking_in(self, testbed: Testbed) -> str:
        """Return what is lacking for this fault in a testbed, which may be on other machines; empty for nothing."""
        del testbed
        return self.lacking()

    def has_left(self, topology: Topology) -> bool:
        """Return whether the fault's host has left the testbed: there is nothing to heal. Pure."""
        host = getattr(self, "host", "")
        return bool(host) and host not in {each.name for each in topology.hosts}

    @classmethod
    def absent_from(cls, topology: Topology) -> str:
        """Return why no host of this topology can have a fault of this kind; empty when one can. Pure."""
        del topology
        return ""

    def prepare(self, testbed: Testbed) -> Self:
        """Return the fault with the state before it (`remembered_field` fields); change nothing.

        Raise `TestbedError` when the fault could not take effect now.
        """
        del testbed
        return self

    def settle(self, testbed: Testbed) -> None:
        """Bring what the fault concerns into the state that the topology and the active faults require.

        Idempotent. Raise `TestbedError`.
        """
        raise NotImplementedError

    def apply(self, testbed: Testbed) -> None:
        """Apply the fault. Raise `TestbedError`."""
        self.settle(testbed)

    def verify(self, testbed: Testbed) -> str | None:
        """Check the effect itself: return None if it is there, otherwise the observation as text."""
        raise NotImplementedError

    def heal(self, testbed: Testbed) -> None:
        """Restore the declared state, as far as the other active faults permit.

        Idempotent; also correct after an `apply` that was interrupted.
        """
        self.settle(testbed)


@dataclass(frozen=True)
class HostFault(Fault):
    """A fault of one host."""

    host: str = parameter("the host", name)

    def check(self, topology: Topology) -> None:
        """See `Fault.check`."""
        known_hosts(topology, [self.host])
