"""Measuring NICs: what one really carries, each way, before anything is judged with it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from testbed.errors import TestbedError
from testbed.hosts import CommandFailed, Shell
from testbed.network.addresses import AddressPlan
from testbed.network.shape import payload_bytes_per_s
from testbed.topology.model import Topology
from testbed.wait import wait_for

Direction = Literal["transmit", "receive"]
PORT = 5201
FABRIC = "<fabric>"
"""Stands for the switch in a transfer; no host can have this name."""
MEASURE_S = 2.0
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
class Transfer:
    """One measurement: `source` sends to `target`; it measures the ends in `measures`."""

    source: str
    target: str
    measures: tuple[tuple[str, Direction], ...]


def transfers(topology: Topology) -> tuple[Transfer, ...]:
    """Which transfers measure every NIC both ways, as few as can be. Pure.

    Hosts send around a ring. A transfer measures the slower of its two ends (both when they are alike); an end
    that is faster than its partner is measured against the fabric itself, which is not shaped.
    """
    hosts = topology.hosts
    found: list[Transfer] = []
    for index, source in enumerate(hosts):
        target = hosts[(index + 1) % len(hosts)]
        sends, receives = source.nic.tx_bps, target.nic.rx_bps
        if source is target:
            sends, receives = 0, 0
        ends: list[tuple[str, Direction]] = []
        if sends and sends <= receives:
            ends.append((source.name, "transmit"))
        if receives and receives <= sends:
            ends.append((target.name, "receive"))
        if ends:
            found.append(Transfer(source.name, target.name, tuple(ends)))
    measured = {end for transfer in found for end in transfer.measures}
    for host in hosts:
        if (host.name, "transmit") not in measured:
            found.append(Transfer(host.name, FABRIC, ((host.name, "transmit"),)))
        if (host.name, "receive") not in measured:
            found.append(Transfer(FABRIC, host.name, ((host.name, "receive"),)))
    return tuple(found)


def measure(topology: Topology, plan: AddressPlan, hosts: Mapping[str, Shell], fabric: Shell) -> tuple[NicRate, ...]:
    """Measure every NIC each way, one transfer at a time, 2 s each. Raises `TestbedError` when one did not happen."""
    rates: dict[tuple[str, Direction], float] = {}
    for transfer in transfers(topology):
        source = fabric if transfer.source == FABRIC else hosts[transfer.source]
        target = fabric if transfer.target == FABRIC else hosts[transfer.target]
        address = str(plan.fabric if transfer.target == FABRIC else plan.data_ip(transfer.target))
        rate = _transfer(source, target, address)
        rates |= dict.fromkeys(transfer.measures, rate)
    found = []
    for host in topology.hosts:
        ways: tuple[tuple[Direction, int], ...] = (("transmit", host.nic.tx_bps), ("receive", host.nic.rx_bps))
        for direction, declared in ways:
            rate = rates[host.name, direction]
            ratio = rate / payload_bytes_per_s(declared)
            found.append(NicRate(host.name, host.nic.name, direction, declared, rate, ratio, MEASURE_S))
    return tuple(found)


def _transfer(source: Shell, target: Shell, address: str) -> float:
    """Payload bytes per second from `source` to `target`, as the receiver counted them."""
    pid_file = f"/run/iperf3-{source.name}.pid"
    target.run(["iperf3", "-s", "-1", "-D", "-B", address, "-p", str(PORT), "-I", pid_file])
    client = ["iperf3", "-c", address, "-p", str(PORT), "-t", f"{MEASURE_S:g}", "-J", "--connect-timeout", "2000"]
    try:
        # The server tells nobody when it listens: a refused connection is tried again.
        result = wait_for(
            lambda: source.run(client, timeout_s=30, check=False),
            lambda result: result.exit_status == 0 or "refused" not in result.stdout,
            timeout_s=5.0,
            interval_s=0.05,
            what=f"the receiver on {target.name} to listen at {address}:{PORT}",
        )
        if result.exit_status != 0:
            raise CommandFailed(source.name, result)
        return float(json.loads(result.stdout)["end"]["sum_received"]["bits_per_second"]) / 8
    except (KeyError, ValueError) as error:
        raise TestbedError(f"{source.name}: iperf3's answer was not understood: {error}") from error
    finally:
        # `-1` ends the server after one client; this is for a client that never came.
        target.run(f"[ -s {pid_file} ] && kill $(tr -d '\\0' < {pid_file}) 2>/dev/null; rm -f {pid_file}", check=False)
