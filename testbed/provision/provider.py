"""Where the hosts of a testbed come from: containers that the testbed makes, or machines that exist.

The testbed's own code uses hosts, addresses and places, and asks its provider only for the steps below.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from testbed.network.apply import Place
from testbed.network.watch import ShapingWatch
from testbed.provision.plan import ClusterIdentity
from testbed.provision.state import MachineState, TestbedState

if TYPE_CHECKING:
    from testbed.provision.testbed import Testbed

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Requirements:
    """What a provider found before anything is made: digests of what hosts consist of, and the machines that exist."""

    digests: Mapping[str, str]
    machines: Mapping[str, MachineState] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class HostPlatform:
    """What hosts run on: the engine and its storage driver, as a run records them."""

    engine: str
    storage_driver: str


class Provider(Protocol):
    """How hosts come to be, and how the kernel's network of each is reached."""

    def require(self, testbed_name: str, progress: Progress) -> Requirements:
        """Check everything that the topology needs. Raise `TestbedError`; nothing is made or changed then."""

    def allocate(self, state: TestbedState) -> TestbedState:
        """Reserve what identifies the testbed, such as its addresses, and return the state with it."""

    def make(self, testbed: "Testbed", identity: ClusterIdentity, progress: Progress) -> None:
        """Make the hosts: files, software and shaped NICs, ready to start servers. Raise `TestbedError`."""

    def runs(self, state: TestbedState) -> bool:
        """Return whether any host of a testbed that is up still runs."""

    def places(self, testbed: "Testbed") -> Mapping[str, Place]:
        """Return the network namespace of each host that runs, and of the fabric (named by the empty text)."""

    def watch_shaping(self, testbed: "Testbed") -> ShapingWatch:
        """Return a watch of every change of the traffic control of all places."""

    def platform(self) -> HostPlatform:
        """Return what the hosts run on."""
