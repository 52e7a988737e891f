"""The network between machines: its addresses and MTU on each machine, and its measured rates.

The path from one machine to another is measured between the fabrics, over VXLAN, before hosts use it.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

from testbed.errors import TestbedError
from testbed.hosts import Shell
from testbed.network.addresses import AddressPlan
from testbed.network.fabric import CORE
from testbed.network.flow import PORT, FlowEnd, FlowSettings, payload_rate
from testbed.network.overlay import PORT as VXLAN_PORT
from testbed.network.overlay import Overlay, PathNeed, declared_rate, machines_of, path_needs
from testbed.network.shape import payload_bytes_per_s
from testbed.topology.machines import VXLAN_BYTES
from testbed.topology.model import Topology
from testbed.units import format_bit_rate
from testbed.wait import WaitTimeout, wait_for

STREAMS = 4
OFFERED = 1.1
"""The rate that is offered to a path, as a multiple of what is declared on it: more need not be known."""
SECONDS = 2.0
LEAST = 0.99
"""The share of the declared rate below which a path is narrower. A link of exactly that rate reads 0.997 to 1.001."""
TRIES = 3
"""A busy machine reads low for some seconds. The best reading counts: a narrow path never reads high."""


@dataclass(frozen=True, slots=True)
class Interface:
    """The address and the MTU of the device through which a machine reaches another."""

    address: str
    mtu: int


def interface_to(machine: Shell, peer: str) -> Interface:
    """Return the interface of a machine through which it reaches `peer`, an IPv4 address. Raise `TestbedError`."""
    route = json.loads(machine.run(["ip", "-j", "-4", "route", "get", peer]).stdout)[0]
    device = str(route["dev"])
    link = json.loads(machine.run(["ip", "-j", "link", "show", "dev", device]).stdout)[0]
    if "prefsrc" not in route:
        raise TestbedError(f"the route to {peer} by {device} has no source address; declare address: at the machine")
    return Interface(str(route["prefsrc"]), int(link["mtu"]))


def require_packets(topology: Topology, plan: AddressPlan, fabrics: Mapping[str, Shell], mtu: int) -> None:
    """Raise `TestbedError` when a packet of the NICs' MTU does not pass whole from each fabric to each other."""
    for source in machines_of(topology):
        for number, target in enumerate(machines_of(topology)):
            if source == target:
                continue
            path = f"{source or 'this machine'} to {target or 'this machine'}"
            _require_packet(fabrics[source], str(plan.fabric_on(number)), mtu, path)


def _require_packet(fabric: Shell, target: str, mtu: int, path: str) -> None:
    # 28 bytes are the headers of IP and ICMP.
    ping = ["ping", "-M", "do", "-s", str(mtu - 28), "-c", "1", "-W", "1", target]
    try:
        wait_for(lambda: fabric.run(ping, check=False).exit_status, lambda status: status == 0, 5.0, 0.1, "an answer")
    except WaitTimeout as error:
        raise TestbedError(
            f"a packet of {mtu} bytes does not pass from {path}: UDP port {VXLAN_PORT} must be open between the "
            f"machines, and the network between them must carry packets of {mtu + VXLAN_BYTES} bytes"
        ) from error


@dataclass(frozen=True, slots=True)
class PathRate:
    """A measured path: what is declared on it, and the frames of its NICs that it carried, in bits/s."""

    need: PathNeed
    carried_bps: float

    @property
    def as_declared(self) -> bool:
        """Return whether it is as wide as what is declared on it."""
        return self.carried_bps >= LEAST * self.need.rate_bps

    def in_words(self) -> str:
        """Return what it carries, what is declared, and by which NICs."""
        return (
            f"{self.need.what} carries {format_bit_rate(int(round(self.carried_bps, -5)))}, and its NICs need "
            f"{format_bit_rate(self.need.rate_bps)} ({', '.join(self.need.nics)})"
        )


def measure_paths(
    topology: Topology, plan: AddressPlan, fabrics: Mapping[str, Shell], overlay: Overlay
) -> tuple[PathRate, ...]:
    """Measure each path between machines and return the rates; 3 s each, up to three times while it is narrower.

    Raise `TestbedError` when no measurement of a path succeeded.
    """
    return tuple(
        widest(need, partial(_carried, topology, plan, fabrics, overlay, need)) for need in path_needs(topology)
    )


def widest(need: PathNeed, carried: Callable[[], float], tries: int = TRIES) -> PathRate:
    """Return the best of so many measurements of a path, the first one that is as declared.

    A measurement that fails is made again. Raise its `TestbedError` when none succeeded.
    """
    best = PathRate(need, 0.0)
    failed: TestbedError | None = None
    for _ in range(tries):
        try:
            best = max(best, PathRate(need, carried()), key=lambda rate: rate.carried_bps)
        except TestbedError as error:
            failed = error
        if best.as_declared:
            return best
    if not best.carried_bps and failed is not None:
        raise failed
    return best


def require_paths(rates: Sequence[PathRate]) -> None:
    """Raise `TestbedError`, which names every path that is narrower than what is declared on it, and the NICs."""
    narrow = [rate.in_words() for rate in rates if not rate.as_declared]
    if narrow:
        raise TestbedError(
            "the network between the machines is narrower than what is declared on it:\n  "
            + "\n  ".join(narrow)
            + "\n  declare lower rates for these NICs, or place their hosts on one machine (machine: at the host)"
        )


def _carried(
    topology: Topology, plan: AddressPlan, fabrics: Mapping[str, Shell], overlay: Overlay, need: PathNeed
) -> float:
    """Return the bits/s of frames that all flows of a path carried together."""
    numbers = {machine: number for number, machine in enumerate(machines_of(topology))}
    ends = {machine: FlowEnd(fabrics[machine], str(plan.fabric_on(numbers[machine])), CORE) for machine in numbers}
    pairs = [(source, target) for source in need.sources for target in need.targets]
    # Each pair in proportion to what its ends declare: a machine with slow NICs need not carry more than these.
    weights = [
        declared_rate(topology, (source,), sends=True)[0] * declared_rate(topology, (target,), sends=False)[0]
        for source, target in pairs
    ]
    whole = FlowSettings(SECONDS, mtu=overlay.mtu, streams=STREAMS, limit_bps=OFFERED * need.rate_bps)
    offered = [replace(whole, limit_bps=whole.limit_bps * weight / sum(weights)) for weight in weights]
    with ThreadPoolExecutor(max_workers=len(pairs)) as pool:
        flows = [
            pool.submit(payload_rate, ends[source], ends[target], flow, port)
            for port, ((source, target), flow) in enumerate(zip(pairs, offered, strict=True), PORT)
        ]
    payload = sum(each.result() for each in flows)
    return payload / payload_bytes_per_s(1.0, overlay.mtu)
