"""The report of a run of steps: each action with its expected states, and each partition's trace."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from results.contract.manifest import Manifest
from results.contract.steps import State, StepsRecord
from results.contract.verdict import Finding
from results.criteria.quantities import US
from results.criteria.sample_series import RunSeries
from results.criteria.step_measures import LOG, state_of
from results.report import page

WIDTH, ROW, LEFT = 1000.0, 18, 70
BEFORE_S = 1.0


@dataclass(frozen=True, slots=True)
class StepBar:
    """A broker's part in a partition for a time, in the picture's units; `kind` is a class of steps.css."""

    x: float
    y: float
    width: float
    kind: str
    label: str


@dataclass(frozen=True, slots=True)
class Lane:
    """A partition's picture, and its table: when (seconds after the first step), and the state from then on."""

    name: str
    brokers: tuple[tuple[int, float], ...]
    bars: tuple[StepBar, ...]
    marks: tuple[tuple[float, str], ...]
    height: float
    states: tuple[tuple[str, State, int], ...]


def answer(criteria: Sequence[Finding]) -> str:
    """Return the verdict in one sentence."""
    for verdict, words in (("fail", "was not seen as expected"), ("inconclusive", "could not be judged")):
        wrong = [c for c in criteria if c.verdict == verdict]
        if wrong:
            more = f" And {len(wrong) - 1} more." if len(wrong) > 1 else ""
            return f"{wrong[0].name} {words}: {wrong[0].expected}; {wrong[0].why}.{more}"
    return f"Every step was seen as expected: {len(criteria)} criteria." if criteria else page.NOTHING_JUDGED


def lanes(record: StepsRecord, run: RunSeries) -> tuple[Lane, ...]:
    """Return the states, in the controller's log, of each partition that a step looks at."""
    looked_at = {(e.topic, e.partition) for step in record.steps for e in step.expectations}
    begun = [step.from_us for step in record.steps if step.from_us is not None]
    ended = [step.to_us for step in record.steps if step.to_us is not None]
    if not begun or not ended:
        return ()
    zero, last = begun[0], ended[-1]
    traced: dict[tuple[str, int], list[tuple[int, int, State]]] = {}
    for event in run.events_of((LOG,)):
        key = event.detail["topic"], event.detail["partition"]
        if key in looked_at:
            traced.setdefault(key, []).append((event.detail["offset"], event.us, state_of(event.detail)))
    scale = (WIDTH - LEFT) / max(1.0, (last - zero) / US + BEFORE_S)

    def x(us: int) -> float:
        return LEFT + scale * min(max(0.0, (us - zero) / US + BEFORE_S), (last - zero) / US + BEFORE_S)

    marks = tuple((x(s.from_us), s.name) for s in record.steps if s.from_us is not None)
    return tuple(_lane(f"{t}-{p}", sorted(states), x, marks, zero) for (t, p), states in sorted(traced.items()))


def _lane(
    name: str, states: list[tuple[int, int, State]], x: Any, marks: tuple[tuple[float, str], ...], zero: int
) -> Lane:
    brokers = sorted({broker for _offset, _us, state in states for broker in state.replicas})
    y = {broker: 14.0 + ROW * place for place, broker in enumerate(brokers)}
    bars = []
    for (_offset, us, state), (_next, end, _state) in zip(states, [*states[1:], (0, 2**62, State())], strict=True):
        for broker in state.replicas:
            width = x(end) - x(us)
            if width > 0:
                bars.append(StepBar(x(us), y[broker], width, _kind(state, broker), f"broker {broker}: {state}"))
    rows = tuple((f"{(us - zero) / US:+.3f}", state, offset) for offset, us, state in states)
    return Lane(name, tuple(y.items()), tuple(bars), marks, 20.0 + ROW * len(brokers), rows)


def _kind(state: State, broker: int) -> str:
    kinds = ["in-sync" if broker in state.isr else "out-of-sync"]
    kinds += ["removing"] if broker in state.removing else []
    kinds += ["leader"] if broker == state.leader else []
    return " ".join(kinds)


def render_steps(manifest: Manifest, samples: Any, events: Any, criteria: Sequence[Finding]) -> dict[str, Any]:
    """Return what the template `steps.html.j2` is filled with. Raise ValueError when the run has no steps."""
    record = manifest.steps
    if record is None:
        raise ValueError(f"run {manifest.run_id}: its manifest has no steps to report")
    zero = next((step.from_us for step in record.steps if step.from_us is not None), 0)
    steps = [
        (
            "" if s.from_us is None else f"{(s.from_us - zero) / US:+.2f} s",
            s.name,
            s.did,
            s.answer or s.why,
            "" if s.from_us is None or s.to_us is None else f"{(s.to_us - s.from_us) / US:.2f} s",
        )
        for s in record.steps
    ]
    return {
        "answer": answer(criteria),
        "steps": steps,
        "lanes": lanes(record, RunSeries(samples, events)),
        "width": WIDTH,
        "rows": page.rows(criteria),
    }
