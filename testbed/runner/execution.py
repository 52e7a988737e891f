"""The execution of a campaign's slots within its time budget. A kill loses at most one run: each is in the journal."""

import re
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from results.contract.manifest import new_run_id
from results.contract.texts import plural
from testbed.errors import KafkaStuck, TestbedError, UsageError, os_error_text
from testbed.runner.campaign import NIGHTLY, QUALIFY, REPORTED_UNFINISHED, Campaign
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
    """Return the seconds of `30m`, `2h`, …; a bare `m` is minutes. Raise `UsageError` for other text, also empty."""
    if text is None:
        return None
    try:
        seconds = parse_duration(re.sub(r"(?<=[0-9])m$", "min", text.strip()))
    except UnitError as error:
        raise UsageError(f"--budget {text}: {error}") from error
    if seconds <= 0:
        raise UsageError(f"--budget {text}: must be above 0, such as 30m")
    return seconds


def durations(campaign: Campaign, state: CampaignState) -> Mapping[str, float]:
    """Return the seconds of each variant's longest slot, canary included, without runs adopted after a kill (0 s)."""
    labels = {slot.index: slot.variant for slot in campaign.slots}
    found: dict[str, float] = {}
    for index, ran in state.ran.items():
        if ran.done.seconds > 0:
            found[labels[index]] = max(found.get(labels[index], 0.0), ran.done.seconds)
    for failure in state.failures:
        found[labels[failure.slot]] = max(found.get(labels[failure.slot], 0.0), failure.seconds)
    return found


def needed_s(slots: Sequence[Slot], seen: Mapping[str, float]) -> float:
    """Return the seconds of the slots: each takes its variant's longest time, and without one the longest of all."""
    unseen = max(seen.values(), default=0.0)
    return sum(seen.get(slot.variant, unseen) for slot in slots)


def out_of_time(
    slot: Slot, campaign: Campaign, state: CampaignState, left_s: float, skipped: Collection[int] = ()
) -> str | None:
    """Return why `slot` must not begin, or None when the open slots of its block fit into `left_s` seconds.

    An unfinished pair is useless, so a block begins only when all of it fits, except the slots that are `skipped`. The
    runs of a night are not compared with each other, so there only the slot itself counts.
    """
    made = {*state.ran, *skipped}
    rest = [each for each in campaign.slots if each.block == slot.block and each.index not in made]
    if campaign.command == NIGHTLY:
        rest = [slot]
    needed = needed_s(rest, durations(campaign, state))
    if left_s > 0 and needed <= left_s:
        return None
    runs = "the next run takes" if len(rest) == 1 else f"the next {len(rest)} runs take"
    return f"the time budget: {max(left_s, 0):.0f} s are left, {runs} about {needed:.0f} s"


Progress = Callable[[str], None]
FAILURES_IN_A_ROW = 3
"""The number of failures in a row that ends the campaign.

As many of one variant, or of one Kafka, before its first run end that one alone.
"""


class Executor(Protocol):
    """The interface that makes the runs; tests use a fake one."""

    def canary(self, variant: Variant) -> CanaryReading:
        """Prepare a testbed for `variant`, on which no Kafka runs, and return the readings of the canaries."""

    def run(self, variant: Variant, begun: RunBegun) -> RunDone:
        """Make, commit and return the run. Raise `KafkaStuck` when Kafka keeps it from its end, else `TestbedError`."""

    def committed(self, begun: RunBegun) -> RunDone | None:
        """Return the run of an interrupted slot if the store has it, else None.

        Raise `KafkaStuck` when the slot's time limit ended the command.
        """


@dataclass(frozen=True, slots=True)
class CampaignLimits:
    """Conditions that end a campaign early. After each block, `enough` returns the reason to end, or None.

    `needless` is called before each slot. A needless run is made neither now nor by `--resume`.
    """

    budget_s: float | None = None
    enough: Callable[[CampaignState], str | None] = lambda _state: None
    clock: Callable[[], float] = time.monotonic
    needless: Callable[[Slot, CampaignState], bool] = lambda _slot, _state: False


