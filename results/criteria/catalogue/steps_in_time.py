"""Each step of a KIP-455 scenario comes to its end in the time that a healthy cluster needs, and no more.

The controller decides a reassignment, a cancellation and an election by itself, in one event. Brokers and clients learn
of it at once. So a step is late by what the controller, the leader or a broker waits for.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from results.contract.verdict import Finding, Power, Verdict
from results.criteria.catalogue.clock_steady import JUMP_S
from results.criteria.catalogue.clock_steady import METRIC as CLOCK
from results.criteria.criterion import BROKERS_UNRESTRAINED, FACTS, NETWORK_CHANGED, Criterion, has_steps
from results.criteria.findings import finding
from results.criteria.quantities import US, percent
from results.criteria.restraint import held_since_us
from results.criteria.run_view import RunView
from results.criteria.standstill import MACHINE, MOST
from results.criteria.unfit import BUSY_HIGHEST, STEAL_HIGHEST

NAME = "steps-in-time"
LOAD_EVERY_S = 1.0
"""Seconds between two readings of the machine's load: each is of the time before it."""
LATE_LOOK_S = 0.5
"""A reading that is later than this was late because the runner did not run: a look takes some milliseconds."""


@dataclass(frozen=True, slots=True)
class TimedStep:
    """A step with its time and the most that it may take, in seconds; `machine` says what may have slowed it down."""

    name: str
    to_us: int
    took_s: float
    within_s: float
    machine: str

    @property
    def late(self) -> bool:
        """Return whether it took longer than it may."""
        return self.took_s > self.within_s

    @property
    def certain(self) -> bool:
        """Return whether it is late and the machine does not explain it."""
        return self.late and not self.machine

    def __str__(self) -> str:
        excuse = f" ({self.machine})" if self.machine else ""
        return f"{self.name} took {self.took_s:.2f} s of {self.within_s:.1f} s{excuse}"


def _timed(run: RunView) -> Iterator[TimedStep]:
    for number, step in enumerate(run.manifest.steps.steps if run.manifest.steps else (), 1):
        if step.within_s is not None and step.from_us is not None and step.to_us is not None:
            took_s = (step.to_us - step.from_us) / US
            late_s = took_s - step.within_s
            machine = _slow(run, step.from_us, step.to_us, late_s) if late_s > 0 else ""
            yield TimedStep(f"{number}-{step.name}", step.to_us, took_s, step.within_s, machine)


def _slow(run: RunView, from_us: int, to_us: int, late_s: float) -> str:
    """Return what is said of a machine by which a step may be so late; empty where it was idle enough.

    A mean hides seconds of a long step in which the machine was unfit: they are summed, and compared with what the step
    is late by. The clock may have been set meanwhile. The runner notes the end of a step: while somebody stops it, it
    notes none.
    """
    series, until = run.series, to_us + round(LOAD_EVERY_S * US)
    clock = series.gauge(CLOCK, MACHINE).between(from_us - round(LOAD_EVERY_S * US), until)
    if len(clock) > 1 and (set_s := float(np.ptp(clock.value))) > JUMP_S:
        return f"the clock was set by {set_s:.2f} s"
    looks = series.gauge("cpu.busy", MACHINE).between(from_us - round(LOAD_EVERY_S * US), until)
    stood_s = float(np.max(np.diff(looks.t), initial=0)) / US - LOAD_EVERY_S
    if stood_s >= max(late_s, LATE_LOOK_S):
        return f"the runner itself stood still for {stood_s:.1f} s"
    for metric, most, words in (("cpu.busy", BUSY_HIGHEST, "busy"), ("cpu.steal", STEAL_HIGHEST, "stolen")):
        share = series.gauge(metric, MACHINE).between(from_us, until)
        if metric == "cpu.busy" and not len(share):
            return "the machine's load was not sampled"
        if len(share) and (mean := float(np.mean(share.value))) > most:
            return f"the CPU was {percent(mean)} {words}"
    if (seconds := run.unfit.seconds(from_us, to_us)) >= late_s:
        return f"others used or stole the CPU for {seconds:.1f} s"
    for metric, words in (("pressure.memory", "memory"), ("pressure.io", "a disk")):
        waited = series.gauge(metric, MACHINE).between(from_us, until)
        if len(waited) > 1 and (stood := float(waited.value[-1] - waited.value[0]) / waited.seconds) > MOST:
            return f"for {percent(stood)} of the time every task waited for {words}"
    return ""


def _judge(run: RunView) -> list[Finding]:
    """Return the finding of all steps that have a time; none for a run from before steps had one."""
    steps = list(_timed(run))
    if not steps:
        return []
    late = [step for step in steps if step.late]
    certain = [step for step in steps if step.certain]
    verdict: Verdict = "fail" if certain else "inconclusive" if late else "pass"
    nearest = max(steps, key=lambda step: step.took_s - step.within_s)
    least_s = max(0.0, nearest.within_s - nearest.took_s)
    return [
        finding(
            NAME,
            "each step comes to its end in the time of its requests, and of what it copies",
            verdict,
            "; ".join(map(str, certain or late or [nearest])),
            observed=nearest.took_s,
            unit="s",
            tolerance=f"{nearest.within_s:.1f} s",
            power=Power(least_s, "s", f"would have failed from {least_s:.2f} s more on"),
            series=("manifest.steps",),
        )
    ]


def _excuses(run: RunView, precondition: str, _failed: Finding) -> bool:
    """Return whether a failure may be explained: what holds a broker back explains no step that was over before."""
    since_us = held_since_us(run) if precondition == BROKERS_UNRESTRAINED else None
    return since_us is None or all(step.to_us >= since_us for step in _timed(run) if step.certain)


CRITERION = Criterion(
    name=NAME,
    title="Each step in its time",
    section=FACTS,
    judge=_judge,
    needs=has_steps,
    by_name=False,
    rests_on_preconditions=True,
    # Of the machine each step has its own readings.
    excused_by=(NETWORK_CHANGED, BROKERS_UNRESTRAINED),
    excuses=_excuses,
    catches="A controller that decides late, or a broker that learns late of what was decided.",
    smallest="1.5 s for a decision, 4 s for a move",
)
