from types import SimpleNamespace

import pytest

from results.criteria.model import window_bound
from testbed.errors import KafkaStuck, SoftwareError, TestbedError
from testbed.experiments import mid_move_actions
from testbed.experiments.catalogue import kip73_nic_bound
from testbed.experiments.criteria import BOUNDS
from testbed.experiments.experiment import find_experiment, read_settings
from testbed.experiments.kip73_layouts import whole_move
from testbed.experiments.load_shape import LoadShape
from testbed.experiments.mid_move_actions import (
    LiveChange,
    MidMoveAction,
    RaiseAfterStall,
    RollingRestart,
    SlowNic,
    SourceKill,
)
from testbed.experiments.move_environment import MoveSetup
from testbed.experiments.throttled_run import _announce, _timeout_s
from testbed.faults import FaultDidNotFire
from testbed.faults.catalogue.broker_kill import BrokerKill
from testbed.kafka.errors import UnreachableError
from testbed.network.shape import payload_bytes_per_s
from testbed.provision.containers import EngineGone
from testbed.reassignment.driver import DriverError
from testbed.topology.find import find
from testbed.wait import WaitTimeout
from tests.experiments.running_move import FakeMove


@pytest.fixture
def mover(monkeypatch):
    return FakeMove(monkeypatch)


def test_each_rate_is_set_a_phase_after_the_one_before_and_none_twice(mover):
    change = LiveChange([12, 4], 10.0)
    assert change.slowest_bytes_per_s == 4
    change.started(mover)
    for second in (1, 9, 10, 12, 19, 21, 40, 60):
        mover.at(second, change)
    assert mover.done == [("rate", 12), ("rate", 4)]
    assert change.missing() == ""


def test_a_rate_that_got_no_answer_is_asked_for_again_and_the_next_one_a_phase_after_it(mover):
    change = LiveChange([12, 4], 10.0)
    change.started(mover)
    mover.silent = 2
    for second in (10, 11):
        with pytest.raises(UnreachableError):
            mover.at(second, change)
    assert change.missing() == "the throttle was never 12B/s, 4B/s"
    for second in (12, 21, 22):
        mover.at(second, change)
    assert mover.done == [("rate", 12), ("rate", 4)]
    assert change.missing() == ""


def test_a_stuck_move_is_told_once_and_raised_until_it_is_raised(mover):
    stuck = RaiseAfterStall(9, patience_s=15.0)
    stuck.started(mover)
    mover.lag, mover.silent = 10.0, 1
    mover.at(2, stuck)
    with pytest.raises(UnreachableError):
        mover.at(20, stuck)
    for second in (21, 40):
        mover.at(second, stuck)
    assert [kind for kind, _ in mover.done] == ["move.stuck", "move.raised", "rate"]


def test_nothing_is_changed_once_nothing_is_in_flight(mover):
    change = LiveChange([12], 10.0)
    change.started(mover)
    mover.at(11, change, in_flight=0)
    assert mover.done == []
    assert change.missing() == "the throttle was never 12B/s"


def test_a_lag_that_does_not_fall_is_told_and_raised_once(mover):
    stuck = RaiseAfterStall(9, patience_s=15.0)
    stuck.started(mover)
    for second, lag in (
        (0, None),
        (1, 10.0),
        (2, None),
        (2, 100.0),
        (5, 90.0),
        (10, 95.0),
        (19, 130.0),
        (21, 140.0),
        (60, 200.0),
    ):
        mover.lag = lag
        mover.at(second, stuck)
    assert mover.done == [
        ("move.stuck", {"lag": 140.0, "seconds": 16.0}),
        ("move.raised", {"rate_bytes_per_s": 9}),
        ("rate", 9),
    ]


def test_a_lag_that_falls_is_not_stuck(mover):
    stuck = RaiseAfterStall(9, patience_s=15.0)
    for second in range(0, 100, 10):
        mover.lag = 1000.0 - second
        mover.at(second, stuck)
    assert mover.done == []


