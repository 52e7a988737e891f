"""The time in which the machine was unfit: a wait of a few seconds may lie in it whole, and eleven seconds pass.

A reading of the machine's load tells of the time since the one before it, about a second. No shorter window is known.
The limits are those of `machine-load`. Where brokers and controllers alone used more of the CPU than that, the time is
Kafka's: a defect that keeps the machine busy excuses nothing. It is Kafka's as well where no reading says what they
used.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from results.contract.verdict import Finding
from results.criteria.findings import finding
from results.criteria.quantities import CPU_QUOTA, GAP_S, US, at, percent
from results.criteria.sample_series import Floats, Micros, RunSeries, Series
from results.criteria.windows import counted, enclosing

BUSY_HIGHEST, STEAL_HIGHEST = 0.85, 0.05
"""Shares of all cores: what `machine-load` allows on average over a quota window, and this module in any second."""
KAFKA_CPU = "jvm.cpu.seconds"
MACHINE_LOAD = "machine-load"
DUE_S = 1.0
"""A client counts the records of a second together: a record was due in it, and it is not known when."""


@dataclass(frozen=True, slots=True)
class UnfitSpan:
    """One reading of an unfit machine: from the reading before it until its own. Shares of all cores.

    `busy` is a share of the CPU quota where the testbed ran in one and used more of that. `kafka` is what all brokers
    and controllers used; None: no reading says it.
    """

    begin_us: int
    end_us: int
    busy: float
    steal: float
    kafka: float | None


@dataclass(frozen=True, slots=True)
class UnfitTime:
    """All spans in which a machine was unfit, in order of time."""

    spans: tuple[UnfitSpan, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.spans)

    def between(self, begin_us: int, end_us: int) -> "UnfitTime":
        """Return the spans that lie in this time, whole or in part."""
        return UnfitTime(tuple(each for each in self.spans if each.begin_us < end_us and each.end_us > begin_us))

    def seconds(self, begin_us: int, end_us: int) -> float:
        """Return for how much of this time the machine was unfit."""
        return sum(max(0, min(each.end_us, end_us) - max(each.begin_us, begin_us)) for each in self.spans) / US

    def later(self, us: int, seconds: float) -> int:
        """Return the instant until which so many seconds have passed in which the machine was not unfit."""
        end = us + round(seconds * US)
        for each in self.spans:
            if each.begin_us < end and each.end_us > us:
                end += each.end_us - max(each.begin_us, us)
        return end

    def spare(self, due_us: Micros, wait_us: Floats) -> Floats:
        """Return each wait less the unfit time in it; `due_us` is the beginning of the second in which it began."""
        ends = due_us + DUE_S * US + wait_us
        unfit = np.zeros(len(wait_us))
        for each in self.spans:
            unfit += np.clip(np.minimum(each.end_us, ends) - np.maximum(each.begin_us, due_us), 0, None)
        return np.maximum(wait_us - unfit, 0.0)

    def finding(self, started_us: int) -> Finding:
        """Return `machine-load` of these spans (there must be one), as it is where a verdict depends on them."""
        worst = max(self.spans, key=lambda each: max(each.busy / BUSY_HIGHEST, each.steal / STEAL_HIGHEST))
        seconds = sum(each.end_us - each.begin_us for each in self.spans) / US
        if worst.steal > STEAL_HIGHEST:
            load = f"{percent(worst.steal)} of the CPU was stolen"
        else:
            kafka = "" if worst.kafka is None else f" ({percent(worst.kafka)} by Kafka)"
            load = f"the machine was {percent(worst.busy)} busy{kafka}"
        begun = at((self.spans[0].begin_us - started_us) / US)
        return finding(
            MACHINE_LOAD,
            f"at most {percent(BUSY_HIGHEST)} busy, {percent(STEAL_HIGHEST)} stolen in a second that decides a verdict",
            "inconclusive",
            f"{load} in the worst of {seconds:.1f} s, the first at {begun}",
            observed=worst.busy,
            unit="fraction",
            host="machine",
            series=("cpu.busy", "cpu.steal", KAFKA_CPU),
        )


ALWAYS_FIT = UnfitTime()


def unfit_time(run: RunSeries, cores: int) -> UnfitTime:
    """Return when the machine of a run was unfit; `cores` are its own. Of several, all processes count as if on one."""
    busy, steal = run.gauge("cpu.busy", "machine"), run.gauge("cpu.steal", "machine")
    processes = _processes(run)
    load_of = np.maximum(busy.value[1:], run.gauge(CPU_QUOTA, "machine").at(busy.t[1:]))
    found = []
    for begin, end, load, stolen in zip(busy.t[:-1], busy.t[1:], load_of, steal.at(busy.t[1:]), strict=True):
        robbed = stolen > STEAL_HIGHEST
        if not (robbed or load > BUSY_HIGHEST) or end - begin > GAP_S * US:
            continue
        share = _kafka_share(processes, int(begin), int(end), cores)
        if robbed or (share is not None and share <= BUSY_HIGHEST):
            found.append(UnfitSpan(int(begin), int(end), float(load), float(stolen), share))
    return UnfitTime(tuple(found))


MOSTLY = 0.5
"""A scenario's time limit is three times what a move takes. In half of it a healthy run ends, so that an unfit machine
explains a run without an end only where it was unfit for more than that."""


def mostly_unfit(run: RunSeries, cores: int) -> list[Finding]:
    """Return `machine-load` of a machine that was unfit for more than half of a run that did not end; else nothing."""
    sampled, unfit = run.gauge("cpu.busy", "machine").t, unfit_time(run, cores)
    if not unfit or unfit.seconds(int(sampled[0]), int(sampled[-1])) <= MOSTLY * (sampled[-1] - sampled[0]) / US:
        return []
    return [unfit.finding(int(sampled[0]))]


def used_by_others(run: RunSeries, cores: int, begin_us: int, end_us: int) -> Series | None:
    """Return the share of all cores that others than brokers and controllers used, for each reading between two.

    None where it is not known what Kafka used.
    """
    busy, processes = run.gauge("cpu.busy", "machine").between(begin_us, end_us), _processes(run)
    times = zip(busy.t[:-1], busy.t[1:], strict=True)
    shares = [_kafka_share(processes, int(begin), int(end), cores) for begin, end in times]
    known = [share for share in shares if share is not None]
    if not known or len(known) < len(shares):
        return None
    return Series(busy.t[1:], busy.t[1:], np.maximum(busy.value[1:] - np.array(known), 0.0))


def _processes(run: RunSeries) -> list[tuple[Series, Micros]]:
    """Return the CPU time of each broker and controller, and when its host was sampled."""
    hosts = sorted(set(run.of_metric(KAFKA_CPU)["host"].to_pylist()))
    return [(run.gauge(KAFKA_CPU, host), run.looked(host)) for host in hosts]


def _kafka_share(processes: Sequence[tuple[Series, Micros]], begin_us: int, end_us: int, cores: int) -> float | None:
    """Return what Kafka used of all cores in a time, over the readings around it; None when it is not known.

    `processes` has the readings of the CPU time of each broker and controller, and when its host was sampled.
    """
    first, last = begin_us - round(GAP_S * US), end_us + round(GAP_S * US)
    watched = all(bool(((first <= looked) & (looked <= last)).any()) for _cpu, looked in processes)
    used = [_cpus(cpu.between(first, last), begin_us, end_us) for cpu, _looked in processes]
    return sum(used) / cores if used and watched else None


def _cpus(near: Series, begin_us: int, end_us: int) -> float:
    """Return the CPUs that one process used; 0 while it does not run, for its host is sampled and its JVM is not."""
    part = near.cut(*enclosing(near.t, begin_us, end_us))
    return counted(part.value) / part.seconds if len(part) > 1 else 0.0


def left_open(found: Iterable[Finding], spared: Iterable[Finding], unfit: UnfitTime, started_us: int) -> list[Finding]:
    """Return the findings, and leave open those that fail by the unfit time alone.

    `spared` are the same findings, judged as if that time had not passed.
    """
    load = unfit.finding(started_us)
    reason = f"not judged: {load.label}: {load.why}; without this time"
    return [
        replace(each, verdict="inconclusive", power=None, why=f"{reason}: {other.why}; {each.why}")
        if each.verdict == "fail" and other.verdict != "fail"
        else each
        for each, other in zip(found, spared, strict=True)
    ]


def with_unfit_load(preconditions: Iterable[Finding], judged: Iterable[Finding], load: Finding) -> list[Finding]:
    """Return the preconditions, with `load` for a `machine-load` that holds although it left a judged finding open."""
    decides = any(each.why.startswith(f"not judged: {load.label}:") for each in judged)
    return [load if decides and each.label == load.label and each.verdict == "pass" else each for each in preconditions]
