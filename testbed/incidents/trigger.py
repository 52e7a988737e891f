"""When an entry of a timeline acts: at a time, when something is seen, or after a share of a move. Pure."""

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from testbed.incidents.words import NAME, PERCENT, format_percent, format_time, optional_topic, parse_percent
from testbed.suggestions import choices, did_you_mean, show

_COMPARE: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
}
SIGNALS = {
    "isr": "the smallest number of in-sync replicas of any partition",
    "under_replicated": "partitions with fewer in-sync replicas than replicas",
    "leaderless": "partitions without a leader",
    "in_flight": "partitions that are being reassigned",
}
"""What `when` may look at; of one topic, or over all of them (for isr the smallest, else the sum)."""

_WHEN = re.compile(rf"(?P<signal>\w+)(?: of (?P<topic>{NAME}))? ?(?P<op><=|>=|==|<|>) ?(?P<number>\d+)")
_AFTER = re.compile(rf"move(?: of (?P<topic>{NAME}))? (?P<share>{PERCENT}|done)")


@dataclass(frozen=True, slots=True)
class Observations:
    """What was seen last, by topic. A topic that is missing was not seen, and meets no condition.

    `moved` is the share of a move's bytes that has arrived, of those topics that a move was asked for; `done` are those
    whose move was seen to be done.
    """

    isr: Mapping[str, int] = field(default_factory=dict)
    under_replicated: Mapping[str, int] = field(default_factory=dict)
    leaderless: Mapping[str, int] = field(default_factory=dict)
    in_flight: Mapping[str, int] = field(default_factory=dict)
    moved: Mapping[str, float] = field(default_factory=dict)
    done: frozenset[str] = frozenset()

    def value(self, signal: str, topic: str | None) -> float | None:
        """A signal of one topic or over all; None when it was not seen."""
        by_topic: Mapping[str, int] = getattr(self, signal)
        if topic is not None:
            return by_topic.get(topic)
        if not by_topic:
            return None
        return min(by_topic.values()) if signal == "isr" else sum(by_topic.values())


@dataclass(frozen=True, slots=True)
class At:
    """So many seconds after the beginning."""

    seconds: float

    def met_s(self, now_s: float, _seen: Observations) -> float | None:
        """When it was met, in seconds after the beginning; None when it was not."""
        return self.seconds if now_s >= self.seconds else None

    def __str__(self) -> str:
        return f"at {format_time(self.seconds)}"


@dataclass(frozen=True, slots=True)
class When:
    """As soon as a signal is seen to compare so."""

    signal: str
    comparison: str
    number: int
    topic: str | None = None

    def met_s(self, now_s: float, seen: Observations) -> float | None:
        """See `At.met_s`."""
        value = seen.value(self.signal, self.topic)
        return now_s if value is not None and _COMPARE[self.comparison](value, self.number) else None

    def __str__(self) -> str:
        return f"when {self.signal}{optional_topic(self.topic)} {self.comparison} {self.number}"


@dataclass(frozen=True, slots=True)
class Moved:
    """As soon as so much of a move has arrived; without a topic: of every move asked for so far. 1 is *done*."""

    share: float
    topic: str | None = None

    def met_s(self, now_s: float, seen: Observations) -> float | None:
        """See `At.met_s`."""
        asked = [self.topic] if self.topic is not None else list(seen.moved)
        if not asked or any(topic not in seen.moved for topic in asked):
            return None
        if self.share >= 1:
            return now_s if seen.done.issuperset(asked) else None
        return now_s if min(seen.moved[topic] for topic in asked) >= self.share else None

    def __str__(self) -> str:
        share = "done" if self.share >= 1 else format_percent(self.share)
        return f"after move{optional_topic(self.topic)} {share}"


Trigger = At | When | Moved


def parse_when(text: object) -> When:
    """`isr of orders < 2`; raises ValueError."""
    match = _WHEN.fullmatch(" ".join(text.split())) if isinstance(text, str) else None
    if match is None:
        raise ValueError(f"{show(text)} is not a condition; allowed: SIGNAL [of TOPIC] < NUMBER, such as isr < 2")
    if match["signal"] not in SIGNALS:
        near = did_you_mean(match["signal"], SIGNALS)
        raise ValueError(f"{match['signal']} is not a signal; allowed: {choices(list(SIGNALS))}{near}")
    return When(match["signal"], match["op"], int(match["number"]), match["topic"])


def parse_after(text: object) -> Moved:
    """`move 50%`, `move of orders done`; raises ValueError."""
    match = _AFTER.fullmatch(" ".join(text.split())) if isinstance(text, str) else None
    if match is None:
        raise ValueError(f"{show(text)} is no part of a move; allowed: move [of TOPIC] 50%, or move [of TOPIC] done")
    share = 1.0 if match["share"] == "done" else parse_percent(match["share"])
    return Moved(share, match["topic"])
