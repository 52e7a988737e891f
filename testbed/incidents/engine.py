"""Carrying a timeline out: looks, asks the timeline, acts, and notes when each entry really acted."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from testbed.errors import TestbedError
from testbed.incidents.model import Incident
from testbed.incidents.timeline import Due, Timeline
from testbed.incidents.trigger import Observations

TICK_S = 0.05
"""How often conditions are looked at; `at` entries are waited for to the instant."""


class Clock(Protocol):
    """Seconds after the beginning."""

    def now_s(self) -> float:
        """How late it is."""

    def sleep(self, seconds: float) -> None:
        """Let time pass."""


class RealClock:
    """The monotonic clock, from when it is made."""

    def __init__(self) -> None:
        self._begun = time.monotonic()

    def now_s(self) -> float:
        """See `Clock.now_s`."""
        return time.monotonic() - self._begun

    def sleep(self, seconds: float) -> None:
        """See `Clock.sleep`."""
        time.sleep(seconds)


@dataclass(frozen=True, slots=True)
class Acted:
    """An entry that acted: planned and actual seconds after the beginning; `error` is why an action failed."""

    due: Due
    actual_s: float
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Played:
    """A timeline that is over. `missed` are the names of entries whose trigger never came."""

    acted: tuple[Acted, ...]
    missed: tuple[str, ...]
    ended_s: float


@dataclass(slots=True)
class _Hands:
    """Acts beside the loop, so that a slow action holds up no other entry."""

    perform: Callable[[Due, float], str | None]
    acted: list[Acted] = field(default_factory=list)
    _threads: list[threading.Thread] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def act(self, due: Due, actual_s: float) -> None:
        def work() -> None:
            try:
                error = self.perform(due, actual_s)
            except TestbedError as failure:
                error = str(failure)
            except BaseException as failure:
                # A mistake of ours in a thread: it must not leave an entry that seems never to have acted.
                error = f"unexpected: {failure!r}"
                raise
            finally:
                with self._lock:
                    self.acted.append(Acted(due, actual_s, error))

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
    clock: Clock,
    observe: Callable[[], Observations],
    perform: Callable[[Due, float], str | None],
    moving: Callable[[], bool],
    finish_s: float = 60.0,
) -> Played:
    """Play the timeline to its end: all entries acted and no move left for `settle_s`, or `lasts_s`.

    `perform` carries out an entry (planned, actual seconds) and returns what went wrong, if anything; it is called in a
    thread of its own. Actions still under way at the end are waited for, `finish_s` at most.
    """
    timeline = Timeline(incident.entries)
    hands = _Hands(perform)
    try:
        ended_s = _follow(incident, clock, observe, moving, timeline, hands)
    except BaseException:
        # Also on Ctrl-C: whoever puts things back must not be overtaken by an action that is still under way.
        hands.wait(finish_s)
        raise
    hands.wait(finish_s)
    if hands.busy():
        raise TestbedError(f"incident {incident.name}: an action did not end within {finish_s:g} s of the replay's end")
    return Played(tuple(hands.acted), tuple(entry.name for entry in timeline.missed()), ended_s)


def _follow(
    incident: Incident,
    clock: Clock,
    observe: Callable[[], Observations],
    moving: Callable[[], bool],
    timeline: Timeline,
    hands: _Hands,
) -> float:
    """Look, and act on what is due, to the end; returns when that was."""
    quiet_since: float | None = None
    while True:
        now_s = clock.now_s()
        for due in timeline.due(now_s, observe()):
            hands.act(due, clock.now_s())
        if now_s >= incident.lasts_s:
            return clock.now_s()
        if timeline.open or hands.busy() or moving():
            quiet_since = None
        elif quiet_since is None:
            quiet_since = now_s
        elif now_s - quiet_since >= incident.settle_s:
            return clock.now_s()
        next_s = timeline.next_s()
        until_s = min(now_s + TICK_S, incident.lasts_s, next_s if next_s is not None else now_s + TICK_S)
        clock.sleep(max(0.0, until_s - clock.now_s()))
