"""Replication throttles under faults: what each broker's rates must be, and making them so."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from testbed.faults.fault import Fault
from testbed.faults.journal import active
from testbed.kafka.admin import Admin
from testbed.kafka.types import AdminApi, ConfigResource
from testbed.reassignment.changes import FOLLOWER_RATE, LEADER_RATE, Change
from testbed.reassignment.journal import JournalFolder, open_journals
from testbed.wait import wait_for

if TYPE_CHECKING:
    from testbed.provision.testbed import Testbed

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


class QuotaFault(Fault):
    """A fault of throttles' rates. `rest` is what is there outside of any throttle and fault, by `Setting`."""

    rest: Mapping[str, str | None]

    def settings(self, testbed: "Testbed") -> Mapping[Setting, str | None]:
        """What it makes of which settings; None: removed."""
        raise NotImplementedError


def second_client(testbed: "Testbed") -> Admin:
    """An admin client that is not the experiment's."""
    return Admin(testbed.bootstrap, timeout_s=ASK_S, client_id=SECOND_CLIENT)


def altering(testbed: "Testbed") -> tuple[QuotaFault, ...]:
    """The active faults of throttles, oldest first."""
    return active(testbed.name, QuotaFault)  # type: ignore[type-abstract]


def throttled(testbed: "Testbed") -> list[Change]:
    """What throttles have changed in this testbed's cluster and not put back yet."""
    journals = open_journals(JournalFolder())
    return [change for each in journals if each.cluster_id == testbed.state.cluster_id for change in each.changes]


def at_rest(setting: Setting, found: str | None, faults: Iterable[QuotaFault], changes: Iterable[Change]) -> str | None:
    """What a setting goes back to once no throttle and no fault touches it. Pure.

    That is what is `found` there, unless a fault has noted it before, or a throttle has.
    """
    for fault in faults:
        if str(setting) in fault.rest:
            return fault.rest[str(setting)]
    for change in _of(setting, changes):
        return change.original
    return found


def wanted(
    setting: Setting,
    rest: str | None,
    altered: Sequence[Mapping[Setting, str | None]],
    changes: Iterable[Change],
) -> str | None:
    """What a setting must be: the last fault's, else the throttle's that is in force, else what it was. Pure."""
    for settings in reversed(altered):
        if setting in settings:
            return settings[setting]
    for change in _of(setting, changes):
        return change.value
    return rest


def _of(setting: Setting, changes: Iterable[Change]) -> list[Change]:
    resource = ConfigResource.broker(setting.broker)
    return [change for change in changes if (change.resource, change.key) == (resource, setting.key)]


def read(admin: AdminApi, settings: Iterable[Setting]) -> dict[Setting, str | None]:
    """What each broker itself has in force for itself."""
    wanted_settings = list(settings)
    brokers = {setting.broker for setting in wanted_settings}
    found = {broker: admin.broker_configs(broker).broker for broker in sorted(brokers)}
    return {setting: found[setting.broker].get(setting.key) for setting in wanted_settings}


def settle(testbed: "Testbed", fault: QuotaFault) -> None:
    """Make the settings of `fault` what they must be, whether it is active or not, and see that they are.

    Raises `TestbedError` when a broker does not answer or does not take it.
    """
    altered = [each.settings(testbed) for each in altering(testbed)]
    changes = throttled(testbed)
    want = {
        setting: wanted(setting, fault.rest.get(str(setting)), altered, changes) for setting in fault.settings(testbed)
    }
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


def describe(settings: Mapping[Setting, str | None]) -> str:
    """Settings in words."""
    return ", ".join(f"{setting}={'not set' if value is None else value}" for setting, value in settings.items())
