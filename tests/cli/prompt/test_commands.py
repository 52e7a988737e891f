"""What the prompt's commands compute, without a testbed."""

import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest

from testbed.cli.prompt.catalogue import moves
from testbed.cli.prompt.catalogue.faults import about_subject, fault_text, replaces
from testbed.cli.prompt.catalogue.hosts import link_rows
from testbed.cli.prompt.catalogue.moves import targets
from testbed.cli.prompt.catalogue.topics import fills, partition_rows, round_robin, topic_rows
from testbed.cli.prompt.dialog import _line_editor, grammar
from testbed.cli.prompt.session import Session
from testbed.errors import UsageError
from testbed.faults import kinds, parse_fault
from testbed.faults.journal import FaultEntry
from testbed.faults.network import ports_of
from testbed.kafka.types import PartitionState, Reassignment, TopicPartition
from testbed.owner import Owner, _started_ticks
from testbed.reassignment.batching.job import Job, JobControl, JobFolder
from testbed.reassignment.plan import Plan
from testbed.topology.find import find
from testbed.workload.records import Recipe


def placed(**replicas):
    return {TopicPartition("t", int(p[1:])): found for p, found in replicas.items()}


def test_move_from_replaces_one_broker_and_keeps_the_order():
    assert targets(placed(p0=(1, 3), p1=(3, 1), p2=(3,)), 1, (2,)).targets == placed(p0=(2, 3), p1=(3, 2))


def test_move_to_is_the_whole_list():
    assert targets(placed(p0=(1, 3), p1=(3,)), None, (2, 3)).targets == placed(p0=(2, 3), p1=(2, 3))


@pytest.mark.parametrize(("target", "message"), [((2, 3), "name one"), ((3,), "on 1 and on 3 already")])
def test_an_impossible_move_is_refused(target, message):
    with pytest.raises(UsageError, match=message):
        targets(placed(p0=(1, 3)), 1, target)


@pytest.mark.parametrize(
    ("kind", "subject", "settings", "text"),
    [
        ("broker-kill", "b1", "", "broker-kill host=b1"),
        ("nic-rate", "b1", "50mbit", "nic-rate host=b1 rate=50mbit"),
        ("nic-rate", "b1", "direction=transmit 50mbit", "nic-rate host=b1 direction=transmit rate=50mbit"),
        ("nic-rate", "b1", "rate=50mbit", "nic-rate host=b1 rate=50mbit"),
        ("nic-rate", "b1", "50mbit 60mbit", "nic-rate host=b1 rate=50mbit 60mbit"),
        ("uplink-rate", "r1", "50mbit", "uplink-rate rack=r1 rate=50mbit"),
        ("nic-cut", "b1", "peers=b2", "nic-cut hosts=b1 peers=b2"),
        ("controller-failover", "", "", "controller-failover"),
    ],
)
def test_a_fault_after_its_host_is_the_catalogues(kind, subject, settings, text):
    assert fault_text(kinds()[kind], subject, settings) == text


@pytest.mark.parametrize(
    ("new", "old", "expected"),
    [
        ("nic-rate host=b1 rate=80mbit", "nic-rate host=b1 rate=50mbit", True),
        ("nic-rate host=b1 rate=80mbit", "nic-rate host=b2 rate=50mbit", False),
        ("nic-rate host=b1 rate=80mbit", "nic-rate host=b1 rate=50mbit direction=transmit", False),
        ("nic-rate host=b1 rate=50mbit", "nic-rate host=b1 rate=50mbit", False),
        ("broker-kill host=b1", "broker-pause host=b1", False),
        ("broker-kill host=b1", "broker-kill host=b1", False),
    ],
)
def test_another_rate_of_the_same_nic_replaces_the_former(new, old, expected):
    assert replaces(parse_fault(new), parse_fault(old)) is expected


def test_the_faults_of_a_host_are_those_about_it():
    texts = ("nic-rate host=b1 rate=50mbit", "nic-cut hosts=b1,b2 peers=b3", "broker-kill host=b3")
    entries = [FaultEntry(number, parse_fault(text), None, "") for number, text in enumerate(texts)]
    assert [entry.id for entry in about_subject(entries, "b1")] == [0, 1]
    assert [entry.id for entry in about_subject(entries, "b3")] == [2]


