"""Sentences of an incident: each kind says its form once, as a pattern, and reads itself from a match. Pure."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Protocol, TypeVar

from testbed.discover import discovered
from testbed.incidents.words import split_names
from testbed.suggestions import choices, did_you_mean, show


class Phrase(Protocol):
    """A kind of sentence: a frozen dataclass that writes itself back with `str`."""

    name: ClassVar[str]
    form: ClassVar[str]
    """How it is written, for people: `restart HOST`."""
    pattern: ClassVar[re.Pattern[str]]

    @classmethod
    def read(cls, found: re.Match[str], /) -> "Phrase":
        """The sentence; raises ValueError (of which UnitError is one) saying what is allowed."""


P = TypeVar("P", bound=Phrase)


class PhraseError(ValueError):
    """A sentence that is none of its kind; the message says which there are."""


@dataclass(frozen=True, slots=True)
class Names:
    """The hosts, racks and topics that sentences may name."""

    brokers: tuple[str, ...]
    racks: tuple[str, ...]
    uplinks: tuple[str, ...]
    """Racks whose uplink has a rate of its own."""
    topics: tuple[str, ...]


def found_in(package: str) -> dict[str, Any]:
    """Every sentence of a package by name: each of its modules has one or more, in `PHRASES`."""
    found: dict[str, Any] = {}
    for module, phrases in discovered(package, "PHRASES").items():
        for phrase in phrases:
            if phrase.name in found:
                raise TypeError(f"{package}.{module}: there is a {phrase.name!r} already")
            found[phrase.name] = phrase
    return found


def read(text: object, kinds: Mapping[str, type[P]], what: str) -> P:
    """The sentence that `text` is. Raises `PhraseError`."""
    if not isinstance(text, str):
        raise PhraseError(f"{show(text)} is not {what}; allowed: a sentence such as {next(iter(kinds.values())).form}")
    plain = " ".join(text.split())
    for kind in kinds.values():
        match = kind.pattern.fullmatch(plain)
        if match is None:
            continue
        try:
            return kind.read(match)  # type: ignore[return-value]
        except ValueError as error:
            raise PhraseError(f"{show(plain)}: {error}; its form: {kind.form}") from None
    raise PhraseError(f"{show(plain)} is not {what}; {_forms(plain, kinds)}")


def _forms(plain: str, kinds: Mapping[str, type[P]]) -> str:
    """The form that was probably meant, by its first words; else all forms."""
    begun = [kind for kind in kinds.values() if plain.split(" ")[:1] == kind.form.split(" ")[:1]]
    if begun:
        return "allowed: " + choices([kind.form for kind in begun])
    firsts = {kind.form.split(" ", maxsplit=1)[0]: kind for kind in kinds.values()}
    meant = did_you_mean(plain.split(" ", maxsplit=1)[0], firsts)
    return "allowed: " + choices([kind.form for kind in kinds.values()]) + meant


def unknown_names(phrase: Phrase, names: Names) -> Iterable[str]:
    """What a sentence names that does not exist: its fields `host(s)`, `rack` and `topic(s)` are names."""
    known = {"host": names.brokers, "hosts": names.brokers, "rack": names.racks}
    known |= {"topic": names.topics, "topics": names.topics}
    for field in fields(phrase):  # type: ignore[arg-type]
        given = getattr(phrase, field.name)
        if field.name not in known or given is None:
            continue
        there = known[field.name]
        what = "broker" if field.name.startswith("host") else field.name.removesuffix("s")
        for name in split_names(given) if isinstance(given, str) else given:
            if name not in there:
                allowed = choices(there) if there else "none"
                yield f"there is no {what} {show(name)}; allowed: {allowed}{did_you_mean(name, there)}"
