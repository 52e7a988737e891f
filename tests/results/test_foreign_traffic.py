"""What else used a broker's NIC while data moved is named, and its bytes are not blamed on Kafka."""

from dataclasses import replace

import pyarrow as pa
import pytest

from results.contract.network import NetworkRecord, ShapingReading
from results.contract.schema import Sample, samples_table
from results.criteria import judge
from tests.results.judged import named, verdicts
from tests.results.synthetic import us

RATES = ("steady-mean", "nic-conservation", "broker-rate-agrees")
LABEL = "port 5001 with 198.19.0.1 port 41234"
NETWORK = NetworkRecord((ShapingReading("2026-11-21T18:15:08.000+00:00", "before"),))


def judged(run, *samples):
    table = pa.concat_tables([run.samples, samples_table(samples)])
    return judge(replace(run.manifest, network=NETWORK), table, run.events)


def found(judgement):
    return {c.host: c.why for c in named(judgement, "nic-unchanged") if c.verdict != "pass"}


def counter(host, metric, per_s):
    return [Sample(us(t), host, metric, 50.0 + per_s * t) for t in range(60)]


def connection(*seconds, host="b2"):
    return [Sample(us(t), host, "nic.foreign", 1.0, label=LABEL) for t in seconds]


def test_a_run_that_is_alone_on_its_nics_passes(make_run):
    judgement = judged(make_run(), *counter("b1", "nic.datagrams", 0.2), *connection(-4, 69))
    assert judgement.verdict == "pass"
    assert found(judgement) == {}


@pytest.mark.parametrize(
    ("samples", "why"),
    [
        (connection(4, 5, 6), f"b2: {LABEL} in 3 readings, first at +4.0 s: not the testbed's"),
        (counter("b2", "nic.datagrams", 500.0), " messages of ICMP or UDP: not the testbed's"),
    ],
    ids=["a connection", "datagrams"],
)
def test_bytes_that_came_with_something_else_leave_rates_open_by_name(make_run, samples, why):
    run = make_run(nic_counter_factor=1.2)
    assert "fail" in verdicts(judged(run), "nic-conservation")
    judgement = judged(run, *samples)
    assert set(found(judgement)) == {"b2"} and why in found(judgement)["b2"]
    assert verdicts(judgement, *RATES) == {"inconclusive"}
    assert judgement.verdict == "inconclusive"


def test_what_a_broker_counts_as_its_clients_may_be_copies_and_excuses_nothing(make_run):
    run = make_run(nic_counter_factor=1.2)
    judgement = judged(run, *counter("b2", "broker.bytes_out", 2e6), *counter("b2", "broker.bytes_in", 2e6))
    assert found(judgement) == {} and "fail" in verdicts(judgement, "nic-conservation")


def test_some_messages_on_a_nic_that_is_almost_idle_are_nothing(make_run):
    idle = [Sample(us(t), "b3", metric, 100.0 * t) for t in range(60) for metric in ("nic.rx.bytes", "nic.tx.bytes")]
    run = make_run()
    manifest = replace(run.manifest, move=replace(run.manifest.move, brokers=("b1", "b2", "b3")), network=NETWORK)
    samples = pa.concat_tables([run.samples, samples_table([*idle, *counter("b3", "nic.datagrams", 1.0)])])
    assert found(judge(manifest, samples, run.events)) == {}
