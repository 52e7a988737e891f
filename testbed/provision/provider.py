"""The findings of a provider of hosts: hosts are containers that the testbed makes, or machines that exist."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from testbed.provision.state import MachineState

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
