"""Read a form although parts of it are wrong, so that one answer names every mistake.

Pydantic gives no model while anything is wrong, and the rules between values need one: what it refuses is replaced
by something harmless, and no rule is then applied there.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from testbed.document import Document, Path, Problem
from testbed.incidents.surface import (
    EntryForm,
    FaultyForm,
    IncidentForm,
    LoadForm,
    RemedyForm,
    StateForm,
    ThrottleForm,
    TopicForm,
)
from testbed.suggestions import choices, did_you_mean, show

_ROUNDS = 6
_GONE = object()
_ENTRY = {"at": "0s", "expect": "no records lost"}
_NEEDED = {
    "name": "the incident's name, such as move-before-quota",
    "summary": "a sentence",
    "topology": "a ready topology's name, or a path",
    "lasts": "how long the replay may take, such as 60s",
    "state": "the topics, such as {topics: {orders: {partitions: 10, replicas: [b1]}}}",
    "topics": "the topics by name",
    "timeline": "a list of entries",
    "faulty": "{summary: …, fails: […]}",
    "remedy": "{summary: …} and what differs",
    "fails": "names of expectations",
    "partitions": "how many",
    "replicas": "hosts, such as [b1, b2]",
    "rate": "such as 5MB/s",
    "produce": "such as 2MB/s",
    "to": "a topic",
}


def salvage(
    values: Mapping[str, Any], located: Document, known_wrong: Sequence[Path] = ()
) -> tuple[IncidentForm | None, list[Problem], list[Path]]:
    """The form as far as it is valid, what is wrong with its values, and where that is.

    Of the places in `known_wrong` something has been said already.
    """
    problems: list[Problem] = []
    refused: list[Path] = list(known_wrong)
    current: Any = _without_nulls(dict(values), (), located, problems, refused)
    for _ in range(_ROUNDS):
        try:
            return IncidentForm.model_validate(current), problems, refused
        except ValidationError as refusal:
            errors = sorted(refusal.errors(include_url=False), key=lambda e: e["type"] != "extra_forbidden")
        for error in errors:
            path = _place(error["loc"], current)
            at_key = error["loc"][-1:] == ("[key]",) or error["type"] == "extra_forbidden"
            if not any(path[: len(known)] == known or known[: len(path)] == path for known in refused):
                problems.append(located.problem(path, _message(error, path), at_key))
            if error["type"] == "extra_forbidden":
                # A misspelt name explains that the right one is missing.
                meant = did_you_mean(path[-1], _fields_at(path[:-1]))
                if meant:
                    refused.append((*path[:-1], meant.removeprefix("; did you mean ").removesuffix("?")))
                current = _edited(current, path, _GONE)
                continue
            unit, stand_in = _unit(path)
            refused.append(unit)
            current = _edited(current, unit, stand_in)
    return None, problems, refused


def _place(loc: Path, values: Any) -> Path:
    """Where in the file an error is: without the names of validators, and indexes of what is no list there."""
    path: list[str | int] = []
    here = values
    for part in loc:
        if isinstance(part, int) and not isinstance(here, list):
            break
        if isinstance(part, str) and (part == "[key]" or part.startswith("function-")):
            continue
        path.append(part)
        known = isinstance(part, int) and isinstance(here, list) and part < len(here)
        here = here[part] if known or (isinstance(here, Mapping) and part in here) else None
    return tuple(path)


def _unit(path: Path) -> tuple[Path, object]:
    """The smallest part that can be replaced as a whole, and by what."""
    match path:
        case ("timeline" | "state" | "faulty" | "remedy" | "parameters",) | ():
            return path, _whole(path)
        case ("timeline", int(), *_):
            return path[:2], dict(_ENTRY)
        case ("remedy", "add", int(), *_):
            return path[:3], dict(_ENTRY)
        case ("remedy", "replace", _, *_):
            return path[:3], dict(_ENTRY)
        case ("state", "topics"):
            return path, _topics()
        case ("state", "topics", _, *_):
            return path[:3], dict(_TOPIC)
        case ("name" | "summary",) | (_, "summary"):
            return path, "stand-in"
        case ("topology",):
            return path, ""
        case ("lasts",):
            return path, "24h"
        case ("faulty", "fails", *_):
            return path[:2], ["stand-in"]
        case _:
            return path[:1] if path[0] in ("load", "settle", "reference") else path, _GONE


_TOPIC = {"partitions": 1, "replicas": ["stand-in"]}


def _topics() -> dict[str, Any]:
    return {"stand-in": dict(_TOPIC)}


def _whole(path: Path) -> object:
    stand_ins: dict[Path, Any] = {
        ("timeline",): [dict(_ENTRY)],
        ("state",): {"topics": _topics()},
        ("faulty",): {"summary": "stand-in", "fails": ["stand-in"]},
        ("remedy",): {"summary": "stand-in"},
        ("parameters",): {},
    }
    return stand_ins.get(path, _GONE)


def _message(error: ErrorDetails, path: Path) -> str:
    found = error["input"]
    names = _fields_at(path[:-1])
    match error["type"]:
        case "incident":
            text = error["msg"]
        case "extra_forbidden":
            text = f"unknown field {show(path[-1])}; allowed: {choices(names)}{did_you_mean(path[-1], names)}"
        case "missing":
            text = f"missing; allowed: {_NEEDED.get(str(path[-1]), 'a value')}"
        case "model_type" | "dict_type":
            fields = _fields_at(path)
            text = f"{show(found)} instead of a mapping" + (f"; allowed: {choices(fields)}" if fields else "")
        case "list_type" | "tuple_type":
            text = f"{show(found)} instead of a list"
        case "string_type":
            text = f"{show(found)} is not text; allowed: text (in quotes if need be)"
        case "bool_type" | "bool_parsing":
            text = f"{show(found)}; allowed: true or false"
        case "too_short":
            text = "it is empty; allowed: one or more"
        case _:
            text = f"{show(found)}: {error['msg']}"
    return text


def _fields_at(path: Path) -> list[str]:
    """The fields that may stand in the mapping at `path`; none where names are free."""
    form: type[BaseModel]
    match path:
        case ():
            form = IncidentForm
        case ("timeline", _) | ("remedy", "replace" | "add", _):
            form = EntryForm
        case ("state",):
            form = StateForm
        case ("state", "topics", _):
            form = TopicForm
        case ("state", "throttle"):
            form = ThrottleForm
        case ("load",):
            form = LoadForm
        case ("faulty",):
            form = FaultyForm
        case ("remedy",):
            form = RemedyForm
        case _:
            return []
    return list(form.model_fields)


def _edited(values: Any, path: Sequence[str | int], new: object) -> Any:
    """A copy of `values` with the value at `path` replaced or gone; unchanged where there is no such place."""
    head, rest = path[0], path[1:]
    if isinstance(values, list) and isinstance(head, int):
        edited = [(_edited(v, rest, new) if rest else new) if i == head else v for i, v in enumerate(values)]
        return [value for value in edited if value is not _GONE]
    if not isinstance(values, Mapping):
        return values
    if rest:
        return {key: _edited(value, rest, new) if key == head else value for key, value in values.items()}
    kept = {key: value for key, value in values.items() if key != head}
    return kept if new is _GONE else {**kept, str(head): new}


def _without_nulls(values: Any, path: Path, located: Document, problems: list[Problem], refused: list[Path]) -> Any:
    """Fields left empty: `rate:` with nothing behind it is a slip."""
    if isinstance(values, list):
        return [_without_nulls(v, (*path, i), located, problems, refused) for i, v in enumerate(values)]
    if not isinstance(values, Mapping):
        return values
    kept = {}
    for key, value in values.items():
        here = (*path, key)
        if value is None:
            text = "nothing is given; allowed: a value, or leave the field out"
            problems.append(located.problem(here, text))
            refused.append(here)
        else:
            kept[key] = _without_nulls(value, here, located, problems, refused)
    return kept
