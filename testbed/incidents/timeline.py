"""Which entries act when: a state machine on numbers, without clock, cluster or chance. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from testbed.incidents.model import Entry
from testbed.incidents.trigger import Observations


@dataclass(frozen=True, slots=True)
class Due:
    """An entry that acts now. Seconds after the beginning: when its trigger came, and when it was to act."""

    entry: Entry
    triggered_s: float
    planned_s: float


class Timeline:
    """Asked often enough, says each entry once. `due` depends on nothing but what it has been given."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._waiting = list(entries)
        self._armed: list[Due] = []
        self._missed: list[Entry] = []

    def due(self, now_s: float, seen: Observations) -> tuple[Due, ...]:
        """Entries that act at `now_s`, in the order in which they were planned; `now_s` never goes back."""
        for entry in list(self._waiting):
            met_s = entry.trigger.met_s(now_s, seen)
            if met_s is not None and met_s <= entry.deadline_s:
                self._armed.append(Due(entry, met_s, met_s + entry.delay_s))
            elif now_s > entry.deadline_s:
                self._missed.append(entry)
            else:
                continue
            self._waiting.remove(entry)
        acting = sorted((due for due in self._armed if due.planned_s <= now_s), key=lambda due: due.planned_s)
        self._armed = [due for due in self._armed if due.planned_s > now_s]
        return tuple(acting)

    def next_s(self) -> float | None:
        """The earliest time already known at which an entry acts; None when only conditions are waited for."""
        known = [due.planned_s for due in self._armed]
        known += [s for entry in self._waiting if (s := getattr(entry.trigger, "seconds", None)) is not None]
        return min(known, default=None)

    @property
    def open(self) -> tuple[Entry, ...]:
        """Entries that have neither acted nor missed their time; optional ones, which nobody waits for, left out."""
        waiting = [entry for entry in self._waiting if not entry.optional]
        return (*(due.entry for due in self._armed), *waiting)

    def missed(self) -> tuple[Entry, ...]:
        """Entries whose trigger has not come: in time or, when the replay is over, at all; optional ones left out."""
        return tuple(entry for entry in (*self._missed, *self.open) if not entry.optional)
