"""Follow a move to its end, and raise its throttle while it stalls."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from testbed.kafka.errors import UnreachableError
from testbed.kafka.types import AdminApi, ConfigResource
from testbed.reassignment.lag import PollClock
from testbed.reassignment.monitor import Monitor, MonitorReading
from testbed.reassignment.stall import PATIENCE_S
from testbed.signals import deferred_signals
from testbed.throttle.configs import RATES, ConfigChange, read_configs, settled
from testbed.throttle.journal import JournalFolder, ThrottleJournal
from testbed.throttle.recovery import Restored, restore, still_ours
from testbed.wait import wait_for

STEP = 1.5
_TIMEOUT_S = 15.0
_INTERVAL_S = 0.1


def next_rate(rate_bytes_per_s: int, needed_bytes_per_s: float, most_bytes_per_s: int) -> int | None:
    """Return the next step up: half as much again, and above what is needed; never above the most. None: no more."""
    if rate_bytes_per_s >= most_bytes_per_s:
        return None
    return min(most_bytes_per_s, round(max(rate_bytes_per_s, needed_bytes_per_s) * STEP))


class RaisedThrottle:
    """Rates that were raised on brokers which somebody else had throttled; journaled, so that they are put back.

    `restore` puts back the rates that are still as they were raised. One that somebody has changed or removed since
    is left: it is no longer ours. After a kill -9 `testbed reassign recover` puts them back.
    """

    def __init__(self, admin: AdminApi, journals: JournalFolder, command_config: str | None = None) -> None:
        self._admin = admin
        self._journals = journals
        self._command_config = command_config
        self._journal: ThrottleJournal | None = None

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
                    known[where] = _raised(known.get(where), ConfigChange(*where, there, str(rate_bytes_per_s)))
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

    def _write(self, changes: tuple[ConfigChange, ...]) -> None:
        if self._journal is None:
            new = ThrottleJournal.new(self._admin.bootstrap, self._admin.cluster().cluster_id, changes)
            # Known before it is written: an interrupt during the write must still lead to its removal.
            self._journal = replace(new, command_config=self._command_config, raises=True)
        self._journal = replace(self._journal, changes=changes)
        self._journals.write(self._journal)

    def _wait(self, resource: ConfigResource, keys: dict[str, str]) -> None:
        def missing() -> list[str]:
            there = read_configs(self._admin, resource)
            return [f"{key} is {there.get(key)}" for key, value in keys.items() if there.get(key) != value]

        wait_for(missing, lambda left: not left, _TIMEOUT_S, _INTERVAL_S, f"the raised throttle of {resource}")


def _raised(before: ConfigChange | None, now: ConfigChange) -> ConfigChange:
    """The change with the original of the first raise, unless somebody has set another value since."""
    if before is None or now.original not in before.ours:
        return now
    return replace(before, value=now.value, earlier=(*before.earlier, before.value))


@dataclass(frozen=True, slots=True)
class ThrottleRaise:
    """The throttle was raised, in B/s, on these brokers."""

    rate_bytes_per_s: int
    brokers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class MonitorNote:
    """Something else to be told, in words."""

    text: str


Report = Callable[[MonitorReading | ThrottleRaise | Restored | MonitorNote], None]


def watch(
    admin: AdminApi,
    tell: Report,
    journals: JournalFolder,
    *,
    interval_s: float = 2.0,
    patience_s: float = PATIENCE_S,
    most_bytes_per_s: int | None = None,
    once: bool = False,
    command_config: str | None = None,
    pauses: PollClock | None = None,
) -> MonitorReading:
    """Look every ``interval_s`` until nothing is being reassigned, and tell each look; returns the last.

    With ``most_bytes_per_s`` a move that is stuck has its throttle raised, step by step, never above that; what it
    was is put back at the end, however that comes. With ``once`` there are two looks, as a rate needs, and the second
    is told. A look without an answer is told and followed by the next, but for ``once``. Raises `KafkaError`.
    """
    pauses = pauses or PollClock()
    watcher = Monitor(admin, patience_s, pauses)
    raised = RaisedThrottle(admin, journals, command_config)
    exhausted = False
    looks = 0
    try:
        while True:
            try:
                look = watcher.look()
            except UnreachableError as error:
                if once:
                    raise
                tell(MonitorNote(str(error)))
                pauses.sleep(interval_s)
                continue
            looks += 1
            last = look.done or (once and looks == 2)
            if last or not once:
                tell(look)
            if last:
                return look
            if look.stuck is not None and most_bytes_per_s is not None and not exhausted:
                exhausted = not _raise(watcher, raised, look, most_bytes_per_s, tell)
            pauses.sleep(interval_s)
    finally:
        with deferred_signals():
            done = raised.restore()
            if done.changes:
                tell(done)


def _raise(watcher: Monitor, raised: RaisedThrottle, look: MonitorReading, most_bytes_per_s: int, tell: Report) -> bool:
    """Go one step up; returns whether there may be another."""
    now = look.lowest_quota
    if now is None:
        tell(MonitorNote("stuck, and no throttle is in force where it moves: there is nothing to raise"))
        return False
    needed = max((share.keepup_bytes_per_s for share in look.too_low), default=0.0)
    rate = next_rate(now, needed, most_bytes_per_s)
    if rate is None:
        tell(MonitorNote("stuck with the throttle as high as --auto-raise allows"))
        return False
    brokers = {each.broker for each in look.rates if each.quota_bytes_per_s is not None}
    tell(ThrottleRaise(rate, raised.to(rate, brokers)))
    watcher.restart()
    return True
