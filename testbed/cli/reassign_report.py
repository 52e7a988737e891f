"""Reassignments as text for users and as JSON for programs."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from results.contract.texts import and_more, counted, plural
from results.render import table
from testbed.kafka.types import Reassignment, TopicPartition
from testbed.reassignment.batching.forecast import SpreadAdvice
from testbed.reassignment.batching.job import Job, JobControl
from testbed.reassignment.batching.turn import PartitionStatus, Turn
from testbed.reassignment.planners import PlanCost
from testbed.units import format_byte_rate, format_size

_SHOWN = 40


def cost_text(cost: PlanCost) -> str:
    """Return the effects and the cost of a plan, in one line."""
    return (
        f"MoveRatio {cost.move_ratio:.3f}: {cost.partitions} of {cost.of} partitions, "
        f"{plural(cost.replicas, 'replica')} and {format_size(cost.bytes, 4)} to copy, "
        f"{counted(cost.leaders, 'preferred leader', 'changes')}"
    )


def advice_text(advice: SpreadAdvice) -> str:
    """Return what a cap per broker would save, in one line."""
    return (
        "sorted by topic and number, batches copy to few brokers at once: "
        f"copying takes {advice.times:.1f} times as long as with --per-broker {advice.per_broker}"
    )


def control_text(control: JobControl) -> str:
    """Return the throttle and all limits as text."""
    rate, limits = control.throttle_bytes_per_s, control.limits
    values = (
        ("replicas of a partition at once", limits.replicas),
        ("partitions in flight", limits.partitions),
        ("leader movements in flight", limits.leaders),
        ("replicas copied to one broker", limits.per_broker),
        ("copies that begin in one turn", limits.starts),
    )
    shown = ", ".join(f"{name}: {'no limit' if value is None else value}" for name, value in values)
    return f"throttle {'none' if rate is None else format_byte_rate(rate)}; {shown}"


def turn_text(turn: Turn, seconds: float) -> str:
    """Return one line for a turn: the number of partitions in each state, and the first that waits or is held up."""
    count: Counter[str] = Counter(status.state for status in turn.partitions)
    whys: dict[str, str] = {}
    for status in turn.partitions:
        if status.state == "waiting" or (status.state == "moving" and status.step and status.why):
            whys.setdefault(status.state, f" ({status.tp}: {status.why})")
    states = ("done", "moving", "electing", "deferred", "waiting", "gone")
    shown = ", ".join(f"{count[state]} {state}{whys.get(state, '')}" for state in states if count[state])
    return f"{seconds:7.1f} s  {shown}"


class ExecutionNotes:
    """A receiver of an execution's events. It passes each note on, such as a refused step, once while it repeats.

    It also passes on that the throttle was extended.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._last: dict[str, str] = {}

    def __call__(self, kind: str, name: str, detail: Mapping[str, Any]) -> None:
        """Take one event; the execution repeats a note at every turn."""
        note = f"{name}: {detail.get('why', detail)}"
        if kind in ("note", "throttle.extended") and self._last.get(name) != note:
            self._last[name] = note
            self._say(note)


def status_text(job: Job, control: JobControl, turn: Turn) -> str:
    """Return a stored reassignment and its incomplete partitions as text."""
    alive = (
        f"process {job.owner.pid} carries it out" if job.owner.alive() else "no process carries it out: `resume` does"
    )
    head = [
        f"reassignment {job.id} of cluster {job.cluster_id} ({job.mode}): {control.wish}; {alive}",
        control_text(control),
    ]
    open_ones = [status for status in turn.partitions if status.state != "done"]
    done = len(turn.partitions) - len(open_ones)
    rows = [
        (s.tp, s.state, _list(s.current), _list(s.step) if s.step else "–", _list(s.target), s.why)
        for s in open_ones[:_SHOWN]
    ]
    shown = [table(("PARTITION", "STATE", "CURRENT", "STEP", "TARGET", "WHY"), rows)] if rows else []
    arrived = f"{done} of {len(turn.partitions)} partitions have arrived"
    return "\n".join([*head, arrived, *shown, *and_more(len(open_ones) - _SHOWN)])


def status_document(job: Job, control: JobControl, turn: Turn) -> dict[str, Any]:
    """Return the status as JSON: for every partition, the fields that KIP-435's protocol change would have listed."""
    return {
        "id": job.id,
        "cluster_id": job.cluster_id,
        "mode": job.mode,
        "wish": control.wish,
        "carried_out": job.owner.alive(),
        "throttle_bytes_per_s": control.throttle_bytes_per_s,
        "limits": control.limits,
        "partitions": [_partition(status) for status in turn.partitions],
    }


def _partition(status: PartitionStatus) -> dict[str, Any]:
    return {
        "topic": status.tp.topic,
        "partition": status.tp.partition,
        "state": status.state,
        "current": status.current,
        "step": status.step,
        "target": status.target,
        "why": status.why or None,
    }


def listing_text(listed: Mapping[TopicPartition, Reassignment]) -> str:
    """Return the reassignments that the controller lists (KIP-455) as text."""
    if not listed:
        return "nothing is being reassigned"
    rows = [
        (tp, _list(r.replicas), _list(r.adding) or "–", _list(r.removing) or "–") for tp, r in sorted(listed.items())
    ]
    return table(("PARTITION", "REPLICAS", "ADDING", "REMOVING"), rows)


def listing_document(listed: Mapping[TopicPartition, Reassignment]) -> list[dict[str, Any]]:
    """Return the reassignments that the controller lists as JSON."""
    return [{"topic": tp.topic, "partition": tp.partition, **asdict(r)} for tp, r in sorted(listed.items())]


def _list(replicas: Sequence[int]) -> str:
    return ",".join(map(str, replicas))
