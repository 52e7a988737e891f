"""What a move without a throttle knows of itself: who sends how much, and in which order things are done."""

from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import pytest

from results.contract.manifest import Done
from results.contract.relocation import Sent
from results.contract.schema import Sample
from testbed.experiments import handover_timing, move_environment, unthrottled_move
from testbed.experiments.catalogue import cold_read
from testbed.experiments.catalogue.s3_reassign import layout
from testbed.experiments.experiment import find_experiment, read_settings
from testbed.experiments.kip73_layouts import one_of_two
from testbed.experiments.layout import fills
from testbed.experiments.load import ClientLoad
from testbed.experiments.load_shape import load_shape
from testbed.experiments.mid_move_actions import MidMoveAction
from testbed.experiments.move_environment import MoveEnvironment, MoveSetup
from testbed.experiments.storage import upload_s
from testbed.experiments.unthrottled_move import RunActivity, _timeout_s, log_growth, run_unthrottled_move, sent_logs
from testbed.kafka.types import TopicPartition
from testbed.network.addresses import AddressPlan
from testbed.probes.recorder import Recorder
from testbed.provision.membership import joining_brokers
from testbed.topology import load_document
from testbed.topology.find import find
from testbed.topology.links import Link
from testbed.workload.audit import Audit, ProducerAudit
from testbed.workload.records import WrittenRecords

LIKE = 1.02
"""A log's bytes for each byte of values."""


def environment_of(storage, recorder, *settings):
    settings = read_settings(find_experiment("s3-reassign"), "smoke", [f"storage={storage}", "size=150MB", *settings])
    testbed = SimpleNamespace(
        topology=find("s3"), bootstrap=("127.0.0.1:1",), driver_bootstrap=("127.0.0.1:1",), client_networks=dict
    )
    run_id = "20261122T080000Z-s3-reassign-abc123"
    context = SimpleNamespace(testbed=testbed, recorder=recorder, run_id=run_id, progress=print)
    setup = MoveSetup(layout(settings, ["b1", "b2"]), 0, "default", MidMoveAction(), storage=storage)
    return MoveEnvironment(context, setup, None)


def sizes(environment, each):
    return {tp: each for group in environment.layout.throttled for tp in group.tps()}


def sampled(recorder, environment):
    group = environment.layout.calibration
    each = round(group.bytes * LIKE / len(group.partitions))
    recorder.add([Sample(1, "b1", "log.bytes", float(each), tp.topic, tp.partition) for tp in group.tps()])


@pytest.mark.parametrize(
    ("storage", "total", "local"),
    [("disk", 4 * 7_000_000, 4 * 7_000_000), ("tiered", 153_000_000, 4 * 7_000_000), ("automq", 153_000_000, 0)],
)
def test_who_sends_how_much_by_where_the_logs_lie(storage, total, local):
    recorder = Recorder()
    environment = environment_of(storage, recorder)
    sampled(recorder, environment)
    found = sent_logs(environment, sizes(environment, 7_000_000))
    assert found == (Sent("b1", "b2", 4, pytest.approx(total, rel=1e-4), local),)


def test_a_store_has_as_long_to_get_a_log_as_its_size_needs(monkeypatch):
    """A leader's NIC of 200 Mbit/s carries 10 GB in 400 s."""
    waited = []
    monkeypatch.setattr(move_environment, "RemoteLog", lambda _bootstrap: nullcontext())
    monkeypatch.setattr(move_environment, "wait_local", lambda *_what, timeout_s: waited.append(timeout_s))
    for size in ("300MB", "10GB"):
        environment_of("tiered", Recorder(), f"size={size}").settle()
    assert waited == [pytest.approx(120 + 2 * 12), pytest.approx(120 + 2 * 400)]


def test_a_broker_that_joins_is_no_other_client_of_the_store(monkeypatch):
    environment, given = environment_of("tiered", Recorder()), []
    environment.setup = replace(environment.setup, joining=joining_brokers(find("s3"), 1))
    environment.testbed.plan = AddressPlan(3, find("s3").by_number)
    environment.testbed.hosts = {}
    monkeypatch.setattr(move_environment, "watch_other_clients", lambda *what: given.append(what[-1].hosts))
    environment.watch_store_clients()
    assert given == [("b1", "b2", "s1", "b3")]


def test_the_release_profile_of_a_cold_read_has_two_topics_to_upload_and_a_slow_store_takes_longer():
    settings = read_settings(find_experiment("cold-read"), "release", ["storage=tiered"])
    both, ready = cold_read.layout(settings, ["b1", "b2"]), find("s3")
    assert upload_s(both, ready) == pytest.approx(6e9 * 8 / 200e6)
    slow = ready.to_document()
    slow["hosts"]["s1"]["nic"] = {"rate": "100mbit"}
    assert upload_s(both, load_document(slow)) == pytest.approx(6e9 * 8 / 100e6)


