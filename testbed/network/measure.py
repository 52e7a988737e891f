"""Measuring NICs: what one really carries, each way, before anything is judged with it."""

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from testbed.errors import TestbedError
from testbed.hosts import CommandFailed, Result, Shell
from testbed.network.addresses import AddressPlan
from testbed.network.shape import FRAME_BYTES, payload_bytes_per_s
from testbed.topology.links import Link
from testbed.topology.model import Host, Topology
from testbed.wait import wait_for

Direction = Literal["transmit", "receive"]
End = tuple[str, str, Direction]
"""One link in one direction: place, device, direction."""
PORT = 5201
FABRIC = "<fabric>"
"""Stands for the switch in a transfer; no host can have this name."""
MEASURE_S = 2.0
BEFORE_S = 1
"""Not measured at first: TCP looks for the rate (the first connections over a new link had 0.93 to 0.98 of it in their
first 2 s, later ones 0.998 to 1.000), and what a bucket holds passes at once."""
FRAMES = 100
"""So many full frames at least are measured: one more or less is 1 % then. At 600 kbit/s they take 2 s."""
DATAGRAM_BYTES = 1448
DATAGRAM_FRAME_BYTES = DATAGRAM_BYTES + 8 + 20 + 14
"""On the wire, with the headers of UDP, IP and Ethernet: less than a full frame, `FRAME_BYTES`, of the same payload."""
TRIES = 6
"""When other machines take this one's CPU, a NIC read 0.86 to 0.90 three times within half a minute, and 0.99 after."""
LOWEST, HIGHEST = 0.95, 1.02
"""A link outside this share of its declared payload rate is off: nothing is judged with it."""


