"""Replication throttles under faults: what each broker's rates must be, and making them so.

Throttles and faults are *layers*, one over the other in the order in which they were put in: of those that say
something about a rate the topmost counts, and what was there before all of them shows when none is left. A throttle
is told of by its journal. Whatever was put in later noted as its original what lay beneath; so when a fault is taken
out from beneath a throttle, the throttle's journal is corrected, and what the fault had set does not come back with it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from testbed.faults.fault import Fault
from testbed.faults.journal import FaultEntry, FaultJournal
from testbed.kafka.admin import Admin
from testbed.kafka.types import AdminApi, ConfigResource
from testbed.provision.testbed import Testbed
from testbed.throttle.configs import FOLLOWER_RATE, LEADER_RATE
from testbed.throttle.journal import JournalFolder, ThrottleJournal, open_journals
from testbed.wait import wait_for

SECOND_CLIENT = "testbed-second-client"
ASK_S = 30.0
"""A broker may just be looking for a controller that is gone: it gives up connecting to one after 10 s."""
IN_FORCE_S = 10.0
_LOOK_S = 0.1
KEYS: Mapping[str, tuple[str, ...]] = {
    "leader": (LEADER_RATE,),
    "follower": (FOLLOWER_RATE,),
    "both": (LEADER_RATE, FOLLOWER_RATE),
}


@dataclass(frozen=True, slots=True, order=True)
class Setting:
    """One rate of one broker."""

    broker: int
    key: str

    def __str__(self) -> str:
        return f"broker {self.broker} {self.key}"


Rates = Mapping[Setting, str | None]
"""None: not set."""


class QuotaFault(Fault):
    """A fault of throttles' rates, with what `prepare` notes.

    `rest` is what is there outside of any throttle and fault, by `Setting`; `beneath` are the ids of the throttles that
    were set before it.
    """

    rest: Mapping[str, str | None]
    beneath: Sequence[str]

    def settings(self, testbed: Testbed) -> Rates:
        """What it makes of which settings; None: removed."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Layer:
    """What a throttle or a fault makes of rates, and what is to be put back after it.

    `throttle` is the id of a throttle's journal; `beneath` are those that a fault was put over; a fault that is
    `leaving` is being healed.
    """

    rates: Rates
    originals: Rates
    throttle: str | None = None
    beneath: tuple[str, ...] = ()
    leaving: bool = False


def second_client(testbed: Testbed) -> Admin:
    """An admin client that is not the experiment's."""
    return Admin(testbed.bootstrap, timeout_s=ASK_S, client_id=SECOND_CLIENT)


def throttles(testbed: Testbed) -> list[ThrottleJournal]:
    """The throttles that are set in this testbed's cluster, and not put back yet."""
    return [each for each in open_journals(JournalFolder()) if each.cluster_id == testbed.state.cluster_id]


def layers(testbed: Testbed, healing: QuotaFault | None = None) -> list[Layer]:
    """All throttles and active faults of a testbed, the lowest first; `healing` too, which is being healed."""
    faults = [
        entry
        for entry in FaultJournal(testbed.name).entries()
        if isinstance(entry.fault, QuotaFault) and (not entry.healing or entry.fault == healing)
    ]
    return stacked([_layer(entry, testbed) for entry in faults], throttles(testbed))


def stacked(faults: Iterable[Layer], journals: Iterable[ThrottleJournal]) -> list[Layer]:
    """Faults (oldest first) and throttles in one order, the lowest first. Pure."""
    left = {journal.id: throttle_layer(journal) for journal in journals}
    found: list[Layer] = []
    for layer in faults:
        found += [left.pop(each) for each in layer.beneath if each in left]
        found.append(layer)
    return [*found, *left.values()]


def _layer(entry: FaultEntry, testbed: Testbed) -> Layer:
    fault = entry.fault
    assert isinstance(fault, QuotaFault)
    rates = fault.settings(testbed)
    originals = {setting: fault.rest.get(str(setting)) for setting in rates}
    return Layer(rates, originals, beneath=tuple(fault.beneath), leaving=entry.healing)


