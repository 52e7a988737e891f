"""The move of an experiment on a cluster in memory: whatever does not succeed is a fact of the run."""

from types import SimpleNamespace

import pytest

from results.contract.manifest import Differences, InForce
from testbed.experiments import move_driver, move_environment
from testbed.experiments.kip73_layouts import throttled_layout
from testbed.experiments.layout import PartitionGroup
from testbed.experiments.mid_move_actions import MidMoveAction
from testbed.experiments.move_driver import wait_for_move
from testbed.experiments.move_environment import MoveSetup
from testbed.experiments.reassignment_run import unbatched_run
from testbed.kafka.errors import KafkaError, UnreachableError
from testbed.kafka.types import ConfigResource, TopicPartition
from testbed.reassignment.driver import MoveTimeout
from testbed.throttle.configs import FOLLOWER_REPLICAS, LEADER_REPLICAS, ThrottleError
from testbed.throttle.journal import JournalFolder
from testbed.topology.find import find
from testbed.wait import WaitTimeout, wait_for
from tests.fakes.admin import FakeAdmin

POLLER = SimpleNamespace(end=lambda: None, stop=lambda: None)

GROUP = PartitionGroup("kip73", range(3), ("b1",), ("b2",), 3 * 4096)
MOVING = [TopicPartition("kip73-ab12cd", p) for p in range(3)]
CALIBRATION = [TopicPartition("calibration-ab12cd", p) for p in range(4)]


class Raising(MidMoveAction):
    """Raises what it is given, one at a look."""

    def __init__(self, *errors):
        self.errors = list(errors)

    def on_poll(self, _mover, _poll):
        if self.errors:
            raise self.errors.pop(0)


@pytest.fixture
def journals(tmp_path, monkeypatch):
    folder = JournalFolder(tmp_path)
    monkeypatch.setattr(move_driver, "JournalFolder", lambda: folder)
    monkeypatch.setattr(move_environment, "JournalFolder", lambda: folder)
    monkeypatch.setattr(move_driver, "LOOK_S", 0.001)
    return folder


def moving(during=None, throttle=1000):
    admin = FakeAdmin(dict.fromkeys((*MOVING, *CALIBRATION), (1,)), broker_ids=(1, 2))
    testbed = SimpleNamespace(
        topology=find("two-brokers"), bootstrap=("fake:9092",), driver_bootstrap=("fake:9092",), client_networks=dict
    )
    events = []
    recorder = SimpleNamespace(
        event=lambda kind, name="", detail=None, host=None: events.append((kind, name, detail)),
        add=lambda _samples: None,
        poll=lambda *_what: POLLER,
        wait_for_all=lambda: None,
        samples=lambda: [],
        latest=lambda *_what: None,
    )
    context = SimpleNamespace(testbed=testbed, recorder=recorder, progress=lambda _text: None, run_id="x-ab12cd")
    setup = MoveSetup(
        throttled_layout([GROUP], "b1", "b2", control=False), throttle, "tuned", during or MidMoveAction()
    )
    found = unbatched_run(context, setup, admin)
    found.events = events
    return found


def test_a_move_that_ends_is_done_in_force_and_put_back(journals):
    move = moving()
    found = move.transfer(5.0)
    assert (found.done.ok, found.in_force.ok, found.restored.ok) == (True, True, True)
    assert move.admin.configs == {} and journals.ids() == []


def test_a_move_whose_time_is_over_says_how_long_it_was_and_an_error_does_not(journals):
    move = moving()
    move.admin.polls_needed = 10**9
    assert move.transfer(0.05).done.waited_s == 0.05
    move = moving()
    move.admin.refused = {MOVING[1]: "INVALID_REPLICA_ASSIGNMENT"}
    assert move.transfer(5.0).done.waited_s is None


