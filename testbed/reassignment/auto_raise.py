"""Automatic raises of a throttle while its move stalls, and the loop that follows the move to its end."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from testbed.kafka.admin import Admin
from testbed.kafka.errors import UnreachableError
from testbed.kafka.types import ConfigResource
from testbed.reassignment.lag import MONOTONIC, PollClock
from testbed.reassignment.monitor import Monitor, MonitorReading
from testbed.reassignment.stall import PATIENCE_S
from testbed.signals import deferred_signals
from testbed.throttle.configs import RATES, ConfigChange, settled, wait_for_configs
from testbed.throttle.journal import JournalFolder, ThrottleJournal
from testbed.throttle.recovery import RESTORE_TIMEOUT_S, RestoreResult, restore, still_ours

STEP = 1.5


def next_rate(throttle_bytes_per_s: int, needed_bytes_per_s: float, most_bytes_per_s: int) -> int | None:
    """Return the next higher rate in B/s: 1.5 times the present or needed rate. None: the maximum is reached."""
    if throttle_bytes_per_s >= most_bytes_per_s:
        return None
    return min(most_bytes_per_s, round(max(throttle_bytes_per_s, needed_bytes_per_s) * STEP))


class ThrottleRaiser:
    """A raise of the rates that another tool has set; its journal holds the originals.

    `restore` restores the rates that no other tool has changed or removed since. After a kill -9
    `testbed reassign recover` restores the originals.
    """

    def __init__(self, admin: Admin, journals: JournalFolder, command_config: str | None = None) -> None:
        self._admin = admin
        self._journals = journals
        self._command_config = command_config
        self._journal: ThrottleJournal | None = None

    def to(self, throttle_bytes_per_s: int, brokers: Iterable[int]) -> tuple[int, ...]:
        """Raise the rates in force on these brokers, both directions; return the brokers that were below.

        A broker without a rate stays without. Return once each broker reports the new rate. Raise `KafkaError`, and
        `WaitTimeout` when a broker does not report it.
        """
        with self._journals.held():
            self._read_journal()
            below = {broker: keys for broker in sorted(brokers) if (keys := self._below(broker, throttle_bytes_per_s))}
            if not below:
                return ()
            known = {(change.resource, change.key): change for change in self._journal.changes} if self._journal else {}
            for broker, keys in below.items():
                for key, there in keys.items():
                    where = (ConfigResource.broker(broker), key)
                    known[where] = _raised(known.get(where), ConfigChange(*where, there, str(throttle_bytes_per_s)))
            self._write(tuple(known.values()))
            for broker, keys in below.items():
                self._admin.alter_configs(ConfigResource.broker(broker), dict.fromkeys(keys, str(throttle_bytes_per_s)))
        for broker, keys in below.items():
            raised = dict.fromkeys(keys, str(throttle_bytes_per_s))
            resource = ConfigResource.broker(broker)
            wait_for_configs(self._admin, resource, raised, f"the raised throttle of {resource}")
        with self._journals.held():
            self._read_journal()
            self._write(settled(self._journal.changes if self._journal else ()))
        return tuple(below)

    def restore(self) -> RestoreResult:
        """Restore the originals. Raise `RestoreError` when this fails; the journal then stays."""
        if self._journal is None:
            return RestoreResult()
        with self._journals.held():
            self._read_journal()
            done = restore(self._admin, still_ours(self._admin, self._journal.changes), RESTORE_TIMEOUT_S)
            self._journals.remove(self._journal.id)
        self._journal = None
        return done

    def _below(self, broker: int, throttle_bytes_per_s: int) -> dict[str, str | None]:
        """Return the rates in force that are lower: key → the broker's own value (None: the default applies)."""
        found = self._admin.broker_configs(broker, RATES)
        return {
            key: found.broker.get(key)
            for key in RATES
            if (rate := found.in_force(key)) is not None and int(rate) < throttle_bytes_per_s
        }

    def _read_journal(self) -> None:
        """Read the journal again: another throttle's restore may have corrected the originals in it."""
        if self._journal is not None:
            self._journal = self._journals.latest(self._journal)

    def _write(self, changes: tuple[ConfigChange, ...]) -> None:
        if self._journal is None:
            bootstrap, cluster_id = self._admin.bootstrap, self._admin.cluster().cluster_id
            self._journal = ThrottleJournal.new(bootstrap, cluster_id, changes, self._command_config)
        # Stored before the write: an interrupt during the write must still lead to its removal.
        self._journal = replace(self._journal, changes=changes, raises=True)
        self._journals.write(self._journal)


