"""Validate a form although parts of it are wrong, so that one answer names the mistakes of every kind.

Pydantic tells what is wrong with single values, but gives no model then, and the rules between values need
one. So what it refuses is taken out (or replaced by something harmless) and the rest is validated again; and
what then is missing only because it was taken out is not complained about a second time.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from testbed.topology.locate import Located
from testbed.topology.messages import message_of, nearest_field
from testbed.topology.problems import Broken, Path, Problem, show
from testbed.topology.surface import RACKS_LISTED, RACKS_MAPPED, TopologyForm

_ROUNDS = 4
"""Removing a bad value can bring out the next check of its mapping; forms are not nested deeper than this."""
_STAND_IN_NAME = "stand-in"
_STAND_IN_HOST = {"role": "both"}
_GONE = object()


class Explains:
    """Which broken rules follow from parts that were taken out."""

    def __init__(self) -> None:
        self.refused: list[Path] = []
        self.renamed: dict[str, str] = {}

    def __call__(self, broken: Broken) -> bool:
        """Whether this one is only a consequence."""
        return any(
            refused == source[: len(refused)] or source == refused[: len(source)]
            for source in map(self.original, broken.sources)
            for refused in self.refused
        )

    def words(self, message: str) -> str:
        """The message with the file's names instead of stand-ins."""
        for stand_in, name in self.renamed.items():
            message = message.replace(stand_in, show(name))
        return message

    def original(self, path: Path) -> Path:
        """The path as the file has it: a host whose name was refused goes on under a stand-in."""
        if len(path) > 1 and path[0] in ("hosts", "racks"):
            return (path[0], self.renamed.get(str(path[1]), path[1]), *path[2:])
        return path


def salvage(located: Located) -> tuple[TopologyForm | None, list[Problem], Explains]:
    """The form as far as it is valid (None when nothing can be made of it), and everything wrong with its
    values."""
    problems = list(located.problems)
    explains = Explains()
    values = _without_nulls(located.values, (), located, problems, explains)
    for _ in range(_ROUNDS):
        try:
            return TopologyForm.model_validate(values), problems, explains
        except ValidationError as refusal:
            # Unknown fields first: a misspelt name explains that the right one is missing.
            errors = sorted(refusal.errors(include_url=False), key=lambda e: e["type"] != "extra_forbidden")
        for error in errors:
            values = _take_out(error, values, located, problems, explains)
    return None, problems, explains


def _take_out(error: ErrorDetails, values: Any, located: Located, problems: list[Problem], explains: Explains) -> Any:
    path: Path = error["loc"]
    if path[:1] == ("racks",) and path[1:2] in ((RACKS_LISTED,), (RACKS_MAPPED,)):
        path = (path[0], *path[2:])
    about_key = path[-1:] == ("[key]",)
    path = path[:-1] if about_key else path
    original = explains.original(path)
    at_key = about_key or error["type"] == "extra_forbidden"
    # What is missing, or a mapping that is empty, may be so only because what stood there was refused.
    consequence = error["type"] in ("missing", "too_short") and explains(Broken(path, "", (path,)))
    if not consequence:
        problems.append(located.problem(original, message_of(error, original), at_key))
    if error["type"] == "extra_forbidden":
        meant = nearest_field(original)
        if meant is not None:
            explains.refused.append((*original[:-1], meant))
        return _edited(values, path, _GONE)
    if about_key and len(path) == 2 and path[0] in ("hosts", "racks"):
        group = str(path[0])
        stand_in = f"{_STAND_IN_NAME}-{len(explains.renamed) + 1}"
        explains.renamed[stand_in] = str(path[1])
        if group == "racks":
            explains.refused.append(("racks",))  # a host in that rack is right, once the name is
        named = {stand_in if key == path[1] else key: value for key, value in values[group].items()}
        return {**values, group: named}
    explains.refused.append(original)
    return _edited(values, path, _harmless(path))


def _harmless(path: Path) -> object:
    """What stands in for a field that cannot be done without; `_GONE` for all others."""
    match path:
        case ("hosts", _):
            return dict(_STAND_IN_HOST)
        case ("hosts", _, "role"):
            return "both"
        case ("name",):
            return _STAND_IN_NAME
        case ("software", "automq"):
            return {}
        case ("racks", int(index)):
            return f"{_STAND_IN_NAME}-{index}"
        case _:
            return _GONE


def _edited(values: Any, path: Path, new: object) -> Any:
    """A copy of `values` with the value at `path` replaced or gone; unchanged where there is no such
    place."""
    head, rest = path[0], path[1:]
    if isinstance(values, list) and isinstance(head, int):
        return [(_edited(v, rest, new) if rest else new) if i == head else v for i, v in enumerate(values)]
    if not isinstance(values, Mapping):
        return values
    if rest:
        return {key: _edited(value, rest, new) if key == head else value for key, value in values.items()}
    kept = {key: value for key, value in values.items() if key != head}
    return kept if new is _GONE else {**kept, head: new}


def _without_nulls(values: Any, path: Path, located: Located, problems: list[Problem], explains: Explains) -> Any:
    """Fields left empty: `rate:` with nothing behind it is a slip, not a wish to inherit."""
    if not isinstance(values, Mapping) or len(path) > 6:
        return values
    kept = {}
    for key, value in values.items():
        here = (*path, key)
        if value is None:
            text = "nothing is given; allowed: a value, or leave the field out"
            problems.append(located.problem(here, text))
            explains.refused.append(here)
            if len(here) == 2 and here[0] == "hosts":
                kept[key] = dict(_STAND_IN_HOST)
        else:
            kept[key] = _without_nulls(value, here, located, problems, explains)
    return kept
