"""The timeline's state machine, and the engine that performs each entry within 100 ms of its time."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from testbed.errors import TestbedError
from testbed.incidents.model import Incident, ScheduledEntry
from testbed.incidents.triggers import AtTime, Observations

TICK_S = 0.05
"""Seconds between evaluations of conditions. For a fixed time the engine sleeps until that instant."""
FINISH_S = 60.0
"""Seconds that actions still running at the end may take."""


@dataclass(frozen=True, slots=True)
class DueEntry:
    """An entry that acts now, and its planned time in seconds after the start."""

    entry: ScheduledEntry
    planned_s: float


class TimelineState:
    """The state of a timeline. It returns each entry once. The result of `due` depends only on its arguments so far."""

    def __init__(self, entries: Sequence[ScheduledEntry]) -> None:
        self._waiting = list(entries)
        self._armed: list[DueEntry] = []

    def due(self, now_s: float, seen: Observations) -> tuple[DueEntry, ...]:
        """Return the entries that act at `now_s`, in the order of their planned times. `now_s` never decreases."""
        for entry in list(self._waiting):
            met_s = entry.trigger.met_s(now_s, seen)
            if met_s is not None and met_s <= entry.deadline_s:
                self._armed.append(DueEntry(entry, met_s + entry.delay_s))
            elif now_s <= entry.deadline_s:
                continue
            self._waiting.remove(entry)
        acting = sorted((due for due in self._armed if due.planned_s <= now_s), key=lambda due: due.planned_s)
        self._armed = [due for due in self._armed if due.planned_s > now_s]
        return tuple(acting)

    def next_s(self) -> float | None:
        """Return the earliest known time at which an entry acts, in seconds; None when all wait for conditions."""
        known = [due.planned_s for due in self._armed]
        known += [entry.trigger.seconds for entry in self._waiting if isinstance(entry.trigger, AtTime)]
        return min(known, default=None)

    @property
    def open(self) -> bool:
        """Return whether an entry is still to act. An optional one counts only once its trigger came."""
        return bool(self._armed) or any(not entry.optional for entry in self._waiting)


class MonotonicClock:
    """The monotonic clock, in seconds. Its start is its construction."""

    def __init__(self) -> None:
        self._begun = time.monotonic()

    def now_s(self) -> float:
        """Return the seconds since the start."""
        return time.monotonic() - self._begun

    def sleep(self, seconds: float) -> None:
        """Wait for this number of seconds."""
        time.sleep(seconds)


Perform = Callable[[DueEntry, float], str | None]


@dataclass(slots=True)
class _ActionThreads:
    """A thread for each entry, so that a slow action delays no other entry."""

    perform: Perform
    failed: dict[str, str] = field(default_factory=dict)
    """Entry → why an action of it failed."""
    _threads: list[threading.Thread] = field(default_factory=list)

    def act(self, due: DueEntry, actual_s: float) -> None:
        def work() -> None:
            try:
                error = self.perform(due, actual_s)
            except TestbedError as failure:
                error = str(failure)
            except BaseException as failure:
                # A programming error in a thread: without this report the entry would seem never to have acted.
                error = f"unexpected: {failure!r}"
                raise
            finally:
                if error is not None:
                    self.failed[due.entry.name] = error

        thread = threading.Thread(target=work, name=due.entry.name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def busy(self) -> bool:
        return any(thread.is_alive() for thread in self._threads)

    def wait(self, timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))


def play(
    incident: Incident,
    clock: MonotonicClock,
    observe: Callable[[], Observations],
    perform: Perform,
    moving: Callable[[], bool],
) -> dict[str, str]:
    """Play the timeline to its end: all entries acted and no move ran for `settle_s`, or `lasts_s` passed.

    `perform` performs an entry (planned, actual seconds) and returns its error, if any; each call has its own thread.
    At the end the engine waits for running actions, `FINISH_S` at most. Return the entries that failed, with their
    errors. Raise `TestbedError` for an action that does not end.
    """
    threads = _ActionThreads(perform)
    try:
        _follow(incident, clock, observe, moving, threads)
    finally:
        # Also on Ctrl-C: a running action must not follow the restoration.
        threads.wait(FINISH_S)
    if threads.busy():
        raise TestbedError(f"incident {incident.name}: an action did not end within {FINISH_S:g} s of the replay's end")
    return threads.failed


def _follow(
    incident: Incident,
    clock: MonotonicClock,
    observe: Callable[[], Observations],
    moving: Callable[[], bool],
    threads: _ActionThreads,
) -> None:
    timeline = TimelineState(incident.entries)
    quiet_since: float | None = None
    while True:
        now_s = clock.now_s()
        for due in timeline.due(now_s, observe()):
            threads.act(due, clock.now_s())
        if now_s >= incident.lasts_s:
            return
        if timeline.open or threads.busy() or moving():
            quiet_since = None
        elif quiet_since is None:
            quiet_since = now_s
        elif now_s - quiet_since >= incident.settle_s:
            return
        next_s = timeline.next_s()
        until_s = min(now_s + TICK_S, incident.lasts_s, next_s if next_s is not None else now_s + TICK_S)
        clock.sleep(max(0.0, until_s - clock.now_s()))
