"""The form of an incident file: the fields a person may write, and nothing else.

Descriptions, patterns and examples here are what editors show through the JSON schema. What needs two values (an
unknown topic, a remedy for an entry that is not there) is checked by `rules`.
"""

import re
from collections.abc import Callable
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictBool, WithJsonSchema, model_validator
from pydantic.json_schema import SkipJsonSchema
from pydantic_core import PydanticCustomError

from testbed.incidents import actions, expectations
from testbed.incidents.trigger import Moved, When, parse_after, parse_when
from testbed.suggestions import show
from testbed.topology import rules
from testbed.units import parse_byte_rate, parse_duration, parse_size

NAME = r"^[a-z][a-z0-9]*(-[a-z0-9]+)*$"
TOPIC = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"
PARAMETER = r"^[a-z][a-z0-9_]*$"
_NUMBER = r"[0-9]+(\.[0-9]+)?"
_VARIED = r"|\$[a-z][a-z0-9_]*"
DURATION = rf"^({_NUMBER} ?(us|ms|s|min|h){_VARIED})$"
SIZE = rf"^({_NUMBER} ?(B|kB|KB|MB|GB|KiB|MiB|GiB){_VARIED})$"
BYTE_RATE = rf"^({_NUMBER} ?(B|kB|KB|MB|GB|KiB|MiB|GiB)/s{_VARIED})$"
MAX_PARTITIONS, MAX_BYTES = 500, 4 * 10**9


def problem(message: str) -> PydanticCustomError:
    """An error whose whole text is `message` (braces are text, not placeholders)."""
    return PydanticCustomError("incident", "{message}", {"message": message})


def _parsed(parse: Callable[[Any], Any]) -> BeforeValidator:
    """Read a value with `parse`, whose ValueError is the message."""

    def validate(value: Any) -> Any:
        try:
            return parse(value)
        except ValueError as error:
            raise problem(str(error)) from None

    return BeforeValidator(validate)


def _named(pattern: str, what: str, such_as: str) -> BeforeValidator:
    def parse(value: Any) -> str:
        if not isinstance(value, str) or not re.fullmatch(pattern.strip("^$"), value):
            raise ValueError(f"{show(value)} is not {what}; allowed: {such_as}")
        return value

    return _parsed(parse)


def _line(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{show(value)} is not text; allowed: text (in quotes if need be)")
    return " ".join(value.split())


def _scalar(value: Any) -> str:
    if not isinstance(value, str | int | float):
        raise ValueError(f"{show(value)} is no value; allowed: text, a number, true or false")
    return str(value).lower() if isinstance(value, bool) else str(value)


def _property(value: Any) -> str:
    text = _scalar(value)
    if (wrong := rules.property_value_problem(text)) is not None:
        raise ValueError(wrong)
    return text


def _count(most: int) -> Callable[[Any], int]:
    def parse(value: Any) -> int:
        text = str(value)
        if isinstance(value, bool) or not text.isdecimal() or not 1 <= int(text) <= most:
            raise ValueError(f"{show(value)}: allowed: a whole number from 1 to {most}")
        return int(text)

    return parse


def _one_or_more(value: Any) -> tuple[Any, ...]:
    if value == []:
        raise ValueError("an empty list; allowed: one or more, or leave the field out")
    return tuple(value) if isinstance(value, list) else (value,)


def _hosts(value: Any) -> tuple[tuple[str, ...], ...]:
    nested = value if isinstance(value, list) and value and isinstance(value[0], list) else [value]
    for hosts in nested:
        if not isinstance(hosts, list) or not hosts or not all(isinstance(host, str) for host in hosts):
            raise ValueError(f"{show(value)} is no placement; allowed: [b1, b2], or a list of such lists")
        if len(set(hosts)) < len(hosts):
            raise ValueError("a host is given twice; allowed: each once")
    return tuple(tuple(hosts) for hosts in nested)


_SENTENCES = {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]}
Line = Annotated[str, _parsed(_line), WithJsonSchema({"type": "string", "minLength": 1})]
Name = Annotated[
    str,
    _named(NAME, "a name", "small letters, digits and single hyphens"),
    WithJsonSchema({"type": "string", "pattern": NAME}),
]
TopicName = Annotated[
    str,
    _named(TOPIC, "a topic's name", "letters, digits, - . and _"),
    WithJsonSchema({"type": "string", "pattern": TOPIC}),
]
ParameterName = Annotated[str, _named(PARAMETER, "a parameter's name", "small letters, digits and _")]
Duration = Annotated[
    float, _parsed(parse_duration), WithJsonSchema({"type": "string", "pattern": DURATION, "examples": ["30s", "2min"]})
]
Size = Annotated[
    int, _parsed(parse_size), WithJsonSchema({"type": "string", "pattern": SIZE, "examples": ["100MB", "4KiB"]})
]
ByteRate = Annotated[
    int, _parsed(parse_byte_rate), WithJsonSchema({"type": "string", "pattern": BYTE_RATE, "examples": ["5MB/s"]})
]
Scalar = Annotated[str, _parsed(_scalar), WithJsonSchema({"type": ["string", "number", "boolean"]})]
PropertyName = Annotated[str, _named(r"^[a-z][A-Za-z0-9._-]*$", "a property", "such as num.replica.fetchers")]
Property = Annotated[str, _parsed(_property), WithJsonSchema({"type": ["string", "number", "boolean"]})]


