import json
import threading
from dataclasses import replace

import pytest

from testbed.errors import TestbedError
from testbed.hosts import CommandResult
from testbed.network.addresses import AddressPlan
from testbed.network.measure import ByteCount, LinkRate, measure_uplinks, uplink_flows
from testbed.network.shape import payload_bytes_per_s
from testbed.topology import loads
from testbed.topology.find import find
from testbed.topology.links import Nic

NARROW = find("two-racks-narrow-uplink")


def topology(uplink: str, *nics: str):
    hosts = "".join(
        f"  b{n}: {{role: {'both' if n == 1 else 'broker'}, rack: r1, nic: {nic}}}\n" for n, nic in enumerate(nics, 1)
    )
    racks = f"racks: {{r1: {{uplink: {uplink}}}, r2: {{uplink: {{rate: 1mbit}}}}}}"
    return loads(f"name: t\nkafka: {{version: 4.3.1}}\n{racks}\nhosts:\n{hosts}")


class Flows:
    """What senders do: each goes on until the receivers are gone; with `short` it ends by itself."""

    def __init__(self, told, *, short=False):
        self.told, self.short, self.counted = told, short, []
        self._changed = threading.Condition()
        self._sending = self._ended = 0
        self._cut = False

    def receive(self):
        self._cut = False

    def send(self):
        with self._changed:
            self._sending += 1
            self._changed.notify_all()
            assert self._changed.wait_for(lambda: self._cut or self.short, timeout=10)
            self._sending, self._ended = self._sending - 1, self._ended + 1
            self._changed.notify_all()

    def count(self, words):
        self.counted.append(words)
        with self._changed:
            assert self._changed.wait_for(lambda: (self._ended if self.short else self._sending) == 2, timeout=10)
        return json.dumps(self.told)

    def cut(self):
        with self._changed:
            self._cut = True
            self._changed.notify_all()


class FakeShell:
    """A host, or the fabric."""

    def __init__(self, name, world):
        self.name, self.world = name, world

    def run(self, command, *, timeout_s=60.0, check=True, stdin=b""):
        del timeout_s, check, stdin
        if isinstance(command, str):
            self.world.cut()
        elif command[0] == "python3":
            return CommandResult("", 0, self.world.count(json.loads(command[-1])), "", 0.0)
        elif command[1] == "-c":
            self.world.send()
            return CommandResult("", 1, "cut off", "", 0.0)
        else:
            self.world.receive()
        return CommandResult("", 0, "", "", 0.0)


def test_each_reading_lies_between_two_looks_at_the_clock():
    counted = ByteCount.between((10.0, 1_000, 10.002), (12.0, 26_000, 12.004))
    assert (counted.bytes, counted.seconds) == (25_000, pytest.approx(2.001))
    assert counted.unsure_s == pytest.approx(0.003)  # 1.998 s at least, 2.004 s at most


def test_every_nic_of_the_rack_takes_part():
    assert [(f.host.name, f.at, f.rate_bps, f.offered_bps) for f in uplink_flows(NARROW, "right", "transmit")] == [
        ("b3", "port2", 400_000_000, 0),
        ("b4", "port3", 400_000_000, 0),
    ]
    two = topology("{rate: 1gbit}", "{rate: 100mbit}")
    more = replace(two, hosts=(replace(two.hosts[0], more_nics=(replace(Nic.symmetric(200_000_000), name="repl0"),)),))
    assert [(f.nic, f.at, f.rate_bps) for f in uplink_flows(more, "r1", "receive")] == [
        (0, "port0", 100_000_000),
        (1, "port0n1", 200_000_000),
    ]


def test_datagrams_fill_what_delay_and_loss_would_leave_in_shares_as_the_nics_are():
    far = topology("{rate: 80mbit, delay: 10ms, loss: 50%}", "{rate: 300mbit}", "{rate: 100mbit}")
    assert [flow.offered_bps for flow in uplink_flows(far, "r1", "receive")] == [132_000_000, 44_000_000]
    slow = topology("{rate: 1gbit, delay: 10ms}", "{rate: 300mbit}", "{rate: 100mbit}")
    assert [flow.offered_bps for flow in uplink_flows(slow, "r1", "receive")] == [330_000_000, 110_000_000]


def test_an_uplink_is_judged_by_what_its_hosts_can_send():
    rate = LinkRate("rack r1", "uplink", "transmit", 10**9, payload_bytes_per_s(8e8), 0.8, 2.0, 8 * 10**8)
    assert rate.as_declared
    assert not replace(rate, reach_bps=10**9).as_declared
    assert not replace(rate, ratio=1.01).as_declared


def measured(world):
    """Measure the uplink of `left`, behind which are b1 and b2."""
    one = replace(NARROW, uplinks={"left": NARROW.uplinks["left"]})
    hosts = {host.name: FakeShell(host.name, world) for host in one.hosts}
    return measure_uplinks(one, AddressPlan(0, tuple(hosts)), hosts, {"": FakeShell("fabric", world)})


def test_frames_are_counted_where_they_leave_the_uplink():
    world = Flows({"idle": [], "looks": [[0.0, 0, 0.0], [2.0, 25_000_000, 2.0]]})
    found = measured(world)
    # Both flows have begun, and what may pass at once (16 KiB) has passed.
    assert [words[:2] for words in world.counted] == [
        [[["port0", "rx", 16384], ["port1", "rx", 16384], ["dn0", "rx", 3 * 16384]], ["dn0", "rx"]],
        [[["port0", "tx", 16384], ["port1", "tx", 16384], ["up0", "rx", 3 * 16384]], ["up0", "rx"]],
    ]
    assert [(each.place, each.device, each.direction) for each in found] == [
        ("rack left", "uplink", "transmit"),
        ("rack left", "uplink", "receive"),
    ]
    # 100 Mbit/s of frames: what is declared, however many flows they are of.
    assert [each.ratio for each in found] == [pytest.approx(1.0)] * 2


def test_a_flow_that_ended_too_early_is_no_measurement():
    world = Flows({"idle": [], "looks": [[0.0, 0, 0.0], [2.0, 25_000_000, 2.0]]}, short=True)
    with pytest.raises(TestbedError, match="b1: its flow over the uplink dn0 ended before it was measured: cut off"):
        measured(world)


def test_a_flow_that_never_began_is_told():
    with pytest.raises(TestbedError, match="dn0: after 10 s too little had passed at port1"):
        measured(Flows({"idle": ["port1"], "looks": []}))
