"""Throttles that meet: one over another, dead brokers, and journals that change hands."""

from dataclasses import replace
from pathlib import Path

import pytest
from fakes.admin import FakeAdmin

from testbed.errors import TestbedError
from testbed.kafka.errors import KafkaError, UnreachableError
from testbed.kafka.types import ConfigResource, PartitionMove, TopicPartition
from testbed.owner import Owner
from testbed.reassignment.auto_raise import ThrottleRaiser
from testbed.reassignment.driver import Driver
from testbed.reassignment.plan import Plan
from testbed.throttle import recovery as recover_module
from testbed.throttle.configs import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    MOST_BYTES,
    RATES,
    ThrottleError,
    wanted_configs,
)
from testbed.throttle.journal import JournalFolder, ThrottleJournal, open_journals
from testbed.throttle.recovery import RecoveryOutcome, collect_throttles, recover
from testbed.throttle.throttle import Throttle

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
FIRST, SECOND = [PartitionMove.between(T0, (1,), (2,))], [PartitionMove.between(T1, (1,), (2,))]
TOPIC, B1, B2 = ConfigResource.topic("t"), ConfigResource.broker(1), ConfigResource.broker(2)


def killed(journals: JournalFolder) -> ThrottleJournal:
    """The newest journal that is not dead yet loses its process."""
    [journal] = [each for each in open_journals(journals) if each.owner.alive()]
    dead = replace(journal, owner=replace(journal.owner, started_ticks=journal.owner.started_ticks - 1))
    journals.write(dead)
    return dead


def rates(admin: FakeAdmin, broker: ConfigResource) -> set[str | None]:
    return {admin.configs.get(broker, {}).get(key) for key in RATES}


@pytest.fixture
def one_dead(admin: FakeAdmin) -> FakeAdmin:
    """Broker 2 holds a replica and is not alive: it takes no configuration and answers nothing."""
    admin.assignment = {T0: (1, 2)}
    admin.broker_ids = (1, 3)

    def hook(call: str, args: tuple[object, ...]) -> None:
        if (call == "broker_configs" and args == (2,)) or (call == "alter_configs" and args[0] == B2):
            raise KafkaError("broker 2", "BROKER_NOT_AVAILABLE")

    admin.hook = hook
    return admin


def test_a_replica_on_a_dead_broker_can_be_moved_away_under_a_throttle(
    one_dead: FakeAdmin, journals: JournalFolder
) -> None:
    events: list[tuple[str, dict]] = []
    with Driver(one_dead, journals, on_event=lambda kind, _name, detail: events.append((kind, dict(detail)))) as driver:
        driver.execute(Plan({T0: (1, 3)}), 1000)
        assert rates(one_dead, B1) == rates(one_dead, ConfigResource.broker(3)) == {"1000"}
        assert one_dead.configs[TOPIC] == {LEADER_REPLICAS: "0:1,0:2", FOLLOWER_REPLICAS: "0:3"}
        assert driver.throttle.left_out == (2,)
    told = dict(events)
    assert (told["throttle.set"]["brokers"], told["throttle.set"]["left_out"]) == ([1, 3], [2])
    assert told["throttle.in_force"]["brokers"] == [1, 3]
    assert one_dead.configs == {}


def test_a_throttle_is_adopted_although_one_of_its_brokers_has_died(admin: FakeAdmin, journals: JournalFolder) -> None:
    Throttle(admin, journals).set(FIRST, 1000, [3])
    dead = killed(journals)
    admin.broker_ids = (1, 2)

    def hook(call: str, args: tuple[object, ...]) -> None:
        if call == "broker_configs" and args == (3,):
            raise KafkaError("broker 3", "BROKER_NOT_AVAILABLE")

    admin.hook = hook
    throttle = Throttle(admin, journals)
    throttle.adopt(dead)
    throttle.wait_in_force(0)
    assert throttle.left_out == (3,)


def back_again(admin: FakeAdmin, journals: JournalFolder, at_change: list[bool]) -> None:
    """Broker 2 lives again, with a rate of its own; notes whether the journal knew it before it was changed."""
    admin.broker_ids = (1, 2, 3)
    admin.configs[B2] = {LEADER_RATE: "77"}

    def hook(call: str, args: tuple[object, ...]) -> None:
        if call == "alter_configs" and args[0] == B2:
            [journal] = open_journals(journals)
            at_change.append(any(change.resource == B2 for change in journal.changes))

    admin.hook = hook


