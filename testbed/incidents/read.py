"""Files → incidents. Whatever is wrong is told at once, with its place; nothing but `FormError` is raised."""

import re
from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import Any

from testbed.document import MAX_BYTES, Document, FileKind, FormError, Path, Problem, parse
from testbed.errors import TestbedError, UsageError
from testbed.incidents.model import PRACTICES, Incident, IncidentFile, Practice
from testbed.incidents.resolve import entries_of, resolve
from testbed.incidents.rules import broken_rules
from testbed.incidents.salvage import salvage
from testbed.suggestions import choices, did_you_mean, show
from testbed.topology.find import find as find_topology
from testbed.topology.find import ready
from testbed.topology.model import Topology

KIND = FileKind("incident", "name and summary")
READY = FilePath(__file__).parents[2] / "topologies" / "incidents"
_PARAMETER = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")


def ready_incidents() -> list[str]:
    """The names of the ready incidents."""
    return sorted(path.stem for path in READY.glob("*.yaml"))


def find(text: str, vary: Mapping[str, str] | None = None) -> IncidentFile:
    """The incident `text` means: a path when it looks like one or exists, else a ready incident's name."""
    if "/" in text or text.endswith((".yaml", ".yml")) or FilePath(text).is_file():
        return load(text, vary)
    known = ready_incidents()
    if text in known:
        return load(READY / f"{text}.yaml", vary)
    near = did_you_mean(text, known)
    raise UsageError(f"no incident {text!r}: give a file, or one of {', '.join(known)}{near}")


def load(path: str | FilePath, vary: Mapping[str, str] | None = None) -> IncidentFile:
    """The incident in this file. Raises `FormError` (of its mistakes), or `UsageError` for a wrong `vary`."""
    file = FilePath(path)
    try:
        with file.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
        text = raw.decode("utf-8-sig")
    except FileNotFoundError:
        meant = did_you_mean(file.name, [p.name for p in file.parent.glob("*.y*ml")], lambda name: file.parent / name)
        raise FormError([Problem(str(path), None, None, "", f"there is no such file{meant}")]) from None
    except (OSError, UnicodeDecodeError) as error:
        raise FormError([Problem(str(path), None, None, "", f"it cannot be read: {error}")]) from None
    return loads(text, str(path), vary, file.parent)


def loads(
    text: str,
    source: str = "<string>",
    vary: Mapping[str, str] | None = None,
    folder: FilePath | None = None,
) -> IncidentFile:
    """The incident in this text; paths of topologies count from `folder`. Raises as `load`."""
    located = parse(text, source, KIND)
    if not isinstance(located.values, dict):
        text = f"found {show(located.values)}, not a mapping; an incident starts with name: and summary:"
        raise FormError([*located.problems, located.problem((), text)])
    _check_varied(located.values, vary or {})
    problems = list(located.problems)
    found: dict[Practice, Incident] = {}
    for practice in PRACTICES:
        incident, wrong = _practice(located, practice, vary or {}, folder or FilePath())
        problems += wrong
        if incident is not None:
            found[practice] = incident
    if problems:
        raise FormError(sorted(dict.fromkeys(problems), key=lambda p: (p.line or 0, p.column or 0)))
    return IncidentFile(found["faulty"], found["remedy"])


def _practice(
    located: Document, practice: Practice, vary: Mapping[str, str], folder: FilePath
) -> tuple[Incident | None, list[Problem]]:
    problems: list[Problem] = []
    parameters = _parameters(located.values, practice, vary)
    unknown: dict[Path, str] = {}
    values = _substituted(located.values, (), parameters, unknown)
    problems += [located.problem(path, message) for path, message in unknown.items()]
    form, wrong, refused = salvage(values, located, list(unknown))
    problems += wrong
    if form is None:
        return None, problems
    topology = None
    if ("topology",) not in refused:
        try:
            topology = _topology(form.topology, folder)
        except TestbedError as error:
            problems.append(located.problem(("topology",), str(error)))
    entries = entries_of(form, practice)
    for broken in broken_rules(form, topology, entries):
        if not any(_overlap(broken.path, path) for path in refused) and not _about_refused(broken.message, refused):
            problems.append(located.problem(broken.path, broken.message))
    if problems or topology is None:
        return None, problems
    return resolve(form, practice, topology, entries, parameters, values), problems


def _overlap(path: Path, refused: Path) -> bool:
    return path[: len(refused)] == refused


def _about_refused(message: str, refused: list[Path]) -> bool:
    """Whether a rule misses a name that stands in a part which could not be read."""
    whole = {("timeline",), ("state",), ("state", "topics"), ("parameters",)}
    if any(path in whole for path in refused):
        return True
    unread = any(path[:1] == ("timeline",) for path in refused)
    return unread and any(
        words in message for words in ("there is no entry", "the timeline expects no", "asks for that")
    )


def _topology(text: str, folder: FilePath) -> Topology:
    beside = folder / text
    return find_topology(str(beside) if text not in ready() and beside.is_file() else text)


def _check_varied(values: Mapping[str, Any], vary: Mapping[str, str]) -> None:
    known = values.get("parameters")
    names = list(known) if isinstance(known, dict) else []
    for name in vary:
        if name not in names:
            allowed = choices(names) if names else "none, this incident has no parameters"
            raise UsageError(
                f"--vary {name}: there is no parameter {name}; allowed: {allowed}{did_you_mean(name, names)}"
            )


def _parameters(values: Mapping[str, Any], practice: Practice, vary: Mapping[str, str]) -> dict[str, str]:
    """The file's, the remedy's over them, and what is varied over both."""
    remedy = values.get("remedy")
    layers = [values.get("parameters")]
    if practice == "remedy" and isinstance(remedy, dict):
        layers.append(remedy.get("parameters"))
    found: dict[str, str] = {}
    for layer in layers:
        found |= {key: str(value) for key, value in layer.items()} if isinstance(layer, dict) else {}
    return found | dict(vary)


def _substituted(value: Any, path: Path, parameters: Mapping[str, str], unknown: dict[Path, str]) -> Any:
    """A copy of `value` with `$NAME` replaced; what is no parameter is put into `unknown`."""
    if path in {("parameters",), ("remedy", "parameters")}:
        return value
    if isinstance(value, dict):
        return {key: _substituted(item, (*path, key), parameters, unknown) for key, item in value.items()}
    if isinstance(value, list):
        return [_substituted(item, (*path, index), parameters, unknown) for index, item in enumerate(value)]
    if not isinstance(value, str) or path[-1:] in {("summary",), ("reference",)}:
        return value

    def put(match: re.Match[str]) -> str:
        if match[1] not in parameters:
            known = choices(list(parameters)) if parameters else "none are declared"
            unknown[path] = f"${match[1]} is not a parameter; allowed: {known}{did_you_mean(match[1], parameters)}"
        return parameters.get(match[1], match[0])

    return _PARAMETER.sub(put, value)
