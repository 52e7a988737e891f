"""Dataclasses to and from plain JSON documents, by their annotations, with pydantic.

Every mistake of a document is reported, each by its path (``move.flows[2].leader``). Unknown fields are mistakes, so
that a misspelt name is not ignored. Types are strict: a number is no text, and true is no number.
"""

import dataclasses
import functools
import types
import typing
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError, to_json, to_jsonable_python

T = TypeVar("T")
_EXPECTED = {
    "float_type": "a number",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "string_type": "text",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": "an object",
    "mapping_type": "an object",
    "dataclass_type": "an object",
}


class DocumentError(ValueError):
    """A document is not what its type asks for; `problems` has one line for each mistake."""

    def __init__(self, what: str, problems: tuple[str, ...]) -> None:
        self.problems = problems
        super().__init__(f"{what}: " + "; ".join(problems))


def refusal(message: str) -> PydanticCustomError:
    """Return a validator's error whose whole text is `message` (braces are text, not placeholders)."""
    return PydanticCustomError("form", "{message}", {"message": message})


def encode(value: Any) -> Any:
    """Return a JSON-able copy of a dataclass, mapping, sequence or scalar."""
    return to_jsonable_python(value, inf_nan_mode="constants")


def decode(kind: type[T], value: Any, what: str) -> T:
    """Build `kind` from a JSON document. Raise DocumentError that names every wrong field of `what`."""
    try:
        # In a list, since a dataclass cannot be given a configuration; from JSON, in which a tuple is a list.
        decoded: list[T] = _adapter(typing.cast(Hashable, kind)).validate_json(
            to_json([value], inf_nan_mode="constants")
        )
    except ValidationError as error:
        problems = dict.fromkeys(_problem(kind, each) for each in error.errors(include_url=False))
        raise DocumentError(what, tuple(problems)) from error
    return decoded[0]


@functools.cache
def _adapter(kind: Any) -> TypeAdapter[list[Any]]:
    return TypeAdapter(list[kind], config=ConfigDict(extra="forbid", strict=True))


def _problem(kind: Any, error: ErrorDetails) -> str:
    """Return one mistake as a line: its path, what was expected, and what was found."""
    path, owner, parent = "", kind, kind
    for part in error["loc"][1:]:
        parent, owner = owner, _inner(owner, part)
        if owner is None and error["type"] != "unexpected_keyword_argument":
            break  # the name of a union's alternative
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else part
    found = error["input"]
    match error["type"]:
        case "missing":
            return f"{path}: missing"
        case "unexpected_keyword_argument":
            known = next(each for each in _options(parent) if dataclasses.is_dataclass(each))
            return f"{path}: unknown field; known: {', '.join(f.name for f in dataclasses.fields(known))}"
        case "literal_error":
            return f"{path}: found {found!r}; allowed: {error['ctx']['expected'].replace(' or ', ', ')}"
        case "value_error":
            return f"{path or 'document'}: {error['ctx']['error']}"
        case kind_of_error if kind_of_error in _EXPECTED:
            text = repr(found)
            text = f"{type(found).__name__} {text if len(text) <= 40 else text[:37] + '...'}"
            return f"{path or 'document'}: expected {_EXPECTED[kind_of_error]}, found {text}"
    return f"{path or 'document'}: {error['msg']}"


def _inner(kind: Any, part: str | int) -> Any:
    """Return the type of a field, value or item of `kind`; None when it has none of that name."""
    for option in _options(kind):
        origin = get_origin(option)
        if dataclasses.is_dataclass(option):
            if part in (hints := get_type_hints(option)):
                return hints[str(part)]
        elif isinstance(origin, type) and issubclass(origin, Mapping) and isinstance(part, str):
            return get_args(option)[1]
        elif isinstance(origin, type) and issubclass(origin, Sequence) and isinstance(part, int):
            return get_args(option)[0]
    return None


def _options(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)
