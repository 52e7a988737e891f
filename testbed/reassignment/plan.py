"""A reassignment plan: the target replicas of each partition. Pure.

`testbed.reassignment.plan_file` reads it from a file.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from results.contract.texts import plural, shortened
from testbed.errors import TestbedError
from testbed.kafka.types import PartitionMove, PartitionState, TopicPartition

PLAN_VERSION = 1
_ANY_LOG_DIR = "any"
_SHOWN = 8


class PlanError(TestbedError):
    """A plan is malformed or does not fit the cluster; ``problems`` has one line for each mistake."""

    def __init__(self, source: str, problems: list[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(f"{source}: {problem}" for problem in problems))


@dataclass(frozen=True)
class Plan:
    """The target replicas of each partition, the preferred leader first.

    ``log_dirs`` holds a log directory for each target replica (``any`` where it does not matter), for the partitions
    for which the file has log directories.
    """

    targets: Mapping[TopicPartition, tuple[int, ...]]
    log_dirs: Mapping[TopicPartition, tuple[str, ...]] = field(default_factory=dict)

    def to_json(self) -> str:
        """Return the plan in the format of ``kafka-reassign-partitions``, JSON, its partitions in order."""
        partitions = []
        for tp, replicas in sorted(self.targets.items()):
            entry: dict[str, Any] = {"topic": tp.topic, "partition": tp.partition, "replicas": list(replicas)}
            if tp in self.log_dirs:
                entry["log_dirs"] = list(self.log_dirs[tp])
            partitions.append(entry)
        return json.dumps({"version": PLAN_VERSION, "partitions": partitions}, indent=2) + "\n"

    def topics(self) -> list[str]:
        """Return the topics that the plan names, in order."""
        return sorted({tp.topic for tp in self.targets})

    def partitions_with_log_dirs(self) -> list[TopicPartition]:
        """Return the partitions for which the plan chooses a log directory rather than ``any``."""
        return sorted(tp for tp, dirs in self.log_dirs.items() if any(d != _ANY_LOG_DIR for d in dirs))


def refuse_log_dirs(plan: Plan) -> None:
    """Raise `PlanError` when a plan chooses log directories: a reassignment request has none."""
    if chosen := plan.partitions_with_log_dirs():
        named = ", ".join(shortened(chosen, _SHOWN))
        raise PlanError("plan", [f"log_dirs other than 'any' are not supported: {named}; leave them out"])


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
        raise ValueError(f"{plural(partitions_to_move, 'partition')} to move of {total_partitions}: must be 0 to all")
    return partitions_to_move / total_partitions


def kip73_move_seconds(
    ratio: float, total_log_bytes_per_broker: float, brokers: int, quota_bytes_per_s: float, max_bytes_in_per_s: float
) -> float:
    """Return KIP-73's MoveTime: MoveRatio x TotalLogSizePerBroker x #Brokers / (quota - max(BytesInPerSec)).

    The result is infinite when the quota does not exceed the busiest broker's inbound rate: that move never ends.
    """
    left_bytes_per_s = quota_bytes_per_s - max_bytes_in_per_s
    if left_bytes_per_s <= 0:
        return math.inf
    return ratio * total_log_bytes_per_broker * brokers / left_bytes_per_s