def test_a_cold_read_has_as_long_as_its_size_needs_and_counts_what_was_read_while_it_was_measured(monkeypatch):
    settings = read_settings(find_experiment("cold-read"), "release", ["storage=tiered"])
    layout, recorder, waited = cold_read.layout(settings, ["b1", "b2"]), Recorder(), []
    testbed = SimpleNamespace(topology=find("s3"), bootstrap=("127.0.0.1:1",), client_networks=dict)
    environment = SimpleNamespace(
        layout=layout,
        fills=fills(layout.groups, 1),
        recorder=recorder,
        testbed=testbed,
        context=SimpleNamespace(run_id="20261122T080000Z-cold-read-abc123"),
        setup=SimpleNamespace(storage="tiered"),
    )
    monkeypatch.setattr(cold_read, "wait_for", lambda _look, _accept, timeout_s, *_rest: waited.append(timeout_s))
    consumer = cold_read.ColdConsumer(SimpleNamespace(environment=environment))
    recorder.add([Sample(1, cold_read.READER, "client.consume.records", 500.0)])
    consumer.after_move()
    recorder.add([Sample(2, cold_read.READER, "client.consume.records", 900.0)])  # it reads on, and nothing counts that
    assert waited == [pytest.approx(120 + 4 * 120)]
    assert (consumer.cold_read().records, consumer.cold_read().source) == (500, "store")


def test_a_log_that_was_not_seen_is_not_taken_for_an_empty_one():
    recorder = Recorder()
    environment = environment_of("tiered", recorder)
    sampled(recorder, environment)
    seen = sizes(environment, 7_000_000)
    del seen[TopicPartition(environment.layout.throttled[0].topic, 0)]
    assert sent_logs(environment, seen)[0].local_bytes is None


def test_a_load_that_rises_has_both_halves_with_producers_of_their_own():
    recorder = Recorder()
    environment = environment_of("disk", recorder)
    load = ClientLoad(("127.0.0.1:1",), environment.layout, "abc123", 1, recorder, rises=True)
    first, more = load._workload, load._more
    assert sum(spec.rate_bytes_per_s for spec in first._specs if hasattr(spec, "rate_bytes_per_s")) == 250_000
    assert sum(spec.rate_bytes_per_s for spec in more._specs) == 250_000
    assert more._first > len(first._specs)
    # The consumer gets the records of both halves, and must know the rules of both.
    assert first._others == more.envelopes
    producers = [number for number, spec in enumerate(more._specs, more._first)]
    assert sorted(more.envelopes) == producers
    assert not more.envelopes.keys() & first.envelopes.keys()
    assert not {spec.name for spec in first._specs} & {spec.name for spec in more._specs}


def test_the_records_of_a_probe_are_in_the_account_without_a_load_too(monkeypatch):
    environment = environment_of("automq", Recorder())
    account = ProducerAudit("handover-probe", 2, 1, 1, 0, 0, 0, 0, ())
    found = Audit(2, 1, 1, 0, 0, ("t-0: 1 of handover-probe lost",), producers=(account,))
    monkeypatch.setattr(move_environment, "reader", lambda _testbed, _admin: None)
    monkeypatch.setattr(move_environment, "audit", lambda *_what, **_how: found)
    records, live = environment.audit([WrittenRecords(900, "handover-probe", "t", 0, 2, 2)])
    assert [(each.name, each.lost) for each in live.audits] == [("handover-probe", 1)]
    assert environment.audit() == (records, None)


def test_the_steps_of_a_handover_count_from_the_request_and_not_from_what_the_driver_asks_before(monkeypatch):
    environment, given = environment_of("automq", Recorder()), []
    environment.layout, environment.admin = replace(environment.layout, throttled=()), FakeAdmin()
    watch = SimpleNamespace(start=lambda: None, finish=lambda _moves, asked_us, _probe, **_more: given.append(asked_us))
    monkeypatch.setattr(handover_timing, "Probe", lambda *_what: SimpleNamespace(stop=lambda: None))
    monkeypatch.setattr(handover_timing, "HandoverWatch", lambda _testbed: watch)
    monkeypatch.setattr(handover_timing, "run_alone", lambda *_what: None)
    monkeypatch.setattr(handover_timing, "now_us", lambda: 7)
    timing = handover_timing.HandoverTiming(SimpleNamespace(environment=environment))
    with timing.around_move():
        pass  # the cluster refused the plan
    with timing.around_move():
        environment.recorder.event("move.started", "move")
    assert given == [7, environment.recorder.events()[0].ts_us]


class FakeAdmin:
    """A cluster without topics."""

    def partitions(self, _topics):
        return {}


class QuietLoad(nullcontext):
    """A load without clients."""

    def warm(self):
        pass