def _whole(most: int) -> Any:
    return WithJsonSchema(
        {"anyOf": [{"type": "integer", "minimum": 1, "maximum": most}, {"type": "string", "pattern": r"^\$"}]}
    )


class _Surface(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)


class TopicForm(_Surface):
    """A topic before the incident."""

    partitions: Annotated[
        int, _parsed(_count(MAX_PARTITIONS)), _whole(MAX_PARTITIONS), Field(description="How many partitions.")
    ]
    replicas: Annotated[
        tuple[tuple[str, ...], ...],
        _parsed(_hosts),
        WithJsonSchema({"type": "array", "minItems": 1, "items": {"type": ["string", "array"]}}),
        Field(description="Hosts of each partition's replicas, the leader first; or a list of such lists, in turn."),
    ]
    size: Annotated[
        Size | SkipJsonSchema[None], Field(description="Bytes of all records together; none unless given.")
    ] = None
    records: Annotated[
        int | SkipJsonSchema[None],
        _parsed(_count(10**7)),
        _whole(10**7),
        Field(description="Records of all partitions together, in place of size."),
    ] = None
    record_size: Annotated[Size, Field(description="Bytes of a record.")] = 4096
    configs: Annotated[
        dict[PropertyName, Property] | SkipJsonSchema[None], Field(description="The topic's own configuration.")
    ] = None

    @model_validator(mode="after")
    def _one_measure(self) -> Self:
        if self.size is not None and self.records is not None:
            raise problem("size stands beside records; allowed: one of them")
        if not 64 <= self.record_size <= 2**20:
            raise problem(f"record_size of {self.record_size} bytes; allowed: 64B to 1MiB")
        if max(self.size or 0, (self.records or 0) * self.record_size) > MAX_BYTES:
            raise problem("more than 4 GB; allowed: 4 GB in a topic")
        return self


class ThrottleForm(_Surface):
    """A throttle that is there already."""

    rate: Annotated[ByteRate, Field(description="Of every broker, as leader and as follower.")]
    topics: Annotated[list[str], Field(description="Topics all of whose replicas are listed (*).")] = []


class StateForm(_Surface):
    """What the cluster looks like when the incident begins."""

    topics: Annotated[dict[TopicName, TopicForm], Field(min_length=1, description="The topics by name.")]
    properties: Annotated[
        dict[PropertyName, Property] | SkipJsonSchema[None],
        Field(description="Broker properties over the topology's."),
    ] = None
    throttle: Annotated[ThrottleForm | SkipJsonSchema[None], Field(description="A throttle somebody left behind.")] = (
        None
    )


class LoadForm(_Surface):
    """One open-loop producer: it keeps its rate, whatever the cluster does."""

    produce: Annotated[ByteRate, Field(description="Bytes of records a second.")]
    to: Annotated[str, Field(description="An empty topic of the incident.")]
    record_size: Annotated[Size, Field(description="Bytes of a record.")] = 4096

    @model_validator(mode="after")
    def _few(self) -> Self:
        if not 64 <= self.record_size <= 2**20:
            raise problem(f"record_size of {self.record_size} bytes; allowed: 64B to 1MiB")
        if self.produce / self.record_size > 1000:
            raise problem("more than 1000 records a second; allowed: a lower rate, or a larger record_size")
        return self


