"""Measures of the cluster and the machine during a move: ISR, stall, NICs, partitions in flight, rests, CPU load."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from results.contract.manifest import Manifest, NicMeasurement
from results.contract.move import Move
from results.contract.verdict import DIRECTIONS, Direction
from results.criteria.measures import (
    LAG_SETTLED_S,
    LISTED_METRIC,
    Burden,
    IsrMeasures,
    IsrShrinks,
    MachineLoad,
    NicUsage,
    Rests,
    StallMeasures,
)
from results.criteria.quantities import CPU_QUOTA, DRIVER, GAP_S, PAYLOAD, SECOND_S, US
from results.criteria.sample_series import Micros, RunSeries, Series, by_partition
from results.criteria.unfit import ALWAYS_FIT, BUSY_HIGHEST, UnfitTime, used_by_others
from results.criteria.windows import counted, counted_between, counts, longest_gap_s, trailing_mean_max, windows

LAG_S, FENCED_S = 30.0, 9.0
"""Kafka's defaults: a replica leaves the ISR when it was behind for so long (`replica.lag.time.max.ms`), or when its
broker missed heartbeats for so long (`broker.session.timeout.ms`)."""


@dataclass(frozen=True, slots=True)
class ShrinkCause:
    """What explains that a replica left an ISR: the time in which the machine was `unfit`.

    Missed heartbeats are explained by a session without fit time, since a broker sends one every 2 s. A replica may lag
    for `lag_s`. A lag is explained by half of that time: a replica that fetches in the other half only catches up
    where its network carries twice what clients write. Either ended at most a gap before the reading that shows it.
    """

    unfit: UnfitTime = ALWAYS_FIT
    lag_s: float = LAG_S

    def explains(self, instants: Micros) -> npt.NDArray[np.bool_]:
        """Return for each instant of a reading whether a replica may have left an ISR for this cause."""
        if not self.unfit:
            return np.zeros(len(instants), np.bool_)
        fenced = [self._unfit_s(us, FENCED_S) >= FENCED_S for us in instants]
        lagged = [self._unfit_s(us, self.lag_s) >= self.lag_s / 2 for us in instants]
        return np.logical_or(fenced, lagged)

    def _unfit_s(self, us: int, wait_s: float) -> float:
        return self.unfit.seconds(int(us) - round((wait_s + GAP_S) * US), int(us))


def measure_isr(
    run: RunSeries, move: Move, started: int, until: int, cause: ShrinkCause = ShrinkCause()
) -> IsrMeasures:
    """Return the ISR from the move's start until it was done. A shrink that the cause explains does not count."""
    hosts = tuple(_shrinks(run, host, started, until, cause) for host in move.brokers)
    polls, gaps, smaller, late = [], [], [], []
    excused, lagging = _excused_looks(run, cause), by_partition(run.of_metric("isr.lagging"))
    for (topic, partition), (t, size) in by_partition(run.of_metric("isr.size")).items():
        before = int(np.searchsorted(t, started, side="right")) - 1
        if before < 0:
            continue
        inside = (t > started) & (t <= until)
        polls.append(int(np.count_nonzero(inside)))
        gaps.append(longest_gap_s(t, started, until) or 0.0)
        fell = np.append(False, size[1:] < size[:-1])
        less = np.flatnonzero(inside & (size < size[before]) & fell & ~excused(t))
        if len(less):
            at = int(less[0])
            when_s = (int(t[at]) - started) / US
            smaller.append((when_s, f"{topic}-{partition}", float(size[at]), float(size[before])))
        lags, _count = lagging.get((topic, partition), (t[:0], size[:0]))
        since = lags[(lags > started) & (lags <= until) & ~excused(lags)]
        if len(since) and t[before] not in lags:
            late.append(((int(since[0]) - started) / US, f"{topic}-{partition}"))
    return IsrMeasures(
        hosts=hosts,
        partitions=len(polls),
        polls=min(polls, default=0),
        longest_gap_s=max(gaps, default=None),
        smaller=tuple(sorted(smaller)),
        lagging=tuple(sorted(late)),
    )


