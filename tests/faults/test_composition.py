"""Several faults at once: each leaves what the others make of it, in whatever order they are healed."""

import itertools
from dataclasses import replace
from types import SimpleNamespace

import pytest

from testbed.faults import Faults, as_text, devices, parse_fault
from testbed.faults.devices import Device, cut_lines, program, reshape_lines
from testbed.faults.network import network, shapes
from testbed.network.addresses import AddressPlan
from testbed.network.fabric import driver_device
from testbed.network.shape import Shape, tc_lines
from testbed.topology import Impairment, loads
from tests.faults.fakes import RACKS, THREE, declared, slow

SETS = [
    ["nic-rate host=b2 rate=50mbit direction=receive", "nic-rate host=b2 rate=80mbit"],
    ["nic-rate host=b2 rate=50mbit", "nic-down host=b2", "nic-cut hosts=b2 peers=b1,b3"],
    ["nic-cut hosts=b1 peers=b2", "nic-cut hosts=b1,b3 peers=b2 direction=transmit", "nic-down host=b3"],
    ["uplink-rate rack=r1 rate=50mbit", "uplink-rate rack=r1 rate=20mbit", "uplink-cut rack=r1"],
    ["broker-pause host=b4", "broker-kill host=b4", "cpu-limit host=b4 cpus=0.5", "cpu-limit host=b4 cpus=0.2"],
    ["quota-alter brokers=b1,b2 rate=1MB/s", "quota-alter brokers=b2,b3 rate=2MB/s", "nic-rate host=b3 rate=1mbit"],
]


@pytest.mark.parametrize("texts", SETS, ids=lambda texts: " + ".join(t.split()[0] for t in texts))
def test_healing_in_any_order_ends_at_the_declared_baseline(racks, texts):
    for order in itertools.permutations(range(len(texts))):
        faults = Faults(racks)
        ids = [faults.add(parse_fault(text)) for text in texts]
        for index in order:
            faults.clear(ids[index])
        assert racks.snapshot() == declared(racks), order


@pytest.mark.parametrize("texts", SETS[:4], ids=lambda texts: " + ".join(t.split()[0] for t in texts))
def test_what_remains_is_what_the_remaining_faults_alone_would_make(racks, texts):
    for gone in range(len(texts)):
        faults = Faults(racks)
        ids = [faults.add(parse_fault(text)) for text in texts]
        faults.clear(ids[gone])
        remaining = racks.kernel.all()
        faults.clear()
        for text in texts[:gone] + texts[gone + 1 :]:
            faults.add(parse_fault(text))
        assert racks.kernel.all() == remaining
        faults.clear()


def test_two_rates_on_one_nic_compose_over_the_declared_shape(racks):
    declared_shapes = dict(racks.kernel.shapes)
    faults = Faults(racks)
    faults.add(parse_fault("nic-rate host=b2 rate=50mbit direction=receive"))
    lower = faults.add(parse_fault("nic-rate host=b2 rate=20mbit"))
    sends, receives = Device("b2", "data0"), Device("", "port1")
    assert racks.kernel.shapes[receives] == slow(declared_shapes[receives], 20_000_000, 16384)
    # Delay is the topology's, and stays.
    assert racks.kernel.shapes[sends].rate_bps == 20_000_000
    assert racks.kernel.shapes[sends].impairment.delay_us == 5000
    faults.clear(lower)
    assert racks.kernel.shapes[receives] == slow(declared_shapes[receives], 50_000_000, 16384)
    assert racks.kernel.shapes[sends] == declared_shapes[sends]


@pytest.mark.parametrize(
    "text",
    [
        "nic-rate host=b4 rate=50mbit",
        "nic-down host=b4",
        "nic-cut hosts=b1 peers=b2,b4",
        "nic-cut hosts=b4",
        "broker-kill host=b4",
        "cpu-limit host=b4 cpus=0.25",
        "disk-full host=b4",
        "quota-alter brokers=b1,b4 rate=1MB/s",
    ],
)
def test_the_faults_of_a_host_that_has_left_hinder_no_other_and_are_cleared(racks, monkeypatch, text):
    """Each later change of faults ended in a traceback (KeyError), so nothing could be healed any more."""
    monkeypatch.setattr(type(parse_fault(text)), "verify", lambda _fault, _testbed: None)
    faults = Faults(racks)
    faults.add(parse_fault(text))
    racks.topology = racks.topology.without_host("b4")
    lower = faults.add(parse_fault("nic-rate host=b1 rate=50mbit"))
    assert racks.kernel.shapes[Device("b1", "data0")].rate_bps == 50_000_000
    faults.clear(lower)
    assert racks.kernel.shapes[Device("b1", "data0")].rate_bps == 400_000_000
    faults.clear()
    assert faults.list() == ()
    assert set(racks.kernel.lost) <= {"port3", "port3n1"}  # the links of b4 went with it
    assert not any(racks.cluster.configs.get(each) for each in racks.cluster.configs if each.name == "1")


