import threading

import pytest

from testbed.errors import KafkaStuck
from testbed.faults import Faults, parse_fault
from testbed.faults.catalogue.broker_restart import BrokerRestart
from testbed.provision import state as states


def test_a_broker_that_was_paused_when_it_was_killed_is_paused_again(one, faults):
    faults.add(parse_fault("broker-pause host=b2"))
    killed = faults.add(parse_fault("broker-kill host=b2"))
    assert one.nodes["b2"].state is None
    faults.clear(killed)
    assert one.nodes["b2"].state == "T"
    faults.clear()
    assert one.nodes["b2"].state == "S"


def test_the_other_brokers_are_not_touched(one, faults):
    with faults.injected(parse_fault("broker-kill host=b2")):
        pass
    assert [change for change in one.kernel.changes if "b2" not in change] == []


def test_a_restart_is_seen_by_another_process(one, faults):
    faults.add(parse_fault("broker-restart host=b2"))
    assert one.nodes["b2"].pid() == 101
    assert BrokerRestart("b2", before=101).verify(one) == "process 101 is there, in state S, as before"


def test_a_broker_that_ends_after_its_restart_is_an_error_at_once(one):
    """The wait went on for 90 s, and its end said nothing of the broker's log."""
    one.nodes["b2"].state = None
    with pytest.raises(KafkaStuck, match="^Kafka on b2 ended after its restart; the end of its log:\nthe end"):
        BrokerRestart("b2", before=99).verify(one)


def test_what_runs_already_is_not_started_again(one, faults):
    faults.add(parse_fault("broker-kill host=b2"))
    one.nodes["b2"].start()  # by somebody else
    faults.clear()
    assert one.kernel.changes.count("start b2") == 1


def test_a_process_that_nobody_has_reaped_is_gone(one, faults):
    from testbed.faults.processes import look

    one.nodes["b2"].state = "Z"
    assert look(one.node("b2")) is None


def test_leadership_moves_and_the_node_comes_back(racks):
    faults = Faults(racks)
    faults.add(parse_fault("controller-failover"))
    assert racks.leader == 2
    assert racks.nodes["b1"].state == "S"
    assert racks.kernel.changes == ["SIGKILL b1", "start b1"]
    assert faults.list()[0].fault.host == "b1"


def test_a_leader_that_stays_is_an_error(racks, monkeypatch):
    racks.kernel.deaf = True
    with pytest.raises(Exception, match="another controller than b1 to become active"):
        Faults(racks).add(parse_fault("controller-failover"))
    assert Faults(racks).list() == ()


def test_a_broker_that_is_stalled_is_stalled_after_a_restart_too(one, faults):
    """What stops the old process ends with it."""
    one.nodes["b2"].host.daemons["/run/kafka-pulses.pid"] = 700
    faults.add(parse_fault("broker-stall host=b2 pause=20ms every=100ms"))
    one.kernel.changes.clear()
    faults.add(parse_fault("broker-restart host=b2"))
    after = one.kernel.changes[one.kernel.changes.index("start b2") :]
    assert "start /run/kafka-pulses.pid on b2" in after


def test_an_operator_s_restart_waits_for_a_fault_that_acts(one, faults):
    """Two starts at once leave a process that the PID file does not name."""
    with states.lock("one.faults"):
        restarting = threading.Thread(target=faults.restart, args=("b2",))
        restarting.start()
        restarting.join(0.2)
        assert restarting.is_alive()
        assert one.kernel.changes == []
    restarting.join(10)
    assert one.kernel.changes[-1] == "start b2"


def test_an_operator_s_restart_starts_a_killed_broker(one, faults):
    faults.add(parse_fault("broker-kill host=b2"))
    faults.restart("b2")
    assert one.nodes["b2"].state == "S"
    faults.clear()
    assert one.kernel.changes.count("start b2") == 1


STALL = "broker-stall host=b2 pause=20ms every=100ms"


def test_a_stalled_broker_that_is_paused_is_not_continued_by_the_stall(one, faults):
    faults.add(parse_fault(STALL))
    b2 = one.nodes["b2"]
    paused = faults.add(parse_fault("broker-pause host=b2"))
    assert b2.state == "T" and b2.host.daemons == {}
    faults.clear(paused)
    assert [*b2.host.daemons] == ["/run/kafka-pulses.pid"]


@pytest.mark.parametrize("text", ["broker-term host=b2", "broker-pause host=b2", "broker-restart host=b2", STALL])
def test_a_broker_that_stands_still_in_its_stall_is_no_paused_one(one, faults, text):
    faults.add(parse_fault(STALL))
    one.nodes["b2"].state = "T"
    one.kernel.changes.clear()
    faults.add(parse_fault(text))
    assert "SIGKILL b2" not in one.kernel.changes  # a restart is controlled
