"""A container that runs commands as root in the machine's namespaces, for a user who is not root.

A user of the engine's group may start such containers. This one shares the machine's network and its process
numbers. The process that needs it starts one, at its first command, in about half a second. The container ends with
that process, also after `kill -9`, since the engine closes its standard input; the engine then removes it.
"""

import atexit
import base64
import errno
import itertools
import json
import os
import socket
import struct
import subprocess
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from testbed.errors import TestbedError
from testbed.network import root_agent
from testbed.software.engine import EngineError, EngineSocket, helper_labels
from testbed.software.image import node_image

START_S = 20.0
LATE_S = 5.0
"""Seconds that an answer may come after the timeout of its command."""
_KEPT_BYTES = 2000
CAPABILITIES = ("NET_ADMIN", "SYS_ADMIN", "SYS_PTRACE")
"""To change networks, to enter namespaces, and to find those of other processes."""
LOOP_DEVICES = ("b 7:* rwm", "c 10:237 rwm")
"""The disks of hosts are on loop devices."""


class RootContainerGone(TestbedError):
    """The root container ended, or the engine closed its connection."""


class RemoteSubscription:
    """A `Subscription` in a root container."""

    def __init__(self, container: "RootContainer", number: int, devices: Mapping[int, str]) -> None:
        self._container = container
        self._number = number
        self.devices = devices

    def receive(self) -> bytes:
        """Return the next announcement of the kernel, as `Subscription.receive` does there."""
        answer = self._container.request({"do": "receive", "subscription": self._number})
        return base64.b64decode(answer["message"])

    def rules_changed(self) -> bool:
        """Return whether a rule of the firewall was changed since the last call."""
        return bool(self._container.request({"do": "rules", "subscription": self._number})["changed"])

    def close(self) -> None:
        """Close the sockets; with the container they are closed already."""
        if self._container.alive:
            self._container.request({"do": "close", "subscription": self._number})


