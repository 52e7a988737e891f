"""Whether the NICs of a testbed are idle: a NIC that carries other traffic cannot be measured."""

import time
from collections.abc import Mapping

from testbed.network.apply import Place, shell_of
from testbed.network.fabric import port
from testbed.network.overlay import fabric_place
from testbed.topology.model import Topology
from testbed.wait import wait_for

OVER_S = 1.0
IDLE_S = 30.0
MOST = 0.02
"""Share of a NIC's rate that other traffic may use. An idle NIC reads 0.997 of its rate or more: with this traffic it
still reads more than 0.95, which is as declared."""


def wait_idle(topology: Topology, places: Mapping[str, Place], timeout_s: float = IDLE_S) -> None:
    """Wait until every NIC carries almost nothing over a second. Raise `WaitTimeout`, which names the busy NICs."""
    rates: dict[str, int] = {}
    counters: dict[str, list[str]] = {}
    # In the order of places: each place's counters are read with one command.
    for number, host in sorted(topology.numbered, key=lambda each: topology.remote_machine_of(each[1])):
        for index, nic in enumerate(host.nics):
            rates[f"{host.name} {nic.name}"] = min(nic.tx_bps, nic.rx_bps)
            # Machines that exist have no switch of the testbed's: each counts at its own end.
            place, device = (
                (host.name, nic.name)
                if topology.exists
                else (
                    fabric_place(topology.remote_machine_of(host)),
                    port(number, index),
                )
            )
            files = [f"/sys/class/net/{device}/statistics/{way}_bytes" for way in ("rx", "tx")]
            counters.setdefault(place, []).extend(files)
    shells = {place: shell_of(place, places[place]) for place in counters}

    def counted() -> list[int]:
        told = [shells[place].run(["cat", *files]).stdout for place, files in counters.items()]
        return [int(line) for text in told for line in text.split()]

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

    wait_for(busy, lambda found: not found, timeout_s, 0.001, "the NICs to be idle")
