"""The kernel's announcements of changes of traffic control and of links, and a program that prints them.

Standard library only: the driver gives this source to the Python of a machine that exists. The program prints `ready`
once the kernel has its subscription, and from then on a line for each change: what, and the device. It ends with its
standard input, that is at the latest with the connection.
"""

from __future__ import annotations

import errno
import os
import select
import socket
import struct
import sys
from collections.abc import Iterator, Mapping

GROUPS = 1 << 0 | 1 << 3
"""RTMGRP_LINK and RTMGRP_TC."""
BUFFER_BYTES = 1 << 16
READY = "ready"
SHAPING, DOWN = "shaping", "down"
ADDRESS, OFFLOAD, MTU, ROUTES = "address", "offload", "mtu=", "routes"
"""An address came or went; an offload was switched; the device has the MTU that follows, changed or not; a route that
the kernel has not made itself came or went, of no device."""
NO_DEVICE = 0
_NEW_LINK, _DELETED_LINK = 16, 17
"""RTM_NEWLINK and RTM_DELLINK. The second is of a port that left its bridge as well: then it carries nothing either."""
_ADDRESSES = frozenset({20, 21})
"""RTM_NEWADDR and RTM_DELADDR."""
_TRAFFIC_CONTROL = frozenset({36, 37, 40, 41, 44, 45})
"""RTM_NEWQDISC, RTM_DELQDISC, and the same of classes and filters."""
_ROUTES, _OF_KERNEL = frozenset({24, 25}), 2
"""RTM_NEWROUTE and RTM_DELROUTE; RTPROT_KERNEL, of a route that belongs to an address."""
_IFF_UP = 1
_IFLA_MTU, _IFLA_EVENT, _EVENT_FEATURES = 4, 44, 2
_HEADER, _LINK, _ATTRIBUTE = struct.Struct("=IHHII"), struct.Struct("=BxHiII"), struct.Struct("=HH")


def announced(message: bytes) -> Iterator[tuple[int, str]]:
    """Yield the devices (by index) that a datagram of rtnetlink names, with what changed. Pure."""
    at = 0
    while at + _HEADER.size <= len(message):
        length, kind, _flags, _sequence, _port = _HEADER.unpack_from(message, at)
        body = at + _HEADER.size
        if kind in _TRAFFIC_CONTROL:  # struct tcmsg: family, padding, index
            yield struct.unpack_from("=Bxxxi", message, body)[1], SHAPING
        elif kind == _NEW_LINK:  # struct ifinfomsg: family, padding, type, index, flags
            _family, _type, index, flags, _changed = _LINK.unpack_from(message, body)
            if not flags & _IFF_UP:
                yield index, DOWN
            found = _numbers(message, body + _LINK.size, at + length)
            if found.get(_IFLA_EVENT) == _EVENT_FEATURES:
                yield index, OFFLOAD
            if _IFLA_MTU in found:
                yield index, f"{MTU}{found[_IFLA_MTU]}"
        elif kind == _DELETED_LINK:
            yield _LINK.unpack_from(message, body)[2], DOWN
        elif kind in _ADDRESSES:  # struct ifaddrmsg: family, length of the prefix, flags, scope, index
            yield struct.unpack_from("=4xi", message, body)[0], ADDRESS
        elif kind in _ROUTES and message[body + 5] != _OF_KERNEL:  # struct rtmsg: the sixth byte is its protocol
            yield NO_DEVICE, ROUTES
        at += max(_HEADER.size, (length + 3) & ~3)


def _numbers(message: bytes, at: int, end: int) -> Mapping[int, int]:
    """Return the attributes of a message that are one number of 32 bits: type → number."""
    found = {}
    while at + _ATTRIBUTE.size <= min(end, len(message)):
        length, kind = _ATTRIBUTE.unpack_from(message, at)
        if length == _ATTRIBUTE.size + 4:
            found[kind] = struct.unpack_from("=I", message, at + _ATTRIBUTE.size)[0]
        at += max(_ATTRIBUTE.size, (length + 3) & ~3)
    return found


def main() -> None:
    """Print every change until standard input ends. When the kernel lost some, every device was changed."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE) as kernel:
        kernel.bind((0, GROUPS))  # from here on the kernel keeps every change for this socket
        devices = dict(socket.if_nameindex())
        print(READY, flush=True)
        while True:
            readable, _, _ = select.select([kernel, sys.stdin], [], [])
            if sys.stdin in readable and not os.read(sys.stdin.fileno(), BUFFER_BYTES):
                return
            if kernel not in readable:
                continue
            try:
                changes = list(announced(kernel.recv(BUFFER_BYTES)))
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    raise
                changes = [(index, SHAPING) for index in devices]
            for index, what in changes:
                if index in devices and what in (SHAPING, DOWN):
                    print(what, devices[index], flush=True)


if __name__ == "__main__":
    main()
