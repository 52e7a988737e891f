"""What is compared between variants: a number per run, and which way is better.

Rates are told as shares of the run's own quota, so that variants with different quotas can stand side by side.
"""

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from results.criteria.measures import HostRates, MoveMeasures
from results.manifest import Manifest

Better = Literal["lower", "higher"]


@dataclass(frozen=True, slots=True)
class Measure:
    """One number of a run; None from `value` where it could not be measured."""

    name: str
    summary: str
    unit: str
    better: Better
    value: Callable[[Manifest, MoveMeasures], float | None]


_MEASURES: dict[str, Measure] = {}


def register(measure: Measure) -> Measure:
    """Make a measure known by its name. Raises ValueError for one that is taken."""
    if measure.name in _MEASURES:
        raise ValueError(f"there is a measure {measure.name!r} already")
    _MEASURES[measure.name] = measure
    return measure


def measures() -> tuple[Measure, ...]:
    """All measures, in the order in which they are told; each is compared unless others are asked for."""
    return tuple(_MEASURES.values())


def find_measure(name: str) -> Measure:
    """The measure of this name. Raises ValueError naming those there are."""
    if name not in _MEASURES:
        near = difflib.get_close_matches(name, _MEASURES, n=1)
        meant = f"; did you mean {near[0]}?" if near else ""
        raise ValueError(f"there is no measure {name!r}, only {', '.join(_MEASURES)}{meant}")
    return _MEASURES[name]


def values_of(run: Manifest, measured: MoveMeasures) -> Mapping[str, float]:
    """Measure → value, of one run; what could not be measured is absent."""
    found = {measure.name: measure.value(run, measured) for measure in measures()}
    return {name: value for name, value in found.items() if value is not None}


def _received(measured: MoveMeasures) -> tuple[HostRates, ...]:
    return tuple(rates for rates in measured.rates if rates.direction == "receive")


def _quota(run: Manifest) -> float | None:
    return run.move.quota_bytes_per_s if run.move is not None else None


def _move_seconds(_run: Manifest, measured: MoveMeasures) -> float | None:
    return measured.done_s


def _steady_mean(run: Manifest, measured: MoveMeasures) -> float | None:
    quota, steady = _quota(run), [rates.steady for rates in _received(measured)]
    means = [part.mean_bytes_per_s for part in steady if part is not None]
    return sum(means) / len(means) / quota if quota and means and len(means) == len(steady) else None


def _highest_window(run: Manifest, measured: MoveMeasures) -> float | None:
    quota, highest = _quota(run), [rates.highest_window_bytes_per_s for rates in measured.rates]
    known = [rate for rate in highest if rate is not None]
    return max(known) / quota if quota and known and len(known) == len(highest) else None


def _cpu_per_gb(run: Manifest, measured: MoveMeasures) -> float | None:
    moved = sum(rates.total_bytes for rates in _received(measured))
    busy, seconds = measured.load.busy_mean, measured.throttled_s
    if busy is None or seconds is None or moved <= 0:
        return None
    return busy * run.machine.cores * seconds / (moved / 1e9)


register(Measure("move-seconds", "from the move's start until it is done", "s", "lower", _move_seconds))
register(Measure("steady-mean", "mean rate in the steady part, received", "of the quota", "higher", _steady_mean))
register(Measure("highest-11s", "highest rate over the quota's window", "of the quota", "lower", _highest_window))
register(Measure("cpu-per-gb", "CPU time of the whole machine per moved GB", "CPU s/GB", "lower", _cpu_per_gb))
