"""KIP-455's scenarios are sound as data: every step says what it needs, and what is to be seen of it."""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest

import testbed.experiments.kip455_executor as executor_module
from results.contract.manifest import Records
from testbed.errors import TestbedError, UsageError
from testbed.experiments.experiment import experiments, find_experiment
from testbed.experiments.kip455_actions import (
    COPIED_S,
    DECIDED_S,
    RELEASE_THROTTLE,
    START_BROKERS,
    answer_of,
    cancel,
    kill_broker,
    moving,
    reassign,
    reassign_all,
    step,
    still,
)
from testbed.experiments.kip455_executor import Kip455Executor, copy_seconds, run_scenario
from testbed.experiments.kip455_trace import TraceComparison
from testbed.kafka.errors import KafkaError, ReassignmentError
from testbed.kafka.types import TopicPartition
from testbed.topology.find import find
from testbed.workload.audit import Audit, ProducerAudit
from testbed.workload.records import Fill, Recipe

NAMES = [name for name in experiments() if name.startswith("kip455-")]


def scenario(name):
    """The scenario that the experiment's `run` closes over."""
    run = find_experiment(name).run
    return dict(zip(run.__code__.co_freevars, (cell.cell_contents for cell in run.__closure__), strict=True))["built"]


@pytest.mark.parametrize("name", NAMES)
def test_every_step_has_a_name_of_its_own_and_asks_prove_something(name):
    steps = scenario(name).steps
    assert len({each.name for each in steps}) == len(steps)
    for each in steps:
        assert len({expect.name for expect in each.expect}) == len(each.expect)
        if each.action.text.endswith(("]", "cancel")) and each.answer == "accepted":
            assert any(expect.when == "before" for expect in each.expect), each.name
            assert any(expect.when == "end" for expect in each.expect), each.name
        if any(expect.when == "never" for expect in each.expect):
            assert each.settle_s or any(expect.when == "end" for expect in each.expect), each.name


@pytest.mark.parametrize("name", NAMES)
def test_every_scenario_fits_its_topology_and_not_a_smaller_one(name):
    experiment = find_experiment(name)
    experiment.check(find(experiment.topology), {})
    with pytest.raises(UsageError, match=f"{name} needs"):
        experiment.check(find("two-brokers"), {})


def test_a_failover_needs_controllers_of_their_own():
    with pytest.raises(UsageError, match="three controllers that are no brokers, as in controllers; six-brokers has 0"):
        find_experiment("kip455-override-failover").check(find("six-brokers"), {})


def test_acts_and_states_are_told_in_words():
    assert reassign(4, 2, 3).text == "partition 0: to [4, 2, 3]"
    assert cancel(0, 2).text == "2 partitions: cancel"
    assert reassign_all({0: (4,), 1: (4,), 7: None}).text == "2 partitions: to [4]; partition 7: cancel"
    under_way = moving(adding=(4,), removing=(1,), staying=(2, 3))
    assert str(under_way) == "replicas {1, 2, 3, 4}, adding {4}, removing {1}, ISR {1, 2, 3}"
    told = "replicas {1, 2}, nothing adding, nothing removing, replicas [2, 1] in this order, ISR {1, 2}, leader 2"
    assert str(still((2, 1), ordered=True, leaders=(2,))) == told
    assert step("a", cancel()).answer == "accepted"


def test_errors_are_answers_by_partition():
    errors = {TopicPartition("t", 3): "B", TopicPartition("t", 1): "A", TopicPartition("t", 0): "B"}
    assert answer_of(ReassignmentError("alter", errors, 5)) == "A for 1; B for 0, 3"
    assert answer_of(KafkaError("delete", "TOPIC_AUTHORIZATION_FAILED")) == "TOPIC_AUTHORIZATION_FAILED"


def test_what_the_controller_decides_has_a_time_and_a_fault_has_none():
    assert (DECIDED_S, COPIED_S) == (1.5, 4.0)
    assert [each.within_s for each in (reassign(4, 2, 3), cancel(), RELEASE_THROTTLE)] == [1.5, 1.5, 4.0]
    assert {kill_broker(4).within_s, START_BROKERS.within_s, reassign(3).untimed().within_s} == {None}
    assert reassign(3, 4, 5).copying().copies and not reassign(3, 4, 5).copies


