"""Faults as text: `broker-kill host=b2`."""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, fields
from functools import cache
from typing import Any

from testbed.catalogue import discovered
from testbed.errors import UsageError
from testbed.faults.fault import Fault
from testbed.suggestions import did_you_mean, existing


@cache
def kinds() -> Mapping[str, type[Fault]]:
    """Return every kind of fault by name: each module of `testbed.faults.catalogue` has one, called FAULT."""
    return {fault.kind: fault for fault in discovered("testbed.faults.catalogue", "FAULT").values()}


def parameters(kind: type[Fault]) -> tuple["Field[Any]", ...]:
    """Return the fields of a kind that are written as `name=VALUE`."""
    return tuple(each for each in fields(kind) if "parse" in each.metadata)


def usage(kind: type[Fault]) -> str:
    """Return the usage of a kind: `nic-rate host=… rate=… [direction=both]`."""
    words = [
        f"{each.name}=…" if each.default is MISSING else f"[{each.name}={each.metadata['show'](each.default)}]"
        for each in parameters(kind)
    ]
    return " ".join([kind.kind, *words])


def parse_fault(text: str) -> Fault:
    """Return the fault in a text. Raise `UsageError` with every mistake in it."""
    words = text.split()
    if not words:
        raise UsageError(f"no fault given; there are {', '.join(kinds())}")
    name, *settings = words
    kind = kinds()[existing("fault", name, kinds())]
    known = {each.name: each for each in parameters(kind)}
    values: dict[str, object] = {}
    problems = []
    for word in settings:
        key, equals, value = word.partition("=")
        if not equals:
            problems.append(f"{word}: expected NAME=VALUE")
        elif key not in known:
            problems.append(f"{word}: there is no parameter {key!r}{did_you_mean(key, list(known))}")
        elif key in values:
            problems.append(f"{word}: {key} is given twice")
        else:
            try:
                values[key] = known[key].metadata["parse"](value)
            except ValueError as error:
                values[key] = None
                problems.append(f"{word}: {error}")
    problems += [
        f"{each.name} is missing: {each.metadata['help']}"
        for each in known.values()
        if each.default is MISSING and each.name not in values
    ]
    if problems:
        raise UsageError("\n  ".join([f"{text.strip()}: written as `{usage(kind)}`", *problems]))
    return kind(**values)


def split_faults(words: Sequence[str]) -> list[str]:
    """Return the texts of several faults in a list of words: a word without `=` begins the next fault."""
    texts: list[str] = []
    for word in " ".join(words).split():
        if "=" in word and texts:
            texts[-1] += f" {word}"
        else:
            texts.append(word)
    return texts


def as_text(fault: Fault) -> str:
    """Return the text of a fault, the inverse of `parse_fault`, without defaults and remembered fields."""
    words = [fault.kind]
    for each in parameters(type(fault)):
        value = getattr(fault, each.name)
        if each.default is MISSING or value != each.default:
            words.append(f"{each.name}={each.metadata['show'](value)}")
    return " ".join(words)


def notes(fault: Fault) -> dict[str, Any]:
    """Return the remembered fields; with `as_text` they are the whole fault."""
    return {each.name: getattr(fault, each.name) for each in fields(fault) if "noted" in each.metadata}