def _raised(before: ConfigChange | None, now: ConfigChange) -> ConfigChange:
    """Return the change with the original of the first raise, unless another tool has set a value since."""
    if before is None or now.original not in before.ours:
        return now
    return replace(before, value=now.value, earlier=(*before.earlier, before.value))


@dataclass(frozen=True, slots=True)
class ThrottleRaise:
    """The throttle was raised, in B/s, on these brokers."""

    throttle_bytes_per_s: int
    brokers: tuple[int, ...]


MonitorEvent = MonitorReading | ThrottleRaise | RestoreResult | str
"""What `watch` reports; a text is a sentence for the user."""
Report = Callable[[MonitorEvent], None]


def watch(
    admin: Admin,
    report: Report,
    journals: JournalFolder,
    *,
    interval_s: float = 2.0,
    patience_s: float = PATIENCE_S,
    most_bytes_per_s: int | None = None,
    once: bool = False,
    command_config: str | None = None,
    pauses: PollClock = MONOTONIC,
    more: Callable[[], str] = lambda: "",
) -> MonitorReading:
    """Read every ``interval_s`` until nothing is being reassigned, report each reading, and return the last.

    While nothing is, ``more`` returns why further reassignments will begin, as between two batches; empty: none will.
    With ``most_bytes_per_s`` the throttle of a stalled move is raised step by step, never above that rate; at the
    end, also after an error, the original rate is restored. With ``once`` two readings are made, as a rate needs two,
    and only the second is reported. A reading without an answer is reported and followed by the next, except with
    ``once``. A log directory with an error is reported once. Raise `KafkaError`.
    """
    monitor = Monitor(admin, patience_s, pauses)
    raised = ThrottleRaiser(admin, journals, command_config)
    exhausted = False
    readings = 0
    noted: set[str] = set()
    try:
        while True:
            try:
                reading = monitor.read()
                rest = more() if reading.done and not once else ""
            except UnreachableError as error:
                if once:
                    raise
                report(str(error))
                pauses.sleep(interval_s)
                continue
            readings += 1
            offline = {str(error) for error in monitor.offline.values()}
            for text in sorted(offline - noted):
                report(f"{text}; the replicas there count as missing")
            noted |= offline
            if rest:
                if rest not in noted:
                    report(rest)
                noted.add(rest)
                pauses.sleep(interval_s)
                continue
            last = reading.done or (once and readings == 2)
            if last or not once:
                report(reading)
            if last:
                return reading
            if reading.stall is not None and most_bytes_per_s is not None and not exhausted:
                try:
                    exhausted = not _raise(monitor, raised, reading, most_bytes_per_s, report)
                except UnreachableError as error:
                    report(str(error))
            pauses.sleep(interval_s)
    finally:
        with deferred_signals():
            done = raised.restore()
            if done.changes:
                report(done)


def _raise(
    monitor: Monitor, raised: ThrottleRaiser, reading: MonitorReading, most_bytes_per_s: int, report: Report
) -> bool:
    """Raise the throttle by one step; return whether another step is possible."""
    now = reading.lowest_quota
    if now is None and reading.silent:
        return True  # the throttle of a broker without an answer is not known: the next reading may know it
    if now is None:
        report("stalled, and no throttle is in force on its brokers: there is nothing to raise")
        return False
    needed = max((share.inbound_bytes_per_s for share in reading.too_low), default=0.0)
    rate = next_rate(now, needed, most_bytes_per_s)
    if rate is None:
        report("stalled with the throttle as high as --auto-raise allows")
        return False
    brokers = {each.broker for each in reading.rates if each.quota_bytes_per_s is not None}
    report(ThrottleRaise(rate, raised.to(rate, brokers)))
    monitor.restart()
    return True