def test_a_shorter_wait_within_that_for_a_move_is_another_one():
    with pytest.raises(WaitTimeout), wait_for_move(5.0):
        wait_for(lambda: 0, bool, 0.01, 0.01, "an action")
    with pytest.raises(MoveTimeout, match="waited 0.01 s for the move"), wait_for_move(0.01):
        wait_for(lambda: 0, bool, 0.01, 0.01, "the move")


def test_what_cannot_be_put_back_is_a_difference_and_the_move_was_done_all_the_same(journals):
    move = moving()

    def hook(call, args):
        if call == "alter_configs" and args[0] == ConfigResource.broker(2) and args[2]:
            raise UnreachableError("alter the configuration of broker 2", "REQUEST_TIMED_OUT")

    move.admin.hook = hook
    found = move.transfer(5.0)
    assert found.done.ok and found.in_force.ok
    assert not found.restored.ok
    assert found.restored.differences[0] == "alter the configuration of broker 2: REQUEST_TIMED_OUT"
    assert "see the journal" in found.restored.differences[-1]
    assert len(journals.ids()) == 1


THEIRS = TopicPartition("theirs", 3)


def interfered(call, change):
    """A move during whose first request of a kind the cluster changes."""
    move = moving()
    move.admin.assignment[THEIRS] = (1,)
    seen = []

    def hook(name, _args):
        if name == call and not seen:
            seen.append(name)
            change(move.admin)

    move.admin.hook = hook
    return move


@pytest.mark.parametrize("tp", [CALIBRATION[0], THEIRS], ids=["of the run", "of another topic"])
def test_a_move_that_moves_a_partition_outside_of_its_plan_is_not_done_right(journals, tp):
    move = interfered("alter_reassignments", lambda admin: admin.assignment.update({tp: (2,)}))
    found = move.transfer(5.0)
    why = f"outside of the plan, {tp} has replicas on [2], before on [1]"
    assert (found.done.ok, found.done.why, found.done.waited_s) == (False, why, None)
    assert found.restored.ok


def test_the_reason_names_some_of_the_partitions_outside_of_the_plan(journals):
    elsewhere = dict.fromkeys((*CALIBRATION, THEIRS), (2,))
    found = interfered("alter_reassignments", lambda admin: admin.assignment.update(elsewhere)).transfer(5.0)
    assert found.done.why.count("before on [1]") == 3 and found.done.why.endswith("; and 2 more")


def test_topics_that_come_go_and_come_back_are_no_move(journals):
    def change(admin):
        admin.assignment |= {TopicPartition("new", 0): (2,), THEIRS: (2,)}
        admin.topic_ids["theirs"] = "of another topic of this name"
        del admin.assignment[CALIBRATION[0]]

    assert interfered("alter_reassignments", change).transfer(5.0).done.ok


def test_a_list_of_all_partitions_is_asked_for_again_and_on_shared_storage_never(journals, monkeypatch):
    def silent(_admin):
        raise UnreachableError("describe all topics", "REQUEST_TIMED_OUT")

    monkeypatch.setattr(move_environment, "SAMPLE_S", 0.001)
    move = interfered("topics", silent)
    assert move.environment.placements()[THEIRS, "id of theirs"] == {1}
    move.environment.testbed.topology, asked = find("automq"), len(move.admin.calls)
    assert move.environment.placements() == {} and len(move.admin.calls) == asked


def test_partitions_that_the_controller_refuses_are_named_and_the_others_are_taken_back(journals):
    move = moving()
    move.admin.refused = {MOVING[1]: "INVALID_REPLICA_ASSIGNMENT"}
    found = move.transfer(5.0)
    assert not found.done.ok and "INVALID_REPLICA_ASSIGNMENT for kip73-ab12cd-1" in found.done.why
    assert found.restored.ok and move.admin.running == {}


@pytest.mark.parametrize(
    "error",
    [
        WaitTimeout("b1 to be back in sync", 60.0, ["kip73-0"]),
        KafkaError("alter the configuration of broker 1", "INVALID_CONFIG"),
    ],
)
def test_what_goes_wrong_beside_the_move_is_why_it_was_not_done(journals, error):
    found = moving(Raising(error)).transfer(5.0)
    assert (found.done.ok, found.done.why) == (False, str(error))
    assert found.in_force.ok and found.restored.ok


