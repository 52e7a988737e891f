"""A move in steps on a cluster in memory: everything that a run is judged by comes out of it, however it ends."""

from types import SimpleNamespace

import pytest

from testbed.experiments import batch_monitor, batched_move
from testbed.experiments.batched_move import batched_run
from testbed.experiments.layout import Layout, PartitionGroup
from testbed.experiments.mid_move_actions import MidMoveAction, RollingRestart
from testbed.experiments.move_environment import MoveSetup
from testbed.experiments.reassignment_run import monitored_run
from testbed.kafka.errors import KafkaError
from testbed.kafka.types import ConfigResource, TopicPartition
from testbed.probes.recorder import Recorder
from testbed.reassignment.batching.batch import BatchLimits
from testbed.reassignment.driver import DriverError
from testbed.throttle.journal import open_journals
from tests.fakes.kraft import Controller, KraftAdmin

HOSTS = {f"b{n}": n for n in range(1, 5)}
RATE = "follower.replication.throttled.rate"


class Admin(KraftAdmin):
    """With what the testbed's real one has beside that."""

    def create_topic(self, *_args):
        raise AssertionError("topics are there already")


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(batch_monitor, "STEP_POLL_S", 0.001)
    monkeypatch.setattr(batched_move, "TURN_S", 0.002)


def scene(*groups):
    moved = groups or (PartitionGroup("moved", range(6), ("b1", "b2"), ("b3", "b4"), 1),)
    side = {name: PartitionGroup(name, range(2), ("b1",), ("b4",), 1) for name in ("calibration", "control")}
    return Layout(moved, side["calibration"], side["control"])


def mover(during=None, mode="batched", limits=None, make=batched_run):
    recorder = Recorder()
    testbed = SimpleNamespace(
        topology=SimpleNamespace(
            brokers=[SimpleNamespace(name=name, node_id=n) for name, n in HOSTS.items()], automq=None
        ),
        state=SimpleNamespace(cluster_id="fake-cluster"),
        bootstrap=["fake:9092"],
        driver_bootstrap=["fake:9092"],
        client_networks=dict,
    )
    context = SimpleNamespace(testbed=testbed, recorder=recorder, run_id="20260101T000000Z-x-abcdef", progress=print)
    setup = MoveSetup(
        scene(), 1000, "tuned", during or MidMoveAction(), mode=mode, limits=limits or BatchLimits(1, 2, 1)
    )
    token = context.run_id[-6:]
    ids = {TopicPartition(f"moved-{token}", n): (1, 2) for n in range(6)}
    ids |= {TopicPartition(f"{name}-{token}", n): (1,) for name in ("control", "calibration") for n in range(2)}
    admin = Admin(Controller.of(ids, HOSTS.values()))
    return make(context, setup, admin), admin, recorder


def kinds(recorder):
    others = ("partition.seen", "steps.planned", "batch.started", "note")
    return [event.kind for event in recorder.events() if event.kind not in others]


@pytest.mark.parametrize("mode", ["batched", "incremental"])
def test_everything_that_is_judged_comes_out_of_it(mode):
    move, admin, recorder = mover(mode=mode)
    moved = move.transfer(30)
    recorder.stop()
    assert moved.done.ok, moved.done.why
    assert moved.in_force.ok
    assert (moved.restored.ok, moved.restored.differences) == (True, ())
    assert kinds(recorder) == [
        "throttle.set",
        "throttle.in_force",
        "move.started",
        "control.started",
        *sorted(["control.done", "move.done"], key=[e.kind for e in recorder.events()].index),
        "throttle.restored",
    ]
    steps = moved.batching
    assert (steps.mode, steps.limits.partitions, steps.partitions) == (mode, 2, 6)
    assert 1 <= steps.most_in_flight <= 2
    assert (steps.most_leaders <= 1, steps.most_added, steps.astray, steps.again) == (True, 1, (), ())
    assert {
        tp.partition: p.replicas for tp, p in admin.controller.partitions.items() if tp.topic.startswith("moved")
    } == (dict.fromkeys(range(6), (3, 4)))
    metrics = {sample.metric for sample in recorder.samples()}
    assert {"move.in_flight", "move.listed", "move.leaders", "quota.leader.rate", "move.lag"} <= metrics
    flying = [sample.value for sample in recorder.samples() if sample.metric == "move.in_flight"]
    assert (flying[0], flying[-1]) == (6.0, 0.0)
    assert admin.configs == {}
    assert not open_journals()
    assert not move.driver._jobs.ids()


