"""Measuring NICs and uplinks: what one really carries, each way, before anything is judged with it."""

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal

from testbed.errors import TestbedError
from testbed.hosts import CommandFailed, Shell
from testbed.network.addresses import AddressPlan
from testbed.network.fabric import CORE
from testbed.network.shape import FRAME_BYTES, payload_bytes_per_s
from testbed.topology.links import Link
from testbed.topology.model import Host, Topology
from testbed.wait import wait_for

Direction = Literal["transmit", "receive"]
PORT = 5201
FABRIC = "<fabric>"
"""Stands for the switch in a transfer; no host can have this name."""
MEASURE_S = 2.0
DATAGRAM_BYTES = 1448
DATAGRAM_FRAME_BYTES = DATAGRAM_BYTES + 8 + 20 + 14
"""On the wire, with the headers of UDP, IP and Ethernet: less than a full frame, `FRAME_BYTES`, of the same payload."""
LOWEST, HIGHEST = 0.95, 1.02
"""A NIC outside this share of its declared payload rate is off: nothing is judged with it."""


@dataclass(frozen=True, slots=True)
class NicRate:
    """One NIC in one direction, measured. `ratio` is measured payload ÷ declared payload."""

    host: str
    device: str
    direction: Direction
    declared_bps: int
    payload_bytes_per_s: float
    ratio: float
    seconds: float

    @property
    def as_declared(self) -> bool:
        """Whether the NIC may be judged with."""
        return LOWEST <= self.ratio <= HIGHEST


@dataclass(frozen=True, slots=True)
class UplinkRate:
    """A rack's uplink in one direction, carried by all hosts of the rack at once. `ratio` is as in `NicRate`."""

    rack: str
    direction: Direction
    declared_bps: int
    payload_bytes_per_s: float
    ratio: float
    seconds: float

    @property
    def as_declared(self) -> bool:
        """Whether the uplink, and nothing else, is what binds."""
        return LOWEST <= self.ratio <= HIGHEST


@dataclass(frozen=True, slots=True)
class Transfer:
    """One measurement: `source` sends to `target`, each on its NIC number `nic`; it measures the ends in `measures`.

    Where delay or loss would make one TCP connection slower than the NIC, datagrams are offered at `offered_bps`, which
    is more than passes; 0: TCP.
    """

    source: str
    target: str
    measures: tuple[tuple[str, Direction], ...]
    nic: int = 0
    offered_bps: int = 0


@dataclass(frozen=True, slots=True)
class _Place:
    """Where one end of a transfer is. Bound to the device: some addresses are reached by no route."""

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
            found.append(Transfer(source.name, target.name, tuple(ends), number, _offered(min(sends, receives), *nics)))
    measured = {end for transfer in found for end in transfer.measures}
    for host in hosts:
        nic = host.nics[number]
        if (host.name, "transmit") not in measured:
            offered = _offered(nic.tx_bps, nic)
            found.append(Transfer(host.name, FABRIC, ((host.name, "transmit"),), number, offered))
        if (host.name, "receive") not in measured:
            offered = _offered(nic.rx_bps, nic)
            found.append(Transfer(FABRIC, host.name, ((host.name, "receive"),), number, offered))
    return found


def _offered(rate_bps: int, *links: Link) -> int:
    impairments = [side.impairment for link in links for side in link.sides]
    if not any(impairments):
        return 0
    passing = 1.0
    for impairment in impairments:
        passing *= 1 - impairment.loss_ppm / 1e6
    return round(1.1 * rate_bps / passing)


def measure(topology: Topology, plan: AddressPlan, hosts: Mapping[str, Shell], fabric: Shell) -> tuple[NicRate, ...]:
    """Measure every NIC each way, one transfer at a time, 2 s each. Raises `TestbedError` when one did not happen."""
    rates: dict[tuple[str, int, Direction], float] = {}
    for transfer in transfers(topology):
        place = {
            end: _host_place(topology.host(end), transfer.nic, plan, hosts)
            for end in (transfer.source, transfer.target)
            if end != FABRIC
        }
        if len(place) == 1:
            (name,) = place
            rack = topology.racks.index(topology.host(name).rack)
            place[FABRIC] = _Place(fabric, str(plan.fabric_in_rack(rack)), f"rack{rack}")
        rate = _transfer(place[transfer.source], place[transfer.target], offered_bps=transfer.offered_bps)
        rates |= {(host, transfer.nic, direction): rate for host, direction in transfer.measures}
    found = []
    for host in topology.hosts:
        for number, nic in enumerate(host.nics):
            ways: tuple[tuple[Direction, int], ...] = (("transmit", nic.tx_bps), ("receive", nic.rx_bps))
            for direction, declared in ways:
                rate = rates[host.name, number, direction]
                ratio = rate / payload_bytes_per_s(declared)
                found.append(NicRate(host.name, nic.name, direction, declared, rate, ratio, MEASURE_S))
    return tuple(found)


