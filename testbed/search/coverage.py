"""The coverage of a search: the seen pairs of a fault or action and a phase of a move. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from results.contract.schema import Event
from results.criteria.quantities import QUOTA_WINDOW_S
from testbed.search.draft import Draft
from testbed.units import parse_byte_rate

PHASES = ("before", "copying", "completing", "removing", "after", "cancelled")
"""Phases of moves: none requested; no partition complete; some complete, and led by new leaders; all complete and old
logs not deleted; done; cancelled."""
BEFORE, COPYING, COMPLETING, REMOVING, AFTER, CANCELLED = PHASES
Pair = tuple[str, str]
"""A kind of fault or an action, and a phase."""
UNLIMITED, SHORT, LONG = "unlimited", "short", "long"
"""Paces of the first move: without a throttle, or its copy takes less or more than a quota window."""


@dataclass(slots=True)
class Coverage:
    """How often each pair was seen."""

    seen: Counter[Pair] = field(default_factory=Counter)
    aimed: set[tuple[Pair, str]] = field(default_factory=set)
    """The pairs that tries aimed at, each with the pace of its move."""

    def aim(self, draft: Draft) -> None:
        """Note the pairs that a try aims at."""
        self.aimed |= _paced(draft)

    def add(self, pairs: Iterable[Pair]) -> None:
        """Count these pairs."""
        self.seen.update(pairs)

    def new(self, draft: Draft) -> tuple[int, int]:
        """Return how many pairs a drawn incident aims at that were not seen, and that no try had at this pace."""
        return sum(pair not in self.seen for pair in aims(draft)), len(_paced(draft) - self.aimed)

    def missing(self, kinds: Sequence[str]) -> list[Pair]:
        """Return the pairs of these kinds that were not seen."""
        return [(kind, phase) for kind in kinds for phase in PHASES if (kind, phase) not in self.seen]


def aims(draft: Draft) -> set[Pair]:
    """Return the pairs that an incident aims at, by its triggers."""
    moves = [step.at_s for step in draft.steps if step.action == "move" and step.share is None]
    begin_s = min(moves, default=0.0)
    found: set[Pair] = set()
    for step in draft.steps:
        if step.share is not None:
            found.add((step.kind, AFTER if step.share >= 100 else COMPLETING if step.share >= 90 else COPYING))
        elif step.at_s < begin_s:
            found.add((step.kind, BEFORE))
        else:
            found.add((step.kind, COPYING))
        if step.is_fault and step.lasts_s is not None and step.share is None and step.at_s + step.lasts_s > begin_s:
            found.add((step.kind, COPYING))
    return found - {("move", BEFORE)}


def pace(draft: Draft) -> str:
    """Return the pace of the first move."""
    move = next((step for step in draft.steps if step.action == "move"), None)
    rate = None if move is None else move.parameters.get("throttle")
    if move is None or rate is None:
        return UNLIMITED
    size = sum(draft.topics[name].kilobytes for name in move.parameters["topics"]) * 1000
    return LONG if size > parse_byte_rate(rate) * QUOTA_WINDOW_S else SHORT


def _paced(draft: Draft) -> set[tuple[Pair, str]]:
    return {(pair, pace(draft)) for pair in aims(draft)}


def pairs(events: Sequence[Event], draft: Draft) -> set[Pair]:
    """Return the pairs that a replay's events show: a fault is in every phase that begins while it is in force."""
    phases = phases_of(events)
    found: set[Pair] = set()
    for kind, begin_us, end_us in _acted(events, draft):
        for (since_us, phase), (until_us, _next) in zip(phases, [*phases[1:], (end_us + 1, "")], strict=True):
            if since_us <= end_us and begin_us < max(until_us, since_us + 1):
                found.add((kind, phase))
    return found


def phases_of(events: Sequence[Event]) -> list[tuple[int, str]]:
    """Return each phase with its begin (µs since the epoch), in order. The first begins before everything."""
    found = [(0, BEFORE)]
    moving: set[str] = set()
    adding: dict[str, bool] = {}
    for event in sorted(events, key=lambda each: each.ts_us):
        detail: Mapping[str, object] = event.detail
        if event.kind == "move.started":
            moving.add(event.name)
            adding = {}
            phase = COPYING
        elif event.kind == "move.done":
            moving.discard(event.name)
            phase = found[-1][1] if moving else AFTER
        elif event.kind == "move.cancelled":
            moving.clear()
            phase = CANCELLED
        elif event.kind == "trace.log" and detail.get("topic") in moving:
            was = adding.get(event.name, False)
            adding[event.name] = bool(detail.get("adding"))
            running = any(adding.values())
            phase = COMPLETING if was and running and not adding[event.name] else found[-1][1]
            if was and not running:
                phase = REMOVING
        else:
            continue
        if phase != found[-1][1]:
            found.append((event.ts_us, phase))
    return found


def _acted(events: Sequence[Event], draft: Draft) -> list[tuple[str, int, int]]:
    """Return each fault's or action's kind with its begin and end (µs since the epoch); an action has one instant."""
    found: list[tuple[str, int, int]] = []
    began: dict[str, int] = {}
    last_us = max((event.ts_us for event in events), default=0)
    entries = {f"step-{number}": step for number, step in enumerate(draft.steps, 1)}
    for event in sorted(events, key=lambda each: each.ts_us):
        kind = str(event.detail.get("fault", "")).split(" ")[0]
        if event.kind == "fault.injected":
            began.setdefault(kind, event.ts_us)
        elif event.kind == "fault.healed" and kind in began:
            found.append((kind, began.pop(kind), event.ts_us))
        elif event.kind == "incident.entry" and event.name in entries and not entries[event.name].is_fault:
            found.append((entries[event.name].kind, event.ts_us, event.ts_us))
    return [*found, *((kind, since, last_us) for kind, since in began.items())]
