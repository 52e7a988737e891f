from types import SimpleNamespace

import pytest

from results.contract.manifest import Records
from results.contract.move import RoundTrip
from results.contract.schema import Event, Sample
from testbed.errors import TestbedError
from testbed.experiments import move_environment
from testbed.experiments.layout import Layout, PartitionGroup
from testbed.experiments.load import load_specs
from testbed.experiments.model_inputs import conversion_factor, inbound_rates, round_trip_s, round_trips, throttles
from testbed.experiments.move_environment import MoveEnvironment, preloaded
from testbed.kafka.types import TopicPartition
from testbed.topology import loads
from testbed.workload import replica_logs
from testbed.workload.audit import Audit, ProducerAudit
from testbed.workload.delivery_reports import Delivered
from testbed.workload.outcome import ProcessReports, WorkloadResult
from testbed.workload.records import Fill, Recipe
from testbed.workload.spec import ConsumerSpec

TP, S = TopicPartition("t", 0), 1_000_000


def read(second, value, host="b1", partition=0):
    return Sample(int(second * S), host, "log.bytes", value, "t", partition)


def test_inbound_is_the_growth_of_the_leaders_log_between_the_first_and_the_last_reading():
    samples = [read(1, 0), read(3, 500), read(2, 400), read(5, 900), read(4, 1e9, host="b2"), read(9, 1e9)]
    assert inbound_rates(samples, {TP: "b1"}, 2 * S, 8 * S) == {TP: 500 / 3}


def test_a_partition_read_once_has_no_rate():
    assert inbound_rates([read(2, 0), read(9, 1)], {TP: "b1"}, 0, 5 * S) == {}


def force(second, rate):
    return Event(int(second * S), "throttle.in_force", "throttle", None, {"rate_bytes_per_s": rate})


def test_throttles_are_those_that_every_broker_showed():
    events = [
        force(0, 10),
        Event(1 * S, "move.started"),
        Event(5 * S, "throttle.changing", "throttle", None, {"rate_bytes_per_s": 20}),
        force(6, 20),
        force(7, 20),
        force(10, 5),
    ]
    assert throttles(events, 10) == [(5.0, 10), (4.0, 20.0), (0.0, 5.0)]
    assert throttles(events[:2], 10) == [(0.0, 10)]
    assert throttles([], 10) == [(0.0, 10)]


def test_a_group_has_a_producer_or_with_followers_two_and_one_consumer_reads_everything():
    groups = (
        PartitionGroup("t", range(2), ("A",), ("B",), 1, 10.0),
        PartitionGroup("t", range(2, 5), ("B",), ("A",), 1, 20.0),
        PartitionGroup("quiet", range(2), ("A",), ("B",), 1),
        PartitionGroup("low", range(5), ("A", "B"), ("A", "B"), 1, 5.0),
        PartitionGroup("one", range(1), ("A", "B"), ("A", "B"), 1, 7.0),
    )
    found = load_specs(Layout(groups, calibration=groups[2]), "ab12cd")
    assert [spec.name for spec in found] == [f"producer-{n}" for n in range(1, 6)] + ["consumer-1"]
    assert [(spec.topic, spec.partitions, spec.rate_bytes_per_s) for spec in found[:-1]] == [
        ("t", (0, 1), 10.0),
        ("t", (2, 3, 4), 20.0),
        ("low", (0, 2, 4), 3.0),
        ("low", (1, 3), 2.0),
        ("one", (0,), 7.0),
    ]
    assert found[-1].topics == ("t", "low", "one")
    assert load_specs(Layout((groups[2],), calibration=groups[2]), "ab12cd") == []


def account(name, **counts):
    return ProducerAudit(
        name,
        **{
            "acked": 10,
            "found": 10,
            **dict.fromkeys(("lost", "duplicated", "reordered", "corrupt", "refused_found"), 0),
            **counts,
        },
        first=(),
    )


