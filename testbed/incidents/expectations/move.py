"""Expectations about moves and their throttle."""

import re
from dataclasses import dataclass
from typing import Any, ClassVar

from results.contract.schema import Event, Finding, Verdict
from results.criteria.findings import finding as criterion
from testbed.incidents.evidence import US, Evidence
from testbed.incidents.words import DURATION, NAME, format_time, optional_topic
from testbed.units import parse_duration


@dataclass(frozen=True, slots=True)
class MoveDone:
    """Every move that was asked for (or the topic's) is done in time, counted from this entry."""

    name: ClassVar[str] = "move-done"
    timed: ClassVar[bool] = True
    form: ClassVar[str] = "move [of TOPIC] done within DURATION"
    pattern: ClassVar[re.Pattern[str]] = re.compile(
        rf"move(?: of (?P<topic>{NAME}))? done within (?P<limit>{DURATION})"
    )

    within_s: float
    topic: str | None = None

    @classmethod
    def read(cls, found: re.Match[str]) -> "MoveDone":
        """See `Phrase.read`."""
        return cls(parse_duration(found["limit"]), found["topic"])

    def judge(self, evidence: Evidence, since_us: int) -> Finding:
        """See `Expectation.judge`."""
        series = ("move.started", "move.done")
        # A topic that is asked for again is to be done again: in order of time, the last one stays.
        asked = {e.name: e.ts_us for e in evidence.happened("move.started", self.topic)}
        if not asked:
            why = "no such move was asked for"
            return criterion(self.name, self, "inconclusive", why, observed=None, series=series)
        done = {e.name: e.ts_us for e in evidence.happened("move.done") if e.name in asked and e.ts_us >= asked[e.name]}
        missing = sorted(asked.keys() - done.keys())
        watched_s = (evidence.ended_us - since_us) / US
        if missing and watched_s < self.within_s:
            why = f"{', '.join(missing)} not done, but watched for only {watched_s:.1f} s"
            return criterion(self.name, self, "inconclusive", why, observed="not done", series=series)
        if missing:
            why = f"{', '.join(missing)} not done after {watched_s:.1f} s"
            return criterion(self.name, self, "fail", why, observed="not done", series=series)
        took_s = round((max(done.values()) - since_us) / US, 3)
        verdict: Verdict = "pass" if took_s <= self.within_s else "fail"
        why = f"{', '.join(sorted(asked))} done {took_s:.1f} s after it was asked for"
        return criterion(self.name, self, verdict, why, observed=took_s, unit="s", series=series)

    def __str__(self) -> str:
        return f"move{optional_topic(self.topic)} done within {format_time(self.within_s)}"


@dataclass(frozen=True, slots=True)
class QuotaFirst:
    """Before each move was asked for, every broker had reported the quota, and it still held for the move's topic."""

    name: ClassVar[str] = "quota-before-move"
    timed: ClassVar[bool] = False
    form: ClassVar[str] = "throttle in force before the move"
    pattern: ClassVar[re.Pattern[str]] = re.compile("throttle in force before the move")

    @classmethod
    def read(cls, _found: re.Match[str]) -> "QuotaFirst":
        """See `Phrase.read`."""
        return cls()

    def judge(self, evidence: Evidence, _since_us: int) -> Finding:
        """See `Expectation.judge`; of every move, whenever this entry acted.

        Only what happened in the incident counts: a quota that somebody left was not waited for by anybody.
        """
        series = ("move.started", "throttle.set", "throttle.in_force", "throttle.removed")
        moves = evidence.happened("move.started")
        if not moves:
            why = "no move was asked for"
            return criterion(self.name, self, "inconclusive", why, observed=None, series=series)
        since = [(move, _in_force_since(evidence, move)) for move in moves]
        without = [move for move, instant in since if instant is None]
        if without:
            told = ", ".join(f"{move.name} at {evidence.seconds(move.ts_us):.1f} s" for move in without[:3])
            why = f"asked for when no quota of its topic was in force on every broker: {told}"
            return criterion(self.name, self, "fail", why, observed=len(without), unit="moves", series=series)
        ahead_s = min(round((move.ts_us - instant) / US, 3) for move, instant in since if instant is not None)
        why = f"in force {ahead_s:.1f} s before the move was asked for" + (", at least" if len(moves) > 1 else "")
        return criterion(self.name, self, "pass", why, observed=ahead_s, unit="s before", series=series)

    def __str__(self) -> str:
        return self.form


@dataclass(frozen=True, slots=True)
class ThrottleRemoved:
    """At the end of the timeline no broker has a replication rate, and no topic lists throttled replicas."""

    name: ClassVar[str] = "throttle-removed"
    timed: ClassVar[bool] = False
    form: ClassVar[str] = "throttle removed"
    pattern: ClassVar[re.Pattern[str]] = re.compile("throttle removed")

    @classmethod
    def read(cls, _found: re.Match[str]) -> "ThrottleRemoved":
        """See `Phrase.read`."""
        return cls()

    def judge(self, evidence: Evidence, _since_us: int) -> Finding:
        """See `Expectation.judge`; what was found at the very end, before anything was put back."""
        series = ("throttle.found",)
        found = evidence.happened("throttle.found")
        if not found or found[-1].detail.get("unread"):
            why = f"not everything could be asked: {found[-1].detail['unread']}" if found else "nobody looked"
            return criterion(self.name, self, "inconclusive", why, observed=None, series=series)
        left = list(found[-1].detail["left"])
        if left:
            more = f" and {len(left) - 3} more" if len(left) > 3 else ""
            why = "still set: " + "; ".join(left[:3]) + more
            return criterion(self.name, self, "fail", why, observed=len(left), unit="left", series=series)
        why = "no rate on any broker, no list on any topic"
        return criterion(self.name, self, "pass", why, observed=0, unit="left", series=series)

    def __str__(self) -> str:
        return self.form


def _in_force_since(evidence: Evidence, move: Event) -> int | None:
    """Since when every broker had shown the rates and the lists of a move's topic; None when not all of them did.

    `throttle.in_force` is said of what the last `throttle.set` wrote: whoever waits keeps others from setting.
    """
    lists: int | None = None
    rates: int | None = None
    listed = rated = False
    known: dict[str, Any] = {}
    changes = [
        event
        for event in sorted(evidence.events, key=lambda e: e.ts_us)
        if event.kind in ("throttle.set", "throttle.in_force", "throttle.removed")
        and evidence.started_us <= event.ts_us <= move.ts_us
    ]
    for event in changes:
        if event.kind == "throttle.set":
            written = {name: keys for name, keys in event.detail.items() if name.startswith("broker")}
            listed, rated = f"topic {move.name}" in event.detail, bool(written)
            lists = None if listed else lists
            # The same rates once more, for another topic, change nothing of what was seen.
            rates = rates if written.items() <= known.items() else None
            known |= written
        elif event.kind == "throttle.in_force":
            lists = event.ts_us if listed else lists
            rates = event.ts_us if rated and rates is None else rates
        else:
            rates, known = None, {}
            lists = None if move.name in event.detail["topics"] else lists
    return None if lists is None or rates is None else max(lists, rates)


PHRASES = (MoveDone, QuotaFirst, ThrottleRemoved)