@dataclass(frozen=True, slots=True)
class LinkRate:
    """A NIC or an uplink in one direction, measured.

    `place` is a host, or `rack r1`, whose `device` is its `uplink`. `ratio` is measured payload ÷ declared payload.
    `reach_bps` is what can be measured of it at most: less than is declared where all NICs of a rack together are
    slower than its uplink. `unsure_s` is how long it took to read the clock and what was counted.
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

    @property
    def end(self) -> End:
        """Which link it is, and which way."""
        return self.place, self.device, self.direction

    @property
    def as_declared(self) -> bool:
        """Whether the link may be judged with."""
        return LOWEST <= self.ratio * self.declared_bps / self.reach_bps <= HIGHEST


@dataclass(frozen=True, slots=True)
class Transfer:
    """One measurement: `source` sends to `target`, each on its NIC number `nic`; it measures the ends in `measures`.

    Where delay or loss would make one TCP connection slower than the NIC, datagrams are offered at `offered_bps`, which
    is more than passes; 0: TCP. It is measured for `seconds`, after `before_s`.
    """

    source: str
    target: str
    measures: tuple[tuple[str, Direction], ...]
    nic: int = 0
    offered_bps: int = 0
    seconds: float = MEASURE_S
    before_s: int = BEFORE_S


@dataclass(frozen=True, slots=True)
class Place:
    """Where one end of a flow is. Bound to the device: some addresses are reached by no route."""

    shell: Shell
    address: str
    device: str


def transfers(topology: Topology) -> tuple[Transfer, ...]:
    """Which transfers measure every NIC both ways, as few as can be. Pure.

    Hosts of one rack send around a ring, so that no uplink is in the way. A transfer measures the slower of its two
    ends (both when they are alike); an end that is faster than its partner is measured against the rack's switch
    itself, which is not shaped.
    """
    found: list[Transfer] = []
    for number in range(max(len(host.nics) for host in topology.hosts)):
        for rack in topology.racks:
            found += _ring([host for host in topology.hosts if host.rack == rack and len(host.nics) > number], number)
    return tuple(found)


def _ring(hosts: Sequence[Host], number: int) -> list[Transfer]:
    found: list[Transfer] = []
    for index, source in enumerate(hosts):
        target = hosts[(index + 1) % len(hosts)]
        sends, receives = source.nics[number].tx_bps, target.nics[number].rx_bps
        if source is target:
            sends, receives = 0, 0
        ends: list[tuple[str, Direction]] = []
        if sends and sends <= receives:
            ends.append((source.name, "transmit"))
        if receives and receives <= sends:
            ends.append((target.name, "receive"))
        if ends:
            nics = (source.nics[number], target.nics[number])
            found.append(_transfer_of(source.name, target.name, ends, number, min(sends, receives), *nics))
    measured = {end for transfer in found for end in transfer.measures}
    for host in hosts:
        nic = host.nics[number]
        out: tuple[str, Direction] = (host.name, "transmit")
        into: tuple[str, Direction] = (host.name, "receive")
        if out not in measured:
            found.append(_transfer_of(host.name, FABRIC, [out], number, nic.tx_bps, nic))
        if into not in measured:
            found.append(_transfer_of(FABRIC, host.name, [into], number, nic.rx_bps, nic))
    return found


def _transfer_of(
    source: str,
    target: str,
    measures: Sequence[tuple[str, Direction]],
    number: int,
    rate_bps: int,
    *links: Link,
) -> Transfer:
    return Transfer(source, target, tuple(measures), number, offered_bps(rate_bps, *links), measure_s(rate_bps))


def measure_s(rate_bps: int) -> float:
    """How long a link of this rate is measured, in seconds. Pure."""
    return max(MEASURE_S, 8 * FRAMES * FRAME_BYTES / rate_bps)


def offered_bps(rate_bps: float, *links: Link) -> int:
    """Datagrams that fill `rate_bps` although `links` delay or lose some: bits/s; 0 where TCP fills it. Pure."""
    impairments = [side.impairment for link in links for side in link.sides]
    if not any(impairments):
        return 0
    passing = 1.0
    for impairment in impairments:
        passing *= 1 - impairment.loss_ppm / 1e6
    return round(1.1 * rate_bps / passing)


def measure(
    topology: Topology,
    plan: AddressPlan,
    hosts: Mapping[str, Shell],
    fabric: Shell,
    only: Collection[End] | None = None,
) -> tuple[LinkRate, ...]:
    """Measure every NIC each way (of `only`, when given), one transfer at a time, 2 s each (longer below 600 kbit/s).

    A transfer has two ends: one that is not asked for may be measured, too. Raises `TestbedError` when a transfer did
    not happen.
    """
    rates: dict[tuple[str, int, Direction], tuple[float, float]] = {}
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
            rack = topology.racks.index(topology.host(name).rack)
            place[FABRIC] = Place(fabric, str(plan.fabric_in_rack(rack)), f"rack{rack}")
        flow = Sending(transfer.seconds, transfer.before_s, transfer.offered_bps)
        rate = _transfer(place[transfer.source], place[transfer.target], flow)
        rates |= {(host, transfer.nic, direction): (rate, transfer.seconds) for host, direction in transfer.measures}
    found = []
    for host in topology.hosts:
        for number, nic in enumerate(host.nics):
            ways: tuple[tuple[Direction, int], ...] = (("transmit", nic.tx_bps), ("receive", nic.rx_bps))
            for direction, declared in ways:
                if (host.name, number, direction) not in rates:
                    continue
                rate, seconds = rates[host.name, number, direction]
                ratio = rate / payload_bytes_per_s(declared)
                found.append(LinkRate(host.name, nic.name, direction, declared, rate, ratio, seconds, declared))
    return tuple(found)


def _ends(topology: Topology, transfer: Transfer) -> set[End]:
    return {(host, topology.host(host).nics[transfer.nic].name, direction) for host, direction in transfer.measures}


def settled(take: Callable[[Collection[End] | None], Sequence[LinkRate]], tries: int = TRIES) -> tuple[LinkRate, ...]:
    """What `take` measures: every link at first (None), then those that are off, again and again while any is.

    A busy machine makes a link read low, or a transfer fail, for some seconds. One that is shaped otherwise than
    declared reads off every time. Raises `TestbedError` when no measurement came to its end.
    """
    found: dict[End, LinkRate] = {}
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
        found |= {end: rate for end, rate in new.items() if end in off or end not in found}
    if not found and failed is not None:
        raise failed
    return tuple(found.values())


def carried(
    topology: Topology, plan: AddressPlan, hosts: Mapping[str, Shell], source: str, target: str, nic: int = 0
) -> float:
    """Payload bytes per second that pass from one host to another on their NICs of this number, over 2 s."""
    ends = [host_place(topology.host(name), nic, plan, hosts) for name in (source, target)]
    return _transfer(ends[0], ends[1], Sending(MEASURE_S))


def host_place(host: Host, nic: int, plan: AddressPlan, hosts: Mapping[str, Shell]) -> Place:
    """A host's NIC of this number."""
    return Place(hosts[host.name], str(plan.data_ip(host.name, nic)), host.nics[nic].name)


