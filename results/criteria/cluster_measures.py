"""Measures of the cluster and the machine during a move: ISR, stall, NICs, partitions in flight, rests, CPU load."""

from collections.abc import Sequence

import numpy as np

from results.contract.manifest import NicMeasurement
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
from results.criteria.quantities import DRIVER, PAYLOAD, SECOND_S, US
from results.criteria.series import RunSeries
from results.criteria.windows import counted, counted_between, longest_gap_s, trailing_mean_max, windows


def measure_isr(run: RunSeries, move: Move, started: int, until: int) -> IsrMeasures:
    """Return the ISR from the move's start until it was done."""
    hosts = tuple(_shrinks(run, host, started, until) for host in move.brokers)
    table = run.of_metric("isr.size").sort_by([("topic", "ascending"), ("partition", "ascending"), ("us", "ascending")])
    t, size = table["us"].to_numpy(), table["value"].to_numpy()
    names = list(zip(table["topic"].to_pylist(), table["partition"].to_pylist(), strict=True))
    starts = [i for i in range(len(names)) if i == 0 or names[i] != names[i - 1]]
    polls, gaps, smaller = [], [], []
    for a, b in zip(starts, [*starts[1:], len(names)] if names else [], strict=True):
        before = int(np.searchsorted(t[a:b], started, side="right")) - 1
        if before < 0:
            continue
        inside = (t[a:b] > started) & (t[a:b] <= until)
        polls.append(int(np.count_nonzero(inside)))
        gaps.append(longest_gap_s(t[a:b], started, until) or 0.0)
        less = np.flatnonzero(inside & (size[a:b] < size[a + before]))
        if len(less):
            at = a + int(less[0])
            smaller.append((int(t[at]), f"{names[a][0]}-{names[a][1]}", float(size[at]), float(size[a + before])))
    first = min(smaller, default=None)
    return IsrMeasures(
        hosts=hosts,
        partitions=len(polls),
        polls=min(polls, default=0),
        longest_gap_s=max(gaps, default=None),
        smaller=len(smaller),
        first_partition=None if first is None else first[1],
        first_s=None if first is None else (first[0] - started) / US,
        first_size=None if first is None else first[2],
        first_before=None if first is None else first[3],
    )


def _shrinks(run: RunSeries, host: str, started: int, until: int) -> IsrShrinks:
    series = run.gauge("broker.isr_shrinks", host)
    return IsrShrinks(
        host, counted_between(series, started, until), longest_gap_s(series.t, started, until, inside=True)
    )


def measure_stall(run: RunSeries, started: int) -> StallMeasures | None:
    """Return the first time that the move was noticed to be stuck; None when it was not."""
    noticed = next((event for event in run.events_of(("move.stuck",)) if event.us >= started), None)
    if noticed is None:
        return None
    reported = noticed.detail.get("seconds")
    seconds = float(reported) if isinstance(reported, int | float) and not isinstance(reported, bool) else None
    lag = run.gauge("move.lag", DRIVER)
    begun = noticed.us - round((seconds or 0.0) * US)
    inside = (lag.t >= started) & (lag.t <= noticed.us)
    t, value = lag.t[inside], lag.value[inside]
    settled = t >= started + round(LAG_SETTLED_S * US)
    lowest = int(t[settled][np.argmin(value[settled])]) if settled.any() else None
    # Of a move that was stuck from its very beginning there may be no reading before that time: the first one is.
    edge = max(1, int(np.searchsorted(t, begun, side="right")))
    before, since = value[:edge], value[edge:]
    raised = next((event for event in run.events_of(("move.raised",)) if event.us >= noticed.us), None)
    at = None if raised is None else raised.us
    in_force = [e for e in run.events_of(("throttle.in_force",)) if at is not None and e.us >= noticed.us]
    to = in_force[0].detail.get("rate_bytes_per_s") if in_force else None
    return StallMeasures(
        noticed_s=(noticed.us - started) / US,
        seconds=seconds,
        lag_before=float(np.min(before)) if seconds is not None and len(before) else None,
        lag_since=float(np.min(since)) if seconds is not None and len(since) else None,
        lowest_s=None if lowest is None else (lowest - started) / US,
        raised_s=None if at is None else (at - started) / US,
        raised_to=float(to) if isinstance(to, int | float) and not isinstance(to, bool) else None,
    )


