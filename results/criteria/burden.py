"""What a move was to the cluster while it went on: how much at once, how busy the NICs, how far the ISRs.

`measure_burden` computes them with numpy; Spark has its own way to the same.
"""

from dataclasses import dataclass

import numpy as np

from results.contract.manifest import NicMeasurement
from results.contract.move import Move
from results.contract.verdict import DIRECTIONS, Direction
from results.criteria.series import RunSeries
from results.criteria.windows import US, counted, windows

PAYLOAD = 1448 / 1514
"""TCP payload in a full Ethernet frame, as a fraction of what a NIC counts."""
SECOND_S = 0.9
"""Shortest distance of two readings that counts as a second."""
DRIVER = "driver"


@dataclass(frozen=True, slots=True)
class NicUse:
    """TCP payload on a broker's data NIC over the whole move, whatever it was: its mean, and the highest second."""

    host: str
    direction: Direction
    mean_bytes_per_s: float | None
    peak_bytes_per_s: float | None


@dataclass(frozen=True, slots=True)
class Burden:
    """From the move's start until it was done.

    `most_in_flight` partitions were being reassigned at once. `under_min_isr_s` is for how long, from look to look, at
    least one listed partition had fewer replicas in sync than `min.insync.replicas`; `lowest_isr` the fewest that one
    had. None where nobody looked.
    """

    most_in_flight: float | None
    nics: tuple[NicUse, ...]
    under_min_isr_s: float | None
    lowest_isr: float | None


def measure_burden(
    run: RunSeries, nics: tuple[NicMeasurement, ...], move: Move, started_us: int, until_us: int
) -> Burden:
    """All of it."""
    most = [most_at_once(run, metric, started_us, until_us) for metric in ("move.listed", "move.in_flight")]
    under_s, lowest = _isr(run, move.min_insync, started_us, until_us)
    return Burden(
        next((value for value in most if value is not None), None),
        tuple(nic_use(run, nics, host, way, started_us, until_us) for host in move.brokers for way in DIRECTIONS),
        under_s,
        lowest,
    )


def most_at_once(run: RunSeries, metric: str, started_us: int, until_us: int) -> float | None:
    """The highest value of the driver's metric over the move; None where nobody looked."""
    series = run.gauge(metric, DRIVER)
    inside = series.value[(series.t >= started_us) & (series.t <= until_us)]
    return float(np.max(inside)) if len(inside) else None


def nic_use(
    run: RunSeries, nics: tuple[NicMeasurement, ...], host: str, direction: Direction, started_us: int, until_us: int
) -> NicUse:
    """One NIC over the move."""
    devices = [nic.device for nic in nics if nic.host == host and nic.direction == direction]
    series = run.gauge("nic.tx.bytes" if direction == "transmit" else "nic.rx.bytes", host, devices)
    inside = np.flatnonzero((series.t >= started_us) & (series.t <= until_us))
    if not devices or len(inside) < 2:
        return NicUse(host, direction, None, None)
    part = series.cut(int(inside[0]), int(inside[-1]))
    rates = windows(part, SECOND_S).rate
    seconds = (int(part.t[-1]) - int(part.t[0])) / US
    peak = float(np.max(rates)) * PAYLOAD if len(rates) else None
    return NicUse(host, direction, counted(part.value) * PAYLOAD / seconds, peak)


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