def _excused_looks(run: RunSeries, cause: ShrinkCause) -> Callable[[Micros], npt.NDArray[np.bool_]]:
    """Return a function from instants of looks to whether the cause explains what they show.

    One look shows all partitions, of which there may be thousands: each instant is judged once.
    """
    looks = np.unique(np.concatenate([run.of_metric(name)["us"].to_numpy() for name in ("isr.size", "isr.lagging")]))
    explained = cause.explains(looks)
    return lambda instants: explained[np.searchsorted(looks, instants)]


def _shrinks(run: RunSeries, host: str, started: int, until: int, cause: ShrinkCause) -> IsrShrinks:
    series = run.gauge("broker.isr_shrinks", host)
    gap_s = longest_gap_s(series.t, started, until, inside=True)
    if len(series):
        steps = np.where(cause.explains(series.t[1:]), 0.0, counts(series.value))
        series = replace(series, value=np.append(0.0, np.cumsum(steps)))
    return IsrShrinks(host, counted_between(series, started, until), gap_s)


def measure_stall(run: RunSeries, started: int) -> StallMeasures | None:
    """Return the first time that the move was noticed to be stuck; None when it was not."""
    noticed = next((event for event in run.events_of(("move.stuck",)) if event.us >= started), None)
    if noticed is None:
        return None
    seconds = noticed.number("seconds")
    lag = run.gauge("move.lag", DRIVER).between(started, noticed.us)
    begun = noticed.us - round((seconds or 0.0) * US)
    t, value = lag.t, lag.value
    settled = t >= started + round(LAG_SETTLED_S * US)
    lowest = int(t[settled][np.argmin(value[settled])]) if settled.any() else None
    # Of a move that was stuck from its very beginning there may be no reading before that time: the first one is.
    edge = max(1, int(np.searchsorted(t, begun, side="right")))
    before, since = value[:edge], value[edge:]
    raised = next((event for event in run.events_of(("move.raised",)) if event.us >= noticed.us), None)
    at = None if raised is None else raised.us
    in_force = [e for e in run.events_of(("throttle.in_force",)) if at is not None and e.us >= noticed.us]
    return StallMeasures(
        noticed_s=(noticed.us - started) / US,
        seconds=seconds,
        lag_before=float(np.min(before)) if seconds is not None and len(before) else None,
        lag_since=float(np.min(since)) if seconds is not None and len(since) else None,
        lowest_s=None if lowest is None else (lowest - started) / US,
        raised_s=None if at is None else (at - started) / US,
        raised_to=in_force[0].number("rate_bytes_per_s") if in_force else None,
    )


def measure_burden(
    run: RunSeries, nics: tuple[NicMeasurement, ...], move: Move, started_us: int, until_us: int
) -> Burden:
    """Return all of it."""
    under_s, lowest = _isr(run, move.min_insync, started_us, until_us)
    return Burden(
        most_in_flight(run, started_us, until_us),
        nic_uses(run, nics, move.brokers, started_us, until_us),
        under_s,
        lowest,
    )


def most_in_flight(run: RunSeries, started_us: int, until_us: int) -> float | None:
    """Return the most partitions that the controller listed at once; else that were in flight; None without a poll."""
    listed = _highest(run, LISTED_METRIC, started_us, until_us)
    return _highest(run, "move.in_flight", started_us, until_us) if listed is None else listed


def _highest(run: RunSeries, metric: str, started_us: int, until_us: int) -> float | None:
    inside = run.gauge(metric, DRIVER).between(started_us, until_us)
    return float(np.max(inside.value)) if len(inside) else None


def nic_uses(
    run: RunSeries, nics: tuple[NicMeasurement, ...], hosts: Sequence[str], started_us: int, until_us: int
) -> tuple[NicUsage, ...]:
    """Return the NICs of these hosts over the move, each way."""
    return tuple(_nic_use(run, nics, host, way, started_us, until_us) for host in hosts for way in DIRECTIONS)


