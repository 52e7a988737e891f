"""A reassignment plan: the target replicas of each partition. Pure.

The file format is that of ``kafka-reassign-partitions``.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from results.contract.untrusted import parse_json, read_text
from testbed.errors import TestbedError, UsageError
from testbed.kafka.types import PartitionMove, PartitionState, TopicPartition

_VERSION = 1
_ANY_FOLDER = "any"
_FIELDS = {"topic", "partition", "replicas", "log_dirs"}


class PlanError(TestbedError):
    """A plan is malformed or does not fit the cluster; ``problems`` has one line for each mistake."""

    def __init__(self, source: str, problems: list[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(f"{source}: {problem}" for problem in problems))


@dataclass(frozen=True)
class Plan:
    """The target replicas of each partition, the preferred leader first.

    ``log_dirs`` holds a folder for each target replica (``any`` where it does not matter), for the partitions
    for which the file has folders.
    """

    targets: Mapping[TopicPartition, tuple[int, ...]]
    log_dirs: Mapping[TopicPartition, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def from_json(cls, text: str, source: str = "<plan>") -> "Plan":
        """Return the plan in a JSON text. Raise `PlanError` with every mistake and its field."""
        try:
            document = parse_json(text, pairs=_without_duplicates)
        except json.JSONDecodeError as error:
            raise PlanError(f"{source}:{error.lineno}:{error.colno}", [f"not JSON: {error.msg}"]) from error
        except _DuplicateKeyError as error:
            raise PlanError(source, [f"the key {error} is given twice in one object"]) from error
        except ValueError as error:
            raise PlanError(source, [f"not JSON that can be read: {error}"]) from error
        problems: list[str] = []
        plan = _read(document, problems)
        if problems:
            raise PlanError(source, problems)
        return plan

    @classmethod
    def load(cls, path: Path) -> "Plan":
        """Return the plan in a file. Raise `UsageError` when it cannot be read, `PlanError` with every mistake."""
        try:
            text = read_text(path)
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise UsageError(f"{path}: it cannot be read: {why}") from error
        return cls.from_json(text, str(path))

    def to_json(self) -> str:
        """Return the plan as JSON, its partitions in order."""
        partitions = []
        for tp, replicas in sorted(self.targets.items()):
            entry: dict[str, Any] = {
                "topic": tp.topic,
                "partition": tp.partition,
                "replicas": list(replicas),
            }
            if tp in self.log_dirs:
                entry["log_dirs"] = list(self.log_dirs[tp])
            partitions.append(entry)
        return json.dumps({"version": _VERSION, "partitions": partitions}, indent=2) + "\n"

    def topics(self) -> list[str]:
        """Return the topics that the plan names, in order."""
        return sorted({tp.topic for tp in self.targets})

    def chosen_folders(self) -> list[TopicPartition]:
        """Return the partitions for which the plan chooses a log folder rather than ``any``."""
        return sorted(tp for tp, dirs in self.log_dirs.items() if any(d != _ANY_FOLDER for d in dirs))


def moves(plan: Plan, state: Mapping[TopicPartition, PartitionState]) -> tuple[PartitionMove, ...]:
    """Return the changes of a plan, in order; another preferred leader alone is a change.

    Raise `PlanError` naming partitions that the cluster does not have.
    """
    unknown = sorted(set(plan.targets) - set(state))
    if unknown:
        raise PlanError("plan", [f"partition {tp} does not exist in the cluster" for tp in unknown])
    return tuple(
        PartitionMove.between(tp, state[tp].replicas, target)
        for tp, target in sorted(plan.targets.items())
        if state[tp].replicas != target
    )


def move_ratio(partitions_to_move: int, total_partitions: int) -> float:
    """Return KIP-73's MoveRatio: the share of all partitions that move."""
    if not 0 <= partitions_to_move <= total_partitions or total_partitions == 0:
        raise ValueError(f"{partitions_to_move} partitions to move of {total_partitions}: must be 0 to all")
    return partitions_to_move / total_partitions


def kip73_move_seconds(
    ratio: float,
    total_log_bytes_per_broker: float,
    brokers: int,
    quota_bytes_per_s: float,
    max_bytes_in_per_s: float,
) -> float:
    """Return KIP-73's MoveTime: MoveRatio x TotalLogSizePerBroker x #Brokers / (quota - max(BytesInPerSec)).

    The result is infinite when the quota does not exceed the busiest broker's inbound rate: that move never ends.
    """
    left_bytes_per_s = quota_bytes_per_s - max_bytes_in_per_s
    if left_bytes_per_s <= 0:
        return math.inf
    return ratio * total_log_bytes_per_broker * brokers / left_bytes_per_s


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
    if document.get("version") != _VERSION or isinstance(document.get("version"), bool):
        problems.append(f"version: found {_shown(document.get('version'))}; must be {_VERSION}")
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
        tp, replicas, folders = read
        if tp in first_at:
            problems.append(f"{where}: {tp} is already given by partitions[{first_at[tp]}]")
            continue
        first_at[tp] = index
        targets[tp] = replicas
        if folders is not None:
            log_dirs[tp] = folders
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
    folders: Any = entry.get("log_dirs")
    if not isinstance(topic, str) or not topic:
        problems.append(f"{where}.topic: found {_shown(topic)}; must be a topic's name")
    if not _is_id(partition):
        problems.append(f"{where}.partition: found {_shown(partition)}; must be an integer of 0 or more")
    if not isinstance(replicas, list) or not replicas:
        problems.append(f"{where}.replicas: found {_shown(replicas)}; must be a list of broker ids")
    else:
        for i, broker in enumerate(replicas):
            if not _is_id(broker):
                problems.append(f"{where}.replicas[{i}]: found {_shown(broker)}; must be a broker id (0 or more)")
            elif broker in replicas[:i]:
                problems.append(f"{where}.replicas[{i}]: broker {broker} is already in the list")
    if folders is not None:
        if not isinstance(folders, list) or not all(isinstance(d, str) and d for d in folders):
            problems.append(f"{where}.log_dirs: found {_shown(folders)}; must be a list of folders")
        elif isinstance(replicas, list) and len(folders) != len(replicas):
            problems.append(f"{where}.log_dirs: {len(folders)} folders for {len(replicas)} replicas; must be one each")
    if len(problems) > before:
        return None
    return TopicPartition(topic, partition), tuple(replicas), None if folders is None else tuple(folders)


def _is_id(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _shown(value: Any) -> str:
    if value is None:
        return "nothing"
    text = json.dumps(value)
    return text if len(text) <= 40 else text[:37] + "…"
