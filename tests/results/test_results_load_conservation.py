"""NIC conservation under load: copies, clients' records and TCP's answers, simulated on two brokers."""

from dataclasses import replace

import numpy as np
import pytest

from results.contract.manifest import Flow
from results.contract.schema import Event, Sample, events_table, samples_table
from results.criteria import load_conservation
from results.criteria.catalogue.nic_conservation import CRITERION, judge_loaded
from results.criteria.load_conservation import measure_loaded_nics
from results.criteria.run_view import RunView
from results.criteria.sample_series import RunSeries
from tests.results.moves import simulate
from tests.results.scenes import two_node
from tests.results.synthetic import us

COPIED, CLIENT, ACK = 1.05, 1.11, 0.01
CALIBRATED, MOVED, WRITTEN = 64e6, 200e6, 0.5e6
PLAIN = simulate(two_node(0.5e6, size=200e6))
CALIBRATION = Flow("calibration", "calibration", (0,), "b1", "b2")
MANIFEST = replace(
    PLAIN.manifest,
    move=replace(PLAIN.manifest.move, nic_bytes_per_log_byte=COPIED, flows=(*PLAIN.manifest.move.flows, CALIBRATION)),
)
EVENTS = [
    Event(us(at), kind)
    for at, kind in (
        (-18.0, "calibration.started"),
        (-16.0, "calibration.done"),
        (-8.0, "load.before"),
        (0.0, "move.started"),
        (30.0, "move.done"),
    )
]


def samples(*, unlogged=0.0, doubled=0.0, stop_s=40.0, without=()):
    """Both brokers, once a second. Of the move's bytes `unlogged` reach no log, and `doubled` no counter of Kafka's."""
    found = []
    for t in np.arange(-20.0, stop_s, 0.99):
        calibrated = float(np.clip((t + 18) / 2, 0, 1)) * CALIBRATED
        moved = float(np.clip(t / 29, 0, 1)) * MOVED
        written = WRITTEN * max(0.0, t + 12)
        copies = calibrated + moved * (1 + doubled)
        sent = {"b1": copies * COPIED + written * CLIENT, "b2": 0.0}
        received = {"b1": written * CLIENT, "b2": copies * COPIED}
        for host in ("b1", "b2"):
            rows = {
                "nic.tx.bytes": sent[host] + ACK * received[host],
                "nic.rx.bytes": received[host] + ACK * sent[host],
                "broker.bytes_in": written if host == "b1" else 0.0,
                "broker.bytes_out": written if host == "b1" else 0.0,
                "broker.replication.bytes_out": calibrated + moved if host == "b1" else 0.0,
                "broker.replication.bytes_in": calibrated + moved if host == "b2" else 0.0,
            }
            for metric, value in rows.items():
                if metric not in without:
                    label = "data0" if metric.startswith("nic") else None
                    found.append(Sample(us(t), host, metric, float(int(value)), label=label))
            logs = {"kip73": 5e7 + written} if host == "b1" else {}
            if host == "b2":
                logs = {"kip73": moved * (1 - unlogged)} if t > 0 else {}
                logs |= {"calibration": calibrated} if t > -18 else {}
            found += [
                Sample(us(t), host, "log.bytes", float(int(size)), topic=topic, partition=0)
                for topic, size in logs.items()
            ]
    return samples_table(found)


def judged(table, events=EVENTS):
    series = RunSeries(table, events_table(list(events)))
    found = judge_loaded(measure_loaded_nics(MANIFEST, series, MANIFEST.move))
    return {(each.host, each.direction): each for each in found}


def test_copies_clients_and_answers_are_what_the_nics_counted():
    found = judged(samples())
    assert {end: each.verdict for end, each in found.items()} == dict.fromkeys(
        [("b1", "transmit"), ("b1", "receive"), ("b2", "transmit"), ("b2", "receive")], "pass"
    )
    assert found["b1", "transmit"].observed == pytest.approx(1.0, abs=0.003)
    assert found["b2", "receive"].observed == pytest.approx(1.0, abs=0.003)
    assert "of copies and 15" in found["b1", "transmit"].why


def test_bytes_that_reach_no_log_fail_where_they_are_received():
    found = judged(samples(unlogged=0.06))
    assert {end for end, each in found.items() if each.verdict == "fail"} == {("b2", "receive")}
    assert found["b2", "receive"].observed > 1.05


def test_bytes_that_the_broker_does_not_count_fail_both_ways():
    found = judged(samples(doubled=0.06))
    assert {end for end, each in found.items() if each.verdict == "fail"} == {("b1", "transmit"), ("b2", "receive")}


def test_the_tolerance_is_that_of_copies_clients_and_tcp():
    transmit = judged(samples())["b1", "transmit"]
    copies, clients = MOVED * COPIED, WRITTEN * 30
    wanted = (
        0.03 * copies + (CLIENT + ACK * CLIENT - 1514 / 1448) * clients + 0.0109 * (clients * CLIENT + 0.01 * copies)
    )
    # Background: 15 kB/s, and 0.3 kB/s of each partition, on two brokers; from the reading before to the one after.
    background = (15e3 + 1e3 + 300 * 9) * 30.69
    expected = copies + clients * CLIENT
    least, most = (100 * bytes / expected for bytes in (wanted, wanted + background))
    assert transmit.tolerance.startswith(f"- {least:.1f} %, + {most:.1f} %: ± 3.0 % of copies")


def test_a_slow_move_hides_no_second_copy(monkeypatch):
    monkeypatch.setattr(load_conservation, "background_bytes", lambda _move, seconds: 8e6 * seconds)
    found = judged(samples())
    assert {end for end, each in found.items() if each.verdict == "inconclusive"} == {
        ("b1", "transmit"),
        ("b2", "receive"),
    }
    assert "bytes that came twice would not be seen" in found["b1", "transmit"].why


@pytest.mark.parametrize(
    ("table", "events", "why"),
    [
        (samples(), EVENTS[2:], "the calibration transfer gave no overhead of the wire"),
        (samples(), EVENTS[:2] + EVENTS[3:], "the load did not run alone before the move"),
        (samples(stop_s=25.0), EVENTS, "was not sampled from the move's start past its end"),
        (samples(), EVENTS[:-1], "was not sampled from the move's start past its end"),
        (samples(without=("broker.bytes_in",)), EVENTS, "broker.bytes_in or the NICs were not sampled"),
        (samples(without=("broker.replication.bytes_out",)), EVENTS, "was not counted by its broker"),
    ],
)
def test_what_is_not_known_is_named(table, events, why):
    found = judged(table, events)
    assert {each.verdict for each in found.values()} == {"inconclusive"}
    assert all(why in each.why for each in found.values())


def test_a_run_without_load_is_judged_by_its_flows():
    idle = replace(MANIFEST, facts=replace(MANIFEST.facts, live=None))
    ways = [
        {(f.host, f.direction) for f in CRITERION.findings(RunView(each, samples(), events_table(EVENTS)))}
        for each in (idle, MANIFEST)
    ]
    assert ways[0] == {("b1", "transmit"), ("b2", "receive")}
    assert ways[1] == {*ways[0], ("b2", "transmit"), ("b1", "receive")}
