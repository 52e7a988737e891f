"""Expectations about replicas and in-sync replicas."""

import re
from dataclasses import dataclass
from typing import ClassVar

from results.contract.schema import Finding, Verdict
from results.criteria.findings import finding as criterion
from testbed.incidents.evidence import DRIVER, Evidence
from testbed.incidents.words import NAME, NUMBER, optional_topic


@dataclass(frozen=True, slots=True)
class IsrNeverBelow:
    """At every look no partition of the topic (without: of any topic) has fewer in-sync replicas."""

    name: ClassVar[str] = "isr"
    timed: ClassVar[bool] = False
    form: ClassVar[str] = "isr never below NUMBER [of TOPIC]"
    pattern: ClassVar[re.Pattern[str]] = re.compile(rf"isr never below (?P<least>{NUMBER})(?: of (?P<topic>{NAME}))?")

    least: int
    topic: str | None = None

    @classmethod
    def read(cls, found: re.Match[str]) -> "IsrNeverBelow":
        """See `Phrase.read`."""
        return cls(int(found["least"]), found["topic"])

    def judge(self, evidence: Evidence, since_us: int) -> Finding:
        """See `Expectation.judge`."""
        series = ("topic.isr",)
        topics = [self.topic] if self.topic else evidence.topics_of(DRIVER, "topic.isr")
        readings = {t: evidence.after(evidence.gauge(DRIVER, "topic.isr", t), since_us) for t in topics}
        looks = [(value, ts, topic) for topic, found in readings.items() for ts, value in found]
        if not looks:
            why = "no in-sync replicas were seen"
            return criterion(self.name, self, "inconclusive", why, observed=None, series=series)
        lowest, when_us, topic = min(looks)
        why = f"{topic} had {lowest:g} at {evidence.seconds(when_us):+.1f} s, the fewest of {len(looks)} looks"
        if lowest < self.least:
            return criterion(self.name, self, "fail", why, observed=lowest, unit="in sync", series=series)
        gap = next((gap for found in readings.values() if (gap := evidence.gap(found, since_us))), None)
        if gap:
            return criterion(self.name, self, "inconclusive", gap, observed=lowest, unit="in sync", series=series)
        return criterion(self.name, self, "pass", why, observed=lowest, unit="in sync", series=series)

    def __str__(self) -> str:
        return f"isr never below {self.least}{optional_topic(self.topic)}"


@dataclass(frozen=True, slots=True)
class FullyReplicated:
    """At the last look every partition has all its replicas in sync."""

    name: ClassVar[str] = "fully-replicated"
    timed: ClassVar[bool] = False
    form: ClassVar[str] = "fully replicated at the end"
    pattern: ClassVar[re.Pattern[str]] = re.compile("fully replicated at the end")

    @classmethod
    def read(cls, _found: re.Match[str]) -> "FullyReplicated":
        """See `Phrase.read`."""
        return cls()

    def judge(self, evidence: Evidence, _since_us: int) -> Finding:
        """See `Expectation.judge`."""
        series = ("topic.under_replicated",)
        missing = 0.0
        topics = evidence.topics_of(DRIVER, "topic.under_replicated")
        for topic in topics:
            last_us, value = evidence.gauge(DRIVER, "topic.under_replicated", topic)[-1]
            if gap := evidence.gap([(last_us, value)], last_us):
                return criterion(self.name, self, "inconclusive", gap, observed=None, series=series)
            missing += value
        if not topics:
            why = "replicas were never looked at"
            return criterion(self.name, self, "inconclusive", why, observed=None, series=series)
        verdict: Verdict = "pass" if missing == 0 else "fail"
        why = f"{missing:g} partitions under-replicated at the last look"
        return criterion(self.name, self, verdict, why, observed=missing, unit="partitions", series=series)

    def __str__(self) -> str:
        return self.form


PHRASES = (IsrNeverBelow, FullyReplicated)
