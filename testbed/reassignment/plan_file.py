"""The file of a reassignment plan, in the format of ``kafka-reassign-partitions``."""

import json
from pathlib import Path
from typing import Any

from results.contract.untrusted import parse_json, read_text
from testbed.errors import UsageError
from testbed.kafka.types import TopicPartition
from testbed.reassignment.plan import PLAN_VERSION, Plan, PlanError

_FIELDS = {"topic", "partition", "replicas", "log_dirs"}
_GREATEST_ID = 2**31 - 1
"""Kafka's ids of brokers and partitions are signed 32-bit integers."""
_NEEDED = "give a plan, as --reassignment-json-file of kafka-reassign-partitions"
_OUTPUTS = {
    "Proposed partition reassignment configuration": "the output of --generate; keep only the JSON below this line",
    "Current partition replica assignment": "the output of --execute, with the placement before it; " + _NEEDED,
    "Status of partition reassignment": "the output of --verify, which has no replicas; " + _NEEDED,
    "Current partition reassignments": "the output of --list, which is no plan; " + _NEEDED,
}
"""A line of kafka-reassign-partitions → what its output is, and what to give instead. The first line found counts."""


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
    problems: list[str] = []
    plan = _read(document, problems)
    if problems:
        raise PlanFileError(source, problems)
    return plan


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


def _read(document: Any, problems: list[str]) -> Plan:
    targets: dict[TopicPartition, tuple[int, ...]] = {}
    log_dirs: dict[TopicPartition, tuple[str, ...]] = {}
    if not isinstance(document, dict):
        problems.append(f"found {_shown(document)}; must be an object with 'version' and 'partitions'")
        return Plan({})
    if "topics" in document and "partitions" not in document:
        problems.append(
            "topics: it is the file of --topics-to-move-json-file; give the plan that --generate makes of it"
        )
        return Plan({})
    if document.get("version") != PLAN_VERSION or isinstance(document.get("version"), bool):
        problems.append(f"version: found {_shown(document.get('version'))}; must be {PLAN_VERSION}")
    problems.extend(
        f"{key}: unknown; allowed are 'version' and 'partitions'"
        for key in document
        if key not in ("version", "partitions")
    )
    entries = document.get("partitions")
    if not isinstance(entries, list):
        problems.append(f"partitions: found {_shown(entries)}; must be a list")
        return Plan({})
    first_at: dict[TopicPartition, int] = {}
    for index, entry in enumerate(entries):
        where = f"partitions[{index}]"
        read = _read_entry(entry, where, problems)
        if read is None:
            continue
        tp, replicas, dirs = read
        if tp in first_at:
            problems.append(f"{where}: {tp} is already given by partitions[{first_at[tp]}]")
            continue
        first_at[tp] = index
        targets[tp] = replicas
        if dirs is not None:
            log_dirs[tp] = dirs
    return Plan(targets, log_dirs)


def _read_entry(
    entry: Any, where: str, problems: list[str]
) -> tuple[TopicPartition, tuple[int, ...], tuple[str, ...] | None] | None:
    if not isinstance(entry, dict):
        problems.append(f"{where}: found {_shown(entry)}; must be an object")
        return None
    before = len(problems)
    problems.extend(
        f"{where}.{key}: unknown; allowed are {', '.join(sorted(_FIELDS))}" for key in entry if key not in _FIELDS
    )
    topic: Any = entry.get("topic")
    partition: Any = entry.get("partition")
    replicas: Any = entry.get("replicas")
    log_dirs: Any = entry.get("log_dirs")
    if not isinstance(topic, str) or not topic:
        problems.append(f"{where}.topic: found {_shown(topic)}; must be a topic's name")
    if not _is_id(partition):
        problems.append(f"{where}.partition: found {_shown(partition)}; must be an integer from 0 to {_GREATEST_ID}")
    if not isinstance(replicas, list) or not replicas:
        problems.append(f"{where}.replicas: found {_shown(replicas)}; must be a list of broker ids")
    else:
        for i, broker in enumerate(replicas):
            if not _is_id(broker):
                problems.append(
                    f"{where}.replicas[{i}]: found {_shown(broker)}; must be a broker id (0 to {_GREATEST_ID})"
                )
            elif broker in replicas[:i]:
                problems.append(f"{where}.replicas[{i}]: broker {broker} is already in the list")
    if log_dirs is not None:
        if not isinstance(log_dirs, list) or not all(isinstance(d, str) and d for d in log_dirs):
            problems.append(f"{where}.log_dirs: found {_shown(log_dirs)}; must be a list of log dirs")
        elif isinstance(replicas, list) and len(log_dirs) != len(replicas):
            counts = f"{len(log_dirs)} log dirs for {len(replicas)} replicas"
            problems.append(f"{where}.log_dirs: {counts}; must be one each")
    if len(problems) > before:
        return None
    return TopicPartition(topic, partition), tuple(replicas), None if log_dirs is None else tuple(log_dirs)


def _is_id(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _GREATEST_ID


def _shown(value: Any) -> str:
    if value is None:
        return "nothing"
    text = json.dumps(value)
    return text if len(text) <= 40 else text[:37] + "…"