def _nic_use(
    run: RunSeries, nics: tuple[NicMeasurement, ...], host: str, direction: Direction, started_us: int, until_us: int
) -> NicUsage:
    part = run.nic_bytes(nics, host, direction).between(started_us, until_us)
    if len(part) < 2:
        return NicUsage(host, direction, None, None)
    rates = windows(part, SECOND_S).rate
    peak = float(np.max(rates)) * PAYLOAD if len(rates) else None
    return NicUsage(host, direction, counted(part.value) * PAYLOAD / part.seconds, peak)


def lowest_isr(run: RunSeries) -> Series:
    """Return the fewest replicas in sync of any polled partition, poll by poll."""
    table = run.of_metric("isr.size").sort_by("us")
    t, first = np.unique(table["us"].to_numpy(), return_index=True)
    size = table["value"].to_numpy()
    return Series(t, t, np.minimum.reduceat(size, first) if len(t) else size)


def _isr(run: RunSeries, least: int, started_us: int, until_us: int) -> tuple[float | None, float | None]:
    polls = lowest_isr(run).between(started_us, until_us)
    if len(polls) == 0:
        return None, None
    lasts = np.diff(np.append(polls.t, until_us))
    return float(np.sum(lasts[polls.value < least])) / US, float(np.min(polls.value))


def measure_rests(run: RunSeries, started: int, until: int) -> Rests | None:
    """Return the rests between two instants (µs); None when the list was not polled, or was always empty."""
    series = run.gauge(LISTED_METRIC, DRIVER).between(started, until)
    busy = np.flatnonzero(series.value > 0)
    if len(busy) == 0:
        return None
    t = series.t[busy[0] : busy[-1] + 1]
    rested = np.flatnonzero(np.diff(busy) > 1)
    lasted = (t[busy[rested + 1] - busy[0]] - t[busy[rested] - busy[0]]) / US
    gap_s = float(np.max(np.diff(t))) / US if len(t) > 1 else None
    return Rests(len(lasted), float(np.sum(lasted)), gap_s)


def on_one_machine(manifest: Manifest) -> bool:
    """Return whether all brokers ran on the machine of the testbed: its load and its pressure are then theirs.

    Of several machines the run has the readings of the busiest, and it is not known which one that was.
    """
    document = manifest.topology.document
    return "machines" not in document and not any("ssh" in host for host in document.get("hosts", {}).values())


def own_cores(manifest: Manifest) -> int | None:
    """Return the cores that all brokers shared; None where they ran on several machines."""
    return manifest.machine.cores if on_one_machine(manifest) else None


def machine_load(
    run: RunSeries,
    started_us: int,
    end_us: int,
    window_s: float,
    phases: Sequence[tuple[int, int]] = (),
    *,
    cores: int | None = None,
) -> MachineLoad:
    """Return busy and stolen shares of all cores; the highest are means over `window_s`.

    With the number of `cores` of the one machine the share of others than Kafka is measured as well, where it was too
    busy.

    With `phases` the highest is that of windows inside one, as rates are judged: a broker that starts again keeps the
    cores busy itself, and no window across its restart is judged.
    """
    busy, steal = run.gauge("cpu.busy", "machine"), run.gauge("cpu.steal", "machine")
    inside = (busy.t > started_us) & (busy.t <= end_us)
    busiest = trailing_mean_max(busy, started_us, end_us, window_s, phases)
    others = None
    if cores is not None and (busiest or 0.0) > BUSY_HIGHEST:
        others = used_by_others(run, cores, started_us, end_us)
    return MachineLoad(
        longest_gap_s=longest_gap_s(busy.t, started_us, end_us),
        busy_mean=float(np.mean(busy.value[inside])) if inside.any() else None,
        busy_window_max=busiest,
        steal_window_max=trailing_mean_max(steal, started_us, end_us, window_s, phases),
        others_window_max=None if others is None else trailing_mean_max(others, started_us, end_us, window_s, phases),
        limit_window_max=trailing_mean_max(run.gauge(CPU_QUOTA, "machine"), started_us, end_us, window_s, phases),
    )
