"""Replication throttles under faults: the required rates of each broker.

Throttles and faults are *layers*, ordered by the time at which they were set; docs/faults.md has every order. The
topmost layer with a value for a rate decides it. Every layer remembers the value below it as its original. When a fault
below a throttle is healed, the testbed corrects the journal that describes the throttle's layer.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from testbed.kafka.admin import Admin
from testbed.kafka.types import ConfigResource
from testbed.provision.testbed import Testbed
from testbed.throttle.configs import FOLLOWER_RATE, LEADER_RATE, RATES
from testbed.throttle.journal import JournalFolder, ThrottleJournal, open_journals

SECOND_CLIENT = "testbed-second-client"
ASK_S = 30.0
"""A broker may still try to reach a dead controller: it gives up the connection after 10 s."""
KEYS: Mapping[str, tuple[str, ...]] = {"leader": (LEADER_RATE,), "follower": (FOLLOWER_RATE,), "both": RATES}


@dataclass(frozen=True, slots=True, order=True)
class Setting:
    """One rate of one broker."""

    broker: int
    key: str

    def __str__(self) -> str:
        return f"broker {self.broker} {self.key}"


Rates = Mapping[Setting, str | None]
"""None: not set."""


@dataclass(frozen=True, slots=True)
class Layer:
    """The rates that a throttle or a fault sets, and the originals to restore after it.

    `throttle` is the id of a throttle's journal; `beneath` are the throttles that were set before a fault. A fault that
    is `leaving` is being healed.
    """

    rates: Rates
    originals: Rates
    throttle: str | None = None
    beneath: tuple[str, ...] = ()
    leaving: bool = False


def second_client(testbed: Testbed) -> Admin:
    """Return an Admin client other than the experiment's."""
    return Admin(testbed.bootstrap, timeout_s=ASK_S, client_id=SECOND_CLIENT)


def throttles(testbed: Testbed) -> list[ThrottleJournal]:
    """Return the throttles in force in this testbed's cluster."""
    return [each for each in open_journals(JournalFolder()) if each.cluster_id == testbed.state.cluster_id]


def stacked(faults: Iterable[Layer], journals: Iterable[ThrottleJournal]) -> list[Layer]:
    """Return faults (oldest first) and throttles in one order, the lowest first. Pure."""
    left = {journal.id: throttle_layer(journal) for journal in journals}
    found: list[Layer] = []
    for layer in faults:
        found += [left.pop(each) for each in layer.beneath if each in left]
        found.append(layer)
    return [*found, *left.values()]


def throttle_layer(journal: ThrottleJournal) -> Layer:
    """Return the rates that a throttle sets, from its journal. Pure."""
    mine = {
        Setting(int(change.resource.name), change.key): change
        for change in journal.changes
        # A change without a name is the default of all brokers, which no fault sets.
        if change.resource.kind == "broker" and change.resource.name and change.key in KEYS["both"]
    }
    return Layer({s: c.now for s, c in mine.items()}, {s: c.original for s, c in mine.items()}, journal.id)


def at_rest(setting: Setting, found: str | None, stack: Iterable[Layer]) -> str | None:
    """Return a setting's value without throttles and faults: the original of the lowest layer. Pure."""
    return next((layer.originals[setting] for layer in stack if setting in layer.originals), found)


def wanted(setting: Setting, rest: str | None, stack: Sequence[Layer]) -> str | None:
    """Return a setting's required value: that of the topmost layer, or else that from before all layers. Pure."""
    return next((layer.rates[setting] for layer in reversed(stack) if setting in layer.rates), rest)


def corrections(stack: Sequence[Layer]) -> dict[str, dict[Setting, str | None]]:
    """Return the originals that throttles need once the leaving faults are gone, by journal. Pure.

    Only a throttle directly above a fault has read the fault's value. The originals of the others are right.
    """
    found: dict[str, dict[Setting, str | None]] = {}
    for at, taken in enumerate(stack):
        beneath = [layer for layer in stack[:at] if not layer.leaving]
        for setting, value in taken.rates.items() if taken.leaving else ():
            above = next((layer for layer in stack[at + 1 :] if setting in layer.rates), None)
            if above is not None and above.throttle is not None and above.originals[setting] == value:
                found.setdefault(above.throttle, {})[setting] = wanted(setting, taken.originals[setting], beneath)
    return found


def read(admin: Admin, settings: Iterable[Setting]) -> dict[Setting, str | None]:
    """Return the values in force that each broker reports for itself."""
    wanted_settings = list(settings)
    brokers = {setting.broker for setting in wanted_settings}
    found = {broker: admin.broker_configs(broker).broker for broker in sorted(brokers)}
    return {setting: found[setting.broker].get(setting.key) for setting in wanted_settings}


def correct(journals: JournalFolder, journal_id: str, originals: Rates) -> None:
    """Write other originals of a throttle to its journal."""
    journal = journals.read(journal_id)
    known = {(ConfigResource.broker(s.broker), s.key): value for s, value in originals.items()}
    changes = [replace(each, original=known.get((each.resource, each.key), each.original)) for each in journal.changes]
    journals.write(replace(journal, changes=tuple(changes)))


def describe(settings: Rates) -> str:
    """Return the settings as text."""
    return ", ".join(f"{setting}={'not set' if value is None else value}" for setting, value in settings.items())
