"""What is wrong with a topology, and where: one line per mistake, all of them at once."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from testbed.errors import UsageError

Path = tuple[str | int, ...]
"""Where in the document: mapping keys and list indexes from the top, `("hosts", "b1", "nic", "rate")`."""


class Broken(NamedTuple):
    """A rule that is broken: where, and what was found. It may be no more than the consequence of another
    mistake: `sources` are the fields that, had they been readable, might have met the rule."""

    path: Path
    message: str
    sources: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake. `line` and `column` count from 1; None where there is no text (a document built in
    Python)."""

    file: str
    line: int | None
    column: int | None
    field: str
    message: str

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}:{self.column}"
        return f"{place}: {self.field}: {self.message}" if self.field else f"{place}: {self.message}"


def absent(
    at: Path, group: str, fields: tuple[str, ...], levels_of: tuple[Path, ...], text: str, instead: Path | None = None
) -> Broken:
    """A value that is nowhere: not at `at`, nor at any of the levels it could have been inherited from.

    Nor is there what could stand `instead` of it.
    """
    sources = [(*level, group, field) for level in levels_of for field in fields]
    return Broken((*at, group, fields[0]), text, (*sources, *([instead] if instead else [])))


class TopologyError(UsageError):
    """The topology cannot be used; `problems` holds every mistake, in the order of the file."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))


def field_name(path: Path) -> str:
    """`hosts.b1.nic.rate`, `racks[1]`, `kafka.properties[node.id]`: a path as people write it."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif 0 < len(part) <= 60 and all(c.isalnum() or c in "_-" for c in part):
            text += f".{part}" if text else part
        else:
            text += f"[{show(part)}]"
    return text


def show(value: object) -> str:
    """A value as found, short and safe to print on a terminal."""
    if value is None or isinstance(value, bool):
        return {None: "nothing", True: "true", False: "false"}[value]
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    if isinstance(value, str):
        plain = value and value == value.strip() and value.isprintable()
        text = value[:61] if plain else repr(value[:61])
    else:
        text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def choices(names: Sequence[str]) -> str:
    """`a, b or c`."""
    once = list(dict.fromkeys(names))
    return once[0] if len(once) == 1 else f"{', '.join(once[:-1])} or {once[-1]}"