def test_the_bytes_of_all_replicas_take_their_time_on_one_nic():
    assert copy_seconds(scenario("kip455-example"), find("six-brokers")) == pytest.approx(0.251, abs=0.001)
    assert copy_seconds(scenario("kip455-many"), find("six-brokers")) == 0


INTACT = Records(9, 9, 0, 0, 0)


class TakesNoStep:
    """An executor without a cluster."""

    topic, cluster = "t", SimpleNamespace(kinds=())
    trace = SimpleNamespace(finish=lambda _hosts: TraceComparison(True))

    def __init__(self, *_args):
        self.prepare = self.settle = lambda: None
        self.read_back = lambda: INTACT
        self.walk = list

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        return None


def test_each_host_of_kafka_has_an_agent_from_before_the_first_step_to_the_last(monkeypatch):
    done = []
    recorder = SimpleNamespace(
        poll=lambda name, *_args: done.append(name),
        watch_host=lambda host, **_asked: done.append(host),
        step=lambda name: nullcontext(done.append(name)),
        stop=lambda: done.append("stop"),
    )
    topology = find("controllers")
    hosts = {host.name: host.name for host in topology.hosts}
    testbed = SimpleNamespace(topology=topology, hosts=hosts, machine_shells={}, state=SimpleNamespace(kafka={}))
    watch = SimpleNamespace(start=lambda: None, allow=lambda *_allowances: None, logs=tuple)
    monkeypatch.setattr(executor_module, "Kip455Executor", TakesNoStep)
    monkeypatch.setattr(executor_module, "LogWatch", lambda _testbed: watch)
    taken = run_scenario(SimpleNamespace(testbed=testbed, recorder=recorder), scenario("kip455-override-failover"))
    kafka = [*(host.name for host in topology.brokers), "c1", "c2", "c3"]
    assert done == ["machine", *kafka, "prepare", "settle", "stop"]
    assert taken.facts.records == INTACT


FILL = Fill("t", (0,), 9, Recipe(100, 1))
LOST = Audit(9, 8, 1, 0, 0, ("t-0: lost",), producers=(ProducerAudit("preload", 9, 8, 1, *[0] * 4, ("t-0: lost",)),))


def read_back(monkeypatch, fill, states, audit):
    """The account of a scenario's records, and the events of the reading."""
    events = []
    admin = SimpleNamespace(partitions=lambda _topics: states)
    executor = SimpleNamespace(
        topic="t",
        cluster=SimpleNamespace(admin=admin),
        _fill=fill,
        _context=SimpleNamespace(
            testbed=SimpleNamespace(driver_bootstrap=["b1:9096"]),
            recorder=SimpleNamespace(event=lambda *parts: events.append(parts)),
            progress=lambda _text: None,
        ),
    )
    monkeypatch.setattr(executor_module, "audit", audit)
    compared = {}
    monkeypatch.setattr(executor_module, "with_replicas", lambda records, *of: compared.update(of=of[2]) or records)
    return Kip455Executor.read_back(executor), events, compared


def test_the_records_of_a_scenario_are_read_back_and_its_replicas_compared(monkeypatch):
    asked = []
    records, events, compared = read_back(
        monkeypatch, FILL, {"there": 1}, lambda *args, **named: asked.append((args, named)) or LOST
    )
    assert (records.expected, records.found, records.lost, records.first) == (9, 8, 1, ("t-0: lost",))
    assert asked[0][0] == (["b1:9096"], [FILL]) and asked[0][1]["by_time"] is True
    assert compared == {"of": ["t"]}
    assert events == [("note", "what the audit found", {"first": ["t-0: lost"]})]


@pytest.mark.parametrize(("fill", "states"), [(None, {"there": 1}), (FILL, {})], ids=["without records", "deleted"])
def test_a_topic_that_is_empty_or_deleted_has_no_records_to_read(monkeypatch, fill, states):
    assert read_back(monkeypatch, fill, states, None) == (None, [], {})


def test_records_that_cannot_be_read_back_are_an_event_of_the_scenario(monkeypatch):
    def audit(*_args, **_named):
        raise TestbedError("audit: 1 partition was not read to the end")

    why = {"why": "audit: 1 partition was not read to the end"}
    assert read_back(monkeypatch, FILL, {"there": 1}, audit) == (None, [("records.unread", "t", why)], {})
