import itertools
from dataclasses import replace

import pytest

from testbed.errors import KafkaStuck, TestbedError
from testbed.runner import journal as journals
from testbed.runner.campaign import REPORTED_UNFINISHED
from testbed.runner.execution import CampaignLimits, execute
from testbed.runner.journal import CanaryReading, RunBegun, RunDone, RunFailed, campaign_state, created, opened
from tests.runner.fakes import FakeExecutor, Killed, campaign, quiet


def run(executor, asked, limits=None, *, new=True):
    with created(asked) if new else opened(asked.id) as journal:
        ended = execute(journal, executor, limits or CampaignLimits(clock=executor.clock), quiet)
        return ended, journal.entries


def test_every_slot_is_run_in_the_order_of_the_schedule_with_a_canary_around_each():
    asked, executor = campaign(repeats=2), FakeExecutor()
    ended, entries = run(executor, asked)
    assert ended.complete
    assert executor.made == [slot.variant for slot in asked.slots]
    assert [type(entry) for entry in entries] == [CanaryReading, RunBegun, RunDone] * 4 + [CanaryReading]
    state = campaign_state(entries)
    assert all(ran.before and ran.after for ran in state.ran.values())
    assert state.closed


def killed_at(point, store, asked):
    """Run, killed at the n-th point that something happens; returns how many points there were and what was made."""
    executor = FakeExecutor(store)
    count = itertools.count()

    def step(_name):
        if next(count) == point:
            raise Killed

    executor.point = step
    append = journals.CampaignJournal.append

    def watched(self, entry):
        step("before a line")
        append(self, entry)
        step("after a line")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(journals.CampaignJournal, "append", watched)
        try:
            run(executor, asked, new=not (journals.folder() / f"{asked.id}.jsonl").exists())
        except Killed:
            return True
    return False


@pytest.mark.parametrize("point", range(50))
def test_killed_at_any_point_and_resumed_every_run_is_there_once(point):
    asked, store = campaign(repeats=2), {}
    killed = killed_at(point, store, asked)
    assert killed == (point < 48)
    if killed:
        run(FakeExecutor(store), asked, new=False)
    with opened(asked.id) as journal:
        state = campaign_state(journal.entries)
        done = [entry for entry in journal.entries if isinstance(entry, RunDone)]
    assert sorted(entry.slot for entry in done) == [0, 1, 2, 3]
    assert sorted(entry.run_id for entry in done) == sorted(store)  # nothing was measured and thrown away
    assert state.closed
    assert all(ran.before and ran.after for ran in state.ran.values())


def test_killed_again_and_again_it_comes_to_its_end():
    asked, store = campaign(repeats=2), {}
    kills = 0
    while killed_at(9, store, asked):
        kills += 1
        assert kills < 20
    with opened(asked.id) as journal:
        assert len(campaign_state(journal.entries).ran) == 4
    assert len(store) == 4


def test_resuming_what_is_complete_does_nothing():
    asked, executor = campaign(), FakeExecutor()
    run(executor, asked)
    again = FakeExecutor(executor.store)
    ended, _entries = run(again, asked, new=False)
    assert ended.complete
    assert (again.made, again.canaries) == ([], 0)


def test_a_run_that_fails_is_journaled_and_made_again_on_resume():
    asked = campaign(repeats=2)
    executor = FakeExecutor(fail=lambda variant, number: TestbedError("no disk") if number == 1 else None)
    ended, entries = run(executor, asked)
    assert (ended.complete, ended.why) == (False, "1 run could not be made, the last one because: no disk")
    assert [entry.why for entry in entries if isinstance(entry, RunFailed)] == ["no disk"]
    again = FakeExecutor(executor.store)
    ended, _entries = run(again, asked, new=False)
    assert ended.complete
    assert again.made == [asked.slots[1].variant]


def test_a_run_that_ended_the_command_at_its_limit_is_a_hang_and_is_made_again():
    """Each resume ended at the same run, and no run counted as one without an end."""
    asked, executor = campaign(repeats=2), FakeExecutor()
    with created(asked) as journal:
        journal.append(RunBegun(0, "run-1"))

    def late(begun):
        raise KafkaStuck(f"{begun.run_id} was not done at its time limit")

    executor.committed = late
    ended, entries = run(executor, asked, new=False)
    assert [(each.slot, each.stuck) for each in entries if isinstance(each, RunFailed)] == [(0, True)]
    assert (ended.complete, len(executor.made)) == (True, 4)


def test_failures_in_a_row_end_the_series_with_what_to_do():
    asked = campaign(repeats=5)
    executor = FakeExecutor(fail=lambda variant, number: TestbedError("no disk") if number >= 2 else None)
    with pytest.raises(TestbedError, match=r"3 runs in a row.*no disk\n.*--resume 20261121T200000Z-sweep-0a1b2c"):
        run(executor, asked)
    with opened(asked.id) as journal:
        assert len(campaign_state(journal.entries).ran) == 2


