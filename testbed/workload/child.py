"""What every process of a load has in common: told over stdin, telling over stdout, never outliving its parent.

The first line of stdin is its specification, the following are commands, and the end of stdin means *stop*. When the
process that started it dies, even by kill -9, it ends at once.
"""

import json
import os
import select
import sys
import threading
import time
from collections.abc import Callable, Mapping
from queue import SimpleQueue
from typing import Any

import numpy as np

from testbed.workload.clock import CLOCK
from testbed.workload.hdr import per_second

Report = Callable[[], Mapping[str, Any]]


now_us = CLOCK.now_us


class Orders:
    """Stdin, read in a thread of its own: `stopping` is set at its end, `began_us` once the load begins."""

    def __init__(self) -> None:
        self._rest = b""
        first = json.loads(self._first_line())
        CLOCK.offset_ns = first["clock_offset_ns"]
        self.spec: dict[str, Any] = first["spec"]
        self.bootstrap: str = first["bootstrap"]
        self.producer: int = first["producer"]
        self.seed: int = first["seed"]
        self.began_us = 0
        self.paused = False
        self.going = threading.Event()
        self.stopping = threading.Event()
        # Not PR_SET_PDEATHSIG: that is about the thread that started us, and threads end before their process does.
        self._parent = os.pidfd_open(first["parent"])
        if os.getppid() != first["parent"]:
            os._exit(1)
        threading.Thread(target=self._listen, name="orders", daemon=True).start()

    def _first_line(self) -> bytes:
        while b"\n" not in self._rest:
            read = os.read(0, 65536)
            if not read:
                os._exit(1)
            self._rest += read
        line, _newline, self._rest = self._rest.partition(b"\n")
        return line

    def _listen(self) -> None:
        poller = select.poll()
        poller.register(0, select.POLLIN)
        poller.register(self._parent, select.POLLIN)
        while True:
            for descriptor, _event in poller.poll():
                if descriptor == self._parent:
                    os._exit(1)  # nobody is left to tell anything to
                read = os.read(0, 65536)
                if not read:
                    self.stopping.set()
                    self.going.set()
                    poller.unregister(0)
                self._rest += read
            *lines, self._rest = self._rest.split(b"\n")
            for line in lines:
                self._obey(json.loads(line))

    def _obey(self, order: Mapping[str, Any]) -> None:
        match order["do"]:
            case "go":
                self.began_us = order["begin_us"]
                self.going.set()
            case "pause":
                self.paused = True
            case "resume":
                self.paused = False
            case unknown:
                raise ValueError(f"unknown order {unknown!r}")


class Reporter:
    """Stdout, written in a thread of its own: neither a slow reader nor the counting holds the load up."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[tuple[dict[str, Any], list[int]] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._write, name="reports", daemon=True)
        self._thread.start()
        self._cpu_s, self._at_s = time.process_time(), time.monotonic()

    def tell(self, said: dict[str, Any], times: list[int] | None = None, *, by_end: bool = False) -> None:
        """Say something. `times` are pairs of when a record was due and when it arrived, in µs.

        Latencies belong to the second of the first, with `by_end` to that of the second.
        """
        self._queue.put((said | {"by_end": by_end}, times or []))

    def cpu_cores(self) -> float:
        """What this process took since it was asked last, in cores."""
        cpu_s, at_s = time.process_time(), time.monotonic()
        cores = (cpu_s - self._cpu_s) / max(1e-3, at_s - self._at_s)
        self._cpu_s, self._at_s = cpu_s, at_s
        return round(cores, 4)

    def close(self) -> None:
        """Return once everything is written."""
        self._queue.put(None)
        self._thread.join()

    def _write(self) -> None:
        while (item := self._queue.get()) is not None:
            said, times = item
            by_end = said.pop("by_end")
            if times:
                pairs = np.array(times, np.int64).reshape(-1, 2)
                said["latency"] = per_second(pairs[:, int(by_end)], pairs[:, 1] - pairs[:, 0])
            try:
                sys.stdout.write(json.dumps(said, separators=(",", ":")) + "\n")
                sys.stdout.flush()
            except BrokenPipeError:
                os._exit(1)


def run(main: Callable[[Orders, Reporter], None]) -> None:
    """Run a process of a load to its end; what goes wrong is told before it ends with status 1."""
    orders, reporter = Orders(), Reporter()
    try:
        main(orders, reporter)
    except Exception as error:
        reporter.tell({"error": f"{type(error).__name__}: {error}"})
        reporter.close()
        raise
    reporter.close()