def test_links_show_what_the_faults_make_of_them():
    declared = find("two-racks-narrow-uplink")
    fault = parse_fault("nic-rate host=b1 rate=50mbit direction=receive")
    down = parse_fault("uplink-cut rack=right").down(declared)
    rows = link_rows(declared, fault.reshaped(declared), down, {*ports_of(declared, "b2")})
    by_link = {row[0]: row[-1] for row in rows}
    assert by_link.pop("b1").endswith("mbit transmit, 50mbit receive")
    assert by_link.pop("b2") == "as declared, loses packets to some hosts"
    assert by_link.pop("rack right") == "down"
    assert set(by_link.values()) == {"as declared"}


def test_replicas_are_spread_in_turn():
    assert round_robin(3, 2, [1, 2, 3]) == {0: [1, 2], 1: [2, 3], 2: [3, 1]}


@pytest.mark.parametrize(("count", "expected"), [(7, {0: 3, 1: 2, 2: 2}), (6, {0: 2, 1: 2, 2: 2}), (2, {0: 1, 1: 1})])
def test_records_are_spread_evenly_and_none_is_left_out(count, expected):
    found = {
        p: fill.records_per_partition for fill in fills("t", [0, 1, 2], count, Recipe(100, 1)) for p in fill.partitions
    }
    assert found == expected and sum(found.values()) == count


def test_topics_and_partitions_are_rows():
    tps = [TopicPartition("t", p) for p in (0, 1)]
    states = {
        tps[0]: PartitionState(tps[0], 1, 0, (1, 2), (1, 2)),
        tps[1]: PartitionState(tps[1], None, 0, (2, 3, 1), (2,)),
    }
    listed = {tps[1]: Reassignment((2, 3, 1), (3,), (1,))}
    assert topic_rows(states, listed, {tps[0]: 5_000_000}) == [("t", 2, "2,3", "1:1 none:1", "5MB", 1, 1)]
    assert partition_rows(states, listed, {})[1] == (1, "none", "2,3,1", "2", "3", "1", "0B")


def test_a_left_move_is_named_with_its_process_only_when_another_one_carries_it_out(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    mine = Job.new("h:1", "cluster", "unbatched", Plan({TopicPartition("t", 0): (2,)}))
    testbed = SimpleNamespace(
        name="x",
        topology=find("two-brokers"),
        bootstrap=("198.19.0.11:9092",),
        state=SimpleNamespace(cluster_id="cluster"),
    )
    session = Session(testbed, grammar(), interactive=False)
    assert session.unfinished() == []
    JobFolder().write(mine, JobControl())
    (line,) = session.unfinished()
    assert "testbed reassign resume --bootstrap 198.19.0.11:9092" in line and "process" not in line
    assert not session.is_carried_out(mine)
    init = Owner(1, _started_ticks(1), mine.owner.boot_id)
    JobFolder().write(replace(mine, owner=init), JobControl())
    (line,) = session.unfinished()
    assert line == "not ended: the move of t; process 1 carries it out"
    assert session.is_carried_out(session.job())


def test_a_move_without_a_process_is_continued_as_a_cancelled_one(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    job = Job.new("h:1", "cluster", "unbatched", Plan({TopicPartition("t", 0): (2,)}))
    JobFolder().write(job, JobControl())
    wishes = []

    def carried_out(_session, left):
        wishes.append(JobFolder().control(left.id).wish)
        JobFolder().remove(left.id)

    monkeypatch.setattr(moves, "_ensure_carried_out", carried_out)
    moves._cancel_job(SimpleNamespace(move=None, say=print), job)
    assert wishes == ["cancel"]


def test_ctrl_c_before_the_first_request_leaves_the_move_with_the_session(monkeypatch):
    """Without it, `resume` would carry the move out a second time, in another thread."""

    class Move:
        def __init__(self, *_words):
            self.begun = False

        def resume(self):
            self.begun = True

        def wait_requested(self):
            raise KeyboardInterrupt

    monkeypatch.setattr(moves, "BackgroundMove", Move)
    session = SimpleNamespace(testbed=None, notices=[], move=None, is_carried_out=lambda _job: False)
    with pytest.raises(KeyboardInterrupt):
        moves._ensure_carried_out(session, None)
    assert session.move.begun


@pytest.mark.parametrize(
    ("editor", "binding"), [("GNU readline", "tab: complete"), ("… using libedit readline", "bind ^I rl_complete")]
)
def test_tab_completes_with_either_line_editor(monkeypatch, tmp_path, editor, binding):
    bound = []
    names = ("read_history_file", "set_history_length", "set_completer", "set_completer_delims", "write_history_file")
    readline = SimpleNamespace(parse_and_bind=bound.append, **{name: lambda _value: None for name in names})
    readline.__doc__ = editor
    monkeypatch.setitem(sys.modules, "readline", readline)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with _line_editor(SimpleNamespace(remark=lambda _text: None)):
        assert bound == [binding]