def test_what_does_not_end_is_cancelled_and_nothing_is_left():
    move, admin, recorder = mover()
    admin.controller.tick = lambda: None
    moved = move.transfer(0.1)
    recorder.stop()
    assert not moved.done.ok
    assert "the reassignment" in moved.done.why
    assert moved.done.waited_s == 0.1
    assert "move.cancelled" in kinds(recorder)
    assert "move.done" not in kinds(recorder)
    assert not [tp for tp in admin.controller.seen().listed if tp.topic.startswith("moved")]
    assert admin.configs == {}
    assert not open_journals()
    assert not move.driver._jobs.ids()
    assert moved.batching.astray


def test_a_control_that_does_not_arrive_is_cancelled_as_well(monkeypatch):
    monkeypatch.setattr(batched_move, "CANCELLED_S", 0.2)
    move, admin, recorder = mover()
    goes_on = admin.controller.tick

    def tick():
        goes_on()
        for tp, partition in admin.controller.partitions.items():
            if tp.topic.startswith("control"):
                partition.isr = {1}

    admin.controller.tick = tick
    admin.controller._complete = lambda tp, real=admin.controller._complete: tp.topic.startswith("moved") and real(tp)
    moved = move.transfer(30)
    recorder.stop()
    assert "the control to arrive" in moved.done.why
    assert admin.controller.seen().listed == {}
    assert moved.restored.ok


class Fails(MidMoveAction):
    """An upgrade that fails at the second poll."""

    polls = 0

    def on_poll(self, _mover, _poll):
        self.polls += 1
        if self.polls == 2:
            raise DriverError("the upgrade of b1 to Kafka 4.3.1 failed")


def test_an_action_that_fails_is_why_the_move_was_not_done():
    move, admin, recorder = mover(Fails())
    moved = move.transfer(30)
    recorder.stop()
    assert (moved.done.ok, moved.done.why) == (False, "the upgrade of b1 to Kafka 4.3.1 failed")
    assert moved.in_force.ok
    assert admin.configs == {}
    assert not open_journals()


def test_a_throttle_that_stays_after_a_refused_begin_is_not_said_to_be_restored():
    move, admin, recorder = mover()

    def hook(call, args):
        if call == "alter_configs" and (args[0] == ConfigResource.broker(3) or args[2]):
            raise KafkaError(f"alter the configuration of {args[0]}", "CLUSTER_AUTHORIZATION_FAILED")

    admin.hook = hook
    moved = move.transfer(1)
    recorder.stop()
    assert not moved.done.ok
    assert open_journals()
    assert not moved.restored.ok


def test_what_is_refused_leaves_nothing_and_says_why():
    move, admin, recorder = mover()
    busy = TopicPartition("calibration-abcdef", 0)
    admin.controller.alter({busy: (4,)})
    admin.controller.tick = lambda: None
    moved = move.transfer(1)
    recorder.stop()
    assert "being reassigned already" in moved.done.why
    assert (moved.in_force.ok, moved.batching) == (False, None)
    assert admin.configs == {}
    assert not move.driver._jobs.ids()


class Raise(MidMoveAction):
    """Another rate at the third look."""

    def __init__(self):
        self.looks, self.rates = 0, []

    def on_poll(self, mover, _poll):
        self.looks += 1
        self.rates.append(mover.admin.configs[ConfigResource.broker(1)][RATE])
        if self.looks == 3:
            mover.change_rate(2000)


def test_another_rate_is_in_force_from_the_next_turn_on():
    during = Raise()
    move, admin, recorder = mover(during)
    assert move.transfer(30).done.ok
    recorder.stop()
    assert during.rates[:4] == ["1000"] * 3 + ["2000"]
    assert "throttle.changing" in kinds(recorder)
    assert admin.configs == {}


def test_a_wildcard_lists_every_replica_of_the_topic():
    found = []

    class Look(MidMoveAction):
        def on_poll(self, mover, _poll):
            found.append(dict(mover.admin.configs[ConfigResource.topic("moved-abcdef")]))

    move, _admin, recorder = mover(Look())
    old = move.environment.layout
    move.environment.layout = Layout(old.throttled, old.calibration, old.control, wildcard=True)
    assert move.transfer(30).done.ok
    recorder.stop()
    assert set(found[0].values()) == {"*"}


