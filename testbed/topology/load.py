"""Files and documents → Topology. Whatever is wrong is told at once, and nothing but TopologyError is raised."""

import copy
import stat
from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from testbed.topology import rules
from testbed.topology.locate import MAX_BYTES, Located, locate
from testbed.topology.messages import message_of
from testbed.topology.model import Topology
from testbed.topology.problems import Path, Problem, TopologyError, field_name, show
from testbed.topology.resolve import resolve
from testbed.topology.surface import TopologyForm


def load(path: str | FilePath) -> Topology:
    """The topology in this file. Raises TopologyError with every mistake and its line."""
    file = FilePath(path)
    shown = show(str(path))
    try:
        if not stat.S_ISREG(file.stat().st_mode):
            what = "a directory" if file.is_dir() else "not a regular file"
            raise _unreadable(shown, f"{what}; a topology is a YAML file")
        with file.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise _unreadable(shown, f"there is no such file{_neighbours(file)}") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise _unreadable(shown, f"it cannot be read: {reason}") from None
    return loads(_decode(raw, shown), source=shown)


def loads(text: str, source: str = "<string>") -> Topology:
    """The topology in this YAML text. Raises TopologyError with every mistake and its line."""
    return _build(locate(text, source))


def load_document(document: Mapping[str, Any], source: str = "<document>") -> Topology:
    """The topology in a plain dict of the files' form, such as `to_document()` gives. Raises TopologyError."""
    return _build(Located(source, copy.deepcopy(dict(document))))


def _build(located: Located) -> Topology:
    problems = list(located.problems)
    values = located.values
    if not isinstance(values, dict):
        text = f"{_kind(values)} instead of a mapping; a topology starts with name: and hosts:"
        raise TopologyError([*problems, located.problem((), text)])
    form, refused = _validate(values, located, problems)
    if form is not None:
        hosts, broken = resolve(form)
        broken += [found for found in rules.broken_rules(form.name, tuple(form.racks), hosts)]
        problems += [located.problem(path, text) for path, text in broken if not _follows(path, text, refused)]
        if not problems:
            return Topology(
                name=form.name,
                hosts=hosts,
                racks=tuple(form.racks),
                description=form.description,
                source=located.file,
            )
    unique = dict.fromkeys(problems)
    raise TopologyError(sorted(unique, key=lambda problem: (problem.line or 0, problem.column or 0)))
