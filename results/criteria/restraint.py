"""Restraints of a broker from outside while data moved: a signal, a limit, a full disk, a silent store. Pure.

A process that the run itself ends is not held back: the run records an event before it sends the signal. A crash is not
excused: its exit status is the process's own, or SIGABRT. Nor is a disk or a memory that brokers filled themselves.
What it explains is the machine's, whatever else a broker does wrong.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from results.contract.logs import HostLog
from results.contract.texts import plural
from results.criteria.cluster_measures import on_one_machine
from results.criteria.cost_measures import WRITTEN
from results.criteria.own_pressure import AVAILABLE, kafkas_memory
from results.criteria.quantities import GAP_S, US, at, percent, size
from results.criteria.relocation_measures import REQUESTS, answered
from results.criteria.run_view import RunView
from results.criteria.sample_series import RunSeries, Series
from results.criteria.standstill import MACHINE, MOST, OVER_S, Span, highest_share
from results.criteria.step_measures import FOREVER_US
from results.criteria.windows import counted

STOPPED, LATE, THROTTLED, CPUS = "jvm.stopped", "agent.late", "cpu.throttled.seconds", "jvm.cpus"
FREE, MEMORY, KILLED, DISK = "disk.free.bytes", "memory.limited", "memory.killed", "disk.limited"
METRICS = (STOPPED, LATE, THROTTLED, CPUS, FREE, MEMORY, KILLED, DISK)
LOGS = "manifest.facts.logs"
LEAST_FREE_BYTES = 16e6
"""A broker makes two index files of 10 MB for a new segment. With less it stops at the next one, if not before."""
OTHERS_LEAST = 0.5
"""The share of what a disk lost that others than the brokers wrote at least: with less, brokers filled it."""
SIGKILLED = 128 + 9
"""The exit status of a process that SIGKILL ended. Kafka does not send it to itself: it exits, or its JVM aborts."""
LEFT_MOST = 0.5
"""The kernel kills when no memory is left, and readings are a second apart. Where more than this share was left in each
of them, the last second took the rest, and no reading says whose it was."""
ENDING = "process.ending"
"""The event just before each signal by which a run ends a Kafka process."""
MEMBERSHIP = "scale.asked"
"""The event of a broker that joins or leaves. The run ends no broker that joins."""
OWN = ("broker.leaving", "broker.killed", "controller.killed", MEMBERSHIP)
"""The events of a broker that the run ends, in runs of earlier versions, which lack `ENDING`. Each may announce several
signals."""
STAMP_S = 1e-3
"""A log has its instants in milliseconds: an end may have an instant that is so much earlier than it was."""
STORE = REQUESTS
"""What an object store that gives no answer lacks."""
SILENT = 3
"""The readings in a row without an answer of a store's server: as long as a gap. Its agent waits for 0.8 s."""
LATE_S = 1.0
"""The longest time by which an agent may wake up late. Clients may wait for a second, and a steady mean of three quota
windows loses 3 % by it, of 5 % that it may lack. On a machine with idle CPUs an agent is late by milliseconds."""


@dataclass(frozen=True, slots=True)
class Restraint:
    """What held a broker back: the metric (or fact) that says it, and what it says.

    It may have begun at `first_us` (µs since the epoch): a reading says nothing of when, since the one before it.
    """

    series: str
    why: str
    first_us: int


def held_back(run: RunView) -> Mapping[str, list[Restraint]]:
    """Return what held the brokers of a run back from outside, by host; empty where nothing did.

    Where the topology limits the CPUs of a host, the limit holds its broker back as it is declared to. A machine that
    exists may be a container with limits of its own.
    """
    span = _span(run)
    if span is None:
        return {}
    document = run.manifest.topology.document
    exists, hosts = document.get("provision") == "inventory", document.get("hosts", {})
    limited = {name for name, host in hosts.items() if host.get("cpus") is not None}
    slow = {name for name, host in hosts.items() if "bandwidth" in (host.get("disk") or {})}
    found = {
        host: [
            *_stopped(run.series, host, span),
            *_full(run, host, span),
            *_ended(run, host, span),
            *([] if host in limited else [*_paused(run, host, span), *_fewer(run.series, host, span)]),
            *([] if exists or host in limited else _throttled(run.series, host, span)),
            *([] if exists else _little_memory(run.series, host, span)),
            *([] if exists or host in slow else _slow_disk(run.series, host, span)),
        ]
        for host in run.brokers
    }
    if run.manifest.relocation is not None and run.relocation.storage != "disk":
        # After the move, too, brokers upload to the stores, and clients wait for them.
        whole = span[0], run.series.last_us() or span[1]
        found |= {
            store: [*_silent(run, store, whole), *([] if store in limited else _paused(run, store, whole))]
            for store in run.stores
        }
    return {host: why for host, why in found.items() if why}


def held_since_us(run: RunView) -> int | None:
    """Return the earliest instant from which on a broker may have been held back; None where none was."""
    return min((each.first_us for of_host in held_back(run).values() for each in of_host), default=None)


