"""Measuring uplinks: all NICs of a rack fill it together, and its far end is counted while all of them do.

What each flow carried over its own time does not add up to what the uplink carried: flows do not begin and end
together, and whoever is alone for 80 ms of 2 s has the whole uplink then (sums of 1.04 were seen). So the flows outlast
the measurement, and within their common time the frames are counted where they leave the uplink.
"""

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass

from testbed.errors import TestbedError
from testbed.hosts import Shell
from testbed.network.addresses import AddressPlan
from testbed.network.fabric import CORE, port
from testbed.network.measure import (
    BEFORE_S,
    PORT,
    Direction,
    LinkRate,
    Place,
    Sending,
    host_place,
    measure_s,
    offered_bps,
    receiver,
    send,
)
from testbed.network.shape import FRAME_BYTES, payload_bytes_per_s
from testbed.topology.model import Host, Topology

BEGUN_BYTES = 16 * 1024
"""A flow that has carried so much has begun: by far more than iperf3's two ends tell each other before."""
BEGIN_S = 10.0
OUTLAST_S = 5.0
"""How much longer a flow may go on than it takes; it is ended once the uplink has been measured."""

# Runs in the fabric as it is: waits until so much has passed at each place and for what is not measured, then reads the
# counter twice, each time between two looks at the clock.
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
class Counted:
    """Bytes of frames in so many seconds, give or take `unsure_s`: each reading lies between two looks at the clock."""

    bytes: int
    seconds: float
    unsure_s: float

    @classmethod
    def between(cls, first: Sequence[float], last: Sequence[float]) -> "Counted":
        """From two readings: the clock before, the counter, the clock after."""
        seconds = (last[0] + last[2] - first[0] - first[2]) / 2
        return cls(int(last[1] - first[1]), seconds, (first[2] - first[0] + last[2] - last[0]) / 2)


@dataclass(frozen=True, slots=True)
class Flow:
    """One NIC's part in filling an uplink: TCP, or datagrams offered at `offered_bps` (0: TCP).

    `at` is the switch's end of its link, `nic` its number on the host, `rate_bps` what it carries.
    """

    host: Host
    nic: int
    at: str
    rate_bps: int
    offered_bps: int


def highest_ratio(rate_bps: int, burst_bytes: int, seconds: float, unsure_s: float = 0.0) -> float:
    """The most that a link at `rate_bps` can read over `seconds`, as a share of its rate. Pure.

    A full bucket passes at once, and the frame that empties it passes whole; the time is known to `unsure_s`.
    """
    return 1 + unsure_s / seconds + 8 * (burst_bytes + FRAME_BYTES) / (rate_bps * seconds)


def flows(topology: Topology, rack: str, direction: Direction) -> tuple[Flow, ...]:
    """Who fills a rack's uplink, and how: every NIC in the rack, datagrams in shares as the NICs are. Pure."""
    uplink, sends = topology.uplinks[rack], direction == "transmit"
    nics = [
        (host, index, nic, port(number, index))
        for number, host in enumerate(topology.hosts)
        for index, nic in enumerate(host.nics)
        if host.rack == rack
    ]
    rates = [nic.tx_bps if sends else nic.rx_bps for _host, _index, nic, _at in nics]
    part = min(1.0, (uplink.tx_bps if sends else uplink.rx_bps) / sum(rates)) if rates else 0.0
    return tuple(
        Flow(host, index, at, rate, offered_bps(part * rate, nic, uplink))
        for (host, index, nic, at), rate in zip(nics, rates, strict=True)
    )


def measure_uplinks(
    topology: Topology, plan: AddressPlan, hosts: Mapping[str, Shell], fabric: Shell
) -> tuple[LinkRate, ...]:
    """Measure every shaped uplink each way: all NICs of its rack against the core switch at once.

    2 s each, longer below 600 kbit/s. A rack without hosts is left out. Raises `TestbedError` when an uplink could not
    be measured.
    """
    core = Place(fabric, str(plan.fabric), CORE)
    found = []
    for rack, uplink in topology.uplinks.items():
        ways: tuple[tuple[Direction, int], ...] = (("transmit", uplink.tx_bps), ("receive", uplink.rx_bps))
        for direction, declared in ways:
            filling = flows(topology, rack, direction)
            if not filling:
                continue
            places = [host_place(flow.host, flow.nic, plan, hosts) for flow in filling]
            side = next(side for side in uplink.sides if side.name == ("tx" if direction == "transmit" else "rx"))
            reach = min(declared, sum(flow.rate_bps for flow in filling))
            counting = _Counting(topology.racks.index(rack), direction, reach, side.burst_bytes)
            counted = _count(counting, filling, places, core)
            rate = payload_bytes_per_s(8 * counted.bytes / counted.seconds)
            ratio = rate / payload_bytes_per_s(declared)
            place = f"rack {rack}"
            found.append(
                LinkRate(place, "uplink", direction, declared, rate, ratio, counted.seconds, reach, counted.unsure_s)
            )
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Counting:
    """What is counted of which rack's uplink, at which rate it is filled, and how much may pass it at once."""

    rack: int
    direction: Direction
    rate_bps: int
    burst_bytes: int


def _count(counting: _Counting, filling: Sequence[Flow], places: Sequence[Place], core: Place) -> Counted:
    """What left the uplink's far end while all flows went on and its bucket was empty."""
    sends = counting.direction == "transmit"
    # A host's port receives what the host sends; the far end of what leaves the rack is in the core.
    far_end = f"{'dn' if sends else 'up'}{counting.rack}"
    first: list[tuple[str, str, int]] = [(flow.at, "rx" if sends else "tx", BEGUN_BYTES) for flow in filling]
    first.append((far_end, "rx", counting.burst_bytes + BEGUN_BYTES * len(filling)))
    begin_s = BEGIN_S + 8 * first[-1][-1] / counting.rate_bps
    seconds = measure_s(counting.rate_bps)
    with ExitStack() as stack:
        # Left last: once the receivers are gone, so are the senders.
        pool = stack.enter_context(ThreadPoolExecutor(max_workers=len(filling)))
        sending = []
        for number, (flow, place) in enumerate(zip(filling, places, strict=True), PORT):
            source, target = (place, core) if sends else (core, place)
            stack.enter_context(receiver(target, number))
            going_on = Sending(begin_s + BEFORE_S + seconds + OUTLAST_S, offered_bps=flow.offered_bps)
            sending.append(pool.submit(send, source, target, number, going_on))
        words = ["python3", "-c", _COUNT, json.dumps([first, (far_end, "rx"), begin_s, BEFORE_S, seconds])]
        told = json.loads(core.shell.run(words, timeout_s=begin_s + BEFORE_S + seconds + 30).stdout)
        for flow, future in zip(filling, sending, strict=True):
            if future.done():
                said = future.result()
                raise TestbedError(
                    f"{flow.host.name}: its flow over the uplink {far_end} ended before it was measured: "
                    f"{said.stdout.strip()[-500:]} {said.stderr.strip()[-500:]}"
                )
        if told["idle"]:
            raise TestbedError(f"{far_end}: after {begin_s:.0f} s too little had passed at {', '.join(told['idle'])}")
    return Counted.between(*told["looks"])
