"""The devices of a testbed's network in the kernel: read, changed one at a time, and filters that drop frames."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import IPv4Address
from typing import Any

from testbed.hosts.host import NamespaceShell
from testbed.network.apply import apply, read_shape
from testbed.network.fabric import Script
from testbed.network.shape import Shape, tc_lines_for
from testbed.provision.testbed import Testbed

Program = tuple[tuple[int, int, int, int], ...]
"""Instructions: code, jump if true, jump if false, operand."""

_LOAD_HALF, _LOAD_WORD, _JUMP_EQUAL, _RETURN = 40, 32, 21, 6
_ETHERTYPE, _DESTINATION, _IPV4 = 12, 30, 0x0800
_DROP, _CONTINUE = 2, 0xFFFFFFFF
"""TC_ACT_SHOT and TC_ACT_UNSPEC, as an unsigned number."""
_HANDLE = "handle 1"


def program(addresses: Iterable[IPv4Address]) -> Program:
    """Drops IPv4 frames to any of `addresses` (at most 250), lets everything else pass."""
    wanted = sorted(addresses)
    if len(wanted) > 250:
        raise ValueError(f"{len(wanted)} addresses; a program's jumps reach over 250")
    last = len(wanted)
    return (
        (_LOAD_HALF, 0, 0, _ETHERTYPE),
        (_JUMP_EQUAL, 0, last + 1, _IPV4),
        (_LOAD_WORD, 0, 0, _DESTINATION),
        *((_JUMP_EQUAL, last - index, 0, int(address)) for index, address in enumerate(wanted)),
        (_RETURN, 0, 0, _CONTINUE),
        (_RETURN, 0, 0, _DROP),
    )


def cut_lines(device: str, addresses: Iterable[IPv4Address]) -> tuple[str, ...]:
    """Lines for `tc -batch -` after which `device` loses what enters it for `addresses`, and nothing else."""
    code = program(addresses)
    text = ",".join([str(len(code)), *(" ".join(map(str, instruction)) for instruction in code)])
    return (
        f"qdisc replace dev {device} clsact",
        f"filter replace dev {device} ingress protocol all prio 1 {_HANDLE} bpf bytecode '{text}' direct-action",
    )


def uncut_lines(device: str) -> tuple[str, ...]:
    """Lines that take the filter away again, with what it hangs on."""
    return (f"qdisc del dev {device} clsact",)


def devices_with_filters(qdiscs: Sequence[Mapping[str, Any]]) -> list[str]:
    """The devices that have filters where frames enter, from `tc -j qdisc show` (decoded)."""
    return [str(qdisc["dev"]) for qdisc in qdiscs if qdisc.get("kind") == "clsact"]


def parse_programs(filters: Sequence[Mapping[str, Any]]) -> list[Program]:
    """The programs in force, from `tc -j filter show dev … ingress` (decoded)."""
    return [
        tuple((i["code"], i["jt"], i["jf"], i["k"]) for i in each["options"]["bytecode"]["insns"])
        for each in filters
        if "bytecode" in each.get("options", {})
    ]


@dataclass(frozen=True, slots=True, order=True)
class Device:
    """A device by its name, on a host or in the fabric (empty)."""

    host: str
    name: str

    def __str__(self) -> str:
        return f"{self.host or 'fabric'} {self.name}"


def reshape_lines(device: str, now: Shape | None, shape: Shape) -> tuple[str, ...]:
    """Lines that turn the shaping in force into `shape`. Pure.

    In place where the tree is there already, so that nothing that is queued is lost and no frame passes unshaped.
    """
    lines = tc_lines_for(device, shape)
    in_place = now is not None and not now.foreign and bool(now.impairment) == bool(shape.impairment)
    return tuple(line for line in lines if " root " not in line) if in_place else lines


class Devices:
    """All devices of one testbed, for the time of one change."""

    def __init__(self, testbed: Testbed) -> None:
        self._fabric, self._hosts = testbed.pids()
        self._shell = NamespaceShell("fabric", self._fabric)

    def shape(self, device: Device) -> Shape | None:
        """How it is shaped now; None when it is not. The filters of cuts are not shaping."""
        found = read_shape(device.name, self._pid(device))
        if found is None:
            return None
        return replace(found, foreign=tuple(each for each in found.foreign if not each.startswith("qdisc clsact")))

    def set_shape(self, device: Device, shape: Shape | None) -> None:
        """Shape it so; None: not at all."""
        now = self.shape(device)
        if shape is not None:
            lines = reshape_lines(device.name, now, shape)
        else:
            lines = (f"qdisc del dev {device.name} root",) if now is not None else ()
        apply(Script(tc=lines), self._pid(device))

    def links_down(self) -> set[str]:
        """The devices of the fabric that are down."""
        links = self._json("ip", "-j", "link", "show")
        return {str(link["ifname"]) for link in links if "UP" not in link["flags"]}

    def set_link(self, name: str, *, up: bool) -> None:
        """Take a device of the fabric up or down; at the far end the cable is in, or is not."""
        apply(Script(ip=(f"link set dev {name} {'up' if up else 'down'}",)), self._fabric)

    def filters(self) -> dict[str, list[Program]]:
        """The programs on devices of the fabric that have any, or that have a place for them."""
        found = devices_with_filters(self._json("tc", "-j", "qdisc", "show"))
        return {
            name: parse_programs(self._json("tc", "-j", "filter", "show", "dev", name, "ingress")) for name in found
        }

    def set_lost(self, name: str, addresses: frozenset[IPv4Address]) -> None:
        """Lose what enters a device of the fabric for these addresses; for none: lose nothing any more."""
        lines = cut_lines(name, addresses) if addresses else uncut_lines(name)
        apply(Script(tc=lines), self._fabric)

    def _pid(self, device: Device) -> int:
        return self._hosts[device.host] if device.host else self._fabric

    def _json(self, *command: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self._shell.run(command).stdout or "[]")
        return found
