from types import SimpleNamespace

import pytest

from testbed.handover import run as module
from testbed.handover.probe import interval_s
from testbed.handover.run import HandoverWatch, moved
from testbed.kafka.types import PartitionMove, TopicPartition
from testbed.reassignment.metadata_log import MetadataHistory, MetadataLogError
from tests.handover.golden import ASKED_US, SOURCE, TARGET
from tests.handover.test_steps import MOVED, NOW, PROBED, TP


class Host:
    """A host with a broker's log, of which a part is from before the watch."""

    def __init__(self, name, log):
        self.name, self.before, self.log, self.broken = name, b"said before\n", log.encode(), ""

    def run(self, command, **_named):
        text = command if isinstance(command, str) else " ".join(command)
        if self.broken:
            raise MetadataLogError(self.broken)
        if "tail -c" not in text:
            return SimpleNamespace(stdout=f"{len(self.before)}\n")
        whole = self.before + self.log
        assert f"+{len(self.before) + 1} " in text
        return SimpleNamespace(stdout=f"{len(whole)}\n{self.log.decode()}")


@pytest.fixture
def hosts(monkeypatch):
    found = {"b1": Host("b1", SOURCE), "b2": Host("b2", TARGET)}

    def history(host):
        if host.name == "b1":
            raise MetadataLogError("the log begins at offset 900")
        return MetadataHistory(NOW, {TP: NOW[-1]})

    monkeypatch.setattr(module, "read_history", history)
    return found


def watch(hosts):
    brokers = [SimpleNamespace(name=name) for name in hosts]
    topology = SimpleNamespace(controllers=brokers[:1], brokers=brokers)
    state = SimpleNamespace(kafka=dict.fromkeys(hosts, "automq-1.6.0+0123456789ab"))
    return HandoverWatch(SimpleNamespace(hosts=hosts, topology=topology, state=state))


PROBE = SimpleNamespace(probed=lambda: {TP: PROBED})


def test_logs_the_controllers_log_and_the_probe_come_together(hosts):
    watching = watch(hosts)
    watching.start()
    seen = watching.finish([MOVED], ASKED_US, PROBE)
    assert (seen.software, seen.problems) == ("automq-1.6.0+0123456789ab", ())
    assert all(step.ts_us is not None for step in seen.partitions[0].steps)


def test_what_could_not_be_read_is_told_and_the_rest_is_used(hosts):
    watching = watch(hosts)
    watching.start()
    hosts["b1"].broken = "no answer"
    seen = watching.finish([MOVED], ASKED_US, PROBE)
    assert seen.problems == ("b1: its log could not be read: no answer",)
    assert {step.step for step in seen.partitions[0].steps if step.ts_us is None} == {"closed"}


def test_without_a_start_and_without_the_controllers_log_nothing_is_known(hosts, monkeypatch):
    def nothing(_host):
        raise MetadataLogError("no segment")

    monkeypatch.setattr(module, "read_history", nothing)
    seen = watch(hosts).finish([MOVED], ASKED_US, PROBE)
    assert {step.ts_us for step in seen.partitions[0].steps} == {None}
    assert "b2: the watch was not started" in seen.problems
    assert any("the metadata log could not be read" in problem for problem in seen.problems)


def test_moves_are_told_by_hosts_and_what_only_changes_its_leader_is_none():
    found = moved(
        [PartitionMove.between(TP, (1,), (2,)), PartitionMove.between(TopicPartition("t", 0), (1, 2), (2, 1))],
        {1: "b1", 2: "b2"},
    )
    assert found == (MOVED,)


def test_many_partitions_are_asked_less_often_each():
    assert interval_s(1) == interval_s(50) == 0.05
    assert interval_s(200) == 0.2
