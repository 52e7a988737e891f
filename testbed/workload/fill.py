"""What topics are filled with before a run."""

from collections.abc import Sequence
from dataclasses import dataclass

from testbed.workload.records import PRELOAD, Recipe
from testbed.workload.written import Written


@dataclass(frozen=True, slots=True)
class Fill:
    """What a topic is filled with: as many records in each partition."""

    topic: str
    partitions: Sequence[int]
    records_per_partition: int
    recipe: Recipe

    @property
    def bytes(self) -> int:
        """Of all records' values."""
        return len(self.partitions) * self.records_per_partition * self.recipe.record_bytes

    def written(self) -> list[Written]:
        """What the audit is to find."""
        count = self.records_per_partition
        return [Written(PRELOAD, "preload", self.topic, p, settled=count, sent=count) for p in self.partitions]
