import os
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from fakes.admin import FakeAdmin

from testbed.errors import TestbedError
from testbed.kafka.errors import KafkaError, UnreachableError
from testbed.kafka.types import ConfigResource, PartitionMove, TopicPartition
from testbed.owner import Owner
from testbed.throttle import recovery as recover_module
from testbed.throttle.configs import FOLLOWER_RATE, FOLLOWER_REPLICAS, LEADER_RATE, LEADER_REPLICAS, ThrottleError
from testbed.throttle.journal import JournalFolder, ThrottleJournal, open_journals
from testbed.throttle.recovery import RecoveryOutcome, RestoreError, collect_throttles, recover
from testbed.throttle.throttle import Throttle

MOVES = [PartitionMove.between(TopicPartition("t", p), (1,), (2,)) for p in range(3)]
TOPIC, B1, B2 = ConfigResource.topic("t"), ConfigResource.broker(1), ConfigResource.broker(2)


_PRINT_OWNER = """
from testbed.owner import Owner
owner = Owner.this_process()
print(owner.pid, owner.started_ticks)
"""


def _dead(journal: ThrottleJournal) -> ThrottleJournal:
    return replace(journal, owner=replace(journal.owner, started_ticks=journal.owner.started_ticks - 1))


def _left_behind(admin: FakeAdmin, journals: JournalFolder) -> ThrottleJournal:
    """Set a throttle as a process that died afterwards would have."""
    Throttle(admin, journals).set(MOVES, 1000)
    journal = _dead(open_journals(journals)[0])
    journals.write(journal)
    return journal


def test_set_lists_the_replicas_and_sets_the_rates(admin: FakeAdmin, journals: JournalFolder) -> None:
    throttle = Throttle(admin, journals)
    throttle.set(MOVES, 1000, extra_brokers=[3])
    throttle.wait_in_force(0)
    assert admin.configs[TOPIC] == {LEADER_REPLICAS: "0:1,1:1,2:1", FOLLOWER_REPLICAS: "0:2,1:2,2:2"}
    rates = {ConfigResource.broker(broker): {LEADER_RATE: "1000", FOLLOWER_RATE: "1000"} for broker in (1, 2, 3)}
    assert {resource: keys for resource, keys in admin.configs.items() if resource != TOPIC} == rates


def test_the_journal_is_on_disk_before_the_first_change(
    admin: FakeAdmin, journals: JournalFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    real_fsync = os.fsync

    def fsync(descriptor: int) -> None:
        real_fsync(descriptor)
        synced.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))

    at_first_change: list[tuple[list[str], list[str]]] = []

    def hook(call: str, _args: tuple[object, ...]) -> None:
        if call == "alter_configs" and not at_first_change:
            at_first_change.append((list(synced), journals.ids()))

    monkeypatch.setattr(os, "fsync", fsync)
    admin.hook = hook
    Throttle(admin, journals).set(MOVES, 1000)
    (files, ids) = at_first_change[0]
    assert len(ids) == 1
    # The file under its temporary name, then the folder with its final one.
    temporary, folder = map(Path, files[-2:])
    assert temporary.parent == journals.path and temporary.match(f".{ids[0]}.json.*.tmp")
    assert folder == journals.path
    journal = journals.read(ids[0])
    assert journal.cluster_id == "fake-cluster"
    assert journal.bootstrap == "fake:9092"
    assert {(c.resource, c.key) for c in journal.changes} == {
        (TOPIC, LEADER_REPLICAS),
        (TOPIC, FOLLOWER_REPLICAS),
        *((b, key) for b in (B1, B2) for key in (LEADER_RATE, FOLLOWER_RATE)),
    }


def test_restore_puts_back_values_and_absences_and_touches_nothing_else(
    admin: FakeAdmin, journals: JournalFolder
) -> None:
    before = {
        TOPIC: {FOLLOWER_REPLICAS: "9:9", LEADER_REPLICAS: "", "retention.ms": "5"},
        B1: {LEADER_RATE: "77", "log.cleaner.threads": "2"},
    }
    admin.configs = {resource: dict(keys) for resource, keys in before.items()}
    throttle = Throttle(admin, journals)
    throttle.set(MOVES, 1000)
    assert admin.configs[TOPIC][FOLLOWER_REPLICAS] == "9:9,0:2,1:2,2:2"
    done = throttle.restore(0)
    assert admin.configs == before
    assert done.interferences == ()
    assert journals.ids() == []


