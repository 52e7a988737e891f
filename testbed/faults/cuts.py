"""Frames that a switch's port loses: a filter where they enter the fabric, by the address they are for. Pure.

The filter is a classic BPF program, because that is what every kernel that can shape has; of the other ways to drop
(u32 with gact, flower, nftables) one or the other is missing here or there. ARP passes: the cut is of IP.
"""

from collections.abc import Iterable, Mapping, Sequence
from ipaddress import IPv4Address
from typing import Any

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
