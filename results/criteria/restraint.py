"""What held a broker back from outside: a signal, a paused container, a CPU limit, a full disk, or its end. Pure.

No broker does any of this to itself: one that ends by itself says why in its log. So what it explains is the machine's,
whatever else a broker does wrong. Nothing tells what filled a disk: then nothing is judged that depends on it.
"""

from collections.abc import Iterator, Mapping

import numpy as np

from results.criteria.quantities import GAP_S, US, at, percent, size
from results.criteria.run_view import RunView
from results.criteria.series import RunSeries
from results.criteria.standstill import MOST, OVER_S, highest_share
from results.criteria.unfit import KAFKA_CPU
from results.criteria.windows import counted

STOPPED, LATE, THROTTLED, CPUS = "jvm.stopped", "agent.late", "cpu.throttled.seconds", "jvm.cpus"
FREE, MEMORY, DISK = "disk.free.bytes", "memory.limited", "disk.limited"
METRICS = (STOPPED, LATE, THROTTLED, CPUS, FREE, MEMORY, DISK, KAFKA_CPU)
FULL = "its disk was full"
LEAST_FREE_BYTES = 16e6
"""A broker makes two index files of 10 MB for a new segment. With less it stops at the next one, if not before."""
OWN = ("broker.leaving", "broker.killed")
"""The events of a broker that the run itself ends."""
LATE_S = 1.0
"""The longest time by which an agent may wake up late. Clients may wait for a second, and a steady mean of three quota
windows loses 3 % by it, of 5 % that it may lack. On a machine with idle CPUs an agent is late by milliseconds."""


def held_back(run: RunView) -> Mapping[str, list[str]]:
    """Return what held the brokers of a run back from outside, in words, by host; empty where nothing did.

    Where the topology limits the CPUs of a host, the limit holds its broker back as it is declared to.
    """
    hosts = run.manifest.topology.document.get("hosts", {})
    limited = {name for name, host in hosts.items() if host.get("cpus") is not None}
    slow = {name for name, host in hosts.items() if "bandwidth" in (host.get("disk") or {})}
    started = run.measures.started_us or 0
    found = {
        host: [
            *restraints(run.series, host, started, limited=host in limited),
            *([] if host in slow else _slow_disk(run.series, host, started)),
            *_ended(run, host, started),
        ]
        for host in run.brokers
    }
    return {host: why for host, why in found.items() if why}


def restraints(run: RunSeries, host: str, started_us: int, *, limited: bool) -> list[str]:
    """Return what held one broker back while it was sampled; `limited`: the topology limits the CPUs of its host."""
    found = [*_stopped(run, host, started_us), *_full(run, host, started_us), *_little_memory(run, host)]
    return found if limited else [*found, *_paused(run, host, started_us), *_throttled(run, host), *_fewer(run, host)]


def _at(us: int, started_us: int) -> str:
    return at((us - started_us) / US)


def _stopped(run: RunSeries, host: str, started_us: int) -> Iterator[str]:
    stopped = run.gauge(STOPPED, host)
    when = stopped.t[stopped.value > 0]
    if len(when):
        readings = f"{len(when)} readings" if len(when) > 1 else "1 reading"
        yield f"a signal had stopped its process (SIGSTOP) in {readings}, first at {_at(int(when[0]), started_us)}"


def _full(run: RunSeries, host: str, started_us: int) -> Iterator[str]:
    free = run.gauge(FREE, host)
    when = free.t[free.value < LEAST_FREE_BYTES]
    if len(when):
        yield f"{FULL}, {size(float(np.min(free.value)))} free, first at {_at(int(when[0]), started_us)}"


def _little_memory(run: RunSeries, host: str) -> Iterator[str]:
    """Yield that a limit of memory was reached: no topology declares one."""
    if times := counted(run.gauge(MEMORY, host).value):
        yield f"its processes reached a limit of memory {times:.0f} times, and the topology declares none"


def _slow_disk(run: RunSeries, host: str, started_us: int) -> Iterator[str]:
    slow = run.gauge(DISK, host)
    when = slow.t[slow.value > 0]
    if len(when):
        first = _at(int(when[0]), started_us)
        yield f"the rate of its disk was limited, first at {first}, and the topology declares no limit"


def _paused(run: RunSeries, host: str, started_us: int) -> Iterator[str]:
    late = run.gauge(LATE, host)
    if len(late) and (longest := float(np.max(late.value))) > LATE_S:
        when = _at(int(late.t[int(np.argmax(late.value))]), started_us)
        yield f"its agent was {longest:.1f} s late at {when}: its container was paused, or had no CPU"


def _throttled(run: RunSeries, host: str) -> Iterator[str]:
    throttled = run.gauge(THROTTLED, host)
    if len(throttled) > 1:
        share = highest_share(throttled, [(int(throttled.t[0]), int(throttled.t[-1]))])
        if share is not None and share > MOST:
            yield f"a CPU limit that the topology does not declare held it back for {percent(share)} of {OVER_S:g} s"


def _fewer(run: RunSeries, host: str) -> Iterator[str]:
    cpus = run.gauge(CPUS, host)
    if len(cpus) and (least := int(np.min(cpus.value))) < (most := int(np.max(cpus.value))):
        yield f"its process might use {least} of {most} CPUs for a time: somebody changed its CPU set"


def _ended(run: RunView, host: str, started_us: int) -> Iterator[str]:
    """Yield that a process that ran when the move began has ended or begun again, and nothing says why."""
    log = next((each for each in run.manifest.facts.logs or () if each.host == host), None)
    of_run = any(event.host == host for event in run.series.events_of(OWN))
    if log is None or of_run or any(each.level in ("ERROR", "FATAL") for each in log.findings):
        return
    cpu, looked = run.series.gauge(KAFKA_CPU, host), run.series.looked(host)
    if not len(cpu.between(started_us - round(GAP_S * US), started_us)):
        return
    again = np.flatnonzero(np.diff(cpu.value) < 0) + 1
    again = again[cpu.t[again] > started_us]
    if len(again):
        yield f"its process had been started again by {_at(int(cpu.t[again[0]]), started_us)}"
    elif len(looked) and looked[-1] - cpu.t[-1] > GAP_S * US:
        when = _at(int(cpu.t[-1]), started_us)
        yield f"its process ended after {when}, and its log names no error: somebody, or the kernel, ended it"