@dataclass(frozen=True, slots=True)
class Sending:
    """How long is sent: `seconds`, after `before_s` that iperf3 leaves out; TCP, or datagrams at `offered_bps`."""

    seconds: float
    before_s: int = BEFORE_S
    offered_bps: int = 0


@contextmanager
def receiver(target: Place, port: int) -> Iterator[None]:
    """Who takes one flow at `target`, within the block; at its end the flow, if it goes on, is cut off."""
    pid_file = f"/run/iperf3-{port}.pid"
    server = ["iperf3", "-s", "-1", "-D", "-B", target.address, "--bind-dev", target.device]
    gone = f"[ -s {pid_file} ] && kill $(tr -d '\\0' < {pid_file}) 2>/dev/null; rm -f {pid_file}"
    target.shell.run(gone, check=False)  # a command that was killed before its flow came has left it waiting
    target.shell.run([*server, "-p", str(port), "-I", pid_file])
    try:
        yield
    finally:
        # `-1` ends it after one flow; this is for a flow that never came, or goes on.
        target.shell.run(gone, check=False)


def send(source: Place, target: Place, port: int, flow: Sending) -> Result:
    """A flow to the receiver at `target`: iperf3's result, which is JSON, and says so when it failed."""
    client = ["iperf3", "-c", target.address, "-B", source.address, "--bind-dev", source.device, "-p", str(port)]
    client += ["-t", f"{flow.seconds:g}", "-O", str(flow.before_s), "-J", "--connect-timeout", "2000"]
    if flow.offered_bps:
        client += ["-u", "-l", str(DATAGRAM_BYTES), "-b", str(flow.offered_bps)]
    # The receiver tells nobody when it listens: a refused connection is tried again.
    return wait_for(
        lambda: source.shell.run(client, timeout_s=flow.before_s + flow.seconds + 30, check=False),
        lambda result: result.exit_status == 0 or "refused" not in result.stdout,
        timeout_s=5.0,
        interval_s=0.05,
        what=f"the receiver on {target.shell.name} to listen at {target.address}:{port}",
    )


def _transfer(source: Place, target: Place, flow: Sending) -> float:
    """Payload bytes per second from `source` to `target`, as the receiver counted them (those TCP would have had)."""
    with receiver(target, PORT):
        result = send(source, target, PORT, flow)
    if result.exit_status != 0:
        raise CommandFailed(source.shell.name, result)
    try:
        received = float(json.loads(result.stdout)["end"]["sum_received"]["bits_per_second"]) / 8
    except (KeyError, ValueError) as error:
        raise TestbedError(f"{source.shell.name}: iperf3's answer was not understood: {error}") from error
    return received * (DATAGRAM_FRAME_BYTES / FRAME_BYTES if flow.offered_bps else 1)
