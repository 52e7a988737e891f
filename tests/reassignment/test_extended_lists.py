"""Lists of throttled replicas that follow what another client does to the partitions of a move."""

import pytest
from fakes.admin import FakeAdmin

from testbed.kafka.types import ConfigResource, PartitionMove, TopicPartition
from testbed.reassignment.batching.batch import BatchLimits
from testbed.reassignment.batching.execution import Execution
from testbed.reassignment.batching.job import Job, JobControl, JobFolder
from testbed.reassignment.plan import Plan
from testbed.throttle.configs import (
    FOLLOWER_REPLICAS,
    LEADER_REPLICAS,
    MOST_BYTES,
    RATES,
    ListedReplicas,
    ThrottleError,
)
from testbed.throttle.journal import JournalFolder, open_journals
from testbed.throttle.recovery import RecoveryOutcome
from testbed.throttle.throttle import Throttle
from tests.fakes.kraft import Controller, KraftAdmin
from tests.reassignment.killed_throttle import recovered_after_kill

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
FIRST = [PartitionMove.between(T0, (1,), (2,))]
MOVED = [PartitionMove.between(T0, (3,), (2,)).in_steps()]
"""The same partition once another client has moved it to broker 3."""
TOPIC, B3 = ConfigResource.topic("t"), ConfigResource.broker(3)
BEFORE = {TOPIC: {LEADER_REPLICAS: "5:5"}}


def throttled(admin: FakeAdmin, journals: JournalFolder, events: list | None = None) -> Throttle:
    admin.configs = {resource: dict(keys) for resource, keys in BEFORE.items()}
    throttle = Throttle(admin, journals, None if events is None else lambda *event: events.append(event))
    throttle.set(FIRST, 1000)
    throttle.wait_in_force(0)
    return throttle


def test_replicas_of_a_partition_that_was_moved_are_listed_and_its_broker_gets_the_rate(
    admin: FakeAdmin, journals: JournalFolder
) -> None:
    events: list = []
    throttle = throttled(admin, journals, events)
    assert B3 not in admin.configs
    throttle.extend(MOVED, 0)
    assert admin.configs[TOPIC] == {LEADER_REPLICAS: "5:5,0:1,0:3,0:2", FOLLOWER_REPLICAS: "0:2"}
    assert admin.configs[B3] == dict.fromkeys(RATES, "1000")
    [why] = [detail["why"] for kind, _name, detail in events if kind == "throttle.extended"]
    assert why == "another client has changed t-0: the throttle now lists the present replicas, too"
    [journal] = open_journals(journals)
    assert not any(change.earlier for change in journal.changes)
    throttle.change_rate(2000, 0)
    assert admin.configs[TOPIC][LEADER_REPLICAS] == "5:5,0:1,0:3,0:2"
    assert admin.configs[B3] == dict.fromkeys(RATES, "2000")
    assert throttle.restore(0).interferences == ()
    assert admin.configs == BEFORE


def test_nothing_is_requested_where_the_lists_name_every_replica(admin: FakeAdmin, journals: JournalFolder) -> None:
    throttle = throttled(admin, journals)
    throttle.extend(MOVED, 0)
    calls = len(admin.calls)
    throttle.extend([*MOVED, *FIRST, PartitionMove.between(T1, (1, 2), (2,))], 0)
    assert len(admin.calls) == calls
    throttle.restore(0)
    calls = len(admin.calls)
    throttle.extend(MOVED, 0)
    assert len(admin.calls) == calls


def test_lists_that_a_broker_does_not_report_are_waited_for_again(admin: FakeAdmin, journals: JournalFolder) -> None:
    throttle = throttled(admin, journals)
    admin.deaf_brokers = frozenset({2})
    for moves in (MOVED, MOVED, []):
        with pytest.raises(ThrottleError, match=r"after 0\.01 s, the steps wait for it:\n  broker 2 reports topic t"):
            throttle.extend(moves, 0.01)
    admin.deaf_brokers = frozenset()
    throttle.extend(MOVED, 0)
    throttle.restore(0)
    assert admin.configs == BEFORE