def rejoined(testbed, whole):
    """Have b4 join: its links are new, as declared, without a filter."""
    testbed.topology = whole
    ends = {"port3", "port3n1"}
    for device, shape in shapes(whole).items():
        if device.host == "b4" or device.name in ends:
            testbed.kernel.shapes[device] = shape
    testbed.kernel.down -= ends
    testbed.kernel.lost = {device: lost for device, lost in testbed.kernel.lost.items() if device not in ends}


@pytest.mark.parametrize(
    "text",
    [
        "nic-rate host=b4 rate=50mbit",
        "nic-impair host=b4 corrupt=1%",
        "nic-down host=b4",
        "nic-cut hosts=b1 peers=b2,b4",
        "nic-cut hosts=b4",
    ],
)
def test_a_host_that_leaves_and_joins_again_has_the_faults_of_the_network(racks, text):
    """Its new links had none, while the list of active faults had them."""
    faults, whole = Faults(racks), racks.topology
    faults.add(parse_fault(text))
    during = racks.kernel.all()
    racks.topology = whole.without_host("b4")
    rejoined(racks, whole)
    assert racks.kernel.all() != during
    faults.host_joined("b4")
    assert racks.kernel.all() == during
    assert [as_text(entry.fault) for entry in faults.list()] == [text]
    faults.clear()
    assert racks.snapshot() == declared(racks)


def test_a_new_host_is_on_the_other_side_of_a_cut_from_all_others(racks):
    faults, whole = Faults(racks), racks.topology
    racks.topology = whole.without_host("b4")
    faults.add(parse_fault("nic-cut hosts=b1"))
    assert not {"port3", "port3n1"} & set(racks.kernel.lost)
    rejoined(racks, whole)
    faults.host_joined("b4")
    b1, b4 = ({racks.plan.data_ip(host, n) for n, _nic in enumerate(whole.host(host).nics)} for host in ("b1", "b4"))
    assert racks.kernel.lost["port3"] == racks.kernel.lost["port3n1"] == b1
    assert b4 < racks.kernel.lost["port0"]
    faults.clear()
    assert racks.snapshot() == declared(racks)


@pytest.mark.parametrize("text", ["broker-kill host=b4", "cpu-limit host=b4 cpus=0.25", "disk-full host=b4"])
def test_a_fault_of_a_process_a_limit_or_a_disk_is_gone_with_its_host(racks, monkeypatch, text):
    """It was listed as active on the host that joined, which has a container without it."""
    monkeypatch.setattr(type(parse_fault(text)), "verify", lambda _fault, _testbed: None)
    faults, whole = Faults(racks), racks.topology
    faults.add(parse_fault(text))
    other = faults.add(parse_fault("cpu-limit host=b2 cpus=0.5"))
    racks.topology = whole.without_host("b4")
    rejoined(racks, whole)
    faults.host_joined("b4")
    assert [entry.id for entry in faults.list()] == [other]


UNEQUAL = loads(
    """
name: unequal
racks: {r1: {uplink: {tx_rate: 100mbit, rx_rate: 1gbit}}, r2: {}}
kafka: {version: 4.3.1}
defaults: {nic: {tx_rate: 100mbit, rx_rate: 400mbit}}
hosts: {b1: {role: both, rack: r1}, b2: {role: broker, rack: r2}}
"""
)


def test_a_rate_between_two_declared_ones_slows_the_faster_direction_alone():
    """It was refused: *would slow nothing down: b1 has 100mbit*."""
    for text, faster in (("nic-rate host=b1 rate=200mbit", "port0"), ("uplink-rate rack=r1 rate=200mbit", "dn0")):
        fault = parse_fault(text)
        fault.check(UNEQUAL)
        before, now = shapes(UNEQUAL), shapes(fault.reshaped(UNEQUAL))
        changed = {device: shape.rate_bps for device, shape in now.items() if before[device] != shape}
        assert changed == {Device("", faster): 200_000_000}


def test_an_uplink_without_a_rate_has_none_again(racks):
    faults = Faults(racks)
    up, down = Device("", "up1"), Device("", "dn1")
    with faults.injected(parse_fault("uplink-rate rack=r2 rate=50mbit")):
        assert {racks.kernel.shapes[up].rate_bps, racks.kernel.shapes[down].rate_bps} == {50_000_000}
        with faults.injected(parse_fault("uplink-rate rack=r1 rate=150mbit")):
            pass
        assert racks.kernel.single_frames  # the other rack's queue is as short as before
    assert {up, down} & set(racks.kernel.shapes) == set()
    assert not racks.kernel.single_frames


