"""Triggers of a timeline's entries: a time, a condition on a signal, or a share of a move. Pure."""

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Self, get_args

from pydantic import Field, WithJsonSchema, model_validator

from results.contract.document import refusal
from results.criteria.timeline_expectation import Count
from testbed.incidents.forms import (
    Duration,
    IncidentModel,
    OneKey,
    OptionalTopic,
    Shorthand,
    format_seconds,
    parse_percent,
    parsed,
)
from testbed.suggestions import choices

_COMPARE: Mapping[str, tuple[str, Callable[[float, float], bool]]] = {
    "below": ("<", operator.lt),
    "at_most": ("<=", operator.le),
    "above": (">", operator.gt),
    "at_least": (">=", operator.ge),
    "equals": ("==", operator.eq),
}


@dataclass(frozen=True, slots=True)
class Observations:
    """The newest poll of the cluster, by topic. A missing topic was not polled, and meets no condition.

    `moved` is the share of a move's bytes that has arrived, by topic with a requested move. `done` are the topics whose
    move the poll found done.
    """

    isr: Mapping[str, int] = field(default_factory=dict)
    under_replicated: Mapping[str, int] = field(default_factory=dict)
    leaderless: Mapping[str, int] = field(default_factory=dict)
    in_flight: Mapping[str, int] = field(default_factory=dict)
    moved: Mapping[str, float] = field(default_factory=dict)
    done: frozenset[str] = frozenset()

    def value(self, signal: str, topic: str | None) -> float | None:
        """Return a signal of one topic or over all; None when it was not polled."""
        by_topic: Mapping[str, int] = getattr(self, signal)
        if topic is not None:
            return by_topic.get(topic)
        if not by_topic:
            return None
        return min(by_topic.values()) if signal == "isr" else sum(by_topic.values())


@dataclass(frozen=True, slots=True)
class AtTime:
    """A time in seconds after the timeline's start."""

    seconds: float

    def met_s(self, now_s: float, _seen: Observations) -> float | None:
        """Return when the trigger was met, in seconds after the start; None when it was not."""
        return self.seconds if now_s >= self.seconds else None

    def __str__(self) -> str:
        return f"at {format_seconds(self.seconds)}"


_Bound = Annotated[int | None, *get_args(Count)[1:]]


class SignalCondition(IncidentModel):
    """A signal of the cluster compared with one number; the entry acts as soon as a poll meets it."""

    signal: ClassVar[str]

    topic: OptionalTopic = None
    below: Annotated[_Bound, Field(description="Less than this.")] = None
    at_most: Annotated[_Bound, Field(description="This or less.")] = None
    above: Annotated[_Bound, Field(description="More than this.")] = None
    at_least: Annotated[_Bound, Field(description="This or more.")] = None
    equals: Annotated[_Bound, Field(description="Exactly this.")] = None

    @model_validator(mode="after")
    def _one_comparison(self) -> Self:
        if len(self.model_fields_set - {"topic"}) != 1:
            raise refusal(f"not one comparison; allowed: one of {choices(list(_COMPARE))}")
        return self

    @property
    def comparison(self) -> tuple[str, int]:
        """Return the comparison's key and its number."""
        key = next(key for key in _COMPARE if key in self.model_fields_set)
        return key, getattr(self, key)

    def met_s(self, now_s: float, seen: Observations) -> float | None:
        """Return `now_s` when the cluster meets the comparison; None when it does not, or was not polled."""
        key, number = self.comparison
        value = seen.value(self.signal, self.topic)
        return now_s if value is not None and _COMPARE[key][1](value, number) else None

    def __str__(self) -> str:
        key, number = self.comparison
        of = f" of {self.topic}" if self.topic else ""
        return f"when {self.signal}{of} {_COMPARE[key][0]} {number}"


class IsrCondition(SignalCondition):
    """The smallest number of in-sync replicas of any partition."""

    signal = "isr"


class UnderReplicatedCondition(SignalCondition):
    """How many partitions have fewer in-sync replicas than replicas."""

    signal = "under_replicated"


class LeaderlessCondition(SignalCondition):
    """How many partitions have no leader."""

    signal = "leaderless"


class InFlightCondition(SignalCondition):
    """How many partitions are being reassigned."""

    signal = "in_flight"


class MoveShare(Shorthand):
    """As soon as this share of a move's bytes has arrived; of every move requested so far unless a topic is given."""

    shorthand = "share"

    share: Annotated[
        float,
        parsed(lambda value: 1.0 if value == "done" else parse_percent(value)),
        WithJsonSchema({"type": "string", "examples": ["50%", "done"]}),
        Field(description="A share such as 50%, or `done`, which is 100 %: the move is complete."),
    ]
    topic: OptionalTopic = None

    def met_s(self, now_s: float, seen: Observations) -> float | None:
        """Return `now_s` when the share of every requested move has arrived; None before."""
        requested = [self.topic] if self.topic is not None else list(seen.moved)
        if not requested or any(topic not in seen.moved for topic in requested):
            return None
        if self.share >= 1:
            return now_s if seen.done.issuperset(requested) else None
        return now_s if min(seen.moved[topic] for topic in requested) >= self.share else None

    def __str__(self) -> str:
        of = f" of {self.topic}" if self.topic else ""
        return f"after move{of} {'done' if self.share >= 1 else f'{self.share * 100:g}%'}"


Trigger = AtTime | SignalCondition | MoveShare


class TriggerForm(OneKey, Shorthand):
    """When the entry acts: a time after the start, or one condition."""

    what = "a trigger"
    shorthand = "time"

    time: Annotated[Duration | None, Field(description="Time after the start.")] = None
    move_progress: Annotated[MoveShare | None, Field(description="A share of a move's bytes, or `done`.")] = None
    isr: Annotated[IsrCondition | None, Field(description="The smallest number of in-sync replicas.")] = None
    under_replicated: Annotated[
        UnderReplicatedCondition | None, Field(description="Partitions with replicas out of sync.")
    ] = None
    leaderless: Annotated[LeaderlessCondition | None, Field(description="Partitions without a leader.")] = None
    in_flight: Annotated[InFlightCondition | None, Field(description="Partitions that are being reassigned.")] = None

    @property
    def trigger(self) -> Trigger:
        """Return the trigger."""
        found: Trigger = AtTime(self.time) if self.time is not None else self.value
        return found
