"""Field types and model bases of an incident's file. Each type parses its text, and its errors name the allowed values.

Editors show descriptions, patterns and examples through the JSON schema.
"""

import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    WithJsonSchema,
    create_model,
    model_validator,
)

from results.contract.document import refusal
from results.criteria.timeline_expectation import Reference
from testbed.form import text_schema
from testbed.suggestions import choices, show
from testbed.topology.values import NUMBER, PropertyValue
from testbed.units import format_duration, parse_byte_rate, parse_duration, parse_share, parse_size

NAME = r"^[a-z][a-z0-9]*(-[a-z0-9]+)*$"
TOPIC = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"
PARAMETER = r"^[a-z][a-z0-9_]*$"
_VARIED = r"|\$[a-z][a-z0-9_]*"
DURATION = rf"^({NUMBER} ?(us|ms|s|min|h){_VARIED})$"
SIZE = rf"^({NUMBER} ?(B|kB|KB|MB|GB|KiB|MiB|GiB){_VARIED})$"
BYTE_RATE = rf"^({NUMBER} ?(B|kB|KB|MB|GB|KiB|MiB|GiB)/s{_VARIED})$"


def _reader(parse: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        try:
            return parse(value)
        except ValueError as error:
            raise refusal(str(error)) from None

    return read


def parsed(parse: Callable[[Any], Any]) -> BeforeValidator:
    """Return a validator that parses a value with `parse`. The message is that of its ValueError."""
    return BeforeValidator(_reader(parse))


def parse_percent(value: object) -> float:
    """Return the share of a text, 0.5 for `50%`. Raise ValueError outside 0% to 100%."""
    share = parse_share(value) / 1e6
    if share > 1:
        raise ValueError(f"{show(value)} is not a share; allowed: 0% to 100%")
    return share


def format_seconds(seconds: float) -> str:
    """Return `90s` for 90 and `500ms` for 0.5: a timeline uses seconds, also beyond a minute."""
    return f"{seconds:g}s" if seconds >= 1 else format_duration(seconds)


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{show(value)} is not text; allowed: text (in quotes if need be)")
    return " ".join(value.split())


def scalar(value: Any) -> str:
    """Return the text of a text, a number, true or false. Raise ValueError for a list or a mapping."""
    if not isinstance(value, str | int | float):
        raise ValueError(f"{show(value)} is no value; allowed: text, a number, true or false")
    return str(value).lower() if isinstance(value, bool) else str(value)


def _named(pattern: str, what: str, such_as: str) -> BeforeValidator:
    def parse(value: Any) -> str:
        if not isinstance(value, str) or not re.fullmatch(pattern.strip("^$"), value):
            raise ValueError(f"{show(value)} is not {what}; allowed: {such_as}")
        return value

    return parsed(parse)


def _throttle_rate(value: Any) -> int:
    rate = parse_byte_rate(value)
    if rate < 1:
        raise ValueError("a throttle of nothing; allowed: 1B/s or more")
    return rate


def whole_number(most: int) -> tuple[BeforeValidator, WithJsonSchema]:
    """Return the validator and the schema of a whole number from 1 to `most`."""

    def parse(value: Any) -> int:
        text = str(value)
        if isinstance(value, bool) or not text.isdecimal() or not 1 <= int(text) <= most:
            raise ValueError(f"{show(value)}: allowed: a whole number from 1 to {most}")
        return int(text)

    number = {"type": "integer", "minimum": 1, "maximum": most}
    return parsed(parse), WithJsonSchema({"anyOf": [number, {"type": "string", "pattern": r"^\$"}]})


def one_or_more(value: Any) -> tuple[Any, ...]:
    """Return a list's items, or the single value. Raise ValueError for an empty list."""
    if value == []:
        raise ValueError("an empty list; allowed: one or more, or leave the field out")
    return tuple(value) if isinstance(value, list) else (value,)


def _placement(value: Any) -> list[list[str]]:
    nested = value if isinstance(value, list) and value and isinstance(value[0], list) else [value]
    for hosts in nested:
        if not isinstance(hosts, list) or not hosts or not all(isinstance(host, str) for host in hosts):
            raise ValueError(f"{show(value)} is no placement; allowed: [b1, b2], or a list of such lists")
        if len(set(hosts)) < len(hosts):
            raise ValueError("a host is given twice; allowed: each once")
    return nested


Text = Annotated[str, parsed(_text), WithJsonSchema({"type": "string", "minLength": 1})]
Name = Annotated[str, _named(NAME, "a name", "small letters, digits and single hyphens"), text_schema(NAME)]
TopicName = Annotated[str, _named(TOPIC, "a topic's name", "letters, digits, - . and _"), text_schema(TOPIC)]
ParameterName = Annotated[str, _named(PARAMETER, "a parameter's name", "small letters, digits and _")]
Duration = Annotated[float, parsed(parse_duration), text_schema(DURATION, "30s", "2min")]
Size = Annotated[int, parsed(parse_size), text_schema(SIZE, "100MB", "4KiB")]
ByteRate = Annotated[int, parsed(parse_byte_rate), text_schema(BYTE_RATE, "5MB/s")]
ThrottleRate = Annotated[int, parsed(_throttle_rate), text_schema(BYTE_RATE, "5MB/s")]
_SCALAR = WithJsonSchema({"type": ["string", "number", "boolean"]})
Scalar = Annotated[str, parsed(scalar), _SCALAR]
PropertyName = Annotated[str, _named(r"^[a-z][A-Za-z0-9._-]*$", "a property", "such as num.replica.fetchers")]
Property = Annotated[PropertyValue, _SCALAR]
Placement = Annotated[
    list[list[str]],
    Reference("broker"),
    parsed(_placement),
    WithJsonSchema({"type": "array", "minItems": 1, "items": {"type": ["string", "array"]}}),
]
"""Hosts of the replicas of all partitions, or of each partition in turn."""
OptionalTopic = Annotated[str | None, Reference("topic"), Field(description="One topic; all unless given.")]
TopicNames = Annotated[list[str], Reference("topic")]

CONTEXT: Mapping[str, Callable[[Any], Any]] = {
    "duration": _reader(parse_duration),
    "byte_rate": _reader(parse_byte_rate),
    "share": _reader(parse_percent),
    "size": _reader(parse_size),
}
"""The parsers of the quantities in a file's expectations."""


class IncidentModel(BaseModel):
    """A mapping of the file: no other fields, and immutable. A parameter's value is text, also for a number."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class OneKey(IncidentModel):
    """A mapping of exactly one key, which says what it is, to that one's parameters."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1, "maxProperties": 1})
    what: ClassVar[str]

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        given = sorted(self.model_fields_set)
        if len(given) != 1:
            allowed = choices(sorted(type(self).model_fields))
            found = f"{' and '.join(given)} in one mapping" if given else "an empty mapping"
            raise refusal(f"{found}; allowed: {self.what} with one of the keys {allowed}")
        return self

    @property
    def value(self) -> Any:
        """Return the parameters, as the model of their key."""
        return getattr(self, next(iter(self.model_fields_set)))


def one_key(name: str, noun: str, known: Mapping[str, type[BaseModel]]) -> type[OneKey]:
    """Return the model of a mapping with exactly one of these keys; `noun` says what it is: `action`."""
    fields: dict[str, Any] = {}
    for key, model in known.items():
        described = Field(default=None, description=(model.__doc__ or "").strip().split("\n")[0])
        fields[key] = (model | None, described)
    made = create_model(name, __base__=OneKey, __doc__=f"One {noun}, by its key.", **fields)
    made.what = f"an {noun}"
    return made


class Shorthand(IncidentModel):
    """A mapping that may be written as the value of its main field alone."""

    shorthand: ClassVar[str]

    @model_validator(mode="before")
    @classmethod
    def _from_scalar(cls, value: Any) -> Any:
        return {cls.shorthand: value} if isinstance(value, str | int | float) else value

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: Any, handler: Any) -> Any:
        """Return the schema of the mapping, or of the main field alone."""
        schema = handler(core_schema)
        whole = handler.resolve_ref_schema(schema)
        if "anyOf" not in whole:
            mapping = dict(whole)
            description = mapping.pop("description", None)
            short = dict(mapping["properties"][cls.shorthand])
            short.pop("description", None)
            whole.clear()
            whole |= {"anyOf": [short, mapping]} | ({"description": description} if description else {})
        return schema
