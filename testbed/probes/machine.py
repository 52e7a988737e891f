"""The machine of all hosts: its CPU load, memory, disk and clock, and its identity."""

import os
import platform
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from results.contract.schema import Sample
from testbed.probes.agent import clock_offset
from testbed.probes.recorder import now_us
from testbed.wait import WaitTimeout, wait_for

MACHINE = "machine"
CpuTimes = Callable[[], tuple[int, int, int]]
LEAST_S = 0.001


def cpu_times() -> tuple[int, int, int]:
    """Return (busy, stolen, total) clock ticks of all cores since boot; busy includes stolen."""
    fields = [int(field) for field in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    user, nice, system, idle, iowait, irq, softirq, steal = fields
    busy = user + nice + system + irq + softirq + steal
    return busy, steal, busy + idle + iowait


def pressure_seconds(resource: str, folder: Path = Path("/proc/pressure")) -> float | None:
    """Return the seconds since boot in which every task that was not idle waited for `memory` or `io` (PSI's `full`).

    None where the kernel does not count them.
    """
    try:
        lines = (folder / resource).read_text().splitlines()
    except OSError:
        return None
    totals = [line.rpartition("total=")[2] for line in lines if line.startswith("full ")]
    return int(totals[0]) / 1e6 if totals else None


def available_bytes(meminfo: Path = Path("/proc/meminfo")) -> int:
    """Return the memory that processes can have without swapping."""
    lines = meminfo.read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable")) * 1024


def machine_probe() -> Callable[[], Iterable[Sample]]:
    """Return a function for `Recorder.poll`: the samples of `cpu_probe`, and of memory, disk and clock."""
    cpu = cpu_probe()

    def look() -> Iterable[Sample]:
        ts = now_us()
        found = [*cpu(), Sample(ts, MACHINE, "memory.available", float(available_bytes()))]
        found.append(Sample(ts, MACHINE, "clock.offset", clock_offset()))
        pressures = {resource: pressure_seconds(resource) for resource in ("memory", "io")}
        return [
            *found,
            *(Sample(ts, MACHINE, f"pressure.{name}", s) for name, s in pressures.items() if s is not None),
        ]

    return look


def cpu_probe() -> Callable[[], Iterable[Sample]]:
    """Return a function for `Recorder.poll`: the busy and stolen fraction of all cores since its last call."""
    last = cpu_times()

    def look() -> Iterable[Sample]:
        nonlocal last
        current = cpu_times()
        busy, steal, total = (now - before for now, before in zip(current, last, strict=True))
        last = current
        if total <= 0:
            return ()
        ts = now_us()
        return (
            Sample(ts, MACHINE, "cpu.busy", busy / total),
            Sample(ts, MACHINE, "cpu.steal", steal / total),
        )

    return look


def wait_calm(busy_highest: float, over_s: float, timeout_s: float, times: CpuTimes = cpu_times) -> bool:
    """Wait until at most this fraction of all cores was busy over `over_s`. Return False after `timeout_s`."""
    last = times()

    def look() -> float:
        nonlocal last
        time.sleep(over_s)  # a fraction is measured over a time
        current = times()
        busy, total = current[0] - last[0], current[2] - last[2]
        last = current
        return busy / total if total > 0 else 1.0

    try:
        wait_for(look, lambda busy: busy <= busy_highest, timeout_s, LEAST_S, "the machine to be calm")
    except WaitTimeout:
        return False
    return True


def fingerprint() -> dict[str, Any]:
    """Return the machine's identity: figures of different machines are not compared."""
    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    memory = next(
        int(line.split()[1]) * 1024
        for line in Path("/proc/meminfo").read_text().splitlines()
        if line.startswith("MemTotal")
    )
    return {
        "cpu_model": model,
        "cores": os.cpu_count() or 1,
        "memory_bytes": memory,
        "kernel": platform.release(),
    }
