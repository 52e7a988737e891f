import json
from types import SimpleNamespace

import pytest

from testbed.errors import TestbedError
from testbed.hosts import CommandResult
from testbed.network.flow import FlowEnd, FlowSettings, payload_rate, received_bytes_per_s, send
from testbed.network.transfers import FABRIC, transfers
from testbed.topology import loads


def topology(*nics: str):
    hosts = "".join(
        f"  b{n}: {{role: {'both' if n == 1 else 'broker'}, nic: {nic}}}\n" for n, nic in enumerate(nics, 1)
    )
    return loads(f"name: t\nkafka: {{version: 4.3.1}}\nhosts:\n{hosts}")


def measured(found):
    return sorted(end for transfer in found for end in transfer.measures)


def every_end(count: int):
    return sorted((f"b{n}", way) for n in range(1, count + 1) for way in ("transmit", "receive"))


def test_alike_hosts_are_measured_around_a_ring_once_each_way():
    found = transfers(topology(*["{rate: 400mbit}"] * 3))
    assert len(found) == 3
    assert measured(found) == every_end(3)


def test_a_faster_end_is_never_judged_by_a_slower_partner():
    found = transfers(topology("{rate: 100mbit}", "{rate: 400mbit}"))
    assert measured(found) == every_end(2)
    for transfer in found:
        if ("b2", "transmit") in transfer.measures or ("b2", "receive") in transfer.measures:
            assert FABRIC in (transfer.source, transfer.target)


def test_asymmetric_rates_are_paired_by_direction():
    found = transfers(topology("{tx_rate: 100mbit, rx_rate: 200mbit}", "{tx_rate: 200mbit, rx_rate: 100mbit}"))
    assert len(found) == 2
    assert measured(found) == every_end(2)


def test_a_single_host_is_measured_against_the_fabric():
    found = transfers(topology("{rate: 100mbit}"))
    assert [(t.source, t.target) for t in found] == [("b1", FABRIC), (FABRIC, "b1")]


def test_no_transfer_goes_over_an_uplink():
    topology_ = loads(
        "{name: t, kafka: {version: 4.3.1}, racks: [r1, r2], defaults: {nic: {rate: 1mbit}}, hosts: {"
        "b1: {role: both, rack: r1}, b2: {role: broker, rack: r1}, b3: {role: broker, rack: r2}}}"
    )
    found = transfers(topology_)
    assert [(t.source, t.target) for t in found] == [("b1", "b2"), ("b2", "b1"), ("b3", FABRIC), (FABRIC, "b3")]
    assert measured(found) == every_end(3)


def test_each_nic_is_measured():
    found = transfers(topology(*["{rate: 400mbit}"] * 2))
    two = loads(
        "{name: t, kafka: {version: 4.3.1}, defaults: {nics: {a: {rate: 1mbit}, b: {rate: 2mbit, use: replication}}},"
        " hosts: {b1: {role: both}, b2: {role: broker}, l1: {role: client, nics: {c: {rate: 1mbit}}}}}"
    )
    assert measured([t for t in transfers(two) if t.nic == 1]) == measured(found) == every_end(2)
    assert {host for host, _way in measured([t for t in transfers(two) if t.nic == 0])} == {"b1", "b2", "l1"}


def test_what_one_tcp_connection_could_not_fill_is_filled_with_datagrams():
    far = transfers(topology("{rate: 100mbit, delay: 20ms, loss: 50%}", "{rate: 100mbit}"))
    assert [transfer.offered_bps for transfer in far] == [220_000_000, 220_000_000]
    assert all(transfer.offered_bps == 0 for transfer in transfers(topology("{rate: 100mbit}", "{rate: 100mbit}")))


def test_what_may_pass_at_once_is_no_part_of_what_is_measured():
    found = transfers(topology("{rate: 100mbit}", "{rate: 3mbit}", "{tx_rate: 50mbit, rx_rate: 200mbit, burst: 1MB}"))
    assert {transfer.seconds for transfer in found} == {2.0}


def test_a_slow_nic_is_measured_for_a_hundred_frames():
    (there, back) = transfers(topology("{rate: 64kbit}", "{rate: 64kbit}"))
    assert there.seconds == back.seconds == 19  # 18.9: iperf3 reads whole seconds only, and drops the rest


def test_iperf3_gets_whole_seconds_and_no_fewer_than_asked_for():
    asked = []

    def run(command, **_rest):
        asked.append(command)
        return CommandResult("iperf3", 0, "{}", "", 0.0)

    end = FlowEnd(SimpleNamespace(name="b1", run=run), "198.19.0.11", "data0")
    send(end, end, 5201, FlowSettings(2.4))
    assert asked[0][asked[0].index("-t") + 1] == "3"


BUSY = json.dumps({"start": {}, "intervals": [], "end": {"streams": []}})


def reporting(report):
    """An end of a flow whose iperf3 prints this report and ends with status 0."""
    return SimpleNamespace(name="b1", run=lambda command, **_settings: CommandResult(str(command), 0, report, "", 0.0))


def test_the_rate_of_a_flow_is_what_its_receiver_counted():
    assert received_bytes_per_s(json.dumps({"end": {"sum_received": {"bits_per_second": 8e6}}})) == 1e6


@pytest.mark.parametrize(
    ("report", "why"),
    [
        (BUSY, r"no count of the receiver \(end.sum_received\); the machine may be too busy"),
        (json.dumps({"end": {"sum_received": None}}), "no count of the receiver"),
        (json.dumps([]), "no count of the receiver"),
        (json.dumps({"end": {}, "error": "control socket has closed"}), "iperf3 said: control socket has closed"),
        ("", "is no JSON"),
    ],
)
def test_a_report_without_the_receivers_count_is_an_error_of_one_line_that_names_both_ends(report, why):
    end = FlowEnd(reporting(report), "198.19.0.1", "data0")
    with pytest.raises(TestbedError, match=f"^the flow from b1 to b1 has no rate: iperf3's report .*{why}") as failed:
        payload_rate(end, end, FlowSettings(2.0))
    assert "\n" not in str(failed.value)