def test_records_written_before_the_move_are_accounted_for_apart_from_the_loads():
    producers = (account("preload", lost=2, found=8), account("producer-1", corrupt=3))
    records = preloaded(Audit(20, 18, 2, 0, 4, (), producers=producers, of_none=("t-0: a gap",)))
    assert (records.expected, records.found, records.lost, records.corrupt) == (10, 8, 2, 1)
    assert records.first == ("t-0: a gap",)


@pytest.mark.parametrize(
    ("storage", "compared", "left", "expected"),
    [
        ("disk", lambda *_: ("t-0: b2 has another",), (), {"digest_mismatches": ("t-0: b2 has another",)}),
        ("disk", lambda *_: (), ("t-0 on b3",), {"out_of_sync": ("t-0 on b3",)}),
        ("disk", lambda *_: (), (), {}),
        ("tiered", lambda *_: ("t-0: b2 has another",), ("t-0 on b3",), {}),
        ("automq", lambda *_: ("t-0: b2 has another",), ("t-0 on b3",), {}),
    ],
)
def test_replicas_are_compared_where_their_disks_have_whole_logs(monkeypatch, storage, compared, left, expected):
    assert replicas_of(monkeypatch, storage, compared, left) == Records(9, 9, 0, 0, 0, **expected)


def test_replicas_that_could_not_be_compared_leave_it_open(monkeypatch):
    def refuse(*_):
        raise TestbedError("b2: no\nsuch host")

    assert replicas_of(monkeypatch, "disk", refuse).uncompared == "b2: no such host"


def replicas_of(monkeypatch, storage, compared, left=()):
    monkeypatch.setattr(replica_logs, "replica_differences", compared)
    monkeypatch.setattr(replica_logs, "left_isr", lambda *_: left)
    environment = SimpleNamespace(
        setup=SimpleNamespace(storage=storage),
        context=SimpleNamespace(progress=lambda _text: None),
        layout=SimpleNamespace(topics=("t",)),
        testbed=None,
        admin=None,
    )
    return MoveEnvironment._with_replicas(environment, Records(9, 9, 0, 0, 0))


def samples(*rows):
    """(second, sent by b1, log at b2 or None before the replica exists)."""
    found = []
    for second, sent, log in rows:
        found.append(Sample(second * 1_000_000, "b1", "nic.tx.bytes", sent, label="data0"))
        found.append(Sample(second * 1_000_000 + 300, "b2", "nic.rx.bytes", sent, label="data0"))
        if log is not None:
            found.append(Sample(second * 1_000_000 + 300, "b2", "log.bytes", log / 2, "t", 0))
            found.append(Sample(second * 1_000_000 + 300, "b2", "log.bytes", log / 2, "t", 1))
    return found


def factor(rows, begun, ended):
    return conversion_factor(
        samples(*rows), source="b1", target="b2", topic="t", begun_us=begun * 1_000_000, ended_us=ended * 1_000_000
    )


def test_sent_bytes_over_grown_log_between_samples_around_the_transfer():
    rows = [(1, 1000.0, None), (2, 1000.0, None), (3, 1500.0, 480.0), (4, 2060.0, 1000.0), (5, 9999.0, 5000.0)]
    assert factor(rows, 2.5, 3.5) == pytest.approx(1.06)


def test_a_transfer_that_no_sample_encloses_has_no_factor():
    rows = [(2, 1000.0, 0.0), (3, 1500.0, 480.0)]
    assert factor(rows, 1, 2.5) is None
    assert factor(rows, 2.5, 4) is None


def test_nothing_transferred_is_not_a_factor():
    assert factor([(1, 0.0, 0.0), (2, 0.0, 0.0), (3, 0.0, 0.0)], 1.5, 2.5) is None


FAR = loads("""
name: far
kafka: {version: 4.3.1}
racks:
  r1: {uplink: {rate: 200mbit, delay: 2ms}}
  r2: {}
defaults: {nic: {rate: 400mbit}}
hosts:
  b1: {role: both, rack: r1, nic: {delay: 10ms, rx_delay: 1ms}}
  b2: {role: broker, rack: r1}
  b3: {role: broker, rack: r2, nic: {delay: 5ms}}
  b4: {role: broker, rack: r2}
""")


