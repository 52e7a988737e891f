"""Steps that wait for a batch, in one queue for each set of brokers that they copy to. Pure.

All steps of a queue meet the same limits, so a batch that cannot take the first one skips the whole queue. If steps add
one replica (R = 1), a batch skips a broker's queue only after it has taken a step to that broker. So n steps take
O(n log n) time altogether, however many batches there are. Steps that add more replicas have more queues, one for each
set of brokers, and each batch may skip all of these once.
"""

import heapq
from collections import Counter

from testbed.reassignment.batching.batch import BatchLimits
from testbed.reassignment.batching.step import Replicas, Step

_Head = tuple[int, Replicas]
"""The first partition of a queue, by its index in the plan, and the brokers that the queue copies to."""


class StepQueues:
    """Partitions with a step to take, by their index in the plan: numbers compare faster than names."""

    def __init__(self, limits: BatchLimits) -> None:
        self._limits = limits
        self.steps: dict[int, Step] = {}
        self._leading, self._others = _Queues(), _Queues()

    def put(self, rank: int, step: Step) -> None:
        """Add a partition's next step."""
        self.steps[rank] = step
        # Without a cap all queues meet the same limits: they are one.
        brokers = tuple(sorted(step.adding)) if self._limits.per_broker is not None else ()
        (self._leading if step.moves_leader else self._others).put(rank, brokers)

    def take(self) -> dict[int, Step]:
        """Remove and return the next batch's steps, in order, as `choose_batch` does when nothing is in flight."""
        limits, copying = self._limits, Counter[int]()
        slots = len(self.steps) if limits.partitions is None else limits.partitions
        movers = slots if limits.leaders is None else min(limits.leaders, slots)
        ranks = self._leading.take(movers, limits.per_broker, copying)
        ranks += self._others.take(slots - len(ranks), limits.per_broker, copying)
        return {rank: self.steps.pop(rank) for rank in ranks}


class _Queues:
    """The queues of one kind of step, and the first step of each in a heap."""

    def __init__(self) -> None:
        self._queues: dict[Replicas, list[int]] = {}
        self._heads: list[_Head] = []

    def put(self, rank: int, brokers: Replicas) -> None:
        queue = self._queues.setdefault(brokers, [])
        heapq.heappush(queue, rank)
        if queue[0] == rank:  # an earlier head of this queue stays in the heap and is recognized there
            heapq.heappush(self._heads, (rank, brokers))

    def take(self, most: int, cap: int | None, copying: Counter[int]) -> list[int]:
        """Remove and return at most `most` steps in the order of the plan; count in `copying` what brokers receive."""
        taken: list[int] = []
        skipped: list[_Head] = []
        while len(taken) < most and self._heads:
            head = heapq.heappop(self._heads)
            rank, brokers = head
            queue = self._queues[brokers]
            if not queue or queue[0] != rank:
                continue
            if cap is not None and any(copying[broker] >= cap for broker in brokers):
                skipped.append(head)
                continue
            taken.append(heapq.heappop(queue))
            for broker in brokers:  # not `update`, which takes four times as long for so few
                copying[broker] += 1
            if queue:
                heapq.heappush(self._heads, (queue[0], brokers))
        for head in skipped:
            heapq.heappush(self._heads, head)
        return taken