@pytest.mark.parametrize("survived", range(3))
def test_killed_between_any_two_requests_of_an_extension_recover_restores_everything(
    admin: FakeAdmin, journals: JournalFolder, survived: int
) -> None:
    throttle = throttled(admin, journals)
    outcome = recovered_after_kill(admin, journals, survived, lambda: throttle.extend(MOVED, 0))
    assert outcome.outcome is RecoveryOutcome.RESTORED
    assert "another client" not in outcome.detail
    assert admin.configs == BEFORE


def test_entries_of_another_tool_stay_in_the_lists_and_are_said(admin: FakeAdmin, journals: JournalFolder) -> None:
    throttle = throttled(admin, journals)
    admin.configs[TOPIC][LEADER_REPLICAS] = "0:1,1:1"
    throttle.extend(MOVED, 0)
    assert admin.configs[TOPIC][LEADER_REPLICAS] == "0:1,1:1,5:5,0:3,0:2"
    [found] = throttle.restore(0).interferences
    assert str(found) == f"topic t: {LEADER_REPLICAS} was '0:1,1:1', not '5:5,0:1' as set; restored to '5:5'"


def test_lists_that_another_tool_had_set_and_has_removed_are_not_restored(
    admin: FakeAdmin, journals: JournalFolder
) -> None:
    admin.configs = {TOPIC: {LEADER_REPLICAS: "0:1", FOLLOWER_REPLICAS: "0:2"}}
    throttle = Throttle(admin, journals)
    throttle.set(FIRST, 1000)
    del admin.configs[TOPIC]
    throttle.extend(MOVED, 0)
    assert admin.configs[TOPIC] == {LEADER_REPLICAS: "0:1,0:3,0:2", FOLLOWER_REPLICAS: "0:2"}
    assert throttle.restore(0).interferences == ()
    assert admin.configs == {}


def test_a_list_that_would_be_too_long_is_refused_and_nothing_is_changed(
    admin: FakeAdmin, journals: JournalFolder
) -> None:
    throttle = throttled(admin, journals)
    admin.configs[TOPIC][FOLLOWER_REPLICAS] = there = "0:2," + "9:9," * (MOST_BYTES // 4 - 2) + "9:9"
    moved = [PartitionMove.between(TopicPartition("t", 100 + n), (3,), (2,)) for n in range(9)]
    with pytest.raises(ThrottleError, match="nothing was changed"):
        throttle.extend(moved, 0)
    assert admin.configs[TOPIC] == {LEADER_REPLICAS: "5:5,0:1", FOLLOWER_REPLICAS: there}


# ---- steps of a job whose partition another client moves


@pytest.mark.parametrize("mode", ["batched", "incremental"])
def test_a_step_from_where_another_client_moved_a_partition_is_throttled_on_both_sides(
    tmp_path, journals: JournalFolder, mode
) -> None:
    admin = KraftAdmin(Controller.of({T0: (1, 2), T1: (1, 2)}, range(1, 7)))
    jobs, plan, events = JobFolder(tmp_path / "moves"), Plan({T0: (1, 3), T1: (1, 3)}), []
    job = Job.new(admin.bootstrap, admin.cluster_id, mode, plan)
    run = Execution(admin, job, jobs, journals, lambda kind, name, detail: events.append((kind, name, dict(detail))))
    run.begin(JobControl(BatchLimits(1, 1), 1000))
    requested, unthrottled = [], []

    def look(call: str, args: tuple) -> None:
        if call != "alter_reassignments":
            return
        listed = ListedReplicas({"t": admin.configs[TOPIC]})
        for tp, step in args[0].items():
            existing = admin.controller.seen().existing(tp)
            requested.append((tp, existing, step))
            if not listed.cover(tp, existing, set(step) - set(existing)):
                unthrottled.append((tp, existing, step))

    def move_away(_turn: object) -> None:
        if not requested and not admin.controller.partitions[T1].adding:
            admin.controller.alter({T1: (4, 5)})

    admin.hook = look
    run.run(move_away, interval_s=0.001, timeout_s=30)
    assert (T1, (4, 5), (1, 4, 5)) in requested
    assert unthrottled == []
    assert {tp: found.replicas for tp, found in admin.controller.partitions.items()} == plan.targets
    assert admin.configs == {}
    assert [name for kind, name, _detail in events if kind == "throttle.extended"] == ["throttle"]
    [why] = [detail["why"] for kind, name, detail in events if (kind, name) == ("note", "unthrottled")]
    assert why.startswith("another client reassigns t-1 with replicas that this throttle does not list; ")
