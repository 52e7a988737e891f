"""The forms of files that users write in YAML: the fields that a file may have, and their types.

`yaml_document.read` or `parse` returns a `Document`: plain values with their lines and columns. Then come two passes:

1. Types: `validate(document, Model)` returns the pydantic model, a subclass of `Form`, or raises the kind's error with
   every mistake. A validator refuses a value with `refusal(message)`, or through `check` and `quantity`.
2. Rules: the caller collects a `Violation` for each broken rule, and passes them to `document.raise_violations`.
"""

import json
import re
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, WithJsonSchema
from pydantic_core import ErrorDetails

from results.contract.document import refusal
from testbed.suggestions import choices, did_you_mean, nearest, show
from testbed.units import UnitError
from testbed.yaml_document import Document, FieldPath, FileKind, Problem

_MAX_DEPTH = 8
"""No form nests deeper. A document built in Python may contain itself."""


class Form(BaseModel):
    """The fields that a file may have: no other field, and no value turned into another type."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


F = TypeVar("F", bound=BaseModel)


def optional(description: str) -> Any:
    """Return a field that a file may leave out: None then."""
    return Field(default=None, description=description)


def text_schema(pattern: str, *examples: str) -> WithJsonSchema:
    """Return the JSON schema of a text for editors."""
    return WithJsonSchema({"type": "string", "pattern": pattern, **({"examples": list(examples)} if examples else {})})


def check(problem_of: Callable[[object], str | None]) -> BeforeValidator:
    """Return a validator that refuses a value when `problem_of` returns a message, and changes no value."""

    def validated(value: Any) -> Any:
        wrong = problem_of(value)
        if wrong is not None:
            raise refusal(wrong)
        return value

    return BeforeValidator(validated)


def quantity(parsed: Callable[[object], Any], problem_of: Callable[[Any, str], str | None]) -> BeforeValidator:
    """Return a validator that parses a number with its unit. `problem_of` takes the number and the text."""

    def validated(value: Any) -> Any:
        try:
            number = parsed(value)
        except UnitError as error:
            raise refusal(str(error)) from None
        wrong = problem_of(number, show(value))
        if wrong is not None:
            raise refusal(wrong)
        return number

    return BeforeValidator(validated)


def validate(document: Document, model: type[F]) -> F:
    """Return the document as a `model`. Raise the kind's error with every problem of YAML and types."""
    form, problems = validation_problems(document, model, document.values)
    document.raise_problems([*document.problems, *problems])
    assert form is not None
    return form


def validation_problems(
    document: Document, model: type[F], values: Any, context: Mapping[str, Any] | None = None
) -> tuple[F | None, list[Problem]]:
    """Return `values`, a part of `document`, as a `model`, or None and every problem. Validators may use `context`."""
    kind = document.kind
    if not isinstance(values, dict):
        found = "a list" if isinstance(values, list) else f"only {show(values)}"
        start = kind.start.replace(" and ", ": and ")
        return None, [document.problem((), f"found {found}, not a mapping; {kind.a_noun} starts with {start}:")]
    nulls = list(_nulls(values, ()))
    problems = [document.problem(path, "nothing is given; allowed: a value, or leave the field out") for path in nulls]
    refused = {*document.refused, *nulls}
    form = None
    try:
        form = model.model_validate(values, context=context)
    except ValidationError as error:
        # Unknown fields first: a misspelt name explains why the right one is missing.
        errors = sorted(error.errors(include_url=False), key=lambda each: each["type"] != "extra_forbidden")
        for each in errors:
            path = _place(each, values)
            if any(path[:end] in refused for end in range(1, len(path) + 1)):
                continue
            at_key = each["loc"][-1:] == ("[key]",) or each["type"] == "extra_forbidden"
            problems.append(document.problem(path, _message(each, path, model, kind), at_key))
            refused.add(path)
            if each["type"] == "extra_forbidden":
                right = nearest(path[-1], fields_at(model, path[:-1]))
                refused |= {(*path[:-1], right)} if right is not None else set()
    return (None if problems else form), problems


def _nulls(values: Any, path: FieldPath) -> Iterator[FieldPath]:
    """Yield the empty fields: `rate:` without a value is a mistake, not a request to inherit."""
    if len(path) >= _MAX_DEPTH:
        return
    if isinstance(values, list):
        for index, value in enumerate(values):
            yield from _nulls(value, (*path, index))
    elif isinstance(values, Mapping):
        for key, value in values.items():
            if value is None:
                yield (*path, key)
            else:
                yield from _nulls(value, (*path, key))