def test_what_gets_no_answer_beside_the_move_is_done_at_the_next_look(journals):
    during = Raising(UnreachableError("restart", "REQUEST_TIMED_OUT"), UnreachableError("restart", "NO_ANSWER"))
    move = moving(during)
    assert move.transfer(5.0).done.ok
    assert during.errors == []
    assert [detail["error"] for kind, name, detail in move.events if name == "no answer"] == [
        "restart: REQUEST_TIMED_OUT",
        "restart: NO_ANSWER",
    ]


def test_a_calibration_that_is_refused_gives_no_factor_and_leaves_nothing_moving(journals):
    move = moving()
    move.admin.refused = {CALIBRATION[0]: "INVALID_REPLICA_ASSIGNMENT"}
    assert move.environment.calibrate() is None
    assert move.admin.running == {}
    assert [name for kind, name, _ in move.events if kind == "note"][-1] == "not calibrated"
    move.admin.refused = {}
    assert move.transfer(5.0).done.ok


def test_polls_tell_the_quota_and_how_many_replicas_the_lists_lack(journals):
    move = moving()
    told = []
    move.context.recorder.poll = lambda name, _every, look: told.append(look) or POLLER
    seen = []

    def on_poll(_mover, _poll):
        seen.append({s.metric: s.value for s in told[0]()})
        topic = move.admin.configs[ConfigResource.topic("kip73-ab12cd")]
        if len(seen) == 1:
            topic[LEADER_REPLICAS] = "0:1"
        else:
            topic.pop(FOLLOWER_REPLICAS, None)

    move.action.on_poll = on_poll
    assert move.transfer(5.0).done.ok
    rates = {"quota.leader.rate": 1000.0, "quota.follower.rate": 1000.0}
    assert seen[0] == {**rates, "quota.leader.unlisted": 0.0, "quota.follower.unlisted": 0.0}
    assert seen[1] == {**rates, "quota.leader.unlisted": 2.0, "quota.follower.unlisted": 0.0}
    assert seen[2] == {**rates, "quota.leader.unlisted": 2.0, "quota.follower.unlisted": 3.0}


def test_a_move_without_a_throttle_sets_none_and_polls_no_quota(journals, monkeypatch):
    monkeypatch.setattr(move_driver, "UNTHROTTLED_LOOK_S", 0.001)
    move = moving(throttle=0)
    polled = []
    move.context.recorder.poll = lambda name, *_more: polled.append(name) or POLLER
    found = move.transfer(5.0)
    assert found.done.ok
    assert (found.in_force, found.restored) == (InForce(True, 0.0), Differences(True))
    assert polled == []
    assert not any(call == "alter_configs" for call, _args in move.admin.calls)
    assert journals.ids() == []
    with pytest.raises(ThrottleError, match="there is no throttle whose rate could change"):
        move.change_rate(5)


def test_a_partition_that_a_broker_does_not_know_is_neither_in_sync_nor_led_as_planned(journals):
    environment = moving().environment
    assert (environment.out_of_sync("b1"), environment.led_as_planned()) == ([], True)
    real = environment.admin.partitions
    environment.admin.partitions = lambda topics: {tp: state for tp, state in real(topics).items() if tp != MOVING[1]}
    assert (environment.out_of_sync("b1"), environment.led_as_planned()) == ([MOVING[1]], False)


def test_a_broker_that_does_not_know_a_topic_yet_ends_no_wait(journals):
    environment = moving().environment

    def unknown(topics):
        if topics:
            raise KafkaError("describe topic 'kip73-ab12cd'", "UNKNOWN_TOPIC_OR_PARTITION")
        return {}

    environment.admin.partitions, environment.admin.topics = unknown, tuple
    assert (environment.out_of_sync("b1"), environment.led_as_planned()) == (MOVING, False)
