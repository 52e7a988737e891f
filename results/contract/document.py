"""Dataclasses to and from plain JSON documents, by their annotations.

Every mistake of a document is found, not the first one only, and each is named by its path
(``move.flows[2].leader``). Unknown fields are mistakes: a misspelt name must not be dropped in silence.
"""

import dataclasses
import functools
import types
import typing
from collections.abc import Mapping
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

T = TypeVar("T")


class DocumentError(ValueError):
    """A document does not say what its type asks for; `problems` has one line per mistake."""

    def __init__(self, what: str, problems: tuple[str, ...]) -> None:
        self.problems = problems
        super().__init__(f"{what}: " + "; ".join(problems))


def encode(value: Any) -> Any:
    """A JSON-able copy of a dataclass, mapping, sequence or scalar."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: encode(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(k): encode(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [encode(v) for v in value]
    return value


def decode(kind: type[T], value: Any, what: str) -> T:
    """Build `kind` from a JSON document; raises DocumentError naming every wrong field of `what`."""
    problems: list[str] = []
    result = _decode(kind, value, "", problems)
    if problems:
        raise DocumentError(what, tuple(problems))
    return typing.cast(T, result)


def _decode(kind: Any, value: Any, path: str, problems: list[str]) -> Any:
    origin = get_origin(kind)
    if kind is Any or kind is object:
        return value
    if origin in (Union, types.UnionType):
        return _union(kind, value, path, problems)
    if origin is Literal:
        if value not in get_args(kind):
            allowed = ", ".join(repr(a) for a in get_args(kind))
            problems.append(f"{path}: found {value!r}; allowed: {allowed}")
        return value
    if dataclasses.is_dataclass(kind):
        return _dataclass(kind, value, path, problems)
    if origin is tuple:
        if not isinstance(value, list):
            problems.append(f"{path}: expected a list, found {_name(value)}")
            return ()
        item = get_args(kind)[0]
        return tuple(_decode(item, v, f"{path}[{i}]", problems) for i, v in enumerate(value))
    if origin is not None and issubclass(origin, Mapping):
        if not isinstance(value, dict):
            problems.append(f"{path}: expected an object, found {_name(value)}")
            return {}
        item = get_args(kind)[1]
        return {k: _decode(item, v, f"{path}.{k}", problems) for k, v in value.items()}
    return _scalar(kind, value, path, problems)


def _scalar(kind: Any, value: Any, path: str, problems: list[str]) -> Any:
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if type(value) is kind:
        return value
    wanted = {float: "a number", int: "a whole number", str: "a string", bool: "true or false"}
    problems.append(f"{path}: expected {wanted.get(kind, kind.__name__)}, found {_name(value)}")
    return value


def _union(kind: Any, value: Any, path: str, problems: list[str]) -> Any:
    options = get_args(kind)
    if value is None and type(None) in options:
        return None
    real = [o for o in options if o is not type(None)]
    attempts: list[list[str]] = []
    for option in real:
        found: list[str] = []
        result = _decode(option, value, path, found)
        if not found and (len(real) == 1 or type(value) is type(result)):
            return result
        attempts.append(found)
    for option in real:  # no exact type fits: an int is a number too
        found = []
        result = _decode(option, value, path, found)
        if not found:
            return result
    problems.extend(attempts[0] if len(real) == 1 else [f"{path}: found {_name(value)}; allowed: {kind}"])
    return value


def _dataclass(kind: Any, value: Any, path: str, problems: list[str]) -> Any:
    if not isinstance(value, dict):
        problems.append(f"{path or 'document'}: expected an object, found {_name(value)}")
        return None
    hints = _hints(kind)
    fields = {f.name: f for f in dataclasses.fields(kind)}
    prefix = f"{path}." if path else ""
    before = len(problems)
    for name in value.keys() - fields.keys():
        problems.append(f"{prefix}{name}: unknown field; known: {', '.join(fields)}")
    arguments: dict[str, Any] = {}
    for name, field in fields.items():
        if name in value:
            arguments[name] = _decode(hints[name], value[name], f"{prefix}{name}", problems)
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            problems.append(f"{prefix}{name}: missing")
    if len(problems) > before:
        return None
    try:
        return kind(**arguments)
    except ValueError as error:
        problems.append(f"{path or 'document'}: {error}")
        return None


@functools.cache
def _hints(kind: Any) -> dict[str, Any]:
    """A dataclass's annotations: resolving them takes longer than all the rest, and a night reads thousands."""
    return typing.get_type_hints(kind)


def _name(value: Any) -> str:
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= 40 else text[:37] + '...'}"