def test_a_key_that_somebody_else_changed_is_reported_and_still_put_back(
    admin: FakeAdmin, journals: JournalFolder
) -> None:
    throttle = Throttle(admin, journals)
    throttle.set(MOVES, 1000)
    admin.alter_configs(B2, {FOLLOWER_RATE: "2000"})
    admin.alter_configs(TOPIC, {"retention.ms": "5"})
    done = throttle.restore(0)
    assert [str(found) for found in done.interferences] == [
        f"broker 2: {FOLLOWER_RATE} was '2000', not '1000' as set; removed"
    ]
    assert admin.configs == {TOPIC: {"retention.ms": "5"}}


def test_a_broker_that_never_reports_the_quota_is_named(admin: FakeAdmin, journals: JournalFolder) -> None:
    admin.deaf_brokers = frozenset({2})
    throttle = Throttle(admin, journals)
    throttle.set(MOVES, 1000)
    with pytest.raises(ThrottleError) as caught:
        throttle.wait_in_force(0.02)
    message = str(caught.value)
    assert "not in force after 0.02 s, the move was not started" in message
    assert f"broker 2 reports broker 2: {LEADER_RATE} is not set, not '1000'" in message
    assert f"broker 2 reports topic t: {LEADER_REPLICAS} is not set, not '0:1,1:1,2:1'" in message
    assert "broker 1 reports" not in message


def test_a_broker_that_does_not_answer_while_waiting_is_named(admin: FakeAdmin, journals: JournalFolder) -> None:
    throttle = Throttle(admin, journals)
    throttle.set(MOVES, 1000)

    def hook(call: str, args: tuple[object, ...]) -> None:
        if call == "broker_configs" and args == (2,):
            raise UnreachableError("describe broker 2", "REQUEST_TIMED_OUT", "10 s")

    admin.hook = hook
    with pytest.raises(ThrottleError, match=r"describe broker 2: REQUEST_TIMED_OUT \(10 s\)"):
        throttle.wait_in_force(0)


def test_a_failed_restore_says_what_remains_and_keeps_the_journal(admin: FakeAdmin, journals: JournalFolder) -> None:
    throttle = Throttle(admin, journals)
    throttle.set(MOVES, 1000)

    def hook(call: str, args: tuple[object, ...]) -> None:
        if call == "alter_configs" and args[0] == B1:
            raise UnreachableError("alter the configuration of broker 1", "REQUEST_TIMED_OUT", "10 s")

    admin.hook = hook
    with pytest.raises(RestoreError, match="not wholly removed:\n  alter the configuration of broker 1"):
        throttle.restore(0)
    assert set(admin.configs) == {B1}  # the others were put back all the same
    assert len(journals.ids()) == 1
    admin.hook = lambda _call, _args: None
    assert throttle.restore(0).interferences == ()
    assert admin.configs == {}
    assert journals.ids() == []


def test_a_restore_that_does_not_hold_is_an_error(admin: FakeAdmin, journals: JournalFolder) -> None:
    throttle = Throttle(admin, journals)
    throttle.set(MOVES, 1000)
    real = admin.alter_configs
    # Somebody sets the rate again right after it was taken away.
    admin.alter_configs = lambda r, s, d=(): real(r, {LEADER_RATE: "5"} if r == B1 else s, d if r != B1 else ())  # type: ignore[method-assign]
    with pytest.raises(RestoreError, match=rf"the originals of broker 1.*{LEADER_RATE} is '5', originally not set"):
        throttle.restore(0)


