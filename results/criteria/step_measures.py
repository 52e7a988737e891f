"""Measures of a run of steps, from its trace: which of the expected states were in force, and when.

Events: `trace.log` (a state of the controller's log), `trace.described` and `trace.listed` (as an Admin client was
told), `trace.logs` (the replicas' logs on the brokers). What they hold stands in docs/schema.md.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from results.contract.steps import State, StepRecord, asked
from results.criteria.measures import MoveMeasures, PollAgreement, StepMeasures, StepObservation
from results.criteria.sample_series import RunEvent, RunSeries

LOG, DESCRIBED, LISTED = "trace.log", "trace.described", "trace.listed"
LOGS = "trace.logs"
UNREAD = "records.unread"
"""The event of a scenario whose records could not be read back, with the reason."""
FOREVER_US = 2**62


@dataclass(frozen=True, slots=True)
class StateSpan:
    """A state and its time: from `begin` up to, but not including, `end`."""

    begin: int
    end: int
    state: State


Timelines = Mapping[tuple[str, int], Sequence[StateSpan]]


def measure_steps(steps: Sequence[StepRecord], run: RunSeries) -> MoveMeasures:
    """Return the measures of a run of steps."""
    spans = timelines(run.events_of((LOG,)))
    never_came = set(_never_came(steps, spans))
    started_us = next((step.from_us for step in steps if step.from_us is not None), None)
    found = tuple(
        replace(
            _found(place, number, spans.get((e.topic, e.partition), ()), e.wanted.met_by, first, last),
            never_came=(place, number) in never_came,
        )
        for place, number, e, first, last in asked(steps)
    )
    polled = tuple(_polled(kind, run.events_of((kind,)), spans) for kind in (DESCRIBED, LISTED))
    return MoveMeasures(started_us=started_us, steps=StepMeasures(found, polled))


def timelines(events: Sequence[RunEvent]) -> Timelines:
    """Return each partition's states in the order of the log, with their times."""
    by_partition: dict[tuple[str, int], list[RunEvent]] = defaultdict(list)
    for event in events:
        by_partition[event.detail["topic"], event.detail["partition"]].append(event)
    found = {}
    for key, changes in by_partition.items():
        changes.sort(key=lambda event: event.detail["offset"])
        ends = [event.us for event in changes[1:]] + [FOREVER_US]
        found[key] = [StateSpan(c.us, end, state_of(c.detail)) for c, end in zip(changes, ends, strict=True)]
    return found


def state_of(detail: Mapping[str, Any]) -> State:
    """Return a state as an event has it; what it does not tell is empty."""
    replicas, adding, removing, isr = (
        tuple(detail.get(name) or ()) for name in ("replicas", "adding", "removing", "isr")
    )
    epoch = detail.get("leader_epoch", -1)
    return State(replicas, adding, removing, isr, detail.get("leader"), epoch, bool(detail.get("gone")))


def _found(
    place: int, number: int, spans: Sequence[StateSpan], met: Callable[[State], bool], first: int, last: int
) -> StepObservation:
    inside = [span for span in spans if span.begin <= last and span.end > first]
    us = min((max(span.begin, first) for span in inside if met(span.state)), default=None)
    return StepObservation(place, number, us, inside[-1].state if inside else None)


def _never_came(steps: Sequence[StepRecord], spans: Timelines) -> Iterator[tuple[int, int]]:
    """Yield the steps and expectations whose state the log does not have from the step on, by its order alone.

    A step begins at the earliest with the first state that its *before* allows, after what the steps before it led to.
    A partition that is being reassigned at the log's end may still come to its state: a quota rests while a clock is
    behind. An ISR may, too, so it does not count.
    """
    begins: dict[tuple[str, int], int] = {}
    for place, step in enumerate(steps):
        if step.from_us is None or step.to_us is None:
            continue
        ends: dict[tuple[str, int], int] = {}
        for number, expectation in enumerate(step.expectations):
            key = expectation.topic, expectation.partition
            states = [span.state for span in spans.get(key, ())]
            wanted = replace(expectation.wanted, isr=None, in_sync=(), out_of_sync=())
            met = [at for at, state in enumerate(states) if at >= begins.get(key, 0) and wanted.met_by(state)]
            if expectation.when == "before":
                begins[key] = min(met, default=begins.get(key, 0))
            elif expectation.when == "never":
                continue
            elif met:
                ends[key] = max(ends.get(key, 0), met[0])
            elif states and not states[-1].adding and not states[-1].removing:
                yield place, number
        begins |= ends


def at_any_time(spans: Timelines) -> Timelines:
    """Return the states as if each had been in force all the time: what does not fit them depends on no clock."""
    return {key: [replace(span, begin=-FOREVER_US, end=FOREVER_US) for span in of] for key, of in spans.items()}


def _polled(kind: str, events: Sequence[RunEvent], spans: Timelines) -> PollAgreement:
    unlike = unknown = 0
    for event in events:
        known = spans.get((event.detail["topic"], event.detail["partition"]), ())
        state = state_of(event.detail)
        same = [span for span in known if _same(kind, span.state, state)]
        # A client gets an answer after the controller has decided; how long after does not matter here.
        unlike += not any(span.begin <= event.us for span in same)
        unknown += not same
    return PollAgreement(kind, len(events), unlike, unknown)


def _same(kind: str, logged: State, answered: State) -> bool:
    if answered.gone or logged.gone:
        return answered.gone and logged.gone
    if kind == DESCRIBED:
        led = (logged.leader, logged.leader_epoch) == (answered.leader, answered.leader_epoch)
        return led and _alike(logged, answered, "replicas", "isr")
    if not answered.adding and not answered.removing:
        return not logged.adding and not logged.removing
    return _alike(logged, answered, "replicas", "adding", "removing")


def _alike(one: State, other: State, *names: str) -> bool:
    return all(set(getattr(one, name)) == set(getattr(other, name)) for name in names)
