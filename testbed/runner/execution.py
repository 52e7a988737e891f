"""Go through a campaign's slots within its budget. The journal has every run at once: a kill loses one run at most."""

import re
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from results.contract.verdict import Verdict
from testbed.errors import TestbedError, UsageError
from testbed.runner.campaign import NIGHTLY, TOLD_UNFINISHED, Campaign
from testbed.runner.journal import (
    CampaignJournal,
    CampaignState,
    CanaryReading,
    RunBegun,
    RunDone,
    RunFailed,
    campaign_state,
)
from testbed.runner.schedule import Slot
from testbed.runner.variant import Variant
from testbed.units import UnitError, parse_duration


def parse_budget(text: str | None) -> float | None:
    """Seconds of `30m`, `2h`, `90s`, …; a bare `m` is minutes here. None is none; empty text is not: it is a variable
    that somebody forgot to set. Raises `UsageError`."""
    if text is None:
        return None
    try:
        seconds = parse_duration(re.sub(r"(?<=[0-9])m$", "min", text.strip()))
    except UnitError as error:
        raise UsageError(f"--budget {text}: {error}") from error
    if seconds <= 0:
        raise UsageError(f"--budget {text}: there must be some time, for instance 30m")
    return seconds


def durations(campaign: Campaign, state: CampaignState) -> Mapping[str, float]:
    """Variant → how long its longest slot took so far, canary included."""
    labels = {slot.index: slot.variant for slot in campaign.slots}
    found: dict[str, float] = {}
    for index, ran in state.ran.items():
        found[labels[index]] = max(found.get(labels[index], 0.0), ran.done.seconds)
    for failure in state.failures:
        found[labels[failure.slot]] = max(found.get(labels[failure.slot], 0.0), failure.seconds)
    return found


def needed_s(slots: Sequence[Slot], seen: Mapping[str, float]) -> float:
    """How long these slots will take: as long as each variant's longest; one not seen yet as the longest of all."""
    unseen = max(seen.values(), default=0.0)
    return sum(seen.get(slot.variant, unseen) for slot in slots)


def out_of_time(slot: Slot, campaign: Campaign, state: CampaignState, left_s: float) -> str | None:
    """Why `slot` is not begun: what is open of its block would not be done in `left_s`; None when it would.

    A pair that is not finished says nothing, so a block is begun only when all of it fits. The runs of a night are
    not compared with each other: there it is the slot alone.
    """
    rest = [each for each in campaign.slots if each.block == slot.block and each.index not in state.ran]
    if campaign.door == NIGHTLY:
        rest = [slot]
    needed = needed_s(rest, durations(campaign, state))
    if left_s > 0 and needed <= left_s:
        return None
    return f"the time budget: {max(left_s, 0):.0f} s are left, {len(rest)} slots of a block take about {needed:.0f} s"


Progress = Callable[[str], None]
FAILURES_IN_A_ROW = 3
"""So many failures one after the other end the campaign. So many of one variant, or of one Kafka, end that alone."""


@dataclass(frozen=True, slots=True)
class MeasuredRun:
    """One run that is in the store: see `RunDone`, of which this is what the executor knows."""

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

    def canary(self, variant: Variant) -> CanaryReading:
        """Get a testbed ready for `variant`, with no Kafka running anywhere, and look at the machine."""

    def run(self, variant: Variant, run_id: str) -> MeasuredRun:
        """Make the run on that testbed and commit it to the store under this id."""

    def committed(self, run_id: str) -> MeasuredRun | None:
        """The run of an interrupted slot, when it is in the store all the same."""


@dataclass(frozen=True, slots=True)
class CampaignLimits:
    """What ends a campaign early. `enough` is asked after each block and says why it is enough, or None.

    `needless` is asked before each slot: one that nobody needs is not made, and is not left for `--resume` either.
    """

    budget_s: float | None = None
    enough: Callable[[CampaignState], str | None] = lambda _state: None
    clock: Callable[[], float] = time.monotonic
    needless: Callable[[Slot, CampaignState], bool] = lambda _slot, _state: False


@dataclass(frozen=True, slots=True)
class CampaignEnd:
    """Why the campaign ended; `complete` when nothing more is needed: `--resume` would make no run."""

    why: str
    complete: bool


def execute(journal: CampaignJournal, executor: Executor, limits: CampaignLimits, progress: Progress) -> CampaignEnd:
    """Make every run that the journal does not have yet.

    Raises `TestbedError` when several runs in a row could not be made; what is done stays done. A run that could not
    be made before an interruption, either, is not counted: it would end every `--resume` where the last one ended.
    """
    return _Execution(journal, executor, limits, progress).go()


