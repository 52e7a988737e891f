"""Measurement of NICs and uplinks: the rate of each in each direction, before a run is judged with it.

All NICs of a rack fill its uplink together. The sum of the flows' rates is not the uplink's rate, because flows do
not begin and end together. A flow that is alone for 80 ms of 2 s then has the whole uplink (sums of 1.04 were
measured). So the flows outlast the measurement, and frames are counted where they leave the uplink.

A NIC that carries other traffic cannot be measured: `wait_idle` waits until none does.
"""

import json
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace

from testbed.errors import TestbedError
from testbed.hosts import Shell
from testbed.network.addresses import AddressPlan
from testbed.network.apply import Place, shell_of
from testbed.network.fabric import CORE, port, switch_of, switches
from testbed.network.flow import PORT, FlowEnd, FlowSettings, payload_rate, receiver, send
from testbed.network.overlay import fabric_place, machines_of
from testbed.network.shape import FULL_MTU, payload_bytes_per_s
from testbed.network.transfers import BEFORE_S, FABRIC, Transfer, measure_s, offered_bps, transfers
from testbed.topology.host import DeclaredHost
from testbed.topology.links import Direction, Side
from testbed.topology.model import Topology
from testbed.wait import wait_for

LinkDirection = tuple[str, str, Direction]
"""One link in one direction: place, device, direction."""
TRIES = 6
"""When other machines took this one's CPU, a NIC read 0.86 to 0.90 three times within half a minute, then 0.99."""
LOWEST, HIGHEST = 0.95, 1.02
"""A link outside this share of its declared payload rate is off: no run is judged with it."""


@dataclass(frozen=True, slots=True)
class LinkRate:
    """A measured NIC or uplink in one direction.

    `place` is a host, or `rack r1`, whose `device` is its `uplink`. `ratio` is measured payload ÷ declared payload.
    `reach_bps` is the highest measurable rate. It is below the declared rate where all NICs of a rack together are
    slower than its uplink. `unsure_s` is the duration of reading the clock and the counter. `earlier` are the ratios of
    the measurements before this one, which was repeated because they were off.
    """

    place: str
    device: str
    direction: Direction
    declared_bps: int
    payload_bytes_per_s: float
    ratio: float
    seconds: float
    reach_bps: int
    unsure_s: float = 0.0
    earlier: tuple[float, ...] = ()

    @property
    def end(self) -> LinkDirection:
        """Return the place, the device and the direction as text."""
        return self.place, self.device, self.direction

    @property
    def as_declared(self) -> bool:
        """Return whether a run may be judged with this link."""
        return LOWEST <= self.ratio * self.declared_bps / self.reach_bps <= HIGHEST


def measure(
    topology: Topology,
    plan: AddressPlan,
    hosts: Mapping[str, Shell],
    fabrics: Mapping[str, Shell],
    only: Collection[LinkDirection] | None = None,
    *,
    mtu: int = FULL_MTU,
) -> tuple[LinkRate, ...]:
    """Measure every NIC each way (or `only` these) and return the rates. Each transfer takes 2 s, alone.

    Below 600 kbit/s a transfer takes longer. It has two ends: one that is not in `only` may be measured, too. Raise
    `TestbedError` when a transfer failed. `fabrics` has a shell in each machine's fabric; `mtu` is that of NICs.
    """
    rates: dict[tuple[str, int, Direction], tuple[float, Transfer]] = {}
    for transfer in transfers(topology):
        if only is not None and _ends(topology, transfer).isdisjoint(only):
            continue
        place = {
            end: host_place(topology.host(end), transfer.nic, plan, hosts)
            for end in (transfer.source, transfer.target)
            if end != FABRIC
        }
        if len(place) == 1:
            (name,) = place
            switch = switch_of(topology, topology.host(name))
            address = str(plan.fabric_in_rack(switch.number))
            place[FABRIC] = FlowEnd(fabrics[switch.machine], address, switch.bridge)
        flow = FlowSettings(transfer.seconds, transfer.offered_bps, mtu)
        rate = payload_rate(place[transfer.source], place[transfer.target], flow)
        rates |= {(host, transfer.nic, direction): (rate, transfer) for host, direction in transfer.measures}
    found = []
    for host in topology.hosts:
        for number, nic in enumerate(host.nics):
            for side in nic.sides:
                if (host.name, number, side.direction) not in rates:
                    continue
                rate, transfer = rates[host.name, number, side.direction]
                declared = side.rate_bps
                ratio, reach = rate / payload_bytes_per_s(declared, mtu), min(declared, transfer.reach_bps)
                found.append(
                    LinkRate(host.name, nic.name, side.direction, declared, rate, ratio, transfer.seconds, reach)
                )
    return tuple(found)


def _ends(topology: Topology, transfer: Transfer) -> set[LinkDirection]:
    return {(host, topology.host(host).nics[transfer.nic].name, direction) for host, direction in transfer.measures}


