"""The file of a reassignment plan, in the format of ``kafka-reassign-partitions``."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from results.contract.document import DocumentError, decode
from results.contract.texts import plural
from results.contract.untrusted import parse_json, read_text
from testbed.errors import UsageError
from testbed.kafka.types import TopicPartition
from testbed.reassignment.plan import PLAN_VERSION, Plan, PlanError

GREATEST_ID = 2**31 - 1
"""Kafka's ids of brokers and partitions are signed 32-bit integers."""
_NEEDED = "give a plan, as --reassignment-json-file of kafka-reassign-partitions"
_OUTPUTS = {
    "Proposed partition reassignment configuration": "the output of --generate; keep only the JSON below this line",
    "Current partition replica assignment": "the output of --execute, with the placement before it; " + _NEEDED,
    "Status of partition reassignment": "the output of --verify, which has no replicas; " + _NEEDED,
    "Current partition reassignments": "the output of --list, which is no plan; " + _NEEDED,
}
"""A line of kafka-reassign-partitions → what its output is, and what to give instead. The first line found counts."""


@dataclass(frozen=True, slots=True)
class PlanFileEntry:
    """One partition of the file."""

    topic: str
    partition: int
    replicas: list[int]
    log_dirs: list[str] | None = None


@dataclass(frozen=True, slots=True)
class PlanFileDocument:
    """The whole file."""

    version: int
    partitions: list[PlanFileEntry]


class PlanFileError(PlanError, UsageError):
    """A plan's file is malformed."""


def load_plan(path: Path) -> Plan:
    """Return the plan in a file. Raise `UsageError` when it cannot be read, `PlanFileError` with every mistake."""
    try:
        text = read_text(path)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"{path}: it cannot be read: {why}") from error
    return plan_from_json(text, str(path))


def plan_from_json(text: str, source: str = "<plan>") -> Plan:
    """Return the plan in a JSON text. Raise `PlanFileError` with every mistake and its field."""
    try:
        document = parse_json(text, pairs=_without_duplicates)
    except json.JSONDecodeError as error:
        raise _not_json(text, source, error) from error
    except _DuplicateKeyError as error:
        raise PlanFileError(source, [f"the key {error} is given twice in one object"]) from error
    except ValueError as error:
        raise PlanFileError(source, [f"not JSON that can be read: {error}"]) from error
    if isinstance(document, dict) and "topics" in document and "partitions" not in document:
        why = "it is the file of --topics-to-move-json-file; give the plan that --generate makes of it"
        raise PlanFileError(source, [f"topics: {why}"])
    try:
        found = decode(PlanFileDocument, document, "plan")
    except DocumentError as error:
        raise PlanFileError(source, list(error.problems)) from error
    if problems := _wrong_values(found):
        raise PlanFileError(source, problems)
    plan = {TopicPartition(entry.topic, entry.partition): entry for entry in found.partitions}
    return Plan(
        {tp: tuple(entry.replicas) for tp, entry in plan.items()},
        {tp: tuple(entry.log_dirs) for tp, entry in plan.items() if entry.log_dirs is not None},
    )


def _not_json(text: str, source: str, error: json.JSONDecodeError) -> PlanFileError:
    lines = [line.strip().rstrip(":") for line in text.splitlines()]
    for line, what in _OUTPUTS.items():
        if line in lines:
            return PlanFileError(f"{source}:{lines.index(line) + 1}", [f"{line!r}: it is {what}"])
    place = f"{source}:{error.lineno}:{error.colno}"
    if not text.strip():
        return PlanFileError(source, [f"it is empty; {_NEEDED}"])
    if error.msg.startswith("Unterminated") or error.pos >= len(text.rstrip()):
        return PlanFileError(place, [f"not JSON: {error.msg}; the text ends too early: copy all of it"])
    if error.msg == "Extra data":
        return PlanFileError(place, ["not JSON: text follows the plan; keep the plan alone"])
    return PlanFileError(place, [f"not JSON: {error.msg}; {_NEEDED}"])


class _DuplicateKeyError(ValueError):
    pass


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise _DuplicateKeyError(repr(key))
        found[key] = value
    return found


def _wrong_values(found: PlanFileDocument) -> list[str]:
    """Return the mistakes of a document whose types are right."""
    problems = [] if found.version == PLAN_VERSION else [f"version: found {found.version}; must be {PLAN_VERSION}"]
    first_at: dict[TopicPartition, int] = {}
    for index, entry in enumerate(found.partitions):
        where, replicas = f"partitions[{index}]", entry.replicas
        if not entry.topic:
            problems.append(f'{where}.topic: found ""; must be a topic\'s name')
        if not 0 <= entry.partition <= GREATEST_ID:
            problems.append(f"{where}.partition: found {entry.partition}; must be an integer from 0 to {GREATEST_ID}")
        if not replicas:
            problems.append(f"{where}.replicas: found []; must be a list of broker ids")
        for at, broker in enumerate(replicas):
            if not 0 <= broker <= GREATEST_ID:
                problems.append(f"{where}.replicas[{at}]: found {broker}; must be a broker id (0 to {GREATEST_ID})")
            elif broker in replicas[:at]:
                problems.append(f"{where}.replicas[{at}]: broker {broker} is already in the list")
        if entry.log_dirs is not None and (len(entry.log_dirs) != len(replicas) or "" in entry.log_dirs):
            counts = f"{plural(len(entry.log_dirs), 'log dir')} for {plural(len(replicas), 'replica')}"
            problems.append(f"{where}.log_dirs: {counts}; must be one each, and none empty")
        tp = TopicPartition(entry.topic, entry.partition)
        if first_at.setdefault(tp, index) != index:
            problems.append(f"{where}: {tp} is already given by partitions[{first_at[tp]}]")
    return problems
