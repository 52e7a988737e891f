"""Going through a series' slots: what is done is journaled at once, so that a kill loses one run at most."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from results.contract.verdict import Verdict
from testbed.errors import TestbedError
from testbed.runner.journal import Journal
from testbed.runner.limits import TOLD_UNFINISHED, out_of_time
from testbed.runner.schedule import Slot
from testbed.runner.series import Begun, Canary, Done, Failed, SoFar, so_far
from testbed.runner.variant import Variant

Progress = Callable[[str], None]
FAILURES_IN_A_ROW = 3


@dataclass(frozen=True, slots=True)
class Measured:
    """One run that is in the store: see `Done`, of which this is what the executor knows."""

    verdict: Verdict
    values: Mapping[str, float]
    failed: tuple[str, ...]
    software: str
    kept: tuple[str, ...] = ()
    sound: bool = False


class Executor(Protocol):
    """What makes the runs; a fake one in tests."""

    def new_run_id(self, variant: Variant) -> str:
        """An id for a run that is about to be made."""

    def canary(self, variant: Variant) -> Canary:
        """Get a testbed ready for `variant`, with no Kafka running anywhere, and look at the machine."""

    def run(self, variant: Variant, run_id: str) -> Measured:
        """Make the run on that testbed and commit it to the store under this id."""

    def committed(self, run_id: str) -> Measured | None:
        """The run of an interrupted slot, when it is in the store all the same."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What ends a series early. `enough` is asked after each block and says why it is enough, or None.

    `spare` is asked before each slot: one that nobody needs is not made, and is not left for `--resume` either.
    """

    budget_s: float | None = None
    enough: Callable[[SoFar], str | None] = lambda _state: None
    clock: Callable[[], float] = time.monotonic
    spare: Callable[[Slot, SoFar], bool] = lambda _slot, _state: False


@dataclass(frozen=True, slots=True)
class Ended:
    """Why the series ended; `complete` when nothing more is needed: `--resume` would make no run."""

    why: str
    complete: bool


def execute(journal: Journal, executor: Executor, limits: Limits, progress: Progress) -> Ended:
    """Make every run that the journal does not have yet.

    Raises `TestbedError` when several runs in a row could not be made; what is done stays done. A run that could not
    be made before an interruption, either, is not counted: it would end every `--resume` where the last one ended.
    """
    return _Execution(journal, executor, limits, progress).go()


class _Execution:
    """One going through; everything that lasts is in the journal."""

    def __init__(self, journal: Journal, executor: Executor, limits: Limits, progress: Progress) -> None:
        self.journal, self.executor, self.limits, self.progress = journal, executor, limits, progress
        self.series = journal.series
        self.began = limits.clock()
        self.last = self.series.variants[0]
        self.failures: list[str] = []
        """Why the last runs could not be made; empty again after one that was."""
        self.failed_before = {failure.slot for failure in self.state.failures}

    @property
    def state(self) -> SoFar:
        return so_far(self.journal.entries)

    def go(self) -> Ended:
        self._adopt()
        tried: set[int] = set()
        ended, before = self._pass(tried), -1
        # What a run came to may make another one needed that was passed over.
        while ended is None and len(tried) > before:
            before = len(tried)
            ended = self._pass(tried)
        self._close(self.last)
        if ended is not None:
            return ended
        state = self.state
        left = sum(1 for s in self.series.slots if s.index not in state.ran and not self.limits.spare(s, state))
        return Ended(f"{left} runs could not be made" if left else "all runs are made", left == 0)

    def _pass(self, tried: set[int]) -> Ended | None:
        """Make what is needed and was not tried yet; returns why the series ends before its last slot, if it does."""
        for slot in self.series.slots:
            state = self.state
            if slot.index in tried or slot.index in state.ran or self.limits.spare(slot, state):
                continue
            if why := self._known(slot):
                return Ended(why, True)
            if why := self._late(slot):
                return Ended(why, False)
            self.last = self.series.variant(slot.variant)
            failed = len(self.state.failures)
            if why := self._slot(slot, self.last):
                return Ended(why, True)
            if slot.index in self.state.ran or len(self.state.failures) > failed:
                tried.add(slot.index)
            if len(self.failures) == FAILURES_IN_A_ROW:
                why = f"{FAILURES_IN_A_ROW} runs in a row could not be made, the last one because: {self.failures[-1]}"
                if self.series.door not in TOLD_UNFINISHED:
                    raise TestbedError(f"{why}\nmend that, then go on with --resume {self.series.id}")
                return Ended(why, False)
        return None

    def _slot(self, slot: Slot, variant: Variant) -> str | None:
        """Make one run, or journal why it could not be made; returns why no more are needed, if that is so."""
        began = self.limits.clock()
        self.progress(f"slot {slot.index + 1} of {len(self.series.slots)}: {variant.label}")
        try:
            self.journal.append(self.executor.canary(variant))
            # Only now the last run has a canary after it and counts.
            if why := self._known(slot):
                return why
            if self.limits.spare(slot, self.state):
                return None
            run_id = self.executor.new_run_id(variant)
            self.journal.append(Begun(slot.index, run_id))
            measured = self.executor.run(variant, run_id)
        except TestbedError as error:
            self.progress(f"slot {slot.index + 1} could not be made: {error}")
            if slot.index not in self.failed_before:
                self.failures.append(str(error))
            self.journal.append(Failed(slot.index, str(error), self.limits.clock() - began))
        else:
            self.failures.clear()
            self.journal.append(_done(slot.index, run_id, measured, self.limits.clock() - began))
        return None

    def _known(self, slot: Slot) -> str | None:
        """Why no more blocks are needed; asked between blocks only."""
        state = self.state
        if any(each.block == slot.block and each.index in state.ran for each in self.series.slots):
            return None
        return self.limits.enough(state)

    def _late(self, slot: Slot) -> str | None:
        if self.limits.budget_s is None:
            return None
        left_s = self.limits.budget_s - (self.limits.clock() - self.began)
        return out_of_time(slot, self.series, self.state, left_s)

    def _adopt(self) -> None:
        """Take over the runs that were committed when a kill came before the journal knew."""
        for begun in self.state.unfinished:
            measured = self.executor.committed(begun.run_id)
            if measured is not None:
                self.progress(f"run {begun.run_id} was committed before the interruption")
                self.journal.append(_done(begun.slot, begun.run_id, measured, 0.0))

    def _close(self, variant: Variant) -> None:
        """A last look at the machine, unless there is one after every run."""
        if self.state.closed:
            return
        try:
            self.journal.append(self.executor.canary(variant))
        except TestbedError as error:
            self.progress(f"the machine could not be looked at after the last run: {error}")


def _done(slot: int, run_id: str, found: Measured, seconds: float) -> Done:
    values, failed, software, kept = found.values, found.failed, found.software, found.kept
    return Done(slot, run_id, found.verdict, values, failed, software, seconds, kept, found.sound)