def settled(
    take: Callable[[Collection[LinkDirection] | None], Sequence[LinkRate]], tries: int = TRIES
) -> tuple[LinkRate, ...]:
    """Return the measurements of `take`: of every link at first (None), then of links that are off, until none is.

    A busy machine makes a link read low, or a transfer fail, for some seconds. A link with wrong shaping reads off
    every time. A rate has the ratios of the earlier measurements. Raise `TestbedError` when no measurement succeeded.
    """
    found: dict[LinkDirection, LinkRate] = {}
    failed: TestbedError | None = None
    for _ in range(tries):
        off = {end for end, rate in found.items() if not rate.as_declared}
        if found and not off:
            break
        try:
            new = {rate.end: rate for rate in take(off or None)}
        except TestbedError as error:
            failed = error
            continue
        for end, rate in new.items():
            if end not in found:
                found[end] = rate
            elif end in off:
                found[end] = replace(rate, earlier=(*found[end].earlier, found[end].ratio))
    if not found and failed is not None:
        raise failed
    return tuple(found.values())


def host_place(host: DeclaredHost, nic: int, plan: AddressPlan, hosts: Mapping[str, Shell]) -> FlowEnd:
    """Return a host's NIC of this number."""
    return FlowEnd(hosts[host.name], str(plan.data_ip(host.name, nic)), host.nics[nic].name)


BEGUN_BYTES = 16 * 1024
"""A flow that has carried so many bytes has begun: iperf3's two ends exchange far fewer before it."""
BEGIN_S = 10.0
OUTLAST_S = 5.0
"""Seconds that a flow may continue beyond its duration; it is ended once the uplink has been measured."""

# Runs in the fabric unchanged. It waits until so many bytes have passed at each place and the settling time is over.
# Then it reads the counter twice, each time between two readings of the clock.
_COUNT = """
import json, sys, time
first, (device, way), begin_s, before_s, seconds = json.loads(sys.argv[1])
def count(device, way):
    with open("/sys/class/net/%s/statistics/%s_bytes" % (device, way)) as file:
        return int(file.read())
def look():
    before = time.monotonic()
    return before, count(device, way), time.monotonic()
needed = [(at, way, count(at, way) + size) for at, way, size in first]
deadline = time.monotonic() + begin_s
while True:
    idle = [at for at, way, size in needed if count(at, way) < size]
    if not idle or time.monotonic() > deadline:
        break
    time.sleep(0.01)
looks = []
if not idle:
    time.sleep(before_s)
    looks.append(look())
    time.sleep(seconds)
    looks.append(look())
print(json.dumps({"idle": idle, "looks": looks}))
"""


@dataclass(frozen=True, slots=True)
class ByteCount:
    """Bytes of frames in a time of uncertainty `unsure_s`: each reading lies between two readings of the clock."""

    bytes: int
    seconds: float
    unsure_s: float

    @classmethod
    def between(cls, first: Sequence[float], last: Sequence[float]) -> "ByteCount":
        """Return the count of two readings: the clock before, the counter, the clock after."""
        seconds = (last[0] + last[2] - first[0] - first[2]) / 2
        return cls(int(last[1] - first[1]), seconds, (first[2] - first[0] + last[2] - last[0]) / 2)


@dataclass(frozen=True, slots=True)
class UplinkFlow:
    """One NIC's part of the load on an uplink: TCP, or datagrams offered at `offered_bps` (0: TCP).

    `at` is the switch's end of its link, `nic` its number on the host, `rate_bps` the NIC's rate.
    """

    host: DeclaredHost
    nic: int
    at: str
    rate_bps: int
    offered_bps: int


def uplink_flows(topology: Topology, rack: str, direction: Direction) -> tuple[UplinkFlow, ...]:
    """Return the flows that fill a rack's uplink: every NIC in the rack, datagrams in proportion to the NICs. Pure."""
    uplink, sends = topology.uplinks[rack], direction == "transmit"
    nics = [
        (host, index, nic, port(number, index))
        for number, host in topology.numbered
        for index, nic in enumerate(host.nics)
        if host.rack == rack
    ]
    rates = [nic.tx_bps if sends else nic.rx_bps for _host, _index, nic, _at in nics]
    part = min(1.0, (uplink.tx_bps if sends else uplink.rx_bps) / sum(rates)) if rates else 0.0
    return tuple(
        UplinkFlow(host, index, at, rate, offered_bps(part * rate, nic, uplink))
        for (host, index, nic, at), rate in zip(nics, rates, strict=True)
    )


def measure_uplinks(
    topology: Topology,
    plan: AddressPlan,
    hosts: Mapping[str, Shell],
    fabrics: Mapping[str, Shell],
    *,
    mtu: int = FULL_MTU,
) -> tuple[LinkRate, ...]:
    """Measure every shaped uplink each way and return the rates: all NICs of its rack send at once to the core switch.

    Each takes 2 s, longer below 600 kbit/s. A rack without hosts is omitted. Raise `TestbedError` when an uplink could
    not be measured. `fabrics` and `mtu` are as for `measure`.
    """
    found = []
    for rack, uplink in topology.uplinks.items():
        machine = next(switch.machine for switch in switches(topology) if switch.rack == rack)
        core = FlowEnd(fabrics[machine], str(plan.fabric_on(machines_of(topology).index(machine))), CORE)
        for side in uplink.sides:
            direction, declared = side.direction, side.rate_bps
            filling = uplink_flows(topology, rack, direction)
            if not filling:
                continue
            places = [host_place(flow.host, flow.nic, plan, hosts) for flow in filling]
            reach = min(declared, sum(flow.rate_bps for flow in filling))
            counted = _count(topology.racks.index(rack), side._replace(rate_bps=reach), filling, places, core, mtu)
            rate = payload_bytes_per_s(8 * counted.bytes / counted.seconds, mtu)
            ratio = rate / payload_bytes_per_s(declared, mtu)
            measured = (rate, ratio, counted.seconds, reach, counted.unsure_s)
            found.append(LinkRate(f"rack {rack}", "uplink", direction, declared, *measured))
    return tuple(found)


