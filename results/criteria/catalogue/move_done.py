"""Nothing is in flight; replicas are the target, in sync, and one of them leads; old replicas are gone.

All replicas are still in sync when the run ends: one that stops following leaves the ISR after the move. The partitions
that the plan does not name have the replicas of before.

A move that is not done in its time may be late or wrong. A slow machine explains a move that goes on until the end of
the wait. It does not explain a state that has not changed any more for longer than a healthy cluster needs.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from results.contract.texts import shortened
from results.contract.verdict import Finding
from results.criteria.catalogue.isr_expansion import ENDS_S, allowed_s
from results.criteria.criterion import (
    BROKERS_UNRESTRAINED,
    CLOCK_STEADY,
    DISK_PRESSURE,
    FACTS,
    MEMORY_PRESSURE,
    NETWORK_CHANGED,
    NOT_KAFKAS,
    Criterion,
    has_any_move,
    has_move,
)
from results.criteria.findings import fact_finding
from results.criteria.quantities import DRIVER, GAP_S, US
from results.criteria.run_view import RunView
from results.criteria.sample_series import Micros, at_instants

SHOWN = 3
LEAVING, BACK, FAILED = "broker.leaving", "broker.back", ("restart.failed", "upgrade.failed")
SLACK = 3
"""The runner waits for more than three times what a healthy move takes: three times the throttle's time and a minute,
or five times log size ÷ NIC and 90 s. So a move had its time where the machine was fit for a third of the wait.

Healthy brokers that were restarted or upgraded were back, and all in sync, after 6 to 14 s on two cores
(docs/measurements/kip73.md). The runner waits for at least 60 s: a third of that is more than they needed."""


@dataclass(frozen=True, slots=True)
class VainWait:
    """The runner's wait for a move that was not done: its time, and what of that the machine was fit.

    A broker that the runner stopped and that was not back in time is such a wait, too: it goes on.

    `listed` says whether partitions were in flight at the end, `going_on` whether the move went on until then: a copy
    that was behind grew, or fewer partitions were in flight.
    """

    seconds: float
    fit_s: float
    listed: bool
    going_on: bool

    @property
    def too_short(self) -> str:
        """Return how little of it the machine was fit, where less than a third is left; empty where it had its time."""
        return f"{self.fit_s:.1f} of {self.seconds:.1f} s are left" if self.fit_s * SLACK < self.seconds else ""


def vain_wait(run: RunView) -> VainWait | None:
    """Return the wait for a move that was not done in its time; None where the move ended otherwise.

    A run of before the runner recorded its wait has none.
    """
    done, begun_us = run.manifest.facts.done, run.measures.started_us
    if done is None or done.ok:
        return None
    if (late := late_wait(run)) is not None:
        return late
    if done.waited_s is None or begun_us is None:
        return None
    ended_us = begun_us + round(done.waited_s * US)
    polls = run.series.gauge("move.in_flight", DRIVER).between(begun_us, ended_us)
    listed = bool(polls.value[-1] > 0) if len(polls) else True
    changes = [polls.t[1:][polls.value[1:] < polls.value[:-1]]]
    if listed:  # otherwise the controller says that everything is copied
        changes += _copied(run)
    instants = np.concatenate(changes)
    changed_us = int(np.max(instants[instants <= ended_us], initial=begun_us))
    seconds = (ended_us - begun_us) / US
    rest_s = (ended_us - changed_us) / US - run.unfit.seconds(changed_us, ended_us)
    fit_s = seconds - run.unfit.seconds(begun_us, ended_us)
    return VainWait(seconds, fit_s, listed, going_on=rest_s <= _longest_rest_s(run))


def late_wait(run: RunView) -> VainWait | None:
    """Return the runner's wait for a broker that it had stopped and that was not back in time; None without one."""
    done, late = run.manifest.facts.done, _late_return(run)
    if done is None or done.ok or late is None:
        return None
    seconds = (late[1] - late[0]) / US
    return VainWait(seconds, seconds - run.unfit.seconds(*late), listed=True, going_on=True)


def spared_of_late(run: RunView, found: Iterable[Finding]) -> list[Finding]:
    """Return findings that fail where a restarted broker is not back, as if the unfit time had not passed.

    They are left open when that broker had less than a third of the runner's wait on a fit machine.
    """
    wait = late_wait(run)
    why = "" if wait is None else wait.too_short
    return [replace(each, verdict="inconclusive", why=why) if why else each for each in found]


