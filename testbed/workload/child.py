"""The base of a load's processes: orders over stdin, reports over stdout. No process outlives its parent.

The clock starts at the wall clock's time and continues with the monotonic clock. So times of all processes of a host
are comparable, and none goes back. A report counts latencies in the buckets of an HDR histogram with two digits.
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

from testbed.workload.records import Envelope, Ints


class LoadClock:
    """A clock in µs since the epoch that never goes back. ``offset_ns`` is wall time less monotonic time."""

    def __init__(self) -> None:
        self.offset_ns = time.time_ns() - time.monotonic_ns()

    def now_us(self) -> int:
        """Return the time in µs since the epoch."""
        return (time.monotonic_ns() + self.offset_ns) // 1000


CLOCK = LoadClock()
"""The clock of this process."""
now_us = CLOCK.now_us

_SUB_BUCKET_BITS = 8  # 2 × 10² values side by side take 8 bits: two digits
_SECOND_US = 1_000_000

Counts = list[tuple[int, list[tuple[int, int]]]]
"""For each second: its end (µs since the epoch), and each bucket's highest value (µs) with its count."""


def highest_equivalent(values_us: Ints) -> Ints:
    """Return the highest value in the bucket of each value."""
    _mantissa, bits = np.frexp(values_us.astype(np.float64))
    shift = np.maximum(bits - _SUB_BUCKET_BITS, 0).astype(np.int64)
    found: Ints = (((values_us >> shift) + 1) << shift) - 1
    return found


def per_second(at_us: Ints, latencies_us: Ints) -> Counts:
    """Return for each second of `at_us` the number of latencies in each bucket."""
    if not len(at_us):
        return []
    seconds = at_us // _SECOND_US
    buckets = highest_equivalent(np.maximum(latencies_us, 1))
    first = int(seconds.min())
    # Both in one number: 42 bits of µs are 50 days.
    both, counts = np.unique(((seconds - first) << 42) | buckets, return_counts=True)
    found: dict[int, list[tuple[int, int]]] = {}
    for key, count in zip(both.tolist(), counts.tolist(), strict=True):
        found.setdefault((first + (key >> 42) + 1) * _SECOND_US, []).append((key & ((1 << 42) - 1), count))
    return list(found.items())


class Orders:
    """Stdin, read in a separate thread. It sets `stopping` at the end of stdin, and `began_us` when the load begins.

    `ends` has a topic, a partition and the offset after its last acknowledged record, for each that producers wrote to.
    It comes before the end of stdin, to consumers only.
    """

    def __init__(self) -> None:
        self._rest = b""
        first = json.loads(self._first_line())
        CLOCK.offset_ns = first["clock_offset_ns"]
        self.spec: dict[str, Any] = first["spec"]
        self.bootstrap: str = first["bootstrap"]
        self.producer: int = first["producer"]
        self.seed: int = first["seed"]
        self.envelopes = {producer: Envelope(keys) for producer, keys in first["envelopes"]}
        self.began_us = 0
        self.paused = False
        self.ends: list[tuple[str, int, int]] = []
        self.going = threading.Event()
        self.stopping = threading.Event()
        # Not PR_SET_PDEATHSIG: it follows the thread that started us, and threads end before their process does.
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
                    os._exit(1)  # the parent is gone
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
            case "end":
                self.ends = [(topic, partition, offset) for topic, partition, offset in order["ends"]]
            case unknown:
                raise ValueError(f"unknown order {unknown!r}")


class Reporter:
    """Stdout, written in a separate thread: neither a slow reader nor the counting delays the load."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[tuple[dict[str, Any], list[int] | Ints] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._write, name="reports", daemon=True)
        self._thread.start()
        self._cpu_s, self._at_s = time.process_time(), time.monotonic()

    def report(self, said: dict[str, Any], times: list[int] | Ints | None = None, *, by_end: bool = False) -> None:
        """Queue a report. `times` are pairs of due time and arrival time, in µs, one after the other.

        A latency belongs to the second of its due time, with `by_end` to the second of its arrival time.
        """
        self._queue.put((said | {"by_end": by_end}, [] if times is None else times))

    def cpu_cores(self) -> float:
        """Return the CPU time of this process since the last call, in cores."""
        cpu_s, at_s = time.process_time(), time.monotonic()
        cores = (cpu_s - self._cpu_s) / max(1e-3, at_s - self._at_s)
        self._cpu_s, self._at_s = cpu_s, at_s
        return round(cores, 4)

    def close(self) -> None:
        """Wait until everything is written."""
        self._queue.put(None)
        self._thread.join()

    def _write(self) -> None:
        while (item := self._queue.get()) is not None:
            said, times = item
            by_end = said.pop("by_end")
            if len(times):
                pairs = np.array(times, np.int64).reshape(-1, 2)
                said["latency"] = per_second(pairs[:, int(by_end)], pairs[:, 1] - pairs[:, 0])
            try:
                sys.stdout.write(json.dumps(said, separators=(",", ":")) + "\n")
                sys.stdout.flush()
            except BrokenPipeError:
                os._exit(1)


def run(main: Callable[[Orders, Reporter], None]) -> None:
    """Run a process of a load to its end; report an error before it exits with status 1."""
    orders, reporter = Orders(), Reporter()
    try:
        main(orders, reporter)
    except Exception as error:
        reporter.report({"error": f"{type(error).__name__}: {error}"})
        reporter.close()
        raise
    reporter.close()
