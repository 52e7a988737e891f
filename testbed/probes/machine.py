"""The machines of all hosts as one: their CPU load, memory, disk and clock; and this machine's identity.

Of several machines the busiest counts, since each may slow Kafka.
"""

import os
import platform
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from results.contract.schema import Sample
from testbed.cgroups import CpuQuota, own_cpu_quota
from testbed.errors import TestbedError
from testbed.hosts import Shell
from testbed.probes.agent import clock_offset
from testbed.probes.recorder import now_us
from testbed.wait import WaitTimeout, wait_for

MACHINE = "machine"
_LEAST_S = 0.001
_READ = (
    "head -n 1 /proc/stat; grep MemAvailable: /proc/meminfo; "
    'for r in memory io; do sed -n "s/^full/$r/p" /proc/pressure/$r 2>/dev/null; done; true'
)


@dataclass(frozen=True, slots=True)
class LoadReading:
    """What one machine counted since its boot: clock ticks of all cores, memory that is available, pressure.

    `busy` includes `steal`. A pressure is the time in seconds in which every task that was not idle waited for memory
    or for input and output (PSI's `full`); a kernel may not count it.
    """

    busy: int
    steal: int
    total: int
    gauges: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def here(cls, proc: Path = Path("/proc")) -> "LoadReading":
        """Return the reading of this machine."""
        lines = [(proc / "stat").read_text().splitlines()[0]]
        lines += [each for each in (proc / "meminfo").read_text().splitlines() if each.startswith("MemAvailable:")]
        for resource in ("memory", "io"):
            try:
                pressures = (proc / "pressure" / resource).read_text().splitlines()
            except OSError:
                continue  # the kernel does not count it
            lines += [each.replace("full", resource, 1) for each in pressures if each.startswith("full ")]
        return cls.parse("\n".join(lines))

    @classmethod
    def of(cls, shell: Shell) -> "LoadReading":
        """Return the reading of another machine. Raise `TestbedError` when it answers something else."""
        text = shell.run(_READ, timeout_s=10.0).stdout
        try:
            return cls.parse(text)
        except (IndexError, ValueError) as error:
            raise TestbedError(f"{shell.name}: its load was not understood ({error}): {text[:200]!r}") from error

    @classmethod
    def parse(cls, text: str) -> "LoadReading":
        """Return the reading in the output of the command above. Raise `ValueError` for another text."""
        first, *lines = text.splitlines()
        user, nice, system, idle, iowait, irq, softirq, steal = map(int, first.split()[1:9])
        busy = user + nice + system + irq + softirq + steal
        gauges = {}
        for line in lines:
            name, _, rest = line.partition(" ")
            if name == "MemAvailable:":
                gauges["memory.available"] = int(rest.split()[0]) * 1024.0
            else:
                gauges[f"pressure.{name}"] = int(rest.rpartition("total=")[2]) / 1e6
        return cls(busy, steal, busy + idle + iowait, gauges)

    def since(self, before: "LoadReading") -> dict[str, float]:
        """Return metric → value, with the busy and the stolen share of all cores since another reading."""
        total = self.total - before.total
        if total <= 0:
            return dict(self.gauges)
        shares = {"cpu.busy": (self.busy - before.busy) / total, "cpu.steal": (self.steal - before.steal) / total}
        return {**shares, **self.gauges}


_WORST: Mapping[str, Callable[[Sequence[float]], float]] = {
    "memory.available": min,
    # Counters: their growth is then the growth on all machines.
    "pressure.memory": sum,
    "pressure.io": sum,
}


def worst(loads: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the first machine's metrics, each with the value of the machine that is worst. Pure."""
    return {metric: _WORST.get(metric, max)([load[metric] for load in loads if metric in load]) for metric in loads[0]}


class QuotaProbe:
    """The use of a CPU quota between two looks, as a share of it; nothing without a quota, or where it is not counted.

    The quota is that of this process, or of a control group above it: a limited container or service.
    """

    def __init__(self, quota: CpuQuota | None) -> None:
        self._quota = quota
        self._last = self._read()

    def _read(self) -> tuple[float, float] | None:
        used_s = None if self._quota is None else self._quota.used_s()
        return None if used_s is None else (time.monotonic(), used_s)

    def look(self) -> dict[str, float]:
        """Return metric → value since the last look."""
        before, self._last = self._last, self._read()
        if self._quota is None or before is None or self._last is None:
            return {}
        seconds, used_s = self._last[0] - before[0], self._last[1] - before[1]
        return {"cpu.quota": used_s / (self._quota.cpus * seconds)} if seconds > 0 else {}


def machine_probe(others: Mapping[str, Shell] | None = None) -> Callable[[], Iterable[Sample]]:
    """Return a function for `Recorder.poll`: the samples of this machine and of `others`, all machines as one."""
    shells = others or {}

    def read() -> list[LoadReading]:
        return [LoadReading.here(), *map(LoadReading.of, shells.values())]

    last, quota = read(), QuotaProbe(own_cpu_quota())

    def look() -> Iterable[Sample]:
        nonlocal last
        readings = read()
        loads = [now.since(before) for now, before in zip(readings, last, strict=True)]
        last = readings
        values = {**worst(loads), **quota.look(), "clock.offset": clock_offset()}
        ts = now_us()
        return [Sample(ts, MACHINE, metric, value) for metric, value in values.items()]

    return look


def wait_calm(
    busy_highest: float, over_s: float, timeout_s: float, read: Callable[[], LoadReading] = LoadReading.here
) -> bool:
    """Wait until at most this fraction of all cores was busy over `over_s`. Return False after `timeout_s`."""
    last = read()

    def look() -> float:
        nonlocal last
        time.sleep(over_s)  # a fraction is measured over a time
        before, last = last, read()
        return last.since(before).get("cpu.busy", 1.0)

    try:
        wait_for(look, lambda busy: busy <= busy_highest, timeout_s, _LEAST_S, "the machine to be calm")
    except WaitTimeout:
        return False
    return True


def _field(file: str, name: str) -> str:
    lines = Path(file).read_text().splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), "")


def fingerprint() -> dict[str, Any]:
    """Return the machine's identity: figures of different machines are not compared.

    It has a CPU quota only where one limits this process, so that the identity of any other machine stays.
    """
    model = _field("/proc/cpuinfo", "model name") or platform.machine()
    memory = int(_field("/proc/meminfo", "MemTotal").split()[0]) * 1024
    found = {"cpu_model": model, "cores": os.cpu_count() or 1, "memory_bytes": memory, "kernel": platform.release()}
    quota = own_cpu_quota()
    return found if quota is None else {**found, "cpu_quota": quota.cpus}
