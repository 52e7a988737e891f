"""Raising a throttle that is in force, and putting back what it was."""

from collections.abc import Iterable
from dataclasses import replace

from testbed.kafka.errors import KafkaError
from testbed.kafka.types import AdminApi, ConfigResource
from testbed.reassignment.changes import RATES, Change, settled
from testbed.reassignment.journal import Journal, JournalFolder
from testbed.reassignment.restore import Restored, read_configs, restore
from testbed.wait import wait_for

STEP = 1.5
_TIMEOUT_S = 15.0
_INTERVAL_S = 0.1


def next_rate(rate_bytes_per_s: int, needed_bytes_per_s: float, most_bytes_per_s: int) -> int | None:
    """Return the next step up: half as much again, and above what is needed; never above the most. None: no more."""
    if rate_bytes_per_s >= most_bytes_per_s:
        return None
    return min(most_bytes_per_s, round(max(rate_bytes_per_s, needed_bytes_per_s) * STEP))


class Raised:
    """Rates that were raised on brokers which somebody else had throttled; journaled, so that they are put back.

    `restore` puts back the rates that are still as they were raised. One that somebody has changed or removed since
    is left: it is no longer ours. After a kill -9 `testbed reassign recover` puts them back.
    """

    def __init__(self, admin: AdminApi, journals: JournalFolder, command_config: str | None = None) -> None:
        self._admin = admin
        self._journals = journals
        self._command_config = command_config
        self._journal: Journal | None = None

    def to(self, rate_bytes_per_s: int, brokers: Iterable[int]) -> tuple[int, ...]:
        """Raise the rates in force on these brokers, both directions; returns the brokers that were below.

        A broker that has no rate stays without. Returns once each shows the new rate. Raises `KafkaError`, and
        `WaitTimeout` when one does not show it.
        """
        with self._journals.held():
            self._look_up()
            below = {broker: keys for broker in sorted(brokers) if (keys := self._below(broker, rate_bytes_per_s))}
            if not below:
                return ()
            known = {(change.resource, change.key): change for change in self._journal.changes} if self._journal else {}
            for broker, keys in below.items():
                for key, there in keys.items():
                    where = (ConfigResource.broker(broker), key)
                    known[where] = _raised(known.get(where), Change(*where, there, str(rate_bytes_per_s)))
            self._write(tuple(known.values()))
            for broker, keys in below.items():
                self._admin.alter_configs(ConfigResource.broker(broker), dict.fromkeys(keys, str(rate_bytes_per_s)))
        for broker, keys in below.items():
            self._wait(ConfigResource.broker(broker), dict.fromkeys(keys, str(rate_bytes_per_s)))
        with self._journals.held():
            self._look_up()
            self._write(settled(self._journal.changes if self._journal else ()))
        return tuple(below)

    def restore(self) -> Restored:
        """Put back what was there. Raises `RestoreError`; the journal is kept then."""
        if self._journal is None:
            return Restored()
        with self._journals.held():
            self._look_up()
            done = restore(self._admin, still_ours(self._admin, self._journal.changes), _TIMEOUT_S)
            self._journals.remove(self._journal.id)
        self._journal = None
        return done

    def _below(self, broker: int, rate_bytes_per_s: int) -> dict[str, str | None]:
        """The rates in force that are lower: key → what is set on the broker itself (None: it goes by the default)."""
        told = self._admin.broker_configs(broker, RATES)
        return {
            key: told.broker.get(key)
            for key in RATES
            if (rate := told.in_force(key)) is not None and int(rate) < rate_bytes_per_s
        }

    def _look_up(self) -> None:
        """Know what is on disk: a throttle that lay beneath, and was put back, has corrected the originals there."""
        if self._journal is not None:
            self._journal = self._journals.latest(self._journal)

    def _write(self, changes: tuple[Change, ...]) -> None:
        if self._journal is None:
            new = Journal.new(self._admin.bootstrap, self._admin.cluster().cluster_id, changes)
            # Known before it is written: an interrupt during the write must still lead to its removal.
            self._journal = replace(new, command_config=self._command_config, raises=True)
        self._journal = replace(self._journal, changes=changes)
        self._journals.write(self._journal)

    def _wait(self, resource: ConfigResource, keys: dict[str, str]) -> None:
        def missing() -> list[str]:
            there = read_configs(self._admin, resource)
            return [f"{key} is {there.get(key)}" for key, value in keys.items() if there.get(key) != value]

        wait_for(missing, lambda left: not left, _TIMEOUT_S, _INTERVAL_S, f"the raised throttle of {resource}")


def still_ours(admin: AdminApi, raised: Iterable[Change]) -> list[Change]:
    """Return the raised rates that are still as they were raised; one that cannot be read is taken to be."""
    return [change for change in raised if _is_as_raised(admin, change)]


def _is_as_raised(admin: AdminApi, change: Change) -> bool:
    try:
        there = read_configs(admin, change.resource).get(change.key)
    except KafkaError:
        return True  # `restore` tries again, and says what is wrong
    return there in (change.value, *change.earlier)


def _raised(before: Change | None, now: Change) -> Change:
    """The change with the original of the first raise, unless somebody has set another value since."""
    if before is None or now.original not in before.ours:
        return now
    return replace(before, value=now.value, earlier=(*before.earlier, before.value))