@dataclass(frozen=True, slots=True)
class CampaignEnd:
    """The reason of a campaign's end; `complete` when `--resume` would make no run."""

    why: str
    complete: bool


def execute(journal: CampaignJournal, executor: Executor, limits: CampaignLimits, progress: Progress) -> CampaignEnd:
    """Make every run that the journal lacks, and return why the campaign ended.

    Raise `TestbedError` when several runs in a row failed; finished runs are kept. A slot that failed before an
    interruption is not counted, because otherwise it would end every `--resume` at the same place.
    """
    return _Execution(journal, executor, limits, progress).go()


class _Execution:
    """One execution of a campaign; all its lasting state is in the journal."""

    def __init__(
        self, journal: CampaignJournal, executor: Executor, limits: CampaignLimits, progress: Progress
    ) -> None:
        self.journal, self.executor, self.limits, self.progress = journal, executor, limits, progress
        self.campaign = journal.campaign
        self.began = limits.clock()
        self.last = self.campaign.variants[0]
        self.failures: list[tuple[str, frozenset[str]]] = []
        """The reason and the Kafkas of each failure since the last run that succeeded."""
        self.failures_of: Counter[str] = Counter()
        """The failures of each variant and of each Kafka in this command."""
        ran = self.state.ran
        self.started = {each for slot in self.campaign.slots if slot.index in ran for each in self._names(slot)}
        """The variants and Kafkas that have had a run. The runner does not give them up for other runs that fail."""
        self.failed_before = {failure.slot for failure in self.state.failures}

    @property
    def state(self) -> CampaignState:
        return campaign_state(self.journal.entries)

    def go(self) -> CampaignEnd:
        self._adopt()
        tried: set[int] = set()
        ended, before = self._pass(tried), -1
        # The result of a run may make an earlier, skipped slot necessary.
        while ended is None and len(tried) > before:
            before = len(tried)
            self._close(self.last)  # the canary after the last pair may say that it is of no use
            ended = self._pass(tried)
        self._close(self.last)
        if ended is not None:
            return ended
        state = self.state
        left = sum(1 for s in self.campaign.slots if s.index not in state.ran and not self.limits.needless(s, state))
        if not left:
            return CampaignEnd("all runs are made", True)
        why = [f", the last one because: {each.why}" for each in state.failures if each.slot not in state.ran][-1:]
        return CampaignEnd("".join([f"{plural(left, 'run')} could not be made", *why]), False)

    def _pass(self, tried: set[int]) -> CampaignEnd | None:
        """Make each needed run that was not tried; return why the campaign ends before its last slot, or None."""
        for slot in self.campaign.slots:
            state = self.state
            if slot.index in tried or slot.index in state.ran or self.limits.needless(slot, state):
                continue
            if self._given_up(slot):
                continue
            if why := self._known(slot):
                return CampaignEnd(why, True)
            if why := self._late(slot, tried):
                return CampaignEnd(why, False)
            self.last = self.campaign.variant(slot.variant)
            failed = len(self.state.failures)
            if why := self._slot(slot, self.last):
                return CampaignEnd(why, True)
            if slot.index in self.state.ran or len(self.state.failures) > failed:
                tried.add(slot.index)
            if self._stuck():
                last, _kafkas = self.failures[-1]
                why = f"{len(self.failures)} runs in a row could not be made, the last one because: {last}"
                if self.campaign.command not in REPORTED_UNFINISHED:
                    raise TestbedError(f"{why}\nremove the cause, then continue with --resume {self.campaign.id}")
                return CampaignEnd(why, False)
        return None

    def _slot(self, slot: Slot, variant: Variant) -> str | None:
        """Make one run, or journal the reason of its failure; return why no more runs are needed, or None."""
        began = self.limits.clock()
        slots = self.campaign.slots
        number = slots.index(slot) + 1  # pairs take turns, so the indexes are in another order
        self.progress(f"slot {number} of {len(slots)}: {variant.label}")
        try:
            self.journal.append(self.executor.canary(variant))
            # Only now the last run has a canary after it and counts.
            if why := self._known(slot):
                return why
            if self.limits.needless(slot, self.state):
                return None
            begun = RunBegun(slot.index, new_run_id(variant.experiment))
            self.journal.append(begun)
            done = self.executor.run(variant, begun)
        except (TestbedError, OSError) as error:
            why = os_error_text(error) if isinstance(error, OSError) else str(error)
            if why is None:
                raise  # a defect of the testbed, unlike a full disk or a file of another user
            self.progress(f"slot {number} could not be made: {why}")
            if slot.index not in self.failed_before:
                self.failures.append((why, frozenset(variant.kafkas)))
            self.failures_of.update(self._names(slot))
            stuck = isinstance(error, KafkaStuck)
            self.journal.append(RunFailed(slot.index, why, self.limits.clock() - began, stuck))
        else:
            self.failures.clear()
            self.started.update(self._names(slot))
            self.journal.append(replace(done, seconds=self.limits.clock() - began))
        return None

    def _stuck(self) -> bool:
        """Return whether so many runs in a row failed that the campaign ends.

        A qualification goes on while all of them had a Kafka that another variant lacks: it may be the cause.
        """
        if len(self.failures) < FAILURES_IN_A_ROW:
            return False
        if self.campaign.command != QUALIFY:
            return True
        shared = frozenset.intersection(*(kafkas for _why, kafkas in self.failures))
        return all(shared.issubset(variant.kafkas) for variant in self.campaign.variants)

    def _given_up(self, slot: Slot) -> bool:
        """Return whether the slot's variant, or every variant that it is held against, has failed too often."""
        partners = self.campaign.partners(slot)
        return self._fails(slot.variant) or (bool(partners) and all(map(self._fails, partners)))

    def _fails(self, label: str) -> bool:
        unknown = {label, *self.campaign.variant(label).kafkas} - self.started
        return any(self.failures_of[each] >= FAILURES_IN_A_ROW for each in unknown)

    def _names(self, slot: Slot) -> set[str]:
        """Return the slot's variant and its Kafka; none of two Kafkas, as either may be the cause of a failure."""
        kafkas = self.campaign.variant(slot.variant).kafkas
        return {slot.variant, *(kafkas if len(kafkas) == 1 else ())}

    def _known(self, slot: Slot) -> str | None:
        """Return why no more blocks are needed, or None. Within a block, return None."""
        state = self.state
        if any(each.block == slot.block and each.index in state.ran for each in self.campaign.slots):
            return None
        return self.limits.enough(state)

    def _late(self, slot: Slot, tried: Collection[int]) -> str | None:
        if self.limits.budget_s is None:
            return None
        left_s, state = self.limits.budget_s - (self.limits.clock() - self.began), self.state
        block = [each for each in self.campaign.slots if each.block == slot.block]
        skipped = {each.index for each in block if each.index in tried or self.limits.needless(each, state)}
        return out_of_time(slot, self.campaign, state, left_s, skipped)

    def _adopt(self) -> None:
        """Adopt the runs that were committed before a kill, and those that ended a command at their time limit."""
        labels = {slot.index: slot.variant for slot in self.campaign.slots}
        for begun in self.state.unfinished:
            try:
                done = self.executor.committed(begun)
            except KafkaStuck as error:
                self.progress(str(error))
                limit_s = self.campaign.variant(labels[begun.slot]).limit_s or 0.0
                self.journal.append(RunFailed(begun.slot, str(error), limit_s, stuck=True))
                continue
            if done is not None:
                self.progress(f"run {begun.run_id} was committed before the interruption")
                self.journal.append(done)

    def _close(self, variant: Variant) -> None:
        """Run the canaries once more, unless a canary follows every run."""
        if self.state.closed:
            return
        try:
            self.journal.append(self.executor.canary(variant))
        except TestbedError as error:
            self.progress(f"the machine could not be read after the last run: {error}")
