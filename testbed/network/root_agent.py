"""The program of a root container: it runs commands in the machine's namespaces, and watches traffic control there.

Standard library only, since it runs in the node image: `testbed.network.root_container` gives its source to Python.
Each line of standard input is a request, each line of standard output an answer. It ends when standard input ends.
"""

import base64
import ctypes
import errno
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

CLONE_NEWNET = 0x40000000
GROUPS = 1 << 0 | 1 << 3 | 1 << 4 | 1 << 6
"""RTMGRP_LINK, RTMGRP_TC, RTMGRP_IPV4_IFADDR and RTMGRP_IPV4_ROUTE."""
NETFILTER, RULES = 12, 1 << 6
"""NETLINK_NETFILTER, and its group NFNLGRP_NFTABLES: nft and today's iptables. The tables before announce nothing."""
BUFFER_BYTES = 1 << 16


class Subscription:
    """Sockets in the network namespace of a process, which receive the kernel's announcements of links and rules.

    Needs CAP_NET_ADMIN and CAP_SYS_ADMIN. Raise OSError when the namespace cannot be entered. The calling thread stays
    in that namespace: it must end.
    """

    def __init__(self, pid: int) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        namespace = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        try:
            if libc.setns(namespace, CLONE_NEWNET) != 0:
                code = ctypes.get_errno()
                raise OSError(code, os.strerror(code))
        finally:
            os.close(namespace)
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE)
        self._socket.bind((0, GROUPS))
        self._socket.setblocking(False)
        self._rules = _rules()
        self.devices: Mapping[int, str] = dict(socket.if_nameindex())

    def receive(self) -> bytes:
        """Return the next announcement. Raise BlockingIOError without one; ENOBUFS when the kernel lost some."""
        return self._socket.recv(BUFFER_BYTES)

    def rules_changed(self) -> bool:
        """Return whether a rule of the firewall was changed since the last call."""
        changed = False
        try:
            while self._rules is not None:
                self._rules.recv(BUFFER_BYTES)
                changed = True
        except BlockingIOError:
            return changed
        except OSError as error:
            if error.errno != errno.ENOBUFS:
                raise
            return True
        return changed

    def close(self) -> None:
        """Close the sockets."""
        self._socket.close()
        if self._rules is not None:
            self._rules.close()


def _rules() -> "socket.socket | None":
    """Return a socket for changes of the firewall; None where the kernel has no such announcements."""
    try:
        found = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, NETFILTER)
    except OSError:
        return None
    try:
        found.bind((0, RULES))
    except OSError:
        found.close()
        return None
    found.setblocking(False)
    return found


class _Agent:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._subscriptions: dict[int, Subscription] = {}

    def serve(self) -> None:
        self._answer(0, {"pid": os.getpid(), "net": str(Path("/proc/self/ns/net").readlink())})
        for line in sys.stdin.buffer:
            request = json.loads(line)
            threading.Thread(target=self._one, args=(request,), daemon=True).start()

    def _one(self, request: Mapping[str, Any]) -> None:
        try:
            answer = getattr(self, f"do_{request['do']}")(request)
        except subprocess.TimeoutExpired:
            answer = {"errno": errno.ETIMEDOUT}
        except OSError as error:
            answer = {"errno": error.errno, "file": error.filename}
        self._answer(request["id"], answer)

    def _answer(self, number: int, answer: Mapping[str, Any]) -> None:
        line = json.dumps({"id": number, **answer}).encode() + b"\n"
        with self._lock:
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()

    def do_run(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        done = subprocess.run(
            request["words"],
            input=base64.b64decode(request["stdin"]),
            capture_output=True,
            timeout=request["timeout_s"],
            check=False,
        )
        out, err = (base64.b64encode(part).decode() for part in (done.stdout, done.stderr))
        return {"status": done.returncode, "stdout": out, "stderr": err}

    def do_subscribe(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        # This thread serves one request, so it may stay in the namespace.
        made = Subscription(request["pid"])
        self._subscriptions[request["id"]] = made
        return {"devices": [[index, name] for index, name in made.devices.items()]}

    def do_receive(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"message": base64.b64encode(self._subscriptions[request["subscription"]].receive()).decode()}

    def do_rules(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"changed": self._subscriptions[request["subscription"]].rules_changed()}

    def do_close(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        self._subscriptions.pop(request["subscription"]).close()
        return {}


if __name__ == "__main__":
    _Agent().serve()
