"""In the controller's log the epochs of a partition only ascend."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise

from results.contract.texts import plural, shortened
from results.contract.verdict import Finding
from results.criteria.criterion import FACTS, Criterion, has_steps
from results.criteria.findings import finding
from results.criteria.run_view import RunView
from results.criteria.step_measures import LOG

_SHOWN = 5
Epochs = tuple[int, int]
"""Partition epoch, leader epoch."""


def _states(run: RunView) -> dict[str, list[Epochs]]:
    """Return the epochs of every partition's states, in the order of the log; states without epochs are left out."""
    states: dict[str, list[tuple[int, Epochs]]] = defaultdict(list)
    for event in run.series.events_of((LOG,)):
        detail = event.detail
        if detail.get("partition_epoch") is not None:
            epochs = (int(detail["partition_epoch"]), int(detail.get("leader_epoch", -1)))
            states[f"{detail['topic']}-{detail['partition']}"].append((int(detail["offset"]), epochs))
    return {partition: [epochs for _offset, epochs in sorted(found)] for partition, found in states.items()}


def descending(states: Sequence[Epochs]) -> str:
    """Return the first pair of states that contradicts the rule, in words; empty when none does.

    The controller raises the partition epoch with every change and never lowers the leader epoch (KRaft's
    `PartitionRegistration`).
    """
    for before, after in pairwise(states):
        if after[0] <= before[0] or after[1] < before[1]:
            return f"partition epoch {before[0]} then {after[0]}, leader epoch {before[1]} then {after[1]}"
    return ""


def _judge(run: RunView) -> list[Finding]:
    """Return the finding, or none for a trace from before the controller's epochs were recorded."""
    states = _states(run)
    if not states:
        return []
    wrong = [f"{partition}: {why}" for partition, found in states.items() if (why := descending(found))]
    changes = sum(len(found) - 1 for found in states.values())
    return [
        finding(
            "epochs-ascend",
            "every change has a higher partition epoch, and no lower leader epoch",
            "fail" if wrong else "pass" if changes else "inconclusive",
            "; ".join(shortened(wrong, _SHOWN)) or f"{plural(changes, 'change')} of {plural(len(states), 'partition')}",
            observed=float(len(wrong)),
            unit="partitions",
            tolerance="none",
            series=(LOG,),
        )
    ]


CRITERION = Criterion(
    name="epochs-ascend",
    title="Epochs only ascend",
    section=FACTS,
    judge=_judge,
    needs=has_steps,
    by_name=False,
    catches="A controller that writes a stale state after a failover.",
)