class EntryForm(_Surface):
    """One entry of the timeline: when, what is done, and what is expected from then on."""

    name: Annotated[Name | SkipJsonSchema[None], Field(description="For the remedy and the report.")] = None
    at: Annotated[Duration | SkipJsonSchema[None], Field(description="Time after the beginning.")] = None
    when: Annotated[
        When | SkipJsonSchema[None],
        _parsed(parse_when),
        WithJsonSchema({"type": "string", "examples": ["isr < 2", "under_replicated of orders > 0"]}),
        Field(description="SIGNAL [of TOPIC] < NUMBER; signals: isr, under_replicated, leaderless, in_flight."),
    ] = None
    after: Annotated[
        Moved | SkipJsonSchema[None],
        _parsed(parse_after),
        WithJsonSchema({"type": "string", "examples": ["move 50%", "move of orders done"]}),
        Field(description="A share of a move's bytes, or the whole of it."),
    ] = None
    delay: Annotated[Duration, Field(description="So long after the trigger came.")] = 0.0
    within: Annotated[
        Duration | SkipJsonSchema[None],
        Field(description="The trigger must come by then (time after the beginning), or the replay is inconclusive."),
    ] = None
    optional: Annotated[StrictBool, Field(description="The trigger need not come.")] = False
    do: Annotated[
        tuple[Annotated[Any, _parsed(actions.parse_action)], ...],
        _parsed(_one_or_more),
        WithJsonSchema(_SENTENCES),
        Field(description="An action or a fault, or a list of them, done one after the other."),
    ] = ()
    expect: Annotated[
        tuple[Annotated[Any, _parsed(expectations.parse_expectation)], ...],
        _parsed(_one_or_more),
        WithJsonSchema(_SENTENCES),
        Field(description="What is expected from then on to the end, or a list of it."),
    ] = ()

    @model_validator(mode="after")
    def _whole(self) -> Self:
        given = [name for name in ("at", "when", "after") if getattr(self, name) is not None]
        if len(given) > 1:
            raise problem(f"{' and '.join(given)} in one entry; allowed: one of at, when, after")
        if not self.do and not self.expect:
            raise problem("nothing to do and nothing to expect; allowed: do, expect, or both")
        if not given and self.do:
            raise problem("it does not say when; allowed: at, when or after")
        return self


class FaultyForm(_Surface):
    """The practice that went wrong: the timeline as it stands."""

    summary: Annotated[Line, Field(description="What is done wrong.")]
    fails: Annotated[list[str], Field(min_length=1, description="Names of the expectations that it fails.")]


class RemedyForm(_Surface):
    """The practice that is right: what differs from the timeline. It is expected to pass everything."""

    summary: Annotated[Line, Field(description="What is done instead.")]
    parameters: Annotated[dict[str, Scalar], Field(description="Other values of parameters.")] = {}
    replace: Annotated[dict[str, EntryForm], Field(description="Named entries that are different.")] = {}
    drop: Annotated[list[str], Field(description="Named entries that are left out.")] = []
    add: Annotated[list[EntryForm], Field(description="Entries that come in addition.")] = []


class IncidentForm(_Surface):
    """What went wrong once, to be played again. Documented in docs/incidents.md."""

    name: Annotated[Name, Field(description="The incident's name, best that of its file.")]
    summary: Annotated[Line, Field(description="What happens, in a sentence or two.")]
    reference: Annotated[Line | SkipJsonSchema[None], Field(description="Where it is told of.")] = None
    topology: Annotated[str, Field(description="A ready topology's name, or a path (from this file's folder).")]
    lasts: Annotated[Duration, Field(description="The replay ends then at the latest.")]
    settle: Annotated[
        Duration, Field(description="How long is watched after the last entry has acted and every move is done.")
    ] = 3.0
    parameters: Annotated[
        dict[ParameterName, Scalar],
        Field(description="Values that `$NAME` stands for anywhere below, and that --vary may change."),
    ] = {}
    state: Annotated[StateForm, Field(description="What the cluster looks like at the beginning.")]
    load: Annotated[LoadForm | SkipJsonSchema[None], Field(description="Who writes meanwhile, if anybody.")] = None
    timeline: Annotated[list[EntryForm], Field(min_length=1, description="What happens when.")]
    faulty: Annotated[FaultyForm, Field(description="The practice that went wrong: the timeline as it stands.")]
    remedy: Annotated[RemedyForm, Field(description="The practice that is right: what differs.")]