class RootContainer:
    """A running root container of this process. Any thread may use it."""

    def __init__(self, engine: EngineSocket, image: str) -> None:
        self._pid = os.getpid()
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._waiting: dict[int, Future[dict[str, Any]]] = {0: Future()}
        self._errors = b""
        self._gone = False
        greeting = self._waiting[0]
        self._connection = engine.start_attached(definition(image))
        threading.Thread(target=self._read, daemon=True).start()
        try:
            facts = _in_time(greeting, START_S)
            if facts["net"] != str(Path("/proc/self/ns/net").readlink()):
                raise TestbedError(
                    "the container engine does not run in this machine's network (Docker Desktop, or a container "
                    "around this process): install an engine here, or run the testbed where the engine runs"
                )
        except BaseException:
            self.close()
            raise
        self.machine_pid: int = facts["pid"]
        """A process of the machine's own network namespace, by the machine's process numbers."""

    @classmethod
    def start(cls) -> Self:
        """Start one on the engine of the environment. Raise `TestbedError` on failure."""
        engine = EngineSocket.from_environment()
        return cls(engine, node_image(engine).id)

    @property
    def alive(self) -> bool:
        """Return whether it serves this process; a forked process needs its own."""
        return not self._gone and self._pid == os.getpid()

    def run(self, words: Sequence[str], *, stdin: bytes = b"", timeout_s: float) -> subprocess.CompletedProcess[bytes]:
        """Run a command as `subprocess.run` does, with its output captured."""
        request = {"do": "run", "words": list(words), "stdin": base64.b64encode(stdin).decode(), "timeout_s": timeout_s}
        try:
            answer = self.request(request, timeout_s=timeout_s + LATE_S)
        except OSError as error:
            if error.errno == errno.ETIMEDOUT:
                raise subprocess.TimeoutExpired(list(words), timeout_s) from error
            raise
        out, err = (base64.b64decode(answer[part]) for part in ("stdout", "stderr"))
        return subprocess.CompletedProcess(list(words), answer["status"], out, err)

    def subscribe(self, pid: int) -> RemoteSubscription:
        """Subscribe to the announcements in the network namespace of a process. Raise OSError."""
        number = next(self._numbers)
        answer = self.request({"do": "subscribe", "pid": pid}, number=number)
        return RemoteSubscription(self, number, dict(answer["devices"]))

    def request(
        self, document: Mapping[str, Any], *, number: int | None = None, timeout_s: float = START_S
    ) -> dict[str, Any]:
        """Return the answer to a request. Raise the OSError that it names, or `RootContainerGone`."""
        number = next(self._numbers) if number is None else number
        answer: Future[dict[str, Any]] = Future()
        with self._lock:
            if self._gone:
                raise self._why_gone()
            self._waiting[number] = answer
            try:
                self._connection.sendall(json.dumps({"id": number, **document}).encode() + b"\n")
            except OSError as error:
                raise self._why_gone() from error
        reply = _in_time(answer, timeout_s)
        if code := reply.get("errno"):
            raise OSError(code, os.strerror(code), reply.get("file"))
        return reply

    def close(self) -> None:
        """End the container."""
        with suppress(OSError):  # the other side has closed it
            # Not only `close`: the reading thread holds the connection, too.
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()

    def _read(self) -> None:
        """Read the answers until the connection ends. Each piece has a header: stream, three zeros, its length."""
        rest = b""
        try:
            with self._connection.makefile("rb") as stream:
                while header := stream.read(8):
                    kind, size = struct.unpack(">B3xI", header)
                    piece = stream.read(size)
                    if kind != 1:
                        self._errors = (self._errors + piece)[-_KEPT_BYTES:]
                        continue
                    *lines, rest = (rest + piece).split(b"\n")
                    for line in lines:
                        answer = json.loads(line)
                        with self._lock:
                            waiting = self._waiting.pop(answer["id"], None)
                        if waiting is not None:
                            waiting.set_result(answer)
        except (OSError, ValueError, struct.error):
            pass  # the connection was cut in the middle of an answer: the same as its end
        finally:
            with self._lock:
                self._gone = True
                waiting_all, self._waiting = list(self._waiting.values()), {}
            for each in waiting_all:
                each.set_exception(self._why_gone())

    def _why_gone(self) -> RootContainerGone:
        last = self._errors.decode(errors="replace").strip()
        return RootContainerGone(
            "the container that works as root for this user has ended; was the engine stopped or restarted?"
            + (f"\n    {last}" if last else "")
        )


def definition(image: str) -> dict[str, Any]:
    """Return the engine's definition of a root container. Pure, but for the labels of this process."""
    return {
        "Image": image,
        "Entrypoint": [],
        "Cmd": ["python3", "-c", Path(root_agent.__file__).read_text(encoding="utf-8")],
        "OpenStdin": True,
        "StdinOnce": True,
        "AttachStdin": True,
        "AttachStdout": True,
        "AttachStderr": True,
        "Labels": helper_labels("root"),
        "HostConfig": {
            # Not "Privileged": it demands every capability, also those that the engine itself may lack.
            "CapAdd": list(CAPABILITIES),
            "SecurityOpt": ["apparmor=unconfined", "label=disable"],
            "DeviceCgroupRules": list(LOOP_DEVICES),
            "PidMode": "host",
            "NetworkMode": "host",
            "UsernsMode": "host",
            "AutoRemove": True,
        },
    }


def _in_time(answer: Future[dict[str, Any]], timeout_s: float) -> dict[str, Any]:
    try:
        return answer.result(timeout_s)
    except TimeoutError:
        raise TestbedError(f"the container that works as root gave no answer within {timeout_s:g} s") from None


_starting = threading.Lock()
_current: RootContainer | None = None


def root_container() -> RootContainer:
    """Return this process's root container; start one when it has none. Raise `TestbedError` on failure."""
    global _current  # noqa: PLW0603 - one for the whole process
    with _starting:
        if _current is None or not _current.alive:
            try:
                _current = RootContainer.start()
            except EngineError as error:
                raise TestbedError(f"no container can work as root for this user: {error}") from error
            atexit.register(_current.close)
        return _current
