"""Each broker has the logs of its replicas and no others, and no copy becomes smaller while the broker is to have it.

The brokers say which logs they have after each step of a scenario without a broker that is down, and at the end. The
controller's log says which replicas were to be there.
"""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise

from results.contract.steps import GONE
from results.contract.texts import plural, shortened
from results.contract.verdict import Finding, Verdict
from results.criteria.criterion import BROKERS_UNRESTRAINED, CLOCKS, FACTS, Criterion, has_steps
from results.criteria.findings import finding
from results.criteria.quantities import size
from results.criteria.run_view import RunView
from results.criteria.step_measures import LOG, LOGS, StateSpan, at_any_time, timelines

SHOWN = 5
Logs = Mapping[tuple[int, int], int]
"""Broker and partition → bytes."""


@dataclass(frozen=True, slots=True)
class LogReading:
    """What all brokers said of their logs of a topic at one instant; `problem` says why nothing is known."""

    us: int
    topic: str
    logs: Logs
    problem: str = ""


def _looks(run: RunView) -> list[LogReading]:
    return [
        LogReading(
            event.us,
            str(event.detail.get("topic", "")),
            {
                (int(broker), int(partition)): int(found)
                for broker, partitions in event.detail.get("sizes", {}).items()
                for partition, found in partitions.items()
            },
            event.detail.get("problem", ""),
        )
        for event in run.series.events_of((LOGS,))
    ]


def _placed(spans: Sequence[StateSpan], from_us: int, to_us: int) -> list[tuple[int, ...]]:
    """Return the replicas of every state that a partition had in a time; none while it does not exist."""
    inside = [span.state for span in spans if span.begin <= to_us and span.end > from_us]
    return [() if state.gone else state.replicas for state in inside] or [()]


def wrong_logs(looks: Sequence[LogReading], states: Mapping[tuple[str, int], Sequence[StateSpan]]) -> Iterator[str]:
    """Yield what is wrong with the logs of each look against the look before; of the last one, also which there are."""
    for before, now in pairwise(looks):
        for (broker, partition), had in before.logs.items():
            has = now.logs.get((broker, partition), 0)
            spans = states.get((now.topic, partition), ())
            if has < had and all(broker in replicas for replicas in _placed(spans, before.us, now.us)):
                yield f"the log of partition {partition} on broker {broker} had {size(had)}, then {size(has)}"
    last = looks[-1]
    partitions = {*(p for topic, p in states if topic == last.topic), *(p for _broker, p in last.logs)}
    for partition in sorted(partitions):
        placed = [frozenset(each) for each in _placed(states.get((last.topic, partition), ()), last.us, last.us)]
        there = {broker for broker, found in last.logs if found == partition}
        for broker in sorted(there - frozenset().union(*placed)):
            yield f"broker {broker} has a log of partition {partition}, which {_said(placed[-1])}"
        for broker in sorted(frozenset.intersection(*placed) - there):
            yield f"broker {broker} has no log of partition {partition}, which {_said(placed[-1])}"


def _said(replicas: Set[int]) -> str:
    return f"has replicas on {', '.join(map(str, sorted(replicas)))}" if replicas else GONE


def _judge(run: RunView) -> list[Finding]:
    looks, states = _looks(run), timelines(run.series.events_of((LOG,)))
    problem = next((look.problem for look in looks if look.problem), "")
    verdict: Verdict = "inconclusive"
    wrong: list[str] = []
    if problem:
        why = f"the brokers did not say which logs they have: {problem}"
    elif not states:
        why = "the controller's log was not read"
    else:
        wrong = list(wrong_logs(looks, states))
        verdict = "fail" if wrong else "pass"
        why = "; ".join(shortened(wrong, SHOWN)) or f"the logs of all brokers were read {plural(len(looks), 'time')}"
    return [
        finding(
            "logs-as-placed",
            "no log becomes smaller; at the end each broker has the logs of its replicas and no others",
            verdict,
            why,
            observed=None if verdict == "inconclusive" else float(len(wrong)),
            unit="logs",
            series=(LOGS, LOG),
        )
    ]


def _excuses(run: RunView, precondition: str, _failed: Finding) -> bool:
    """Return whether a clock can explain a failure: the logs fit to the states of some time."""
    if precondition == BROKERS_UNRESTRAINED:
        return True
    states = at_any_time(timelines(run.series.events_of((LOG,))))
    return next(wrong_logs(_looks(run), states), None) is None


CRITERION = Criterion(
    name="logs-as-placed",
    title="Logs where the replicas are",
    section=FACTS,
    judge=_judge,
    needs=lambda run: has_steps(run) and bool(run.series.events_of((LOGS,))),
    by_name=False,
    rests_on_preconditions=True,
    # The controller's clock says since when a state is in force, and the runner's when it asked. A broker that somebody
    # stopped deletes no log.
    excused_by=(*CLOCKS, BROKERS_UNRESTRAINED),
    excuses=_excuses,
    catches="A cancelled move whose copy stays on a disk, or a request that begins a copy from the start again.",
)