def test_the_next_broker_is_restarted_once_the_one_before_is_back_in_sync(mover):
    bounce = RollingRestart(["b3", "b1"], 12.0)
    bounce.started(mover)
    mover.at(5, bounce)
    assert mover.done == []
    mover.missing = ["t-0", "t-0"]
    mover.at(12, bounce)
    assert mover.missing == []
    assert mover.done == [
        ("broker.leaving", "b3"),
        ("broker-restart", "b3"),
        ("healed", "b3"),
        ("broker.back", "b3"),
    ]
    assert mover.details[-1] == {"leaders_as_planned": True}
    mover.done.clear()
    mover.as_planned = False
    mover.at(20, bounce)
    mover.at(24, bounce)
    mover.at(99, bounce)
    assert (mover.done[-1], mover.details[-1]) == (("broker.back", "b1"), {"leaders_as_planned": False})
    assert len(mover.done) == 4


def test_a_broker_whose_restart_got_no_answer_is_restarted_again_and_leaves_once(mover):
    bounce = RollingRestart(["b3"], 12.0)
    bounce.started(mover)
    mover.silent = 1
    with pytest.raises(UnreachableError):
        mover.at(12, bounce)
    assert bounce.missing() == "not restarted: b3"
    mover.at(13, bounce)
    assert [kind for kind, _ in mover.done].count("broker.leaving") == 1
    assert bounce.missing() == ""


def restarting(mover, error=None):
    bounce = RollingRestart(["b3"], 12.0)
    bounce.started(mover)
    mover.trouble = [error] if error else []
    mover.at(12, bounce)


def late():
    """The error of a broker that runs and does not answer in time."""
    error = FaultDidNotFire("broker-restart host=b3 did not take effect within 90 s")
    error.__cause__ = WaitTimeout("broker-restart host=b3", 90.0, "b3: not registered, or fenced")
    return error


@pytest.mark.parametrize(
    ("error", "is_late"), [(late(), True), (KafkaStuck("Kafka on b3 ended after its restart"), False)]
)
def test_a_broker_that_does_not_come_back_is_a_move_that_is_not_done(mover, error, is_late):
    """The run ended early and was inconclusive, where an upgrade's failed."""
    with pytest.raises(DriverError, match=f"^the restart of b3 failed: {error}$"):
        restarting(mover, error)
    assert mover.done[-1] == ("restart.failed", "b3")
    assert mover.details[-1] == {"why": str(error), "late": is_late}


def test_a_broker_that_stays_out_of_sync_is_a_move_that_is_not_done(mover, monkeypatch):
    monkeypatch.setattr(mid_move_actions, "BACK_IN_SYNC_S", 0.0)
    mover.missing = ["t-0"]
    with pytest.raises(DriverError, match="^the restart of b3 failed: waited 0 s for b3 to be back in sync"):
        restarting(mover)
    assert mover.details[-1]["late"] is True


def of(cause):
    error = TestbedError("it failed")
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "gone", "told"),
    [
        (SoftwareError("the engine is gone"), None, "^the engine is gone$"),
        (of(EngineGone("no engine")), None, "^no engine$"),
        (of(BlockingIOError("the lock of another command")), None, "^the restart of b3 failed: it failed$"),
        (late(), TestbedError("the SSH connection was lost"), "; b3 does not answer: the SSH connection was lost$"),
    ],
)
def test_what_is_not_kafka_s_ends_the_run_and_blames_no_kafka(mover, error, gone, told):
    mover.gone = gone
    with pytest.raises(TestbedError, match=told) as caught:
        restarting(mover, error)
    assert not isinstance(caught.value, DriverError | WaitTimeout)


def test_nobody_is_restarted_after_the_end_and_no_model_is_claimed(mover):
    bounce = RollingRestart(["b3"], 12.0)
    bounce.started(mover)
    mover.at(30, bounce, in_flight=0)
    assert mover.done == []
    assert bounce.missing() == "not restarted: b3"
    assert "not modelled" in bounce.no_model