def test_what_failed_before_an_interruption_does_not_end_the_series_again():
    asked = campaign(repeats=5)
    broken = FakeExecutor(fail=lambda variant, number: TestbedError("no disk") if number >= 2 else None)
    with pytest.raises(TestbedError):
        run(broken, asked)
    gone = itertools.count()
    again = FakeExecutor(broken.store, fail=lambda variant, number: TestbedError("x") if next(gone) < 3 else None)
    ended, _entries = run(again, asked, new=False)
    assert (ended.why, len(again.store)) == ("3 runs could not be made, the last one because: x", 7)
    dead = FakeExecutor(broken.store, fail=lambda variant, number: TestbedError("no disk"))
    ended, _entries = run(dead, asked, new=False)
    assert (ended.complete, len(dead.made)) == (False, 3)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(28, "No space left on device", "/e"), "No space left on device (/e); free space on"),
        (FileNotFoundError(2, "No such file or directory", "/x"), None),
    ],
    ids=["full disk", "a defect of the testbed"],
)
def test_a_full_disk_is_a_run_that_was_not_made_and_a_defect_of_the_testbed_is_not(error, said):
    """It ended a night at once, without a report of the runs before."""
    asked = campaign(repeats=5, command="nightly", id="20261121T200000Z-nightly-0a1b2c")
    executor = FakeExecutor(fail=lambda variant, number: error if number >= 2 else None)
    if said is None:
        with pytest.raises(FileNotFoundError):
            run(executor, asked)
        return
    ended, entries = run(executor, asked)
    assert said in ended.why
    assert [entry.why.startswith(said) for entry in entries if isinstance(entry, RunFailed)] == [True] * 3


def test_three_failures_of_one_kafka_in_a_row_end_a_sweep():
    asked = campaign(labels="ABCDEF")
    first = {slot.variant for slot in asked.slots[:3]}
    variants = [replace(each, kafka="4.2.1" if each.label in first else "4.3.1") for each in asked.variants]
    asked = replace(asked, variants=tuple(variants))
    executor = FakeExecutor(fail=lambda label, number: TestbedError("no disk") if label in first else None)
    with pytest.raises(TestbedError, match="3 runs in a row could not be made"):
        run(executor, asked)


@pytest.mark.parametrize("command", REPORTED_UNFINISHED)
def test_what_was_made_of_a_night_or_a_qualification_is_told_all_the_same(command):
    asked = campaign(repeats=5, command=command, id=f"20261121T200000Z-{command}-0a1b2c")
    executor = FakeExecutor(fail=lambda variant, number: TestbedError("no disk") if number >= 2 else None)
    ended, _entries = run(executor, asked)
    assert (ended.complete, ended.why.startswith("3 runs in a row could not be made")) == (False, True)


def test_what_was_passed_over_and_is_needed_after_all_is_made():
    asked, executor = campaign(repeats=2), FakeExecutor()
    last = asked.slots[-1]

    def needless(slot, state):
        return slot.index == 0 and last.index not in state.ran

    with created(asked) as journal:
        ended = execute(journal, executor, CampaignLimits(needless=needless), print)
    assert (ended.complete, len(executor.made)) == (True, 4)
    assert executor.made[-1] == asked.slots[0].variant


def test_a_look_at_the_machine_that_fails_is_a_failure_of_the_slot_and_not_the_end():
    asked, executor = campaign(repeats=2), FakeExecutor()
    looks = itertools.count()

    def point(name):
        if name == "canary begins" and next(looks) == 1:
            raise TestbedError("no network")

    executor.point = point
    ended, _entries = run(executor, asked)
    assert not ended.complete
    assert len(executor.made) == 3


class TestBudget:
    def test_nothing_is_begun_that_would_not_be_done_in_time(self):
        asked, executor = campaign(repeats=10), FakeExecutor()  # A 10 s, B 20 s: a block is 30 s
        ended, _entries = run(executor, asked, CampaignLimits(100.0, clock=executor.clock))
        assert executor.now <= 100.0
        assert len(executor.made) == 6
        assert ended.why.startswith("the time budget: 10 s are left, the next 2 runs take about 30 s")
        assert not ended.complete

    def test_a_pair_is_not_begun_when_only_its_first_half_would_fit(self):
        asked, executor = campaign(repeats=10), FakeExecutor()
        run(executor, asked, CampaignLimits(85.0, clock=executor.clock))
        assert len(executor.made) == 4

    def test_the_first_slot_is_run_as_nothing_is_known_of_its_length(self):
        asked, executor = campaign(repeats=10), FakeExecutor()
        run(executor, asked, CampaignLimits(1.0, clock=executor.clock))
        assert len(executor.made) == 1

    def test_a_resumed_series_has_its_own_budget_and_knows_how_long_slots_take(self):
        asked, executor = campaign(repeats=10), FakeExecutor()
        run(executor, asked, CampaignLimits(65.0, clock=executor.clock))
        again = FakeExecutor(executor.store)
        ended, _entries = run(again, asked, CampaignLimits(29.0, clock=again.clock), new=False)
        assert again.made == []
        assert "time budget" in ended.why
        ended, _entries = run(again, asked, CampaignLimits(31.0, clock=again.clock), new=False)
        assert len(again.made) == 2

    def test_failed_slots_cost_time_too(self):
        asked = campaign(repeats=10)
        executor = FakeExecutor(fail=lambda variant, number: TestbedError("x") if number == 0 else None)
        run(executor, asked, CampaignLimits(30.0, clock=executor.clock))
        assert executor.now <= 30.0 + 20.0


def test_early_stop_is_asked_at_the_begin_of_blocks_only():
    asked, executor = campaign(repeats=10), FakeExecutor()
    ended, _entries = run(
        executor, asked, CampaignLimits(None, lambda state: "enough" if len(state.ran) >= 5 else None, executor.clock)
    )
    assert len(executor.made) == 6
    assert (ended.why, ended.complete) == ("enough", True)
