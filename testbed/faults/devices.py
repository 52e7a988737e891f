"""The devices of a testbed's network in the kernel: their state, single changes, and filters that drop frames."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import IPv4Address
from typing import Any

from testbed.network.apply import FABRIC, apply, read_shape, shell_of
from testbed.network.fabric import Script, driver_device, fabric_devices
from testbed.network.machine_shaping import ssh_lines
from testbed.network.shape import Shape, frames_line, segments_line, sends_frames, tc_lines
from testbed.provision.testbed import Testbed

Program = tuple[tuple[int, int, int, int], ...]
"""Instructions: code, jump if true, jump if false, operand."""

_LOAD_HALF, _LOAD_WORD, _JUMP_EQUAL, _RETURN = 40, 32, 21, 6
_ETHERTYPE, _DESTINATION, _IPV4 = 12, 30, 0x0800
_DROP, _CONTINUE = 2, 0xFFFFFFFF
"""TC_ACT_SHOT and TC_ACT_UNSPEC, as an unsigned number."""
_HANDLE = "handle 1"


def program(addresses: Iterable[IPv4Address]) -> Program:
    """Return a program that drops IPv4 frames to any of `addresses` (at most 250), and passes all other frames."""
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
    """Return lines for `tc -batch -` that make `device` drop frames for `addresses` on entry, and no other frames."""
    code = program(addresses)
    text = ",".join([str(len(code)), *(" ".join(map(str, instruction)) for instruction in code)])
    return (
        f"qdisc replace dev {device} clsact",
        f"filter replace dev {device} ingress protocol all prio 1 {_HANDLE} bpf bytecode '{text}' direct-action",
    )


def parse_programs(filters: Sequence[Mapping[str, Any]]) -> list[Program]:
    """Return the programs in force, from `tc -j filter show dev … ingress` (decoded)."""
    return [
        tuple((i["code"], i["jt"], i["jf"], i["k"]) for i in each["options"]["bytecode"]["insns"])
        for each in filters
        if "bytecode" in each.get("options", {})
    ]


@dataclass(frozen=True, slots=True, order=True)
class Device:
    """A device by its name, on a host or in the fabric (empty; on another machine its fabric's place)."""

    host: str
    name: str

    def __str__(self) -> str:
        return f"{self.host or 'fabric'} {self.name}"


def reshape_lines(device: str, now: Shape | None, shape: Shape) -> tuple[str, ...]:
    """Return lines that change the shaping in force into `shape`. Pure.

    They change an existing tree in place, so that no queued frame is lost and no frame passes unshaped.
    """
    lines = tc_lines(device, shape)
    in_place = now is not None and not now.foreign and bool(now.impairment) == bool(shape.impairment)
    return tuple(line for line in lines if " root " not in line) if in_place else lines


class Devices:
    """All devices of one testbed, for the duration of one change."""

    def __init__(self, testbed: Testbed) -> None:
        self._places = testbed.places()
        self._machines = testbed.state.machines
        self._driver = driver_device(testbed.name)
        self._at = fabric_devices(testbed.topology)
        self._fabrics = dict.fromkeys((FABRIC, *self._at.values()))

    def shape(self, device: Device) -> Shape | None:
        """Return the shaping of a device; None if it has none. The filters of cuts are not shaping."""
        found = read_shape(device.name, self._places[device.host])
        if found is None:
            return None
        return replace(found, foreign=tuple(each for each in found.foreign if not each.startswith("qdisc clsact")))

    def set_shape(self, device: Device, shape: Shape | None) -> None:
        """Set the shaping of a device; None removes it.

        A host hands single frames to a NIC whose queue is short, as in the declared network. Machines that exist keep
        what `up` set there.
        """
        now = self.shape(device)
        if shape is not None:
            lines = reshape_lines(device.name, now, shape)
        else:
            lines = (f"qdisc del dev {device.name} root",) if now is not None else ()
        if shape is not None and device.host in self._machines:
            lines += ssh_lines(device.name, self._machines[device.host].ssh_port)
        links: tuple[str, ...] = ()
        if shape is not None and device.host not in (*self._fabrics, *self._machines):
            links = (frames_line(device.name) if sends_frames(shape) else segments_line(device.name),)
        apply(Script(ip=links, tc=lines), self._places[device.host])

    def hand_frames(self, *, single: bool) -> None:
        """Make this machine's connections hand single frames to the fabric, or as many at once as the kernel does.

        An uplink's queue is the first that their packets meet; a short one drops a packet of many frames whole.
        """
        line = frames_line(self._driver) if single else segments_line(self._driver)
        apply(Script(ip=(line,)))

    def links_down(self) -> set[str]:
        """Return the devices of the fabric that are down."""
        links = [(place, link) for place in self._fabrics for link in self._json(place, "ip", "-j", "link", "show")]
        return {
            str(link["ifname"])
            for place, link in links
            if "UP" not in link["flags"] and place == self._fabric_of(link["ifname"])
        }

    def set_link(self, name: str, *, up: bool) -> None:
        """Set a device of the fabric up or down; the far end gains or loses its carrier."""
        apply(Script(ip=(f"link set dev {name} {'up' if up else 'down'}",)), self._places[self._fabric_of(name)])

    def filters(self) -> dict[str, list[Program]]:
        """Return the programs on devices of the fabric, also for devices with an empty filter qdisc."""
        found = {}
        for place in self._fabrics:
            for qdisc in self._json(place, "tc", "-j", "qdisc", "show"):
                if qdisc.get("kind") == "clsact" and place == self._fabric_of(name := str(qdisc["dev"])):
                    shown = self._json(place, "tc", "-j", "filter", "show", "dev", name, "ingress")
                    found[name] = parse_programs(shown)
        return found

    def set_lost(self, name: str, addresses: frozenset[IPv4Address]) -> None:
        """Make a device of the fabric drop frames for these addresses on entry; without addresses it drops none."""
        lines = cut_lines(name, addresses) if addresses else (f"qdisc del dev {name} clsact",)
        apply(Script(tc=lines), self._places[self._fabric_of(name)])

    def _fabric_of(self, name: str) -> str:
        return self._at.get(name, FABRIC)

    def _json(self, place: str, *command: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(shell_of(place, self._places[place]).run(command).stdout or "[]")
        return found
