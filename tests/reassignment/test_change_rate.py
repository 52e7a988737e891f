"""Another rate for a throttle that is in force: whatever point it is killed at, what was there is put back."""

import pytest
from fakes.admin import FakeAdmin

from testbed.kafka.errors import UnreachableError
from testbed.kafka.types import ConfigResource, PartitionMove, TopicPartition
from testbed.reassignment.driver import Driver
from testbed.reassignment.plan import Plan
from testbed.throttle.configs import (
    EVERY_BROKER,
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    ThrottleError,
)
from testbed.throttle.journal import JournalFolder, open_journals
from testbed.throttle.recovery import RecoveryOutcome
from testbed.throttle.throttle import Throttle
from tests.reassignment.killed_throttle import Killed, recovered_after_kill

MOVES = [PartitionMove.between(TopicPartition("t", p), (1,), (2,)) for p in range(3)]
PLAN = Plan({TopicPartition("t", p): (2,) for p in range(3)})
TOPIC, B1, B2 = ConfigResource.topic("t"), ConfigResource.broker(1), ConfigResource.broker(2)
BEFORE = {B1: {LEADER_RATE: "77"}, B2: {LEADER_RATE: "2000", FOLLOWER_RATE: "2000"}}


def throttled(admin: FakeAdmin, journals: JournalFolder, events: list | None = None) -> Throttle:
    admin.configs = {resource: dict(keys) for resource, keys in BEFORE.items()}
    throttle = Throttle(admin, journals, None if events is None else lambda *event: events.append(event))
    throttle.set(MOVES, 1000)
    throttle.wait_in_force(0)
    return throttle


def test_every_broker_gets_the_new_rate_and_the_originals_come_back(admin: FakeAdmin, journals: JournalFolder) -> None:
    events: list = []
    throttle = throttled(admin, journals, events)
    throttle.change_rate(3000, 0)
    assert admin.configs[B1] == admin.configs[B2] == {LEADER_RATE: "3000", FOLLOWER_RATE: "3000"}
    assert admin.configs[TOPIC][FOLLOWER_REPLICAS] == "0:2,1:2,2:2"
    assert [(kind, detail.get("rate_bytes_per_s")) for kind, _name, detail in events[1:]] == [
        ("throttle.in_force", 1000),
        ("throttle.changing", 3000),
        ("throttle.in_force", 3000),
    ]
    assert throttle.restore(0).interferences == ()
    assert admin.configs == BEFORE
    assert journals.ids() == []


def test_a_key_that_was_right_by_chance_is_journaled_before_it_is_changed(
    admin: FakeAdmin, journals: JournalFolder
) -> None:
    admin.configs = {B1: {LEADER_RATE: "1000"}}
    throttle = Throttle(admin, journals)
    throttle.set(MOVES, 1000)
    throttle.change_rate(2000, 0)
    throttle.restore(0)
    assert admin.configs == {B1: {LEADER_RATE: "1000"}}


@pytest.mark.parametrize("survived", range(3))
def test_killed_between_any_two_requests_of_a_change_recover_puts_everything_back_and_blames_nobody(
    admin: FakeAdmin, journals: JournalFolder, survived: int
) -> None:
    throttle = throttled(admin, journals)
    outcome = recovered_after_kill(admin, journals, survived, lambda: throttle.change_rate(3000, 0))
    assert outcome.outcome is RecoveryOutcome.RESTORED
    assert "another client" not in outcome.detail
    assert admin.configs == BEFORE
    assert journals.ids() == []