def _place(error: ErrorDetails, values: Any) -> FieldPath:
    """Return an error's path in the file. Pydantic's path also has names of validators and of unions' members."""
    path: list[str | int] = []
    here = values
    for part in error["loc"]:
        known: Any = dict(enumerate(here)) if isinstance(here, list) else here
        if isinstance(known, Mapping) and part in known:
            here = known[part]
            path.append(part)
    return (*path, error["loc"][-1]) if error["type"] == "missing" else tuple(path)


def _message(error: ErrorDetails, path: FieldPath, model: type[BaseModel], kind: FileKind) -> str:
    found = error["input"]
    match error["type"]:
        case "form":
            return error["msg"]
        case "extra_forbidden":
            return _unknown_field(path, model, kind)
        case "missing":
            return f"missing; allowed: {kind.missing.get(str(path[-1]), 'a value')}"
        case "model_type" | "dict_type":
            names = fields_at(model, path)
            return f"{show(found)} instead of a mapping" + (f"; allowed: {choices(names)}" if names else "")
        case "list_type" | "tuple_type":
            return f"{show(found)} instead of a list; allowed: a list, such as [r1, r2]"
        case "string_type":
            return f"{show(found)} is not text; allowed: text (in quotes if need be)"
        case "bool_type":
            return f"{show(found)}; allowed: true or false"
        case "literal_error":
            names = re.findall("'([^']*)'", error["ctx"]["expected"])
            return f"{show(found)}; allowed: {choices(names)}{did_you_mean(found, names)}"
        case "too_short":
            return "it is empty; allowed: one or more"
        case "too_long":
            return f"too many entries; allowed: {error.get('ctx', {}).get('max_length')} at most"
    return f"{show(found)}: {error['msg']}"


def _unknown_field(path: FieldPath, model: type[BaseModel], kind: FileKind) -> str:
    name, names = str(path[-1]), fields_at(model, path[:-1])
    hint = kind.unknown(path) or did_you_mean(name, names)
    if not hint:
        groups = (group for group in names if name in fields_at(model, (*path[:-1], group)))
        hint = next((f"; did you mean {group}: {{{name}: …}}?" for group in groups), "")
    return f"unknown field {show(name)}; allowed: {choices(names) if names else 'none'}{hint}"


def fields_at(model: type[BaseModel], path: FieldPath) -> list[str]:
    """Return the fields that the mapping at `path` may have; none where names are free."""
    here: Any = model
    for part in path:
        if isinstance(part, str) and get_origin(here) is list:  # a single value, which stands for a list of one
            here = _bare(get_args(here)[-1])
        if isinstance(here, type) and issubclass(here, BaseModel):
            known = here.model_fields.get(str(part))
            here = _bare(known.annotation) if known is not None else None
        elif get_origin(here) in (dict, list):
            here = _bare(get_args(here)[-1])
        else:
            here = None
    if get_origin(here) is list:
        here = _bare(get_args(here)[-1])
    return list(here.model_fields) if isinstance(here, type) and issubclass(here, BaseModel) else []


def _bare(annotation: Any) -> Any:
    """Return `X` for `Annotated[X | None, …]`; of several types the one with fields."""
    while hasattr(annotation, "__metadata__"):
        annotation = get_args(annotation)[0]
    if get_origin(annotation) not in (Union, types.UnionType):
        return annotation
    kinds = [_bare(each) for each in get_args(annotation)]
    return next((kind for kind in kinds if get_origin(kind) is dict or hasattr(kind, "model_fields")), kinds[0])


def editor_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return the model's JSON schema (draft 2020-12). A file leaves a field out: no type in it is null."""
    schema: dict[str, Any] = _without_null(model.model_json_schema())
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def schema_text(schema: Mapping[str, Any]) -> str:
    """Return the text of the committed schema file."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _without_null(part: Any) -> Any:
    if isinstance(part, list):
        return [_without_null(item) for item in part]
    if not isinstance(part, dict):
        return part
    kept = {key: _without_null(value) for key, value in part.items() if not (key == "default" and value is None)}
    alternatives = kept.get("anyOf")
    if isinstance(alternatives, list) and {"type": "null"} in alternatives:
        (only,) = [item for item in alternatives if item != {"type": "null"}]
        del kept["anyOf"]
        kept = {**only, **kept}
    if "patternProperties" in kept:
        kept["additionalProperties"] = False
    if "type" in kept or "$ref" in kept or "oneOf" in kept:
        kept.pop("title", None)
    return kept
