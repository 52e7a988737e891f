"""The resolved topology: what remains when defaults, roles and hosts have been put together. Immutable,
checked.

Built from YAML by `testbed.topology.load`, or in Python by calling these classes: a Topology that breaks a
rule cannot be made (TopologyError with every mistake).
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from testbed.topology.problems import Problem, TopologyError, field_name
from testbed.units import format_bit_rate, format_size

MIN_RATE_BPS = 8_000
MAX_RATE_BPS = 100_000_000_000
MIN_BURST_BYTES = 1514
"""One full Ethernet frame: a smaller bucket could never let one through at once."""
DEFAULT_BURST_FLOOR_BYTES = 16 * 1024


class Role(StrEnum):
    """What a host does."""

    BROKER = "broker"
    CONTROLLER = "controller"
    BOTH = "both"
    CLIENT = "client"


def default_burst_bytes(rate_bps: int) -> int:
    """Bytes a NIC of this rate may send at once: 1 KiB for each kB that 1 ms carries, 16 KiB at least.

    Measured: with about 1 ms of the rate HTB meets it to 0.3 % and no 50 ms exceeds it by more than 4 %.
    """
    return max(DEFAULT_BURST_FLOOR_BYTES, rate_bps * 128 // 1_000_000)


def max_burst_bytes(rate_bps: int) -> int:
    """The largest burst that still shapes: one second of the rate, at least 16 KiB, at most 1 GiB (tc has 32
    bits)."""
    return min(max(DEFAULT_BURST_FLOOR_BYTES, rate_bps // 8), 2**30)


@dataclass(frozen=True, slots=True)
class Nic:
    """A data NIC. Rates in bits/s on the wire, bursts in bytes; tx is what the host sends, rx what it
    receives."""

    tx_bps: int
    rx_bps: int
    tx_burst_bytes: int
    rx_burst_bytes: int
    name: str = "data0"

    @classmethod
    def symmetric(cls, rate_bps: int, burst_bytes: int | None = None) -> "Nic":
        """A NIC with the same rate both ways; the burst follows from the rate unless given."""
        burst = default_burst_bytes(rate_bps) if burst_bytes is None else burst_bytes
        return cls(tx_bps=rate_bps, rx_bps=rate_bps, tx_burst_bytes=burst, rx_burst_bytes=burst)


@dataclass(frozen=True, slots=True)
class Host:
    """One host. `node_id` and `kafka_version` are None, and `properties` empty, exactly for clients."""

    name: str
    role: Role
    rack: str
    nic: Nic
    node_id: int | None = None
    kafka_version: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        ordered = dict(sorted(self.properties.items()))
        object.__setattr__(self, "properties", MappingProxyType(ordered))

    @property
    def is_broker(self) -> bool:
        """Whether it holds partitions."""
        return self.role in (Role.BROKER, Role.BOTH)

    @property
    def is_controller(self) -> bool:
        """Whether it votes in the metadata quorum."""
        return self.role in (Role.CONTROLLER, Role.BOTH)


@dataclass(frozen=True, slots=True)
class Topology:
    """Hosts in racks. `source` says where it was read from and is no part of its identity."""

    name: str
    hosts: tuple[Host, ...]
    racks: tuple[str, ...] = ("r1",)
    description: str = ""
    source: str | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        # Imported here: the rules are about these classes.
        from testbed.topology.rules import broken_rules

        found = broken_rules(self.name, self.racks, self.hosts)
        if found:
            file = self.source or f"topology {self.name!r}"
            raise TopologyError(Problem(file, None, None, field_name(at.path), at.message) for at in found)

    @property
    def brokers(self) -> tuple[Host, ...]:
        """Hosts that hold partitions, in the file's order."""
        return tuple(host for host in self.hosts if host.is_broker)

    @property
    def controllers(self) -> tuple[Host, ...]:
        """Hosts that vote in the metadata quorum, in the file's order."""
        return tuple(host for host in self.hosts if host.is_controller)

    @property
    def clients(self) -> tuple[Host, ...]:
        """Hosts without Kafka, in the file's order."""
        return tuple(host for host in self.hosts if host.role is Role.CLIENT)

    def host(self, name: str) -> Host:
        """The host of this name; KeyError names the hosts there are."""
        for host in self.hosts:
            if host.name == name:
                return host
        raise KeyError(f"no host {name!r} in {self.name}; there are {', '.join(h.name for h in self.hosts)}")

    def with_kafka_version(self, version: str) -> "Topology":
        """The same topology with every Kafka host at this version."""
        hosts = (h if h.role is Role.CLIENT else replace(h, kafka_version=version) for h in self.hosts)
        return replace(self, hosts=tuple(hosts))

    def to_document(self) -> dict[str, Any]:
        """A plain JSON-able dict in the form of the YAML files, nothing inherited; `load_document` inverts
        it."""
        return {
            "name": self.name,
            "description": self.description,
            "racks": list(self.racks),
            "hosts": {host.name: _host_document(host) for host in self.hosts},
        }

    def digest(self) -> str:
        """Hex SHA-256 over `to_document()`: the same for two files that mean the same."""
        text = json.dumps(self.to_document(), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(text.encode("ascii")).hexdigest()


def _host_document(host: Host) -> dict[str, Any]:
    nic = {
        "name": host.nic.name,
        "tx_rate": format_bit_rate(host.nic.tx_bps),
        "rx_rate": format_bit_rate(host.nic.rx_bps),
        "tx_burst": format_size(host.nic.tx_burst_bytes),
        "rx_burst": format_size(host.nic.rx_burst_bytes),
    }
    document: dict[str, Any] = {"role": host.role.value, "rack": host.rack, "nic": nic}
    if host.role is not Role.CLIENT:
        document["node_id"] = host.node_id
        document["kafka"] = {"version": host.kafka_version, "properties": dict(host.properties)}
    return document