def test_killed_before_the_journal_is_written_nothing_was_changed(
    admin: FakeAdmin, journals: JournalFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    throttle = throttled(admin, journals)

    def dies(_journal: object) -> None:
        raise Killed

    monkeypatch.setattr(journals, "write", dies)
    with pytest.raises(Killed):
        throttle.change_rate(3000, 0)
    assert admin.configs[B1] == {LEADER_RATE: "1000", FOLLOWER_RATE: "1000"}
    [journal] = open_journals(journals)
    assert {change.value for change in journal.changes if change.resource == B1} == {"1000"}


def test_once_in_force_the_rate_before_it_is_somebody_elses(admin: FakeAdmin, journals: JournalFolder) -> None:
    throttle = throttled(admin, journals)
    throttle.change_rate(3000, 0)
    admin.alter_configs(B2, {FOLLOWER_RATE: "1000"})
    [found] = throttle.restore(0).interferences
    assert str(found) == f"broker 2: {FOLLOWER_RATE} was '1000', not '3000' as set; restored to '2000'"


def test_what_somebody_else_had_set_is_told_although_the_change_overwrites_it(
    admin: FakeAdmin, journals: JournalFolder
) -> None:
    throttle = throttled(admin, journals)
    admin.alter_configs(B1, {FOLLOWER_RATE: "5555"})
    throttle.change_rate(3000, 0)
    [found] = throttle.restore(0).interferences
    assert str(found) == f"broker 1: {FOLLOWER_RATE} was '5555', not '1000' as set; removed"
    assert admin.configs == BEFORE


def test_lists_that_another_tool_has_removed_are_set_again_with_the_rate(
    admin: FakeAdmin, journals: JournalFolder
) -> None:
    throttle = throttled(admin, journals)
    lists = dict(admin.configs[TOPIC])
    admin.alter_configs(TOPIC, {}, [LEADER_REPLICAS, FOLLOWER_REPLICAS])
    throttle.change_rate(3000, 0)
    assert admin.configs[TOPIC] == lists
    assert throttle.restore(0).interferences == ()
    assert admin.configs == BEFORE


def test_a_list_that_another_tool_had_set_and_removed_since_is_not_left_behind(
    admin: FakeAdmin, journals: JournalFolder
) -> None:
    lists = {LEADER_REPLICAS: "0:1,1:1,2:1", FOLLOWER_REPLICAS: "0:2,1:2,2:2"}
    admin.configs = {TOPIC: dict(lists)}
    throttle = Throttle(admin, journals)
    throttle.set(MOVES, 1000)
    admin.alter_configs(TOPIC, {}, list(lists))
    throttle.change_rate(2000, 0)
    assert admin.configs[TOPIC] == lists
    assert throttle.restore(0).interferences == ()
    assert admin.configs == {}


def test_a_change_that_a_broker_never_shows_names_it_and_everything_is_still_put_back(
    admin: FakeAdmin, journals: JournalFolder
) -> None:
    throttle = throttled(admin, journals)

    def hook(call: str, _args: tuple[object, ...]) -> None:
        if call == "alter_configs":
            admin.deaf_brokers = frozenset({2})

    admin.hook = hook
    with pytest.raises(ThrottleError, match=r"not in force after 0 s, the move goes on:\n  broker 2 reports"):
        throttle.change_rate(3000, 0)
    admin.hook, admin.deaf_brokers = lambda _call, _args: None, frozenset()
    assert throttle.restore(0).interferences == ()
    assert admin.configs == BEFORE


def test_a_change_that_one_broker_gave_no_answer_to_can_be_asked_for_again(
    admin: FakeAdmin, journals: JournalFolder
) -> None:
    throttle = throttled(admin, journals)

    def hook(call: str, args: tuple[object, ...]) -> None:
        if call == "alter_configs" and args[0] == B2:
            raise UnreachableError("broker 2", "REQUEST_TIMED_OUT")

    admin.hook = hook
    with pytest.raises(UnreachableError):
        throttle.change_rate(3000, 0)
    assert throttle.throttle_bytes_per_s == 1000
    admin.hook = lambda _call, _args: None
    throttle.change_rate(3000, 0)
    assert admin.configs[B1] == admin.configs[B2] == {LEADER_RATE: "3000", FOLLOWER_RATE: "3000"}
    assert throttle.restore(0).interferences == ()
    assert admin.configs == BEFORE


def test_without_a_throttle_or_with_a_rate_of_zero_it_is_refused(admin: FakeAdmin, journals: JournalFolder) -> None:
    with pytest.raises(ThrottleError, match="set one first"):
        Throttle(admin, journals).change_rate(1000, 0)
    throttle = throttled(admin, journals)
    with pytest.raises(ThrottleError, match="throttle of 0 B/s: must be 1 or more"):
        throttle.change_rate(0, 0)


def test_a_driver_changes_its_throttle_while_it_follows_the_move(admin: FakeAdmin, journals: JournalFolder) -> None:
    seen = []
    admin.polls_needed = 4
    with Driver(admin, journals) as driver:
        driver.execute(PLAN, 1000)

        def on_poll(_poll: object) -> None:
            if not seen:
                driver.change_rate(4000)
            seen.append(admin.configs[B1][LEADER_RATE])

        driver.follow(on_poll, timeout_s=5, interval_s=0.001)
    assert set(seen) == {"4000"}
    assert admin.configs == {}


def test_a_wildcard_lists_every_replica_and_a_list_that_was_there_comes_back(
    admin: FakeAdmin, journals: JournalFolder
) -> None:
    admin.configs = {TOPIC: {LEADER_REPLICAS: "9:9"}}
    with Driver(admin, journals) as driver:
        driver.execute(PLAN, 1000, wildcard=["t"])
        assert admin.configs[TOPIC] == {LEADER_REPLICAS: "*", FOLLOWER_REPLICAS: "*"}
        driver.follow(timeout_s=5, interval_s=0.001)
    assert admin.configs == {TOPIC: {LEADER_REPLICAS: "9:9"}}


def test_a_throttle_everywhere_is_the_default_of_all_brokers_and_asked_of_those_that_are_there(
    admin: FakeAdmin, journals: JournalFolder
) -> None:
    admin.configs = {EVERY_BROKER: {LEADER_RATE: "7"}}
    throttle = Throttle(admin, journals)

    def hook(call: str, args: tuple[object, ...]) -> None:
        if call == "broker_configs" and args == (3,):
            raise UnreachableError("describe broker 3", "NO_ANSWER")

    admin.hook = hook
    throttle.set((), 1000, [1, 2, 3], wildcard=["t"], everywhere=True)
    throttle.wait_in_force(0, brokers=[1, 2])
    with pytest.raises(ThrottleError, match="describe broker 3: NO_ANSWER"):
        throttle.wait_in_force(0)
    admin.hook = lambda _call, _args: None
    assert admin.configs[EVERY_BROKER] == {LEADER_RATE: "1000", FOLLOWER_RATE: "1000"}
    throttle.restore(0)
    assert admin.configs == {EVERY_BROKER: {LEADER_RATE: "7"}}
