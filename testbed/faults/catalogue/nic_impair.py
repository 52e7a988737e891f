"""Frames that arrive damaged, twice, or out of order, as on a bad cable or over several paths."""

from dataclasses import dataclass, replace
from typing import ClassVar

from testbed.errors import UsageError
from testbed.faults.fault import parameter
from testbed.faults.network import EVERY_NIC, NetworkFault, with_nics
from testbed.faults.parameters import Direction, direction, known_nic, machine_of, name, share_or_none
from testbed.hosts import Shell
from testbed.provision.machine import no_netem, no_netem_on
from testbed.provision.testbed import Testbed
from testbed.topology.links import Impairment, Nic
from testbed.topology.model import Topology
from testbed.units import format_share

OVERTAKES_US = 1000
"""The delay that a NIC gets with `reorder`, unless its topology declares one: netem lets frames overtake a delay."""


@dataclass(frozen=True)
class NicImpair(NetworkFault):
    """netem corrupts one bit of a share of the frames, sends a share twice, or lets a share overtake the others."""

    kind: ClassVar[str] = "nic-impair"
    summary: ClassVar[str] = "a share of a host's frames is corrupted, duplicated or reordered"

    host: str = parameter("the host", name)
    corrupt: int = parameter("the share with one wrong bit, such as 1%", share_or_none, format_share, default=0)
    duplicate: int = parameter("the share that comes twice", share_or_none, format_share, default=0)
    reorder: int = parameter("the share that overtakes the others", share_or_none, format_share, default=0)
    direction: Direction = parameter(  # noqa: RUF009 - a field
        "transmit, receive or both", direction, default=Direction.BOTH
    )
    nic: str = parameter("one NIC; all: every one", name, default=EVERY_NIC)

    @classmethod
    def lacking(cls) -> str:
        """See `Fault.lacking`."""
        return no_netem()

    @classmethod
    def lacking_on(cls, shell: Shell | None) -> str:
        """See `Fault.lacking_on`: asks the kernel that has the hosts' NICs."""
        return "" if shell is None else no_netem_on(shell)

    def lacking_in(self, testbed: Testbed) -> str:
        """See `Fault.lacking_in`: asks the kernel that has the host's NIC."""
        machine = machine_of(testbed.topology, self.host)
        return self.lacking_on(testbed.machine_shells[machine]) if machine else self.lacking()

    def check(self, topology: Topology) -> None:
        """See `Fault.check`."""
        known_nic(topology, self.host, self.nic, EVERY_NIC)
        if not (self.corrupt or self.duplicate or self.reorder):
            raise UsageError("no share is given: corrupt, duplicate or reorder, such as corrupt=1%")

    def reshaped(self, topology: Topology) -> Topology:
        """See `NetworkFault.reshaped`."""
        return with_nics(topology, self.host, self.nic, self._changed)

    def _changed(self, nic: Nic) -> Nic:
        sends, receives = self.direction.transmits, self.direction.receives
        return replace(
            nic,
            tx_impairment=self.worse(nic.tx_impairment) if sends else nic.tx_impairment,
            rx_impairment=self.worse(nic.rx_impairment) if receives else nic.rx_impairment,
        )

    def worse(self, declared: Impairment) -> Impairment:
        """Return a link's impairment under this fault. Pure."""
        return replace(
            declared,
            delay_us=declared.delay_us or (OVERTAKES_US if self.reorder else 0),
            corrupt_ppm=max(declared.corrupt_ppm, self.corrupt),
            duplicate_ppm=max(declared.duplicate_ppm, self.duplicate),
            reorder_ppm=max(declared.reorder_ppm, self.reorder),
        )


FAULT = NicImpair