def measure_burden(
    run: RunSeries, nics: tuple[NicMeasurement, ...], move: Move, started_us: int, until_us: int
) -> Burden:
    """Return all of it."""
    most = [most_at_once(run, metric, started_us, until_us) for metric in ("move.listed", "move.in_flight")]
    under_s, lowest = _isr(run, move.min_insync, started_us, until_us)
    return Burden(
        next((value for value in most if value is not None), None),
        tuple(nic_use(run, nics, host, way, started_us, until_us) for host in move.brokers for way in DIRECTIONS),
        under_s,
        lowest,
    )


def most_at_once(run: RunSeries, metric: str, started_us: int, until_us: int) -> float | None:
    """Return the highest value of the driver's metric over the move; None without a sample."""
    series = run.gauge(metric, DRIVER)
    inside = series.value[(series.t >= started_us) & (series.t <= until_us)]
    return float(np.max(inside)) if len(inside) else None


def nic_use(
    run: RunSeries, nics: tuple[NicMeasurement, ...], host: str, direction: Direction, started_us: int, until_us: int
) -> NicUsage:
    """Return one NIC over the move."""
    devices = [nic.device for nic in nics if nic.host == host and nic.direction == direction]
    series = run.gauge("nic.tx.bytes" if direction == "transmit" else "nic.rx.bytes", host, devices)
    inside = np.flatnonzero((series.t >= started_us) & (series.t <= until_us))
    if not devices or len(inside) < 2:
        return NicUsage(host, direction, None, None)
    part = series.cut(int(inside[0]), int(inside[-1]))
    rates = windows(part, SECOND_S).rate
    seconds = (int(part.t[-1]) - int(part.t[0])) / US
    peak = float(np.max(rates)) * PAYLOAD if len(rates) else None
    return NicUsage(host, direction, counted(part.value) * PAYLOAD / seconds, peak)


def _isr(run: RunSeries, least: int, started_us: int, until_us: int) -> tuple[float | None, float | None]:
    table = run.of_metric("isr.size").sort_by("us")
    t, size = table["us"].to_numpy(), table["value"].to_numpy()
    inside = (t >= started_us) & (t <= until_us)
    t, size = t[inside], size[inside]
    if len(t) == 0:
        return None, None
    looks, first = np.unique(t, return_index=True)
    lowest = np.minimum.reduceat(size, first)
    lasts = np.diff(np.append(looks, until_us))
    return float(np.sum(lasts[lowest < least])) / US, float(np.min(lowest))


def measure_rests(run: RunSeries, started: int, until: int) -> Rests | None:
    """Return the rests between two instants (µs); None when the list was not polled, or was always empty."""
    series = run.gauge(LISTED_METRIC, DRIVER)
    inside = (series.t >= started) & (series.t <= until)
    t, value = series.t[inside], series.value[inside]
    busy = np.flatnonzero(value > 0)
    if len(busy) == 0:
        return None
    t = t[busy[0] : busy[-1] + 1]
    rested = np.flatnonzero(np.diff(busy) > 1)
    lasted = (t[busy[rested + 1] - busy[0]] - t[busy[rested] - busy[0]]) / US
    gap_s = float(np.max(np.diff(t))) / US if len(t) > 1 else None
    return Rests(len(t), len(lasted), float(np.sum(lasted)), float(np.max(lasted, initial=0.0)), gap_s)


def machine_load(
    run: RunSeries, started_us: int, end_us: int, window_s: float, phases: Sequence[tuple[int, int]] = ()
) -> MachineLoad:
    """Return busy and stolen shares of all cores; the highest are means over `window_s`.

    With `phases` the highest is that of windows inside one, as rates are judged: a broker that starts again keeps the
    cores busy itself, and no window across its restart is judged.
    """
    busy, steal = run.gauge("cpu.busy", "machine"), run.gauge("cpu.steal", "machine")
    inside = (busy.t > started_us) & (busy.t <= end_us)
    return MachineLoad(
        polls=int(np.count_nonzero(inside)),
        longest_gap_s=longest_gap_s(busy.t, started_us, end_us),
        busy_mean=float(np.mean(busy.value[inside])) if inside.any() else None,
        busy_window_max=trailing_mean_max(busy, started_us, end_us, window_s, phases),
        steal_window_max=trailing_mean_max(steal, started_us, end_us, window_s, phases),
    )
