"""Whether the NICs of a testbed are idle: a NIC that carries other traffic cannot be measured."""

import time

from testbed.hosts.host import NamespaceShell
from testbed.network.fabric import port
from testbed.topology.model import Topology
from testbed.wait import wait_for

OVER_S = 1.0
IDLE_S = 30.0
MOST = 0.02
"""Share of a NIC's rate that other traffic may use. An idle NIC reads 0.997 of its rate or more: with this traffic it
still reads more than 0.95, which is as declared."""


def wait_idle(topology: Topology, fabric_pid: int, timeout_s: float = IDLE_S) -> None:
    """Wait until every NIC carries almost nothing over a second. Raise `WaitTimeout`, which names the busy NICs."""
    shell = NamespaceShell("fabric", fabric_pid)
    rates = {
        f"{host.name} {nic.name}": (port(number, index), min(nic.tx_bps, nic.rx_bps))
        for number, host in topology.numbered
        for index, nic in enumerate(host.nics)
    }
    counters = [
        f"/sys/class/net/{device}/statistics/{way}_bytes" for device, _bps in rates.values() for way in ("rx", "tx")
    ]

    def counted() -> list[int]:
        return [int(line) for line in shell.run(["cat", *counters]).stdout.split()]

    def busy() -> list[str]:
        before, begun = counted(), time.monotonic()
        time.sleep(OVER_S)  # a rate is measured over a time
        seconds = time.monotonic() - begun
        grown = [(now - then) / seconds for now, then in zip(counted(), before, strict=True)]
        return [
            f"{name} carries {8 * max(grown[2 * place : 2 * place + 2]) / 1e6:.1f} mbit/s"
            for place, (name, (_device, bps)) in enumerate(rates.items())
            if 8 * max(grown[2 * place : 2 * place + 2]) > MOST * bps
        ]

    wait_for(busy, lambda found: not found, timeout_s, 0.001, "the NICs to be idle")
