"""The reader of an incident's file: its two variants, or all mistakes at once with file, line, column and field.

It checks the types first, and the rules between values only when every type is right.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from results.contract.incident import Variant
from results.criteria.expectations import EXPECTATIONS, MinIsr, MoveDone, ReassignmentCompleted
from results.criteria.incident import ALWAYS
from results.criteria.timeline_expectation import Reference
from testbed.defects.parse import by_host
from testbed.errors import TestbedError, UsageError
from testbed.form import validation_problems
from testbed.incidents.actions import MoveTopics
from testbed.incidents.forms import CONTEXT, format_seconds
from testbed.incidents.model import (
    VARIANTS,
    EntryForm,
    Incident,
    IncidentFile,
    IncidentForm,
    PlacedEntry,
    entries_of,
    scheduled,
)
from testbed.incidents.triggers import MoveShare
from testbed.kafka.capabilities import LacksCapability, of_software, require
from testbed.software.source import parse_source
from testbed.suggestions import choices, did_you_mean
from testbed.topology.find import find as find_topology
from testbed.topology.find import ready
from testbed.topology.model import Topology
from testbed.yaml_document import Document, FieldPath, FileKind, FormError, Violation, is_file, parse, read

READY = Path(__file__).parents[2] / "topologies" / "incidents"
_PARAMETER = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")
KIND = FileKind(
    "incident",
    "name and summary",
    missing={
        "name": "the incident's name, such as move-before-quota",
        "summary": "a sentence",
        "topology": "a ready topology's name, or a path",
        "lasts": "how long the replay may take, such as 60s",
        "state": "the topics, such as {topics: {orders: {partitions: 10, replicas: [b1]}}}",
        "topics": "the topics",
        "timeline": "a list of entries",
        "broken": "{summary: …, expected_failures: […]}",
        "fixed": "{summary: …} and what differs",
        "expected_failures": "names of criteria",
        "partitions": "how many",
        "replicas": "hosts, such as [b1, b2]",
        "rate": "such as 5MB/s",
        "produce": "such as 2MB/s",
        "to": "a topic",
        "within": "a duration, such as 40s",
        "direction": "transmit or receive",
    },
)


def ready_incidents() -> list[str]:
    """Return the names of the ready incidents."""
    return sorted(path.stem for path in READY.glob("*.yaml"))


def find(text: str, vary: Mapping[str, str] | None = None) -> IncidentFile:
    """Return the incident of `text`: a path when it looks like one or exists, otherwise a ready incident's name."""
    if "/" in text or text.endswith((".yaml", ".yml")) or is_file(text):
        return load(text, vary)
    known = ready_incidents()
    if text in known:
        return load(READY / f"{text}.yaml", vary)
    near = did_you_mean(text, known)
    raise UsageError(f"no incident {text!r}: give a file, or one of {', '.join(known)}{near}")


def load(path: str | Path, vary: Mapping[str, str] | None = None) -> IncidentFile:
    """Return the incident in this file. Raise `FormError` for its mistakes, `UsageError` for a wrong `vary`."""
    return _file(read(path, KIND), vary or {}, Path(path).parent)


def loads(text: str, source: str = "<string>", vary: Mapping[str, str] | None = None) -> IncidentFile:
    """Return the incident in this text. Raise the errors of `load`."""
    return _file(parse(text, source, KIND), vary or {}, Path())


def _file(document: Document, vary: Mapping[str, str], folder: Path) -> IncidentFile:
    """Return both variants. Paths of topologies are relative to `folder`."""
    if isinstance(document.values, dict):
        _check_varied(document.values, vary)
    problems = list(document.problems)
    found: dict[Variant, Incident] = {}
    for variant in VARIANTS:
        try:
            found[variant] = _variant(document, variant, vary, folder)
        except FormError as error:
            problems += error.problems
    document.raise_problems(problems)
    return IncidentFile(found["broken"], found["fixed"])


