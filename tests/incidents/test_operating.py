"""An operator's throttle, what is seen of a move, and that everything is put back."""

import pytest

from testbed.incidents import operator as operating
from testbed.incidents.cluster_poll import ClusterPoll, RequestedMove, moved_share, observations
from testbed.incidents.operator import OperatorThrottle, lists_for, rates_on
from testbed.kafka.errors import UnreachableError
from testbed.kafka.types import ConfigResource, PartitionMove, PartitionState, Reassignment, TopicPartition
from testbed.probes.recorder import Recorder
from testbed.throttle.configs import FOLLOWER_RATE, FOLLOWER_REPLICAS, LEADER_RATE, LEADER_REPLICAS
from testbed.throttle.journal import JournalFolder
from testbed.throttle.recovery import RESTORE_TIMEOUT_S
from testbed.wait import WaitTimeout
from tests.fakes.admin import FakeAdmin

TP0, TP1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
MOVES = {"orders": (PartitionMove.between(TP0, (1,), (2,)), PartitionMove.between(TP1, (1,), (2,)))}
B1, B2, ORDERS = ConfigResource.broker(1), ConfigResource.broker(2), ConfigResource.topic("orders")


@pytest.fixture
def throttle(tmp_path):
    admin = FakeAdmin({TP0: (1,), TP1: (1,)}, broker_ids=(1, 2))
    events = []
    folder = JournalFolder(tmp_path)
    return admin, OperatorThrottle(admin, folder, lambda *event: events.append(event)), folder, events


def test_lists_name_what_moves_and_everything_of_topics_that_do_not():
    wanted = lists_for(("clicks", "orders"), MOVES)
    assert wanted[ORDERS] == {LEADER_REPLICAS: "0:1,1:1", FOLLOWER_REPLICAS: "0:2,1:2"}
    assert wanted[ConfigResource.topic("clicks")] == {LEADER_REPLICAS: "*", FOLLOWER_REPLICAS: "*"}


def test_everything_is_put_back_as_it_was_before_the_first_change(throttle):
    admin, ours, folder, events = throttle
    admin.configs[B1] = {LEADER_RATE: "77", "other": "x"}
    before = {resource: dict(keys) for resource, keys in admin.configs.items()}
    ours.set(lists_for(("orders",), MOVES) | rates_on((1, 2), 5_000_000))
    ours.set(rates_on((1, 2), 9_000_000))
    assert admin.configs[B2] == {LEADER_RATE: "9000000", FOLLOWER_RATE: "9000000"}
    assert len(folder.ids()) == 1
    ours.remove((1, 2), ("orders",))
    assert admin.configs == {B1: {"other": "x"}}
    ours.restore()
    assert admin.configs == before
    assert folder.ids() == []
    assert [kind for kind, *_ in events] == [
        *("throttle.setting", "throttle.set", "throttle.setting", "throttle.set"),
        *("throttle.removing", "throttle.removed", "throttle.restored"),
    ]


def test_a_throttle_that_somebody_else_set_can_be_removed_and_is_put_back(throttle):
    admin, ours, folder, _events = throttle
    admin.configs[B2] = {FOLLOWER_RATE: "1"}
    ours.remove((1, 2), ("orders",))
    assert admin.configs == {}
    assert folder.ids()
    ours.restore()
    assert admin.configs == {B2: {FOLLOWER_RATE: "1"}}


def test_brokers_have_as_long_for_the_originals_as_after_a_move(throttle, monkeypatch):
    _admin, ours, _folder, _events = throttle
    waited = []
    monkeypatch.setattr(operating, "restore", lambda _admin, _changes, timeout_s: waited.append(timeout_s))
    ours.set(rates_on((1, 2), 5))
    ours.restore()
    assert waited == [RESTORE_TIMEOUT_S]


def test_the_journal_is_on_disk_before_the_change(throttle):
    admin, ours, folder, _events = throttle
    written = []
    admin.hook = lambda call, args: (
        written.append(len(folder.read(folder.ids()[0]).changes)) if call == "alter_configs" else None
    )
    ours.set(rates_on((1, 2), 5))
    assert written == [4, 4]


