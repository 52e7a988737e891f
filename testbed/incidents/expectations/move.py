"""Expectations about moves and their throttle."""

import re
from dataclasses import dataclass
from typing import ClassVar

from results.schema import Criterion, Verdict
from testbed.incidents.evidence import US, Evidence, criterion
from testbed.incidents.words import DURATION, NAME, format_time, optional_topic
from testbed.units import parse_duration


@dataclass(frozen=True, slots=True)
class MoveDone:
    """Every move that was asked for (or the topic's) is done in time, counted from this entry."""

    name: ClassVar[str] = "move-done"
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

    def judge(self, evidence: Evidence, since_us: int) -> Criterion:
        """See `Expectation.judge`."""
        series = ("move.started", "move.done")
        asked = {e.name for e in evidence.happened("move.started", self.topic)}
        if not asked:
            why = "no such move was asked for"
            return criterion(self.name, self, "inconclusive", why, observed=None, series=series)
        done = {e.name: e.ts_us for e in evidence.happened("move.done") if e.name in asked}
        missing = sorted(asked - done.keys())
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
    """Before any move was asked for, every broker had reported the quota."""

    name: ClassVar[str] = "quota-before-move"
    form: ClassVar[str] = "throttle in force before the move"
    pattern: ClassVar[re.Pattern[str]] = re.compile("throttle in force before the move")

    @classmethod
    def read(cls, _found: re.Match[str]) -> "QuotaFirst":
        """See `Phrase.read`."""
        return cls()

    def judge(self, evidence: Evidence, _since_us: int) -> Criterion:
        """See `Expectation.judge`; from the first move on, whenever this entry acted."""
        series = ("move.started", "throttle.in_force")
        moves = evidence.happened("move.started")
        if not moves:
            why = "no move was asked for"
            return criterion(self.name, self, "inconclusive", why, observed=None, series=series)
        first = moves[0].ts_us
        in_force = [e.ts_us for e in evidence.happened("throttle.in_force")]
        if not in_force:
            why = "no throttle was ever seen in force on every broker"
            return criterion(self.name, self, "fail", why, observed="never", series=series)
        ahead_s = round((first - in_force[0]) / US, 3)
        verdict: Verdict = "pass" if ahead_s >= 0 else "fail"
        how = "before" if ahead_s >= 0 else "after"
        why = f"in force {abs(ahead_s):.1f} s {how} the move was asked for"
        return criterion(self.name, self, verdict, why, observed=ahead_s, unit="s before", series=series)

    def __str__(self) -> str:
        return self.form


@dataclass(frozen=True, slots=True)
class ThrottleRemoved:
    """At the end of the timeline no broker has a replication rate, and no topic lists throttled replicas."""

    name: ClassVar[str] = "throttle-removed"
    form: ClassVar[str] = "throttle removed"
    pattern: ClassVar[re.Pattern[str]] = re.compile("throttle removed")

    @classmethod
    def read(cls, _found: re.Match[str]) -> "ThrottleRemoved":
        """See `Phrase.read`."""
        return cls()

    def judge(self, evidence: Evidence, _since_us: int) -> Criterion:
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


PHRASES = (MoveDone, QuotaFirst, ThrottleRemoved)