def was_read(run: RunView) -> bool:
    """Return whether a reading while data moved would have said that a broker was held back."""
    span = _span(run)
    return span is not None and any(
        len(_read(run.series, metric, host, span)) for host in run.brokers for metric in METRICS
    )


def _span(run: RunView) -> Span | None:
    """Return the time in which data moved, and a gap before it; None where no move began."""
    if (started := run.measures.started_us) is None:
        return None
    return started - round(GAP_S * US), run.series.event_us("move.done") or run.series.last_us() or started


def _at(us: int, span: Span) -> str:
    return at((us - span[0]) / US - GAP_S)


def _read(run: RunSeries, metric: str, host: str, span: Span) -> Series:
    return run.gauge(metric, host).between(*span)


def _since(readings: Series, us: int, span: Span) -> int:
    """Return the instant of the last reading before an instant, or where there is none, the begin of the span."""
    before = readings.t[readings.t < us]
    return int(before[-1]) if len(before) else span[0]


def _counting(readings: Series) -> int:
    """Return the first reading at which a counter that counted something has another value than before."""
    return int(readings.t[1:][np.diff(readings.value) != 0][0])


def _stopped(run: RunSeries, host: str, span: Span) -> Iterator[Restraint]:
    stopped = _read(run, STOPPED, host, span)
    when = stopped.t[stopped.value > 0]
    if len(when):
        readings = plural(len(when), "reading")
        why = f"a signal had stopped its process (SIGSTOP) in {readings}, first at {_at(int(when[0]), span)}"
        yield Restraint(STOPPED, why, _since(stopped, int(when[0]), span))


def _silent(run: RunView, store: str, span: Span) -> Iterator[Restraint]:
    """Yield that a server of the object store gave no counters, although its host was read, and gives some else."""
    read, answers = run.series.looked(store), answered(run.series, store)
    read = read[(read >= span[0]) & (read <= span[1])]
    # Each pair of changes is a first reading without an answer, and the first one after it with an answer.
    changes = np.flatnonzero(np.diff(np.concatenate(([True], np.isin(read, answers), [True]))))
    without = [read[first:last] for first, last in changes.reshape(-1, 2)]
    longest = max(without, key=len, default=read[:0])
    if len(answers) and len(longest) >= SILENT and not kafkas_memory(run):
        first_us = int(longest[0])
        readings = plural(len(longest), "reading")
        why = f"the object store's server gave no answer in {readings}, first at {_at(first_us, span)}"
        yield Restraint(STORE, why, int(max(answers[answers < first_us], default=span[0])))


def _full(run: RunView, host: str, span: Span) -> Iterator[Restraint]:
    """Yield that a disk was full. Brokers may share it: what all of them wrote while data moved is theirs."""
    free = _read(run.series, FREE, host, span)
    when = free.t[free.value < LEAST_FREE_BYTES]
    if not len(when):
        return
    until = span[0], int(when[0])
    least = float(np.min(free.value))
    wrote = sum(counted(_read(run.series, WRITTEN, broker, until).value) for broker in run.brokers)
    if wrote <= (1 - OTHERS_LEAST) * (float(free.value[0]) - least):
        why = f"its disk was full, {size(least)} free, first at {_at(until[1], span)}, and brokers had not filled it"
        yield Restraint(FREE, why, _since(free, until[1], span))


def _little_memory(run: RunSeries, host: str, span: Span) -> Iterator[Restraint]:
    """Yield that a limit of memory was reached: no topology declares one."""
    limited = _read(run, MEMORY, host, span)
    if times := counted(limited.value):
        why = f"its processes reached a limit of memory {plural(round(times), 'time')}, and the topology declares none"
        yield Restraint(MEMORY, why, _since(limited, _counting(limited), span))


def _slow_disk(run: RunSeries, host: str, span: Span) -> Iterator[Restraint]:
    slow = _read(run, DISK, host, span)
    when = slow.t[slow.value > 0]
    if len(when):
        first_us = int(when[0])
        why = f"the rate of its disk was limited, first at {_at(first_us, span)}, and the topology declares no limit"
        yield Restraint(DISK, why, _since(slow, first_us, span))


def _paused(run: RunView, host: str, span: Span) -> Iterator[Restraint]:
    """Yield that the agent was late: its container was paused. Without memory it is late as well."""
    late = _read(run.series, LATE, host, span)
    if len(late) and (longest := float(np.max(late.value))) > LATE_S and not kafkas_memory(run):
        when = _at(int(late.t[int(np.argmax(late.value))]), span)
        why = f"its agent was {longest:.1f} s late at {when}: its container was paused, or had no CPU"
        yield Restraint(LATE, why, _since(late, int(late.t[late.value > LATE_S][0]), span))


