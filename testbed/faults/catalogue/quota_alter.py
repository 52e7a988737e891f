"""A change of the throttle by another user: a second operator, a script, `--verify` at the wrong moment."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

from testbed.errors import TestbedError
from testbed.faults.fault import Fault, parameter, remembered_field
from testbed.faults.journal import FaultJournal
from testbed.faults.parameters import joined, known_brokers, names, one_of
from testbed.faults.quotas import (
    KEYS,
    Layer,
    Rates,
    Setting,
    at_rest,
    correct,
    corrections,
    describe,
    read,
    second_client,
    stacked,
    throttles,
    wanted,
)
from testbed.kafka.types import ConfigResource
from testbed.provision.testbed import Testbed
from testbed.throttle.journal import JournalFolder
from testbed.topology.model import Topology
from testbed.units import format_byte_rate, parse_byte_rate
from testbed.wait import wait_for

REMOVED = "none"
IN_FORCE_S = 10.0


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
class QuotaAlter(Fault):
    """A second Admin client sets or removes rates of the replication throttle; see `testbed.faults.quotas`."""

    kind: ClassVar[str] = "quota-alter"
    summary: ClassVar[str] = "a second admin client sets or removes the rates of the replication throttle"
    asks_brokers: ClassVar[bool] = True

    brokers: tuple[str, ...] = parameter("hosts of brokers, such as b1,b2", names, joined)
    rate: int | None = parameter("bytes per second, such as 1MB/s; none removes it", _rate, _show)
    side: str = parameter("leader, follower or both", one_of(*KEYS), default="both")
    rest: Mapping[str, str | None] = field(default_factory=dict, hash=False, metadata={"noted": True})
    """The value of each `Setting` outside of any throttle and fault."""
    beneath: tuple[str, ...] = remembered_field(())
    """The ids of the throttles that were set before."""

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
        stack = _layers(testbed)
        rest = {str(setting): at_rest(setting, found[setting], stack) for setting in settings}
        return replace(self, rest=rest, beneath=tuple(journal.id for journal in throttles(testbed)))

    def settings(self, testbed: Testbed) -> Rates:
        """Return the fault's value of each setting; None: removed."""
        value = None if self.rate is None else str(self.rate)
        # Without brokers that have left.
        ids = [host.node_id for host in testbed.topology.brokers if host.name in self.brokers]
        return {Setting(broker, key): value for broker in ids if broker is not None for key in KEYS[self.side]}

    def settle(self, testbed: Testbed) -> None:
        """See `Fault.settle`: brings the settings to their required values, and verifies them."""
        stack = _layers(testbed)
        want = {s: wanted(s, self.rest.get(str(s)), stack) for s in self.settings(testbed)}
        with second_client(testbed) as admin:
            found = read(admin, want)
            for broker in sorted({setting.broker for setting in want}):
                mine = {s.key: value for s, value in want.items() if s.broker == broker and found[s] != value}
                admin.alter_configs(
                    ConfigResource.broker(broker),
                    {key: value for key, value in mine.items() if value is not None},
                    [key for key, value in mine.items() if value is None],
                )
            wait_for(
                lambda: read(admin, want), lambda now: now == want, IN_FORCE_S, 0.1, f"the rates to be {describe(want)}"
            )

    def verify(self, testbed: Testbed) -> str | None:
        """See `Fault.verify`: reads the rate in force from each broker."""
        settings = self.settings(testbed)
        with second_client(testbed) as admin:
            found = read(admin, settings)
        wrong = {setting: value for setting, value in found.items() if value != settings[setting]}
        return describe(wrong) or None

    def heal(self, testbed: Testbed) -> None:
        """See `Fault.heal`. The journals of throttles above the fault get the originals from before it."""
        journals = JournalFolder()
        with journals.held():
            for journal_id, originals in corrections(_layers(testbed, self)).items():
                correct(journals, journal_id, originals)
            self.settle(testbed)


def _layers(testbed: Testbed, healing: QuotaAlter | None = None) -> list[Layer]:
    """Return all throttles and active faults of a testbed, and the fault `healing`, the lowest first."""
    found = []
    for entry in FaultJournal(testbed.name).entries():
        fault = entry.fault
        if isinstance(fault, QuotaAlter) and (not entry.healing or fault == healing):
            rates = fault.settings(testbed)
            originals = {setting: fault.rest.get(str(setting)) for setting in rates}
            found.append(Layer(rates, originals, beneath=fault.beneath, leaving=entry.healing))
    return stacked(found, throttles(testbed))


FAULT = QuotaAlter
