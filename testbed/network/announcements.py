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
from collections.abc import Iterator

GROUPS = 1 << 0 | 1 << 3
"""RTMGRP_LINK and RTMGRP_TC."""
BUFFER_BYTES = 1 << 16
READY = "ready"
SHAPING, DOWN = "shaping", "down"
_NEW_LINK = 16
_TRAFFIC_CONTROL = frozenset({36, 37, 40, 41, 44, 45})
"""RTM_NEWQDISC, RTM_DELQDISC, and the same of classes and filters."""
_IFF_UP = 1
_HEADER = struct.Struct("=IHHII")


def announced(message: bytes) -> Iterator[tuple[int, str]]:
    """Yield the devices (by index) that a datagram of rtnetlink says were changed or taken down. Pure."""
    at = 0
    while at + _HEADER.size <= len(message):
        length, kind, _flags, _sequence, _port = _HEADER.unpack_from(message, at)
        body = at + _HEADER.size
        if kind in _TRAFFIC_CONTROL:  # struct tcmsg: family, padding, index
            yield struct.unpack_from("=Bxxxi", message, body)[1], SHAPING
        elif kind == _NEW_LINK:  # struct ifinfomsg: family, padding, type, index, flags
            _family, _type, index, flags = struct.unpack_from("=BxHiI", message, body)
            if not flags & _IFF_UP:
                yield index, DOWN
        at += max(_HEADER.size, (length + 3) & ~3)


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
                if index in devices:
                    print(what, devices[index], flush=True)


if __name__ == "__main__":
    main()