def _count(
    rack: int, side: Side, filling: Sequence[UplinkFlow], places: Sequence[FlowEnd], core: FlowEnd, mtu: int
) -> ByteCount:
    """Return the bytes that left the uplink's far end while all flows ran and its bucket was empty.

    `rack` is the rack's number; `side` has the rate that fills the uplink, and the bytes that may pass it at once.
    """
    sends = side.direction == "transmit"
    # A host's port receives what the host sends; traffic that leaves the rack is counted in the core.
    far_end = f"{'dn' if sends else 'up'}{rack}"
    first: list[tuple[str, str, int]] = [(flow.at, "rx" if sends else "tx", BEGUN_BYTES) for flow in filling]
    first.append((far_end, "rx", side.burst_bytes + BEGUN_BYTES * len(filling)))
    begin_s = BEGIN_S + 8 * first[-1][-1] / side.rate_bps
    seconds = measure_s(side.rate_bps)
    with ExitStack() as stack:
        # Left last: the senders end with their receivers.
        pool = stack.enter_context(ThreadPoolExecutor(max_workers=len(filling)))
        sending = []
        for number, (flow, place) in enumerate(zip(filling, places, strict=True), PORT):
            source, target = (place, core) if sends else (core, place)
            stack.enter_context(receiver(target, number))
            lasts_s = begin_s + BEFORE_S + seconds + OUTLAST_S
            going_on = FlowSettings(lasts_s, offered_bps=flow.offered_bps, mtu=mtu)
            sending.append(pool.submit(send, source, target, number, going_on))
        words = ["python3", "-c", _COUNT, json.dumps([first, (far_end, "rx"), begin_s, BEFORE_S, seconds])]
        report = json.loads(core.shell.run(words, timeout_s=begin_s + BEFORE_S + seconds + 30).stdout)
        for flow, future in zip(filling, sending, strict=True):
            if future.done():
                said = future.result()
                raise TestbedError(
                    f"{flow.host.name}: its flow over the uplink {far_end} ended before it was measured: "
                    f"{said.stdout.strip()[-500:]} {said.stderr.strip()[-500:]}"
                )
        if report["idle"]:
            raise TestbedError(f"{far_end}: after {begin_s:.0f} s too little had passed at {', '.join(report['idle'])}")
    return ByteCount.between(*report["looks"])


OVER_S = 1.0
IDLE_S = 30.0
MOST = 0.02
"""Share of a NIC's rate that other traffic may use. An idle NIC reads 0.997 of its rate or more: with this traffic it
still reads more than 0.95, which is as declared."""


def wait_idle(topology: Topology, places: Mapping[str, Place]) -> None:
    """Wait until every NIC carries almost nothing over a second. Raise `WaitTimeout`, which names the busy NICs."""
    rates: dict[str, int] = {}
    counters: dict[str, list[str]] = {}
    # In the order of places: each place's counters are read with one command.
    for number, host in sorted(topology.numbered, key=lambda each: topology.remote_machine_of(each[1])):
        for index, nic in enumerate(host.nics):
            rates[f"{host.name} {nic.name}"] = min(nic.tx_bps, nic.rx_bps)
            place, device = fabric_place(topology.remote_machine_of(host)), port(number, index)
            if topology.exists:  # no switch of the testbed's is there: each counts at its own end
                place, device = host.name, nic.name
            files = [f"/sys/class/net/{device}/statistics/{way}_bytes" for way in ("rx", "tx")]
            counters.setdefault(place, []).extend(files)
    shells = {place: shell_of(place, places[place]) for place in counters}

    def counted() -> list[int]:
        outputs = [shells[place].run(["cat", *files]).stdout for place, files in counters.items()]
        return [int(line) for text in outputs for line in text.split()]

    def busy() -> list[str]:
        before, begun = counted(), time.monotonic()
        time.sleep(OVER_S)  # a rate is measured over a time
        seconds = time.monotonic() - begun
        grown = [(now - then) / seconds for now, then in zip(counted(), before, strict=True)]
        return [
            f"{name} carries {8 * max(grown[2 * place : 2 * place + 2]) / 1e6:.1f} mbit/s"
            for place, (name, bps) in enumerate(rates.items())
            if 8 * max(grown[2 * place : 2 * place + 2]) > MOST * bps
        ]

    wait_for(busy, lambda found: not found, IDLE_S, 0.001, "the NICs to be idle")