def test_a_broker_that_comes_back_while_a_move_is_followed_gets_the_rate_and_loses_it_again(
    one_dead: FakeAdmin, journals: JournalFolder
) -> None:
    events: list[tuple[str, dict]] = []
    seen: list[set[str | None]] = []
    at_change: list[bool] = []

    def on_poll(_poll: object) -> None:
        seen.append(rates(one_dead, B2))
        if len(seen) == 2:
            back_again(one_dead, journals, at_change)

    one_dead.polls_needed = 4
    with Driver(one_dead, journals, on_event=lambda kind, _name, detail: events.append((kind, dict(detail)))) as driver:
        driver.execute(Plan({T0: (1, 3)}), 1000)
        driver.follow(on_poll, timeout_s=5, interval_s=0.001)
        assert driver.throttle.left_out == ()
        driver.change_rate(2000)
        assert rates(one_dead, B2) == {"2000"}
    assert seen[:4] == [{None}, {None}, {"1000"}, {"1000"}]
    assert ("throttle.admitted", {"broker": 2, "rate_bytes_per_s": 1000}) in events
    assert at_change and all(at_change)
    assert one_dead.configs == {B2: {LEADER_RATE: "77"}}
    assert journals.ids() == []


def test_a_broker_that_cannot_be_given_its_rate_is_told_of_once_and_tried_again(
    one_dead: FakeAdmin, journals: JournalFolder
) -> None:
    events: list[str] = []
    throttle = Throttle(one_dead, journals, lambda kind, name, _detail: events.append(f"{kind} {name}"))
    assert throttle.admit({2}) == ()
    throttle.set([PartitionMove.between(T0, (1, 2), (1, 3))], 1000)
    assert [throttle.admit({1, 2, 3}) for _ in range(3)] == [()] * 3
    assert throttle.left_out == (2,)
    back_again(one_dead, journals, [])
    assert throttle.admit({1, 3}) == ()
    assert throttle.admit({1, 2, 3}) == (2,)
    assert events[1:] == ["note not throttled", "throttle.admitted throttle"]
    throttle.wait_in_force(0)
    throttle.restore(0)
    assert one_dead.configs == {B2: {LEADER_RATE: "77"}}


def test_a_broker_that_comes_back_to_a_throttle_that_was_adopted_keeps_what_was_there_before_both(
    admin: FakeAdmin, journals: JournalFolder
) -> None:
    Throttle(admin, journals).set(FIRST, 1000, [3])
    dead = killed(journals)
    admin.broker_ids = (1, 2)
    throttle = Throttle(admin, journals)
    throttle.adopt(dead)
    throttle.change_rate(2000, 0)
    assert rates(admin, ConfigResource.broker(3)) == {"1000"}
    assert throttle.admit({1, 2, 3}) == (3,)
    assert rates(admin, ConfigResource.broker(3)) == {"2000"}
    assert throttle.restore(0).interferences == ()
    assert admin.configs == {}


def test_a_broker_that_was_dead_at_the_set_gets_its_rate_also_after_the_throttle_was_adopted(
    one_dead: FakeAdmin, journals: JournalFolder
) -> None:
    Throttle(one_dead, journals).set([PartitionMove.between(T0, (1, 2), (1, 3))], 1000)
    throttle = Throttle(one_dead, journals)
    throttle.adopt(killed(journals))
    assert throttle.left_out == (2,)
    back_again(one_dead, journals, [])
    assert throttle.admit({1, 2, 3}) == (2,)
    assert rates(one_dead, B2) == {"1000"}
    throttle.restore(0)
    assert one_dead.configs == {B2: {LEADER_RATE: "77"}}


def test_a_rate_that_another_tool_set_before_the_throttle_was_adopted_is_reported(
    admin: FakeAdmin, journals: JournalFolder
) -> None:
    Throttle(admin, journals).set(FIRST, 1000)
    dead = killed(journals)
    admin.configs[B1][LEADER_RATE] = "777"
    del admin.configs[B2][LEADER_RATE]  # nothing of another tool: the original
    throttle = Throttle(admin, journals)
    throttle.adopt(dead)
    assert rates(admin, B1) == rates(admin, B2) == {"1000"}
    [found] = throttle.restore(0).interferences
    assert (found.change.resource, found.change.key, found.found) == (B1, LEADER_RATE, "777")
    assert admin.configs == {}


@pytest.mark.parametrize("rate", [1000, 2000])
def test_a_second_throttle_on_the_same_keys_is_refused_while_the_first_lives(
    admin: FakeAdmin, journals: JournalFolder, rate: int
) -> None:
    first, second = Throttle(admin, journals), Throttle(admin, journals)
    first.set(FIRST, 1000)
    before = {resource: dict(keys) for resource, keys in admin.configs.items()}
    with pytest.raises(ThrottleError, match=rf"process {Owner.this_process().pid} has a throttle on the same keys .*t"):
        second.set(SECOND, rate)
    assert (admin.configs, len(journals.ids())) == (before, 1)
    first.restore(0)
    second.set(SECOND, rate)
    second.restore(0)
    assert (admin.configs, journals.ids()) == ({}, [])