def test_a_topic_deleted_meanwhile_has_nothing_to_put_back(admin: FakeAdmin, journals: JournalFolder) -> None:
    throttle = Throttle(admin, journals)
    throttle.set(MOVES, 1000)
    admin.assignment = {TopicPartition("control", 0): (1,)}
    assert throttle.restore(0).gone == ("t",)
    assert journals.ids() == []


def test_a_process_is_told_from_a_later_one_with_its_number() -> None:
    me = Owner.this_process()
    assert me.alive()
    assert not replace(me, started_ticks=me.started_ticks + 1).alive()
    assert not replace(me, boot_id="another").alive()
    ended = subprocess.run(
        [
            sys.executable,
            "-c",
            _PRINT_OWNER,
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    pid, ticks = map(int, ended.stdout.split())
    assert not Owner(pid, ticks, me.boot_id).alive()


def test_recover_restores_what_a_dead_process_left(admin: FakeAdmin, journals: JournalFolder) -> None:
    _left_behind(admin, journals)
    admin.running = {TopicPartition("t", 0): (2,)}
    [outcome] = recover(lambda _journal: admin, journals, timeout_s=0)
    assert outcome.outcome is RecoveryOutcome.RESTORED
    assert "6 settings restored" in outcome.detail
    assert "1 partition is still moving there, now without this throttle" in outcome.detail
    assert admin.configs == {}
    assert journals.ids() == []


def test_recover_leaves_a_live_owner_alone(admin: FakeAdmin, journals: JournalFolder) -> None:
    Throttle(admin, journals).set(MOVES, 1000)
    for forget in (False, True):
        [outcome] = recover(lambda _journal: admin, journals, forget=forget, timeout_s=0)
        assert outcome.outcome is RecoveryOutcome.OWNER_ALIVE
        assert f"process {os.getpid()} is still running" in outcome.detail
    assert admin.configs[B1] == {LEADER_RATE: "1000", FOLLOWER_RATE: "1000"}
    assert len(journals.ids()) == 1


def test_recover_keeps_the_journal_of_an_unreachable_cluster_unless_told_to_forget(
    admin: FakeAdmin, journals: JournalFolder
) -> None:
    journal = _left_behind(admin, journals)

    def unreachable(journal: ThrottleJournal) -> FakeAdmin:
        raise UnreachableError(f"cluster at {journal.bootstrap} within 1 s", "NO_ANSWER")

    [outcome] = recover(unreachable, journals)
    assert outcome.outcome is RecoveryOutcome.UNREACHABLE
    assert "the cluster at fake:9092 cannot be reached" in outcome.detail
    assert f"{journals.file(journal.id)} stays" in outcome.detail
    assert journals.ids() == [journal.id]
    [outcome] = recover(unreachable, journals, forget=True)
    assert outcome.outcome is RecoveryOutcome.FORGOTTEN
    assert "removed without being restored" in outcome.detail
    assert journals.ids() == []


def test_recover_refuses_another_cluster_at_the_same_address(admin: FakeAdmin, journals: JournalFolder) -> None:
    _left_behind(admin, journals)
    admin.cluster_id = "new-one"
    before = {resource: dict(keys) for resource, keys in admin.configs.items()}
    [outcome] = recover(lambda _journal: admin, journals)
    assert outcome.outcome is RecoveryOutcome.OTHER_CLUSTER
    assert "there is now cluster new-one, not fake-cluster" in outcome.detail
    assert admin.configs == before
    assert len(journals.ids()) == 1


def test_recover_reports_a_restore_that_was_refused(admin: FakeAdmin, journals: JournalFolder) -> None:
    _left_behind(admin, journals)

    def hook(call: str, _args: tuple[object, ...]) -> None:
        if call == "alter_configs":
            raise KafkaError("alter", "CLUSTER_AUTHORIZATION_FAILED")

    admin.hook = hook
    [outcome] = recover(lambda _journal: admin, journals, timeout_s=0)
    assert outcome.outcome is RecoveryOutcome.FAILED
    assert "CLUSTER_AUTHORIZATION_FAILED" in outcome.detail
    assert len(journals.ids()) == 1


def test_a_file_that_is_no_journal_is_reported_and_does_not_stop_the_others(
    admin: FakeAdmin, journals: JournalFolder
) -> None:
    _left_behind(admin, journals)
    journals.file("0-broken").write_text('{"schema": 9}')
    assert len(open_journals(journals)) == 1
    broken, restored = recover(lambda _journal: admin, journals, timeout_s=0)
    assert broken.outcome is RecoveryOutcome.UNREADABLE
    assert (
        "0-broken.json: not a journal of this testbed: schema 9, not " in broken.detail
    )  # and no name of an exception
    assert restored.outcome is RecoveryOutcome.RESTORED


@pytest.fixture
def state_journals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> JournalFolder:
    """The journals of a state folder of this test's own, as `gc` looks for them."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return JournalFolder()


def test_gc_puts_back_the_throttles_of_dead_processes_and_only_says_so_when_dry(
    admin: FakeAdmin, state_journals: JournalFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recover_module, "connect", lambda _journal: admin)
    assert collect_throttles(dry_run=False) == []
    _left_behind(admin, state_journals)
    assert collect_throttles(dry_run=True) == ["a throttle on fake:9092 would be removed: its process is dead"]
    assert admin.configs[B1] != {}
    [told] = collect_throttles(dry_run=False)
    assert told.startswith("throttle: ")
    assert (admin.configs, state_journals.ids()) == ({}, [])


def test_gc_tells_of_a_throttle_whose_cluster_does_not_answer(
    admin: FakeAdmin, state_journals: JournalFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(journal: ThrottleJournal) -> FakeAdmin:
        raise UnreachableError("connect", "NO_ANSWER")

    _left_behind(admin, state_journals)
    monkeypatch.setattr(recover_module, "connect", unreachable)
    with pytest.raises(TestbedError, match="cannot be reached(.|\n)*`testbed reassign recover --forget` drops"):
        collect_throttles(dry_run=False)
    assert len(state_journals.ids()) == 1


def test_a_rate_that_is_right_already_is_noted_and_left_alone(admin: FakeAdmin, journals: JournalFolder) -> None:
    admin.configs = {B1: {LEADER_RATE: "1000"}}
    throttle = Throttle(admin, journals)
    throttle.set(MOVES, 1000)
    (journal,) = open_journals(journals)
    # Whoever takes the rate away meanwhile can see that it is needed.
    assert {c.original for c in journal.changes if (c.resource, c.key) == (B1, LEADER_RATE)} == {"1000"}
    altered = [args for call, args in admin.calls if call == "alter_configs" and args[0] == B1]
    assert [set(args[1]) for args in altered] == [{FOLLOWER_RATE}]
    admin.alter_configs(B1, {LEADER_RATE: "7"})
    assert throttle.restore(0).interferences == ()
    assert admin.configs == {B1: {LEADER_RATE: "7"}}


def test_what_was_corrected_in_the_journal_is_what_is_put_back(admin: FakeAdmin, journals: JournalFolder) -> None:
    admin.configs = {B1: {LEADER_RATE: "7"}}
    throttle = Throttle(admin, journals)
    throttle.set(MOVES, 1000)
    (journal,) = open_journals(journals)
    corrected = [replace(c, original=None) if c.original == "7" else c for c in journal.changes]
    journals.write(replace(journal, changes=tuple(corrected)))
    throttle.change_rate(2000, 0)
    throttle.restore(0)
    assert admin.configs == {}


def test_without_its_journal_a_throttle_restores_what_it_remembers(admin: FakeAdmin, journals: JournalFolder) -> None:
    throttle = Throttle(admin, journals)
    throttle.set(MOVES, 1000)
    journals.remove(journals.ids()[0])
    throttle.restore(0)
    assert admin.configs == {}


def test_nobody_reads_or_restores_while_somebody_else_does(journals: JournalFolder) -> None:
    order: list[str] = []

    def second() -> None:
        with journals.held():
            order.append("second")

    with journals.held():
        waiting = threading.Thread(target=second)
        waiting.start()
        waiting.join(timeout=0.2)
        order.append("first")
    waiting.join()
    assert order == ["first", "second"]
    assert journals.ids() == []