def _late_return(run: RunView) -> tuple[int, int] | None:
    """Return from when until when the runner waited for a broker that it had stopped; None unless it was late.

    The last wait counts: after a request without an answer the runner repeats it, and the broker may come back.
    """
    left: dict[str | None, int] = {}
    found: tuple[int, int] | None = None
    for event in run.series.events_of((LEAVING, BACK, *FAILED)):
        if event.kind == LEAVING:
            left[event.host] = event.us
        elif event.kind == BACK:
            found = None
        elif event.host in left:
            found = (left[event.host], event.us) if event.detail.get("late") is True else None
    return found


def _copied(run: RunView) -> Iterator[Micros]:
    """Yield for each log of a receiver the instants at which it grew and lacked bytes that its leader had 3 s before.

    A replica that has everything also grows while clients write: by what its leader got in the last second.
    """
    for leader, follower in sorted(_transfers(run)):
        source = run.series.logs_of(leader)
        for partition, (t, value) in run.series.logs_of(follower).items():
            if partition in source:
                behind = at_instants(*source[partition], t - round(GAP_S * US)) > value
                yield t[1:][(value[1:] > value[:-1]) & behind[:-1]]


def _transfers(run: RunView) -> set[tuple[str, str]]:
    """Return the pairs of leader and receiver."""
    if has_move(run):
        return {(flow.leader, flow.follower) for flow in run.move.flows if flow.kind == "throttled"}
    return {(sent.leader, sent.follower) for sent in run.relocation.sent}


def _longest_rest_s(run: RunView) -> float:
    """Return the most seconds for which a healthy move shows no change.

    After the last byte it ends as `isr-expansion` says. A throttle may rest for a quota window before. Readings may be
    apart by a gap.
    """
    return (allowed_s(run.move) + run.move.window_s if has_move(run) else ENDS_S) + GAP_S


def _excuses(run: RunView, precondition: str, _failed: Finding) -> bool:
    """Return whether a precondition explains that the move was not done.

    A network that changed may have cut a broker off, and somebody may have stopped one. A quota rests for as long as a
    clock is set back, but whatever is still missing when nothing is in flight does not depend on a clock.
    """
    if precondition in (NETWORK_CHANGED, BROKERS_UNRESTRAINED):
        return True
    wait = vain_wait(run)
    return wait is not None and (wait.going_on or (wait.listed and precondition == CLOCK_STEADY))


def _judge(run: RunView) -> Finding:
    """Return the finding of what the run established at the end of the move, and of replicas at the end of the run.

    A broker that joined is registered then. One that left is not, and its container is gone.
    """
    facts, member = run.manifest.facts, run.membership
    ok: bool | None = None if facts.done is None else facts.done.ok
    why = "" if facts.done is None else facts.done.why
    expected = "nothing in flight; replicas = target; ISR holds the target, one of it leads; old replicas gone"
    if member is not None:
        expected += f"; {member.host} has {member.change}"
        if ok and member.wrong:
            ok, why = False, member.wrong
    if ok and facts.records and facts.records.out_of_sync:
        shown = ", ".join(shortened(facts.records.out_of_sync, SHOWN))
        ok, why = False, f"no longer in sync at the end of the run: {shown}"
    return fact_finding("move-done", expected, ok, why, "done")


def _spared(run: RunView) -> list[Finding]:
    """Return the finding, left open where the move went on and the machine was unfit for most of its time."""
    found, wait = _judge(run), vain_wait(run)
    if wait is None or not wait.going_on or not wait.too_short:
        return [found]
    return [replace(found, verdict="inconclusive", why=wait.too_short)]


CRITERION = Criterion(
    name="move-done",
    title="The move is done",
    section=FACTS,
    judge=lambda run: [_judge(run)],
    spared=_spared,
    needs=has_any_move,
    by_name=False,
    rests_on_preconditions=True,
    # Of a busy CPU, `spared` knows whether Kafka was the cause. The others slow a copy down, as every rate.
    excused_by=(*NOT_KAFKAS, BROKERS_UNRESTRAINED, MEMORY_PRESSURE, DISK_PRESSURE),
    excuses=_excuses,
    catches="A reassignment that is reported done too early, or moves other partitions as well; a replica that stops "
    "following after it.",
)