def test_throttles_of_other_clusters_and_of_other_keys_do_not_meet(admin: FakeAdmin, journals: JournalFolder) -> None:
    Throttle(FakeAdmin({T0: (1,)}, cluster_id="another"), journals).set(FIRST, 1000)
    admin.assignment[TopicPartition("u", 0)] = (3,)
    Throttle(admin, journals).set([], 1000, [3])
    Throttle(admin, journals).set(FIRST, 1000)
    assert rates(admin, B1) == {"1000"}


def test_two_that_only_rely_on_what_somebody_set_share_it(admin: FakeAdmin, journals: JournalFolder) -> None:
    there = {broker: dict.fromkeys(RATES, "1000") for broker in (B1, B2)}
    admin.configs = {broker: dict(keys) for broker, keys in there.items()}
    admin.assignment[TopicPartition("u", 0)] = (1,)
    first, second = Throttle(admin, journals), Throttle(admin, journals)
    first.set(FIRST, 1000)
    second.set([PartitionMove.between(TopicPartition("u", 0), (1,), (2,))], 1000)
    first.restore(0)
    second.restore(0)
    assert admin.configs == there


@pytest.mark.parametrize("recovered_first", [True, False])
@pytest.mark.parametrize(("moves", "rate"), [(FIRST, 1000), (SECOND, 2000)])
def test_recovering_a_dead_throttle_leaves_the_one_over_it_alone_and_in_the_end_nothing_stays(
    admin: FakeAdmin, journals: JournalFolder, moves: list[PartitionMove], rate: int, recovered_first: bool
) -> None:
    admin.configs = {B1: {LEADER_RATE: "77"}}
    Throttle(admin, journals).set(FIRST, 1000)
    killed(journals)
    over = Throttle(admin, journals)
    over.set(moves, rate)
    if recovered_first:
        outcomes = {each.outcome for each in recover(lambda _journal: admin, journals, timeout_s=0)}
        assert outcomes == {RecoveryOutcome.RESTORED, RecoveryOutcome.OWNER_ALIVE}
        over.wait_in_force(0)
    assert over.restore(0).interferences == ()
    recover(lambda _journal: admin, journals, timeout_s=0)
    assert (admin.configs, journals.ids()) == ({B1: {LEADER_RATE: "77"}}, [])


def test_a_dead_raise_does_not_re_create_a_throttle_that_was_removed(admin: FakeAdmin, journals: JournalFolder) -> None:
    mover = Throttle(admin, journals)
    mover.set(FIRST, 10)
    raised = ThrottleRaiser(admin, journals)
    raised.to(15, [1, 2])
    [journal] = [each for each in open_journals(journals) if each.raises]
    journals.write(replace(journal, owner=replace(journal.owner, started_ticks=journal.owner.started_ticks - 1)))
    mover.restore(0)
    [done] = recover(lambda _journal: admin, journals, timeout_s=0)
    assert done.outcome is RecoveryOutcome.RESTORED
    assert (admin.configs, journals.ids()) == ({}, [])


def test_a_dead_raise_over_a_live_throttle_is_put_back_to_it(admin: FakeAdmin, journals: JournalFolder) -> None:
    mover = Throttle(admin, journals)
    mover.set(FIRST, 10)
    ThrottleRaiser(admin, journals).to(15, [1, 2])
    [journal] = [each for each in open_journals(journals) if each.raises]
    journals.write(replace(journal, owner=replace(journal.owner, started_ticks=journal.owner.started_ticks - 1)))
    recover(lambda _journal: admin, journals, timeout_s=0)
    assert rates(admin, B1) == rates(admin, B2) == {"10"}
    assert mover.restore(0).interferences == ()
    assert admin.configs == {}


def test_a_live_raise_learns_that_the_throttle_beneath_it_is_gone(admin: FakeAdmin, journals: JournalFolder) -> None:
    Throttle(admin, journals).set(FIRST, 10)
    killed(journals)
    raised = ThrottleRaiser(admin, journals)
    raised.to(15, [1, 2])
    recover(lambda _journal: admin, journals, timeout_s=0)
    assert rates(admin, B1) == {"15"}
    raised.to(20, [1, 2])
    raised.restore()
    assert admin.configs == {}


