"""The load of all machines of a testbed as one: the busiest machine counts, since each may slow Kafka."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from results.contract.schema import Sample
from testbed.errors import TestbedError
from testbed.hosts import Shell
from testbed.probes.machine import machine_probe

_READ = (
    "head -n 1 /proc/stat; grep MemAvailable: /proc/meminfo; "
    'for r in memory io; do sed -n "s/^full/$r/p" /proc/pressure/$r 2>/dev/null; done; true'
)
_HIGHEST, _LOWEST, _SUM = ("cpu.busy", "cpu.steal"), ("memory.available",), ("pressure.memory", "pressure.io")


@dataclass(frozen=True, slots=True)
class LoadReading:
    """What one machine counted since its boot: clock ticks of all cores, memory that is available, pressure."""

    busy: int
    steal: int
    total: int
    gauges: Mapping[str, float] = field(default_factory=dict)

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


def worst(samples: Iterable[Sample], others: Iterable[Mapping[str, float]]) -> tuple[Sample, ...]:
    """Return the samples of this machine, each with the value of the machine that is worst. Pure.

    Counters of pressure are added up: their growth is then the growth on all machines.
    """
    readings = list(others)
    found = []
    for sample in samples:
        values = [sample.value, *(reading[sample.metric] for reading in readings if sample.metric in reading)]
        if sample.metric in _HIGHEST:
            value = max(values)
        elif sample.metric in _LOWEST:
            value = min(values)
        else:
            value = sum(values) if sample.metric in _SUM else sample.value
        found.append(Sample(sample.ts_us, sample.host, sample.metric, value))
    return tuple(found)


def machines_probe(others: Mapping[str, Shell]) -> Callable[[], Iterable[Sample]]:
    """Return a function for `Recorder.poll`: the samples of `machine_probe`, of all machines as one."""
    here = machine_probe()
    if not others:
        return here
    last = {name: _read(shell) for name, shell in others.items()}

    def look() -> Iterable[Sample]:
        readings = {name: _read(shell) for name, shell in others.items()}
        loads = [reading.since(last[name]) for name, reading in readings.items()]
        last.update(readings)
        return worst(here(), loads)

    return look


def _read(shell: Shell) -> LoadReading:
    text = shell.run(_READ, timeout_s=10.0).stdout
    try:
        return LoadReading.parse(text)
    except (IndexError, ValueError) as error:
        raise TestbedError(f"{shell.name}: its load was not understood ({error}): {text[:200]!r}") from error