def test_a_move_over_a_slow_nic_has_three_times_the_nic_s_time_whatever_the_quota_is():
    """The runner gave it three times the quota's time and a minute: with 1 GB/s less than a healthy move takes."""
    experiment = find_experiment("kip73-nic-bound")
    settings = read_settings(experiment, "ci", ["rate=1GB/s", "nic=80mbit", "preload=300s"])
    layout = kip73_nic_bound._layout(settings, ("b1", "b2"))
    environment = SimpleNamespace(
        layout=layout,
        setup=MoveSetup(layout, 10**9, "tuned", SlowNic("b1", 80_000_000)),
        ids={"b1": 1, "b2": 2},
        testbed=SimpleNamespace(topology=find("two-brokers")),
    )
    run = SimpleNamespace(environment=environment, action=environment.setup.action, model=SimpleNamespace(idle_s=0.0))
    [moving] = layout.throttled
    sizes = {tp: moving.bytes // len(moving.partitions) for tp in moving.tps()}
    assert _timeout_s(run, sizes) > 3 * 299


def test_a_small_move_is_announced_with_its_size():
    """The runner said *moving 0 MB*."""
    layout = kip73_nic_bound._layout(read_settings(find_experiment("kip73-nic-bound"), "ci", []), ("b1", "b2"))
    [moving] = layout.throttled
    shown = []
    environment = SimpleNamespace(
        layout=layout,
        setup=MoveSetup(layout, 2_000_000, "tuned", MidMoveAction()),
        ids={"b1": 1, "b2": 2},
        context=SimpleNamespace(progress=shown.append),
    )
    _announce(environment, dict.fromkeys(moving.tps(), 4_000))
    assert shown == ["moving 400kB at 2MB/s, about 0 s"]


def test_the_bound_of_a_throttle_is_not_judged_where_the_nic_cannot_carry_as_much():
    """Both criteria passed whatever brokers did: of 481 MB that the bound allows in 11 s, the NIC carried 105 MB."""
    assert not {*BOUNDS} & {*find_experiment("kip73-nic-bound").criteria}
    carries = payload_bytes_per_s(80_000_000)
    bound = window_bound(1.5 * carries, "receive", fetchers=1, response_max_bytes=0, window_s=11.0, sample_s=1.0)
    assert bound > 11.0 * carries


@pytest.mark.parametrize(("inbound", "left"), [(1_000_000, 0.96), (9_000_000, 0.63)])
def test_a_throttle_above_the_nics_has_three_times_the_time_of_what_the_load_leaves_of_them(inbound, left):
    """The runner gave it three times the quota's time: with 1 GB/s over NICs of 48 MB/s `move-done` failed."""
    settings = read_settings(find_experiment("kip435-exchange"), "ci", ["rate=1GB/s", f"inbound={inbound}B/s"])
    layout = whole_move(settings, ("b1", "b2", "b3", "b4"))
    environment = SimpleNamespace(
        layout=layout,
        setup=MoveSetup(layout, 10**9, "tuned", MidMoveAction(), load=LoadShape()),
        ids={"b1": 1, "b2": 2, "b3": 3, "b4": 4},
        testbed=SimpleNamespace(topology=find("four-brokers")),
    )
    run = SimpleNamespace(environment=environment, action=environment.setup.action, model=SimpleNamespace(idle_s=0.0))
    sizes = {tp: group.bytes // len(group.partitions) for group in layout.throttled for tp in group.tps()}
    sent = 2 * layout.throttled[0].bytes
    assert _timeout_s(run, sizes) > 3 * sent / (left * 47_820_000)


def test_a_slow_nic_is_measured_as_what_it_then_is(mover):
    slow = SlowNic("b1", 80_000_000)
    topology = find("two-brokers")
    declared = slow.measured_topology(topology)
    assert (declared.host("b1").nic.tx_bps, declared.host("b1").nic.rx_bps) == (80_000_000, 80_000_000)
    assert declared.host("b2") == topology.host("b2")
    with slow.around(mover):
        assert mover.done == [("nic-rate", "b1")]
    assert mover.done[-1] == ("healed", "b1")


def test_a_killed_source_is_dead_once_the_kill_has_returned(mover, monkeypatch):
    """A partition that it closes until then is closed before the kill, and the run is not about that."""

    def add(fault):
        mover.now += 0.2
        mover.done.append((fault.kind, fault.host))
        return 1

    monkeypatch.setattr(mid_move_actions, "now_us", lambda: round(mover.now * 1e6))
    monkeypatch.setattr(mover, "add", add, raising=False)
    kill = SourceKill("b2")
    assert kill.killed_us is None
    kill.started(mover)
    assert mover.done == [("broker.killed", "b2"), (BrokerKill.kind, "b2")]
    assert kill.killed_us == 200_000