def measure_uplinks(
    topology: Topology, plan: AddressPlan, hosts: Mapping[str, Shell], fabric: Shell
) -> tuple[UplinkRate, ...]:
    """Measure every shaped uplink each way: all hosts of its rack against the core switch at once, 2 s each.

    Where the rack's NICs together are slower than its uplink, that cannot be filled: the ratio then says so.
    """
    core = _Place(fabric, str(plan.fabric), CORE)
    found = []
    for rack, uplink in topology.uplinks.items():
        places = [_host_place(host, 0, plan, hosts) for host in topology.hosts if host.rack == rack]
        ways: tuple[tuple[Direction, int], ...] = (("transmit", uplink.tx_bps), ("receive", uplink.rx_bps))
        for direction, declared in ways if places else ():
            ends = [(place, core) if direction == "transmit" else (core, place) for place in places]
            with ThreadPoolExecutor(max_workers=len(ends)) as pool:
                ports = range(PORT, PORT + len(ends))
                rate = sum(pool.map(_transfer, (end[0] for end in ends), (end[1] for end in ends), ports))
            ratio = rate / payload_bytes_per_s(declared)
            found.append(UplinkRate(rack, direction, declared, rate, ratio, MEASURE_S))
    return tuple(found)


def carried(
    topology: Topology, plan: AddressPlan, hosts: Mapping[str, Shell], source: str, target: str, nic: int = 0
) -> float:
    """Payload bytes per second that pass from one host to another on their NICs of this number, over 2 s."""
    ends = [_host_place(topology.host(name), nic, plan, hosts) for name in (source, target)]
    return _transfer(ends[0], ends[1])


def _host_place(host: Host, nic: int, plan: AddressPlan, hosts: Mapping[str, Shell]) -> _Place:
    return _Place(hosts[host.name], str(plan.data_ip(host.name, nic)), host.nics[nic].name)


def _transfer(source: _Place, target: _Place, port: int = PORT, offered_bps: int = 0) -> float:
    """Payload bytes per second from `source` to `target`, as the receiver counted them (those TCP would have had)."""
    pid_file = f"/run/iperf3-{port}.pid"
    server = ["iperf3", "-s", "-1", "-D", "-B", target.address, "--bind-dev", target.device]
    target.shell.run([*server, "-p", str(port), "-I", pid_file])
    client = ["iperf3", "-c", target.address, "-B", source.address, "--bind-dev", source.device, "-p", str(port)]
    client += ["-t", f"{MEASURE_S:g}", "-J", "--connect-timeout", "2000"]
    if offered_bps:
        client += ["-u", "-l", str(DATAGRAM_BYTES), "-b", str(offered_bps)]
    try:
        # The server tells nobody when it listens: a refused connection is tried again.
        result = wait_for(
            lambda: source.shell.run(client, timeout_s=30, check=False),
            lambda result: result.exit_status == 0 or "refused" not in result.stdout,
            timeout_s=5.0,
            interval_s=0.05,
            what=f"the receiver on {target.shell.name} to listen at {target.address}:{port}",
        )
        if result.exit_status != 0:
            raise CommandFailed(source.shell.name, result)
        received = float(json.loads(result.stdout)["end"]["sum_received"]["bits_per_second"]) / 8
        return received * (DATAGRAM_FRAME_BYTES / FRAME_BYTES if offered_bps else 1)
    except (KeyError, ValueError) as error:
        raise TestbedError(f"{source.shell.name}: iperf3's answer was not understood: {error}") from error
    finally:
        # `-1` ends the server after one client; this is for a client that never came.
        gone = f"[ -s {pid_file} ] && kill $(tr -d '\\0' < {pid_file}) 2>/dev/null; rm -f {pid_file}"
        target.shell.run(gone, check=False)