def _variant(document: Document, variant: Variant, vary: Mapping[str, str], folder: Path) -> Incident:
    parameters = _parameters(document.values, variant, vary)
    unknown: dict[FieldPath, str] = {}
    values = _substituted(document.values, (), parameters, unknown)
    problems = [document.problem(path, message) for path, message in unknown.items()]
    document.refused.update(unknown)
    form, wrong = validation_problems(document, IncidentForm, values, CONTEXT)
    document.raise_problems([*problems, *wrong])
    if form is None:
        # Its text has mistakes, and nothing is left that could be checked.
        raise FormError(document.problems or [document.problem((), "it cannot be read")])
    entries = entries_of(form, variant)
    try:
        # A ready topology's name, or a path from the file's folder.
        near = folder / form.topology
        topology = find_topology(str(near) if form.topology not in ready() and is_file(near) else form.topology)
    except TestbedError as error:
        raise FormError([document.problem(("topology",), str(error))]) from None
    own = form.broken if variant == "broken" else form.fixed
    field = "kafka"
    try:
        if own.kafka is not None:
            topology = topology.with_kafka_version(str(parse_source(own.kafka)))
        field = "defects"
        by_host(own.defects, topology)
    except TestbedError as error:
        raise FormError([document.problem((variant, field), str(error))]) from None
    violations = _violations(form, topology, entries)
    document.raise_violations(Violation(_in_text(each.path, values), each.message) for each in violations)
    return Incident(
        name=form.name,
        variant=variant,
        summary=form.summary,
        variant_summary=own.summary,
        topology=topology,
        state=form.state,
        loads=tuple(form.load),
        entries=tuple(scheduled(path, entry, form.lasts) for path, entry in entries),
        lasts_s=form.lasts,
        settle_s=form.settle,
        expected_failures=tuple(form.broken.expected_failures) if variant == "broken" else (),
        defects=tuple(own.defects) if form.broken.defects or form.fixed.defects else None,
        parameters=parameters,
        document=values,
    )


def _in_text(path: FieldPath, values: Any) -> FieldPath:
    """Return a path without the list indexes that the text omits: the text has a single item in place of a list."""
    found: list[str | int] = []
    for part, following in zip(path, (*path[1:], None), strict=True):
        if isinstance(part, int):
            flat = isinstance(values, list) and isinstance(following, int) and not isinstance(values[0], list)
            if flat or not isinstance(values, list):
                continue
        found.append(part)
        known: Any = dict(enumerate(values)) if isinstance(values, list) else values
        values = known.get(part) if isinstance(known, Mapping) else None
    return tuple(found)


# ---- parameters


def _check_varied(values: Mapping[str, Any], vary: Mapping[str, str]) -> None:
    names = list(_mapping(values.get("parameters")))
    name = next((each for each in vary if each not in names), None)
    if name is not None:
        allowed = choices(names) if names else "none, this incident has no parameters"
        raise UsageError(f"--set {name}: there is no parameter {name}; allowed: {allowed}{did_you_mean(name, names)}")


def _parameters(values: Any, variant: Variant, vary: Mapping[str, str]) -> dict[str, str]:
    """Return the file's parameters. The fixed variant's replace them, and `vary` replaces both."""
    values = _mapping(values)
    layers = [values, _mapping(values.get("fixed"))] if variant == "fixed" else [values]
    own = {key: str(value) for each in layers for key, value in _mapping(each.get("parameters")).items()}
    return own | dict(vary)


def _mapping(value: Any) -> Mapping[str, Any]:
    """Return a mapping, or an empty one in place of another value: its type is checked later."""
    return value if isinstance(value, dict) else {}


def _substituted(value: Any, path: FieldPath, parameters: Mapping[str, str], unknown: dict[FieldPath, str]) -> Any:
    """Return a copy of `value` with `$NAME` replaced. Unknown names go into `unknown`."""
    if path in {("parameters",), ("fixed", "parameters")}:
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


# ---- rules between values


def _violations(form: IncidentForm, topology: Topology, entries: list[PlacedEntry]) -> Iterator[Violation]:
    names = {
        "broker": [host.name for host in topology.brokers],
        "topic": list(form.state.topics),
        "uplink": list(topology.uplinks),
    }
    yield from _references((), form.model_copy(update={"timeline": [], "fixed": None}), names)
    for path, entry in entries:
        yield from _references(path, entry, names)
        yield from _actions(path, entry, topology)
        yield from _times(path, entry, form.lasts)
        yield from _failable(path, entry)
        yield from _moved(path, entry, entries)
    for name, state in form.state.topics.items():
        filled = state.bytes or any(load.to == name for load in form.load)
        if filled and "compact" in state.configs.get("cleanup.policy", ""):
            text = "a compacted topic refuses the replay's records, which have no keys; allowed: delete"
            yield Violation(("state", "topics", name, "configs", "cleanup.policy"), text)
    for index, load in enumerate(form.load):
        topic = form.state.topics.get(load.to)
        if topic is not None and topic.bytes:
            text = f"{load.to} is filled already; allowed: a topic without size and records"
            yield Violation(("load", index, "to"), text)
        if load.to in [other.to for other in form.load[:index]]:
            yield Violation(("load", index, "to"), f"{load.to} has a load already; allowed: each topic once")
    yield from _variants(form)


def _references(
    path: FieldPath, value: Any, names: Mapping[str, list[str]], kind: str | None = None
) -> Iterator[Violation]:
    """Check every field that is marked as the name of a broker, a topic or an uplink; yield the violations."""
    if isinstance(value, str) and kind is not None and value not in names[kind]:
        yield Violation(path, _no(kind, value, names[kind]))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _references((*path, index), item, names, kind)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _references((*path, key), item, names, kind)
    elif hasattr(value, "model_fields_set"):
        for name in value.model_fields_set:
            field = type(value).model_fields[name]
            marked = next((each.kind for each in field.metadata if isinstance(each, Reference)), None)
            yield from _references((*path, name), getattr(value, name), names, marked)