def test_what_lies_on_disks_is_read_after_a_broker_has_joined_and_immediately_before_the_move(monkeypatch):
    """A broker joins for up to a minute, in which clients write to the partitions that move."""
    order = []

    class Arrival(RunActivity):
        def __init__(self, _run):
            pass

        def before_move(self):
            order.append("joined")

    def noting(what, answer=None):
        return lambda *_given: (order.append(what), answer)[1]

    recorder = Recorder()
    environment = SimpleNamespace(
        load=QuietLoad(),
        ids={"b1": 1},
        layout=SimpleNamespace(inbound_bytes_per_s=0.0, throttled=()),
        start_sampling=lambda: None,
        watch_store_clients=lambda: None,
        nics=lambda: (),
        joined_nics=lambda: (),
        end_sampling=lambda: None,
        sizes=noting("sizes", {}),
        audit=lambda _written, _readers: (None, None),
    )
    run = SimpleNamespace(
        environment=environment,
        preparation=SimpleNamespace(prepare=lambda: None, calibrate=lambda: 1.05),
        watch_logs=lambda: SimpleNamespace(allow=lambda *_allowed: None, logs=lambda: ()),
        transfer=noting("move", SimpleNamespace(done=Done(True, "seen"))),
    )
    monkeypatch.setattr(unthrottled_move, "unbatched_run", lambda _context, _setup, _admin: nullcontext(run))
    monkeypatch.setattr(unthrottled_move, "run_alone", lambda _environment, name, _seconds: order.append(name))
    monkeypatch.setattr(unthrottled_move, "sent_logs", lambda _environment, _sizes: ())
    testbed = SimpleNamespace(topology=find("s3"), admin=lambda: nullcontext(None))
    context = SimpleNamespace(recorder=recorder, testbed=testbed, progress=lambda _text: None)
    setup = SimpleNamespace(action=MidMoveAction(), storage="disk", joining=(), leaving="")
    found = run_unthrottled_move(context, setup, [Arrival])
    assert order == ["before", "joined", "sizes", "move", "after"]
    assert found.facts.done == Done(True, "seen")


def test_a_move_has_the_time_that_a_slow_uplink_and_a_load_need():
    """The runner waited for five times log size ÷ NIC: less than a slow uplink needs."""
    sent, nics = [Sent("b1", "b2", 1, 300_000_000, 300_000_000)], [SimpleNamespace(payload_bytes_per_s=48e6)]
    assert _timeout_s(sent, nics) == pytest.approx(90 + 5 * 300 / 48, abs=0.1)
    assert _timeout_s([replace(sent[0], partitions=2000)], nics) == pytest.approx(190 + 5 * 300 / 48, abs=0.1)
    uplink = Link.symmetric(10_000_000)
    assert _timeout_s(sent, nics, [uplink]) > 90 + 5 * 300 / 1.25
    assert _timeout_s(sent, nics, taken=0.8) == pytest.approx(90 + 5 * 300 / (0.2 * 48), abs=0.1)


def test_a_preload_has_as_long_as_its_bytes_need(monkeypatch):
    """It had five minutes, and followers two: a `preload` of an hour was written, and the run ended with an error."""
    settings = read_settings(find_experiment("kip73-bounce"), "ci", ["preload=1h"])
    testbed = SimpleNamespace(
        topology=find("three-brokers"),
        bootstrap=("127.0.0.1:1",),
        driver_bootstrap=("127.0.0.1:1",),
        client_networks=dict,
    )
    context = SimpleNamespace(
        testbed=testbed, recorder=Recorder(), run_id="20261122T080000Z-kip73-bounce-abc123", progress=lambda _text: None
    )
    setup = MoveSetup(one_of_two(settings, ("b1", "b2", "b3")), 4_000_000, "tuned", MidMoveAction())
    environment, given = MoveEnvironment(context, setup, None), []
    monkeypatch.setattr(move_environment, "preload", lambda *_what, timeout_s, **_how: given.append(timeout_s))
    monkeypatch.setattr(move_environment, "wait_for", lambda _look, _done, timeout_s, *_how: given.append(timeout_s))
    environment.preload(environment.fills)
    written = sum(fill.bytes for fill in environment.fills)
    assert written > 10e9
    followed = environment.layout.throttled[0].bytes
    assert given == [pytest.approx(300 + written / 10e6), pytest.approx(120 + 3 * 8 * followed / 400e6)]


def test_what_small_records_write_is_what_logs_grow_by():
    """Only values counted: with records of 64 B `copied-bytes` failed of a healthy Kafka."""
    given = ["inbound=4MB/s", "record-size=64B", "compression=lz4", "redundancy=0.5"]
    settings = read_settings(find_experiment("s3-reassign"), "ci", given)
    found = log_growth(layout(settings, ["b1", "b2"]), load_shape(settings, "record-size"))
    assert found == pytest.approx(5e6)