def test_every_batch_may_rest():
    move, _admin, _recorder = mover()
    # The leader of 6 partitions moves, one at a time.
    assert move.model.idle_s >= 4.0 * 6


def test_a_batch_that_copies_to_one_broker_has_the_time_that_the_others_do_not_use():
    move, _admin, _recorder = mover(limits=BatchLimits(1, 3))
    move.environment.layout = scene(
        PartitionGroup("moved", range(3), ("b1",), ("b3",), 3000),
        PartitionGroup("moved", range(3, 6), ("b2",), ("b4",), 3000),
    )
    # Two batches copy 3000 bytes each at 1000 B/s, to b3 and then to b4: at once it is 3 s. Two more drop the old ones.
    assert move.model.idle_s == pytest.approx(4 * 4.0 + 3.0)


def test_a_paced_move_has_the_turns_in_which_its_copies_begin():
    at_once, paced = (
        mover(mode="incremental", limits=BatchLimits(1, starts=starts))[0].model.idle_s for starts in (None, 2)
    )
    # Each of 6 partitions adds two replicas, one in a step. Two copies begin in a turn of at most 2 × TURN_S.
    assert paced - at_once == pytest.approx(12 / 2 * 2 * batched_move.TURN_S)


def test_what_a_step_adds_is_copied_from_who_leads_by_then():
    flows = batched_move.stepwise(scene(), HOSTS, 1)
    assert [(flow.kind, flow.leader, flow.follower) for flow in flows] == [
        ("throttled", "b1", "b3"),
        ("throttled", "b3", "b4"),
    ]
    assert {flow.kind for flow in mover()[0].model.flows()} == {"throttled", "in_sync", "control", "calibration"}


def test_a_move_at_once_is_watched_the_same_way():
    move, admin, recorder = mover(mode="unbatched", limits=BatchLimits(), make=monitored_run)
    goes_on = admin.controller.tick

    def tick():  # nothing arrives before the monitor has polled once
        if any(sample.metric == "move.listed" for sample in recorder.samples()):
            goes_on()

    admin.controller.tick = tick
    moved = move.transfer(30)
    recorder.stop()
    assert moved.done.ok, moved.done.why
    seen = moved.batching
    assert (seen.mode, seen.partitions, seen.astray) == ("unbatched", 6, ())
    assert (seen.most_in_flight, seen.most_added, seen.fetching) == (6, 2, 3)
    assert admin.configs == {}


def model_of(mode, scene, limits=None):
    move, _admin, recorder = mover(mode=mode, limits=limits or BatchLimits(1, 2, None))
    recorder.stop()
    move.environment.layout = scene.named("abcdef")
    return move


def one_way(inbound=0.0):
    return scene(PartitionGroup("moved", range(4), ("b1",), ("b2",), 400, inbound))


def both_ways():
    return scene(
        PartitionGroup("moved", range(2), ("b1",), ("b2",), 200),
        PartitionGroup("moved", range(2, 4), ("b3",), ("b4",), 200),
    )


def test_a_move_in_steps_that_nobody_writes_to_has_a_model():
    batched_, incremental = (model_of(mode, one_way()) for mode in ("batched", "incremental"))
    sizes = {tp: 100 for group in batched_.environment.layout.throttled for tp in group.tps()}
    for move in (batched_, incremental):
        assert move.model.no_model == ""
        assert {(s.broker, s.direction): s.bytes for s in move.model.carried(sizes, {})} == {
            (1, "transmit"): 400,
            (2, "receive"): 400,
        }
    assert batched_.model.batches_s(sizes, [(0.0, 10.0)])[:2] == (20.0, 40.0)
    assert incremental.model.batches_s(sizes, [(0.0, 10.0)]) == (40.0,)


def test_what_is_not_modelled_says_why():
    assert "what clients write" in model_of("batched", one_way(1000.0)).model.no_model
    assert model_of("batched", both_ways()).model.no_model == ""
    assert "no broker carries everything" in model_of("incremental", both_ways()).model.no_model
    assert mover(RollingRestart(["b1"], 1.0))[0].model.no_model == RollingRestart.no_model