def _actions(path: FieldPath, entry: EntryForm, topology: Topology) -> Iterator[Violation]:
    """Check the topology for each fault, and the software for settings that it accepts and ignores."""
    have, who = of_software(topology), f"the software of {topology.name}"
    for index, action in enumerate(entry.actions):
        try:
            action.check(topology)
            require(action.needs(), have, str(action), who)
        except LacksCapability as error:
            yield Violation((*path, "do", index, action.key), str(error))
        except UsageError as error:
            yield Violation((*path, "do", index, action.key), f"{action}: {error}")


def _times(path: FieldPath, entry: EntryForm, lasts_s: float) -> Iterator[Violation]:
    at_s = entry.at.time if entry.at is not None else 0.0
    acts_s = (at_s or 0.0) + entry.delay
    late = "at" if at_s is not None and at_s > lasts_s else "delay"
    for name, value in ((late, acts_s), ("within", entry.within)):
        if value is not None and value > lasts_s:
            yield Violation(
                (*path, name), f"{format_seconds(value)} is after the end; allowed: lasts, {format_seconds(lasts_s)}"
            )
    for index, each in enumerate(entry.expectations):
        if isinstance(each, MoveDone | ReassignmentCompleted) and acts_s <= lasts_s < acts_s + each.within:
            ends, most = format_seconds(acts_s + each.within), format_seconds(lasts_s)
            text = f"{each}: would have to be watched until {ends}; allowed: lasts, {most}"
            yield Violation((*path, "expect", index, each.key, "within"), text)
    if at_s is not None and entry.within is not None:
        yield Violation((*path, "within"), "an entry with a fixed time needs no deadline; allowed: leave it out")
    if at_s is not None and entry.optional:
        yield Violation((*path, "optional"), "a time always comes; allowed: with a condition")


def _failable(path: FieldPath, entry: EntryForm) -> Iterator[Violation]:
    for index, each in enumerate(entry.expectations):
        if isinstance(each, MinIsr) and not each.min:
            text = "no ISR has fewer than 0 replicas, so this cannot fail; allowed: 1 or more"
            yield Violation((*path, "expect", index, each.key, "min"), text)


def _moved(path: FieldPath, entry: EntryForm, entries: list[PlacedEntry]) -> Iterator[Violation]:
    trigger = entry.trigger
    if not isinstance(trigger, MoveShare):
        return
    moved = {
        topic
        for _, other in entries
        for action in other.actions
        if isinstance(action, MoveTopics)
        for topic in action.topics
    }
    wanted = {trigger.topic} if trigger.topic else moved
    if not wanted or not wanted <= moved:
        text = "nothing in the timeline requests that move; allowed: a topic of an entry with do: {move: …}"
        yield Violation((*path, "at", "move_progress"), text)


def _variants(form: IncidentForm) -> Iterator[Violation]:
    named = [entry.name for entry in form.timeline if entry.name]
    taken: list[str] = []
    for path, entry in (
        *((("timeline", index), entry) for index, entry in enumerate(form.timeline)),
        *((("fixed", "add", index), entry) for index, entry in enumerate(form.fixed.add)),
    ):
        if entry.name and entry.name in taken:
            yield Violation((*path, "name"), f"{entry.name} is the name of another entry; allowed: each once")
        taken += [entry.name] if entry.name else []
    for name, entry in form.fixed.replace.items():
        if name not in named:
            yield Violation(("fixed", "replace", name), _no("entry", name, named))
        elif entry.name not in (None, name):
            text = f"{entry.name} replaces {name} and has its name; allowed: leave it out"
            yield Violation(("fixed", "replace", name, "name"), text)
    for index, name in enumerate(form.fixed.drop):
        if name not in named or name in form.fixed.replace:
            text = "it is replaced already" if name in named else _no("entry", name, named)
            yield Violation(("fixed", "drop", index), text)
    for name in form.fixed.parameters:
        if name not in form.parameters:
            yield Violation(("fixed", "parameters", name), _no("parameter", name, list(form.parameters)))
    expected = [*(each.name() for entry in form.timeline for each in entry.expectations), *ALWAYS]
    for index, name in enumerate(form.broken.expected_failures):
        if name not in expected:
            known = [kind.name() for kind in EXPECTATIONS.values()]
            meant = "" if name in known else did_you_mean(name, known)
            text = f"the timeline expects no {name}; allowed: {choices(expected)}{meant}"
            yield Violation(("broken", "expected_failures", index), text)


def _no(what: str, name: str, there: Iterable[str]) -> str:
    known = list(there)
    text = "rack with an uplink rate of its own" if what == "uplink" else what
    return f"there is no {text} {name}; allowed: {choices(known) if known else 'none'}{did_you_mean(name, known)}"