def test_in_force_is_what_every_broker_says_itself(throttle):
    admin, ours, _folder, events = throttle
    wanted = rates_on((1, 2), 5)
    ours.set(wanted)
    ours.wait_in_force(wanted, (1, 2), 1.0)
    assert events[-1][0] == "throttle.in_force"
    admin.deaf_brokers = frozenset({2})
    with pytest.raises(WaitTimeout, match="throttled.rate is not set"):
        ours.wait_in_force(wanted, (1, 2), 0.1)


def test_a_look_says_what_is_left(throttle):
    admin, ours, _folder, events = throttle
    ours.record_left((1, 2), ("orders",))
    assert events[-1][2] == {"left": [], "unread": []}
    admin.configs[ORDERS] = {LEADER_REPLICAS: "*"}
    ours.record_left((1, 2), ("orders",))
    assert events[-1][2]["left"] == [f"topic orders: {LEADER_REPLICAS}"]


def state(tp, replicas, isr, leader=1):
    return PartitionState(tp, leader, 0, replicas, isr)


def test_the_share_of_a_move_is_in_bytes():
    asked = RequestedMove(MOVES["orders"], {TP0: 100.0, TP1: 300.0})
    states = {TP0: state(TP0, (2,), (2,)), TP1: state(TP1, (2, 1), (1,))}
    assert moved_share(asked, states, lambda _broker, _tp: None) == 0.25
    assert moved_share(asked, states, lambda broker, _tp: 150.0 if broker == 2 else 9e9) == (100 + 150) / 400
    assert moved_share(RequestedMove(MOVES["orders"]), states, lambda _broker, _tp: None) == 0.5


def test_a_replica_that_is_being_added_is_missing_from_nothing():
    states = {TP0: state(TP0, (2, 1), (1,)), TP1: state(TP1, (1, 3), (1,), leader=None)}
    seen = observations(states, {TP0: Reassignment((2, 1), (2,), (1,))}, {}, lambda _broker, _tp: None)
    assert (seen.isr, seen.under_replicated, seen.leaderless, seen.in_flight) == (
        {"orders": 1},
        {"orders": 1},
        {"orders": 1},
        {"orders": 1},
    )
    assert (seen.moved, seen.done) == ({}, frozenset())


def test_a_move_is_followed_from_before_it_is_asked_for_to_its_end():
    admin = FakeAdmin({TP0: (1,), TP1: (1,)}, broker_ids=(1, 2), polls_needed=1)
    recorder = Recorder()
    poll = ClusterPoll(admin, ["orders"], {1: "b1", 2: "b2"}, recorder)
    assert not poll.moving()
    poll.follow(MOVES)
    assert poll.moving()
    assert poll.newest().moved == {}
    admin.alter_reassignments({move.tp: move.target for move in MOVES["orders"]})
    poll.poll()
    assert (poll.newest().moved, poll.newest().done) == ({"orders": 0.0}, frozenset())
    samples = {s.metric: s.value for s in poll.poll()}
    assert samples["move.moved"] == 1.0
    # The replicas are where they should be; the old log is still there.
    assert poll.moving()
    assert poll.newest().done == frozenset()
    poll.poll()
    assert not poll.moving()
    poll.poll()
    assert poll.newest().done == {"orders"}
    assert [(e.kind, e.name) for e in recorder.events()] == [("move.done", "orders")]
    asked = [args for call, args in admin.calls if call == "log_dirs"]
    assert asked == [((1,),)] * 2  # only of who loses a replica, and not any more once it is gone


def test_a_move_whose_old_broker_does_not_answer_is_not_done():
    admin = FakeAdmin({TP0: (1,), TP1: (1,)}, broker_ids=(1, 2), polls_needed=0, polls_to_delete=0)
    poll = ClusterPoll(admin, ["orders"], {1: "b1", 2: "b2"}, Recorder())
    poll.follow(MOVES)
    admin.alter_reassignments({move.tp: move.target for move in MOVES["orders"]})

    def silent(call, _args):
        if call == "log_dirs":
            raise UnreachableError("broker 1", "no answer")

    admin.hook = silent
    poll.poll()
    assert (poll.newest().moved, poll.moving()) == ({"orders": 1.0}, True)
    admin.hook = lambda _call, _args: None
    poll.poll()
    assert not poll.moving()