def throttle_layer(journal: ThrottleJournal) -> Layer:
    """What a throttle makes of rates, as its journal has it. Pure."""
    mine = {
        Setting(int(change.resource.name), change.key): change
        for change in journal.changes
        # Without a name: the default of all brokers, which is not what a fault sets.
        if change.resource.kind == "broker" and change.resource.name and change.key in KEYS["both"]
    }
    return Layer({s: c.now for s, c in mine.items()}, {s: c.original for s, c in mine.items()}, journal.id)


def at_rest(setting: Setting, found: str | None, stack: Iterable[Layer]) -> str | None:
    """What a setting goes back to once no throttle and no fault touches it: what the lowest found there. Pure."""
    return next((layer.originals[setting] for layer in stack if setting in layer.originals), found)


def wanted(setting: Setting, rest: str | None, stack: Sequence[Layer]) -> str | None:
    """What a setting must be: what the topmost layer says, else what it was before all of them. Pure."""
    return next((layer.rates[setting] for layer in reversed(stack) if setting in layer.rates), rest)


def corrections(stack: Sequence[Layer]) -> dict[str, dict[Setting, str | None]]:
    """What throttles must note as their originals once those that are leaving are gone, by journal. Pure.

    Only a throttle right above a fault has read what that had set: others have read what is theirs to put back.
    """
    found: dict[str, dict[Setting, str | None]] = {}
    for at, taken in enumerate(stack):
        beneath = [layer for layer in stack[:at] if not layer.leaving]
        for setting, value in taken.rates.items() if taken.leaving else ():
            above = next((layer for layer in stack[at + 1 :] if setting in layer.rates), None)
            if above is not None and above.throttle is not None and above.originals[setting] == value:
                found.setdefault(above.throttle, {})[setting] = wanted(setting, taken.originals[setting], beneath)
    return found


def read(admin: AdminApi, settings: Iterable[Setting]) -> dict[Setting, str | None]:
    """What each broker itself has in force for itself."""
    wanted_settings = list(settings)
    brokers = {setting.broker for setting in wanted_settings}
    found = {broker: admin.broker_configs(broker).broker for broker in sorted(brokers)}
    return {setting: found[setting.broker].get(setting.key) for setting in wanted_settings}


def take_out(testbed: Testbed, fault: QuotaFault) -> None:
    """Make rates what they must be without `fault`, which is not active any more, and see that they are.

    Raises `TestbedError` when a broker does not answer or does not take it; doing it twice is doing it once.
    """
    journals = JournalFolder()
    with journals.held():
        for journal_id, originals in corrections(layers(testbed, fault)).items():
            _correct(journals, journal_id, originals)
        settle(testbed, fault)


def _correct(journals: JournalFolder, journal_id: str, originals: Rates) -> None:
    journal = journals.read(journal_id)
    correct = {(ConfigResource.broker(s.broker), s.key): value for s, value in originals.items()}
    changes = [
        replace(each, original=correct.get((each.resource, each.key), each.original)) for each in journal.changes
    ]
    journals.write(replace(journal, changes=tuple(changes)))


def settle(testbed: Testbed, fault: QuotaFault) -> None:
    """Make the settings of `fault` what they must be, whether it is active or not, and see that they are.

    Raises `TestbedError` when a broker does not answer or does not take it.
    """
    stack = layers(testbed)
    want = {s: wanted(s, fault.rest.get(str(s)), stack) for s in fault.settings(testbed)}
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
            lambda: read(admin, want),
            lambda now: now == want,
            timeout_s=IN_FORCE_S,
            interval_s=_LOOK_S,
            what=f"the rates to be {describe(want)}",
        )


def describe(settings: Rates) -> str:
    """Settings in words."""
    return ", ".join(f"{setting}={'not set' if value is None else value}" for setting, value in settings.items())
