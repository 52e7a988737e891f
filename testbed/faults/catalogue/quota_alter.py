"""A change of the throttle by another user: a second operator, a script, `--verify` at the wrong moment."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

from testbed.errors import TestbedError
from testbed.faults.fault import parameter, remembered_field
from testbed.faults.parameters import joined, known_brokers, names, one_of
from testbed.faults.quotas import (
    KEYS,
    QuotaFault,
    Setting,
    at_rest,
    describe,
    layers,
    read,
    second_client,
    settle,
    take_out,
    throttles,
)
from testbed.provision.testbed import Testbed
from testbed.topology.model import Topology
from testbed.units import format_byte_rate, parse_byte_rate

REMOVED = "none"


def _rate(text: str) -> int | None:
    """Return the rate in bytes per second; None if it is removed."""
    if text == REMOVED:
        return None
    try:
        return parse_byte_rate(text)
    except ValueError as error:
        raise ValueError(f"{error}; or {REMOVED}, which removes it") from error


def _show(rate_bytes_per_s: int | None) -> str:
    return REMOVED if rate_bytes_per_s is None else format_byte_rate(rate_bytes_per_s)


@dataclass(frozen=True)
class QuotaAlter(QuotaFault):
    """A second Admin client sets or removes rates of the replication throttle on some brokers.

    The heal restores the rate that the throttle in force set, or else the rate outside of any throttle. A throttle that
    is set after the fault takes precedence, and restores the value from before both.
    """

    kind: ClassVar[str] = "quota-alter"
    summary: ClassVar[str] = "a second admin client sets or removes the rates of the replication throttle"
    asks_brokers: ClassVar[bool] = True

    brokers: tuple[str, ...] = parameter("hosts of brokers, such as b1,b2", names, joined)
    rate: int | None = parameter("bytes per second, such as 1MB/s; none removes it", _rate, _show)
    side: str = parameter("leader, follower or both", one_of(*KEYS), default="both")
    rest: Mapping[str, str | None] = field(default_factory=dict, hash=False, metadata={"noted": True})
    beneath: tuple[str, ...] = remembered_field(())

    def __post_init__(self) -> None:
        # The journal stores it as a list.
        object.__setattr__(self, "beneath", tuple(self.beneath))

    def check(self, topology: Topology) -> None:
        """See `Fault.check`."""
        known_brokers(topology, self.brokers)

    def prepare(self, testbed: Testbed) -> Self:
        """See `Fault.prepare`: remembers the rates outside of throttles and faults."""
        settings = self.settings(testbed)
        with second_client(testbed) as admin:
            found = read(admin, settings)
        if found == settings:
            raise TestbedError(f"nothing would change: {describe(found)} already")
        stack = layers(testbed)
        rest = {str(setting): at_rest(setting, found[setting], stack) for setting in settings}
        return replace(self, rest=rest, beneath=tuple(journal.id for journal in throttles(testbed)))

    def settings(self, testbed: Testbed) -> Mapping[Setting, str | None]:
        """See `QuotaFault.settings`."""
        value = None if self.rate is None else str(self.rate)
        ids = [testbed.topology.host(host).node_id for host in self.brokers]
        return {Setting(broker, key): value for broker in ids if broker is not None for key in KEYS[self.side]}

    def settle(self, testbed: Testbed) -> None:
        """See `Fault.settle`."""
        settle(testbed, self)

    def verify(self, testbed: Testbed) -> str | None:
        """See `Fault.verify`: reads the rate in force from each broker."""
        settings = self.settings(testbed)
        with second_client(testbed) as admin:
            found = read(admin, settings)
        wrong = {setting: value for setting, value in found.items() if value != settings[setting]}
        return describe(wrong) or None

    def heal(self, testbed: Testbed) -> None:
        """See `Fault.heal`."""
        take_out(testbed, self)


FAULT = QuotaAlter