def test_recover_leaves_what_was_adopted_while_it_connected(admin: FakeAdmin, journals: JournalFolder) -> None:
    Throttle(admin, journals).set(FIRST, 1000)
    dead = killed(journals)

    def slowly(_journal: ThrottleJournal) -> FakeAdmin:
        Throttle(admin, journals).adopt(dead)
        return admin

    [found] = recover(slowly, journals, timeout_s=0)
    assert found.outcome is RecoveryOutcome.OWNER_ALIVE
    assert rates(admin, B1) == {"1000"}
    assert len(journals.ids()) == 1


def test_recover_does_not_put_back_twice_what_another_has_while_it_connected(
    admin: FakeAdmin, journals: JournalFolder
) -> None:
    Throttle(admin, journals).set(FIRST, 1000)
    dead = killed(journals)

    def slowly(_journal: ThrottleJournal) -> FakeAdmin:
        recover(lambda _journal: admin, journals, timeout_s=0)
        admin.configs = {B1: {LEADER_RATE: "5"}}
        return admin

    [found] = recover(slowly, journals, timeout_s=0)
    assert (found.outcome, found.detail) == (RecoveryOutcome.RESTORED, "another process has restored it meanwhile")
    assert admin.configs == {B1: {LEADER_RATE: "5"}}
    with pytest.raises(ThrottleError, match="was restored meanwhile: set it again"):
        Throttle(admin, journals).adopt(dead)


def test_forget_does_not_drop_what_was_adopted_while_it_tried(admin: FakeAdmin, journals: JournalFolder) -> None:
    Throttle(admin, journals).set(FIRST, 1000)
    dead = killed(journals)

    def gone(_journal: ThrottleJournal) -> FakeAdmin:
        Throttle(admin, journals).adopt(dead)
        raise UnreachableError("connect", "NO_ANSWER")

    [found] = recover(gone, journals, forget=True)
    assert found.outcome is RecoveryOutcome.OWNER_ALIVE
    assert len(journals.ids()) == 1


def test_the_journal_names_the_command_config(admin: FakeAdmin, journals: JournalFolder) -> None:
    Throttle(admin, journals, command_config="/etc/client.properties").set(FIRST, 1000)
    assert killed(journals).command_config == "/etc/client.properties"


def test_gc_names_the_command_config_before_forgetting(
    admin: FakeAdmin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(_journal: ThrottleJournal) -> FakeAdmin:
        raise UnreachableError("connect", "NO_ANSWER")

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    journals = JournalFolder()
    Throttle(admin, journals).set(FIRST, 1000)
    killed(journals)
    monkeypatch.setattr(recover_module, "connect", unreachable)
    with pytest.raises(
        TestbedError, match=r"cannot be reached.*--command-config(.|\n)*--command-config(.|\n)*--forget"
    ):
        collect_throttles(dry_run=False)


def test_a_list_that_kafka_would_refuse_is_refused_before_the_first_change(
    admin: FakeAdmin, journals: JournalFolder
) -> None:
    moves = [PartitionMove.between(TopicPartition("t", p), (1, 2, 3), (4, 5, 6)) for p in range(2000)]
    with pytest.raises(ThrottleError, match=rf"topic t: {LEADER_REPLICAS} would be 38669 bytes, .*Split the plan"):
        Throttle(admin, journals).set(moves, 1000)
    assert (admin.configs, journals.ids()) == ({}, [])
    assert wanted_configs(moves, 1000, [1], {}, wildcard=["t"])[TOPIC][LEADER_REPLICAS] == "*"


def test_the_longest_list_that_kafka_takes_is_taken() -> None:
    there = "0:1," * 8190
    longest = wanted_configs(FIRST, 1000, [1], {TOPIC: {LEADER_REPLICAS: there + "0000:9"}})[TOPIC][LEADER_REPLICAS]
    assert len(longest) == MOST_BYTES - 1
    with pytest.raises(ThrottleError, match="32768 bytes"):
        wanted_configs(FIRST, 1000, [1], {TOPIC: {LEADER_REPLICAS: there + "000000:9"}})


def test_the_lists_of_many_topics_are_read_in_one_question(admin: FakeAdmin, journals: JournalFolder) -> None:
    moves = [PartitionMove.between(TopicPartition(f"t{n}", 0), (1,), (2,)) for n in range(50)]
    admin.assignment = {move.tp: move.current for move in moves}
    throttle = Throttle(admin, journals)
    throttle.set(moves, 1000)
    throttle.wait_in_force(0)
    asked = [call for call, _args in admin.calls if call in ("topic_configs", "topics_configs")]
    assert asked == ["topics_configs"] * 3
    assert FOLLOWER_RATE in admin.configs[B1]