def test_every_nic_of_a_host_or_one_of_them(racks):
    faults = Faults(racks)
    with faults.injected(parse_fault("nic-down host=b4")):
        assert racks.kernel.down == {"port3", "port3n1"}
    with faults.injected(parse_fault("nic-down host=b4 nic=repl0")):
        assert racks.kernel.down == {"port3n1"}


def test_a_cut_one_way_filters_where_the_sender_enters():
    plan = AddressPlan(0, tuple(host.name for host in THREE.hosts))
    cut = network(THREE, plan, [parse_fault("nic-cut hosts=b1 peers=b2,b3 direction=transmit")])
    assert cut.lost == {"port0": {plan.data_ip("b2"), plan.data_ip("b3")}}
    cut = network(THREE, plan, [parse_fault("nic-cut hosts=b1 peers=b2,b3 direction=receive")])
    assert cut.lost == {"port1": {plan.data_ip("b1")}, "port2": {plan.data_ip("b1")}}


def test_a_cut_is_of_every_nic():
    plan = AddressPlan(0, tuple(host.name for host in RACKS.hosts))
    cut = network(RACKS, plan, [parse_fault("nic-cut hosts=b4 peers=b1")])
    assert {device: len(addresses) for device, addresses in cut.lost.items()} == {"port0": 2, "port3": 1, "port3n1": 1}


def run_program(code, frame):
    """A classic BPF machine, as much of it as a cut needs."""
    value, at = 0, 0
    while True:
        kind, yes, no, operand = code[at]
        if kind == 6:
            return operand
        if kind == 21:
            at += 1 + (yes if value == operand else no)
            continue
        value = int.from_bytes(frame[operand : operand + (2 if kind == 40 else 4)])
        at += 1


@pytest.mark.parametrize("count", [1, 2, 7, 250])
def test_the_filter_drops_exactly_what_is_for_these_addresses(count):
    plan = AddressPlan(0, ())
    addresses = [plan.data[number] for number in range(1, count + 1)]
    code = program(addresses)
    assert all(0 <= jump < 256 for _code, yes, no, _operand in code for jump in (yes, no))

    def frame(ethertype, address):
        return bytes(12) + ethertype.to_bytes(2) + bytes(16) + address.packed + bytes(40)

    assert {run_program(code, frame(0x0800, address)) for address in addresses} == {2}
    assert run_program(code, frame(0x0800, plan.data[251])) == 0xFFFFFFFF
    assert run_program(code, frame(0x0806, addresses[0])) == 0xFFFFFFFF


def test_a_filter_has_room_for_a_testbeds_hosts():
    with pytest.raises(ValueError, match="251 addresses; a program's jumps reach over 250"):
        program([AddressPlan(0, ()).data[number] for number in range(251)])


def test_a_cut_leaves_the_root_qdisc_alone():
    assert all(" root" not in line for line in cut_lines("port0", [AddressPlan(0, ()).driver]))


def test_a_rate_is_changed_in_place_where_the_tree_stands():
    shape = Shape(50_000_000, 16384)
    assert all(" root " not in line for line in reshape_lines("data0", replace(shape, rate_bps=1), shape))
    for other in (None, replace(shape, foreign=("qdisc pfifo 8001:",)), replace(shape, impairment=Impairment(5000))):
        assert reshape_lines("data0", other, shape) == tc_lines("data0", shape)


def test_a_nic_that_a_fault_makes_slow_gets_single_frames_and_many_again_after_it(monkeypatch):
    """A queue of 64 KiB drops a packet of 64 KiB whole: one connection had 8 % of 10 mbit."""
    applied = []
    monkeypatch.setattr(devices, "apply", lambda script, place=None: applied.append((place, script.ip)))
    monkeypatch.setattr(devices, "read_shape", lambda name, place: None)
    state = SimpleNamespace(machines={})
    testbed = SimpleNamespace(name="three", places=lambda: {"": 1, "b1": 11}, state=state, topology=THREE)
    found = devices.Devices(testbed)
    for device, shape in (
        (Device("b1", "data0"), Shape(10_000_000, 16384)),
        (Device("b1", "data0"), Shape(400_000_000, 51200)),
        (Device("", "port0"), Shape(10_000_000, 16384)),
    ):
        found.set_shape(device, shape)
    line = "link set dev data0 gso_max_segs {}"
    assert applied == [(11, (line.format(1),)), (11, (line.format(65535),)), (1, ())]
    applied.clear()
    for single in (True, False):
        found.hand_frames(single=single)
    line = f"link set dev {driver_device('three')} gso_max_segs {{}}"
    assert applied == [(None, (line.format(1),)), (None, (line.format(65535),))]