def _throttled(run: RunSeries, host: str, span: Span) -> Iterator[Restraint]:
    throttled = _read(run, THROTTLED, host, span)
    if len(throttled) > 1:
        share = highest_share(throttled, [(int(throttled.t[0]), int(throttled.t[-1]))])
        if share is None:  # the whole time is a part of one such window
            share = counted(throttled.value) / OVER_S
        if share > MOST:
            why = f"a CPU limit that the topology does not declare held it back for {percent(share)} of {OVER_S:g} s"
            yield Restraint(THROTTLED, why, _since(throttled, _counting(throttled), span))


def _fewer(run: RunSeries, host: str, span: Span) -> Iterator[Restraint]:
    cpus = _read(run, CPUS, host, span)
    if len(cpus) and (least := int(np.min(cpus.value))) < (most := int(np.max(cpus.value))):
        why = f"its process might use {least} of {most} CPUs for a time: another program changed its CPU set"
        yield Restraint(CPUS, why, _since(cpus, int(cpus.t[cpus.value < most][0]), span))


def _ended(run: RunView, host: str, span: Span) -> Iterator[Restraint]:
    """Yield that a signal ended the process which the run did not send: Kafka logs SIGTERM, SIGINT and SIGHUP."""
    if (log := _unasked(run, host, span)) is None:
        return
    if log.terminated_us:
        first_us = log.terminated_us[0]
        yield Restraint(LOGS, f"a signal ended its process at {_at(first_us, span)}, as its log says", first_us)
    killed = [end.ts_us for end in log.ended if end.status == SIGKILLED]
    if not killed or kafkas_memory(run):  # a program that guards the memory kills as the kernel does
        return
    by_kernel, first = _killed_for_memory(run.series, host, killed[0]), _at(killed[0], span)
    if by_kernel is False:
        yield Restraint(LOGS, f"SIGKILL ended its process at {first}, and the run did not send it", killed[0])
    elif by_kernel and on_one_machine(run.manifest) and _lacked_memory(run.series, span):
        why = f"the kernel killed its process for memory at {first}, and brokers had not taken it"
        yield Restraint(KILLED, why, killed[0])


def _lacked_memory(run: RunSeries, span: Span) -> bool:
    """Return whether a reading says that the machine's memory ran out. Without one, a broker may have taken it all."""
    left = _read(run, AVAILABLE, MACHINE, span).value
    return len(left) > 0 and float(np.min(left)) <= LEFT_MOST * float(left[0])


def _unasked(run: RunView, host: str, span: Span) -> HostLog | None:
    """Return a host's log with the ends of its process while data moved that the run did not ask for; None without."""
    log = next((each for each in run.manifest.facts.logs or () if each.host == host), None)
    if log is None:
        return None
    asked = _asked(run, log)

    def counts(us: int) -> bool:
        return span[0] <= us <= span[1] and not any(first <= us <= last for first, last in asked)

    ended = tuple(each for each in log.ended if counts(each.ts_us))
    return replace(log, terminated_us=tuple(filter(counts, log.terminated_us)), ended=ended)


def _asked(run: RunView, log: HostLog) -> list[Span]:
    """Return the spans in which the run itself ended a host's process: from each event to the next end in the log.

    The runner records the event, and then sends the signal; the host's clock may be behind the runner's. A process that
    somebody else ended gets no signal from the run. Where the log has no end, the span has none.
    """
    apart_us = round((STAMP_S + max((each.most_s or 0.0 for each in run.manifest.clocks), default=0.0)) * US)
    joins = run.membership is not None and run.membership.change == "joined"
    kinds = (ENDING, *(kind for kind in OWN if not (joins and kind == MEMBERSHIP)))
    events = [each for each in run.series.events_of(kinds) if each.host == log.host]
    signals = [each.us - apart_us for each in events if each.kind == ENDING]
    if not signals:
        return [(each.us - apart_us, FOREVER_US) for each in events]
    ends = [each.ts_us for each in log.ended]
    return [(us, min((end for end in ends if end >= us), default=FOREVER_US)) for us in signals]


def _killed_for_memory(run: RunSeries, host: str, when_us: int) -> bool | None:
    """Return whether the kernel killed a process for memory: it counts that. None without a reading after the end.

    Readings after the move count: an end may come just before the move's.
    """
    count = run.gauge(KILLED, host)
    known = len(count) and count.t[0] <= when_us <= count.t[-1]
    return counted(count.value) > 0 if known else None


def unexplained_ends(run: RunView) -> list[str]:
    """Return how brokers' processes ended while data moved, where the run did not end them; restraints are not asked.

    That is a crash, an exit of the broker's own, or the kernel that killed it for memory.
    """
    if (span := _span(run)) is None:
        return []
    logs = [log for host in run.brokers if (log := _unasked(run, host, span)) is not None]
    return [
        f"the process of {log.host} ended with status {end.status} at {_at(end.ts_us, span)}"
        + (": the kernel killed it for memory" if _killed_for_memory(run.series, log.host, end.ts_us) else "")
        for log in logs
        for end in log.ended
    ]