def test_a_round_trip_has_the_declared_delays_of_both_nics_and_of_the_uplinks_between_racks():
    assert round_trip_s(FAR, "b1", "b2") == pytest.approx(0.011)
    assert round_trip_s(FAR, "b1", "b3") == round_trip_s(FAR, "b3", "b1") == pytest.approx(0.018)
    assert round_trip_s(FAR, "b2", "b4") == pytest.approx(0.002)
    assert round_trip_s(FAR, "b3", "b4") == pytest.approx(0.005)


def test_only_copies_over_a_declared_delay_have_one_with_what_their_sockets_hold():
    groups = (
        PartitionGroup("t", range(2), ("b2",), ("b4", "b3"), 1),
        PartitionGroup("u", range(2), ("b1", "b2"), ("b3", "b2"), 1),
    )
    far = Layout(groups, calibration=groups[0])
    assert round_trips(FAR, far, 1 << 20, {"b3": 65_536}) == (
        RoundTrip("b1", "b3", pytest.approx(0.018), 131_072),
        RoundTrip("b2", "b3", pytest.approx(0.007), 131_072),
        RoundTrip("b2", "b4", pytest.approx(0.002), 1 << 20),
    )
    near = loads(
        "{name: near, kafka: {version: 4.3.1}, defaults: {nic: {rate: 400mbit}},"
        " hosts: {b1: {role: both}, b2: {role: broker}}}"
    )
    alone = Layout((PartitionGroup("t", range(2), ("b1",), ("b2",), 1),), calibration=groups[0])
    assert round_trips(near, alone, 1 << 20, {}) == ()


@pytest.mark.parametrize(("storage", "by_time"), [("disk", True), ("tiered", False), ("automq", False)])
def test_an_audit_has_what_consumers_were_given_and_asks_leaders_of_whole_logs_for_times(monkeypatch, storage, by_time):
    asked = {}

    def audit(_bootstrap, _fills, written, **more):
        asked.update(more, written=written)
        return Audit(0, 0, 0, 0, 0, ())

    monkeypatch.setattr(move_environment, "audit", audit)
    delivered = Delivered()
    fill = Fill("cold", [0], 9, Recipe(48, 3))
    delivered.add(["cold"], [[0, 0, 1, fill.producer, 0, 0, 9]])
    reader = ProcessReports(ConsumerSpec("cold-1", ("cold",), "readers"), 0, delivered=delivered).result()
    environment = SimpleNamespace(
        setup=SimpleNamespace(storage=storage),
        context=SimpleNamespace(progress=lambda _text: None),
        load=SimpleNamespace(result=WorkloadResult(())),
        testbed=SimpleNamespace(driver_bootstrap=["b1:9096"]),
        fills=[fill],
        admin=None,
        _with_replicas=lambda records: records,
    )
    _records, live = MoveEnvironment.audit(environment, readers=[reader])
    assert asked["by_time"] is by_time
    [found] = live.deliveries
    assert (found.name, found.records, found.wrong) == ("cold-1", 9, 0)


def test_records_that_cannot_be_read_back_leave_the_rest_of_the_run_as_it_is(monkeypatch):
    def audit(*_some, **_more):
        raise TestbedError("audit: 1 partition was not read to the end")

    monkeypatch.setattr(move_environment, "audit", audit)
    events = []
    environment = SimpleNamespace(
        setup=SimpleNamespace(storage="disk"),
        context=SimpleNamespace(progress=lambda _text: None),
        load=SimpleNamespace(result=WorkloadResult(())),
        recorder=SimpleNamespace(event=lambda *parts: events.append(parts)),
        testbed=SimpleNamespace(driver_bootstrap=["b1:9096"]),
        fills=[],
        admin=None,
    )
    records, live = MoveEnvironment.audit(environment)
    assert records is None and live is not None and live.audits is None
    why = {"why": "audit: 1 partition was not read to the end"}
    assert events == [("note", "the records were not read back", why)]