class _Execution:
    """One going through; everything that lasts is in the journal."""

    def __init__(
        self, journal: CampaignJournal, executor: Executor, limits: CampaignLimits, progress: Progress
    ) -> None:
        self.journal, self.executor, self.limits, self.progress = journal, executor, limits, progress
        self.campaign = journal.campaign
        self.began = limits.clock()
        self.last = self.campaign.variants[0]
        self.failures: list[str] = []
        """Why the last runs could not be made; empty again after one that was."""
        self.failures_of: Counter[str] = Counter()
        """How often each variant, and each Kafka, has failed in this command since its last run."""
        self.failed_before = {failure.slot for failure in self.state.failures}

    @property
    def state(self) -> CampaignState:
        return campaign_state(self.journal.entries)

    def go(self) -> CampaignEnd:
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
        left = sum(1 for s in self.campaign.slots if s.index not in state.ran and not self.limits.needless(s, state))
        return CampaignEnd(f"{left} runs could not be made" if left else "all runs are made", left == 0)

    def _pass(self, tried: set[int]) -> CampaignEnd | None:
        """Make what is needed and was not tried yet; returns why the campaign ends before its last slot, if it does."""
        for slot in self.campaign.slots:
            state = self.state
            if slot.index in tried or slot.index in state.ran or self.limits.needless(slot, state):
                continue
            if self._given_up(slot):
                continue
            if why := self._known(slot):
                return CampaignEnd(why, True)
            if why := self._late(slot):
                return CampaignEnd(why, False)
            self.last = self.campaign.variant(slot.variant)
            failed = len(self.state.failures)
            if why := self._slot(slot, self.last):
                return CampaignEnd(why, True)
            if slot.index in self.state.ran or len(self.state.failures) > failed:
                tried.add(slot.index)
            if len(self.failures) == FAILURES_IN_A_ROW:
                why = f"{FAILURES_IN_A_ROW} runs in a row could not be made, the last one because: {self.failures[-1]}"
                if self.campaign.door not in TOLD_UNFINISHED:
                    raise TestbedError(f"{why}\nmend that, then go on with --resume {self.campaign.id}")
                return CampaignEnd(why, False)
        return None

    def _slot(self, slot: Slot, variant: Variant) -> str | None:
        """Make one run, or journal why it could not be made; returns why no more are needed, if that is so."""
        began = self.limits.clock()
        self.progress(f"slot {slot.index + 1} of {len(self.campaign.slots)}: {variant.label}")
        try:
            self.journal.append(self.executor.canary(variant))
            # Only now the last run has a canary after it and counts.
            if why := self._known(slot):
                return why
            if self.limits.needless(slot, self.state):
                return None
            run_id = self.executor.new_run_id(variant)
            self.journal.append(RunBegun(slot.index, run_id))
            measured = self.executor.run(variant, run_id)
        except TestbedError as error:
            self.progress(f"slot {slot.index + 1} could not be made: {error}")
            if slot.index not in self.failed_before:
                self.failures.append(str(error))
            self.failures_of.update(self._causes(slot.variant))
            self.journal.append(RunFailed(slot.index, str(error), self.limits.clock() - began))
        else:
            self.failures.clear()
            for each in self._causes(slot.variant):
                del self.failures_of[each]
            self.journal.append(_done(slot.index, run_id, measured, self.limits.clock() - began))
        return None

    def _given_up(self, slot: Slot) -> bool:
        """Return whether the slot's variant has failed too often, or every variant that it is compared with has."""
        part, _first = self.campaign.part_of(slot)
        partners = {label for pair in part.pairs if slot.variant in pair for label in pair} - {slot.variant}
        return self._fails(slot.variant) or (bool(partners) and all(map(self._fails, partners)))

    def _fails(self, label: str) -> bool:
        return any(self.failures_of[each] >= FAILURES_IN_A_ROW for each in self._causes(label))

    def _causes(self, label: str) -> list[str]:
        """Return what a failure of a variant counts for: the variant, and the Kafka that it names."""
        kafka = self.campaign.variant(label).kafka
        return [label] if kafka is None else [label, f"kafka={kafka}"]

    def _known(self, slot: Slot) -> str | None:
        """Why no more blocks are needed; asked between blocks only."""
        state = self.state
        if any(each.block == slot.block and each.index in state.ran for each in self.campaign.slots):
            return None
        return self.limits.enough(state)

    def _late(self, slot: Slot) -> str | None:
        if self.limits.budget_s is None:
            return None
        left_s = self.limits.budget_s - (self.limits.clock() - self.began)
        return out_of_time(slot, self.campaign, self.state, left_s)

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


def _done(slot: int, run_id: str, found: MeasuredRun, seconds: float) -> RunDone:
    values, failed, software, kept = found.values, found.failed, found.software, found.kept
    return RunDone(slot, run_id, found.verdict, values, failed, software, seconds, kept, found.sound)
