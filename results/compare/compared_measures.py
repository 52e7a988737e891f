"""What is compared between variants: a number per run, and which way is better.

Rates are shares of the run's own quota, so that variants with different quotas can stand side by side.
"""

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from results.contract.aliases import measure_name
from results.contract.manifest import Manifest
from results.criteria.measures import ClientKind, HostRates, MoveMeasures, Part, SteadyPart
from results.criteria.model import allowed, bound_of
from results.criteria.relocation_measures import copied_bytes, formula

Better = Literal["lower", "higher"]


def _itself(value: float) -> float:
    return value


@dataclass(frozen=True, slots=True)
class Measure:
    """One number of a run; None from `value` where it could not be measured.

    Two runs are compared by the `standing` of their values, and that is what `better` is of.
    A measure that is not `compared` is shown with the others; it says nothing of better or worse.
    What comes `only_on_request` is neither compared nor shown unless it is named.
    `coarse` is a change that counts, as a fraction, where that of other measures would be lost in its noise.
    What is not `followed` is no series of its own from night to night: another measure says it as well, or better.
    """

    name: str
    summary: str
    unit: str
    better: Better
    value: Callable[[Manifest, MoveMeasures], float | None]
    compared: bool = True
    only_on_request: bool = False
    standing: Callable[[float], float] = _itself
    followed: bool = True
    coarse: float = 0.0

    def limit(self, threshold: float) -> float:
        """Return the change that counts, where it is `threshold` for most measures."""
        return max(threshold, self.coarse)


_MEASURES: dict[str, Measure] = {}


def register(measure: Measure) -> Measure:
    """Make a measure known by its name. Raise ValueError for one that is taken."""
    if measure.name in _MEASURES:
        raise ValueError(f"there is a measure {measure.name!r} already")
    _MEASURES[measure.name] = measure
    return measure


def measures() -> tuple[Measure, ...]:
    """Return all measures, in the order of the report; the compared ones, unless others are requested."""
    return tuple(_MEASURES.values())


def find_measure(name: str) -> Measure:
    """Return the measure of this name, or of this earlier name. Raise ValueError that lists all names."""
    name = measure_name(name)
    if name not in _MEASURES:
        near = difflib.get_close_matches(name, _MEASURES, n=1)
        meant = f"; did you mean {near[0]}?" if near else ""
        raise ValueError(f"there is no measure {name!r}, only {', '.join(_MEASURES)}{meant}")
    return _MEASURES[name]


def values_of(run: Manifest, measured: MoveMeasures) -> Mapping[str, float]:
    """Return measure → value of one run; a value that could not be measured is absent."""
    found = {measure.name: measure.value(run, measured) for measure in measures()}
    return {name: value for name, value in found.items() if value is not None}


def _received(measured: MoveMeasures) -> tuple[HostRates, ...]:
    return tuple(rates for rates in measured.rates if rates.direction == "receive")


def _quota(run: Manifest) -> float | None:
    return run.move.quota_bytes_per_s if run.move is not None else None


def _move_seconds(_run: Manifest, measured: MoveMeasures) -> float | None:
    return measured.done_s


def _seconds_per_gb(_run: Manifest, measured: MoveMeasures) -> float | None:
    moved = sum(rates.total_bytes for rates in _received(measured))
    return measured.done_s / (moved / 1e9) if measured.done_s is not None and moved > 0 else None


def _busiest(measured: MoveMeasures) -> tuple[HostRates, SteadyPart] | None:
    """Return where throttled bytes flow fastest in the steady part: that is where the quota binds."""
    known = [(rates, rates.steady) for rates in measured.rates if rates.steady is not None]
    if len(known) < len(measured.rates):
        return None
    return max(known, key=lambda pair: pair[1].typical_bytes_per_s, default=None)


def _steady_mean(run: Manifest, measured: MoveMeasures) -> float | None:
    quota, busiest = _quota(run), _busiest(measured)
    return busiest[1].typical_bytes_per_s / quota if quota and busiest else None


def _nearness(share: float) -> float:
    """Return how near a share of the quota is to all of it: a throttle that lets more pass is leaking, not better."""
    return min(share, 1 / share) if share > 0 else share


def _lowest_window(run: Manifest, measured: MoveMeasures) -> float | None:
    quota, busiest = _quota(run), _busiest(measured)
    lowest = busiest[1].lowest_window_bytes_per_s if busiest else None
    return lowest / quota if quota and lowest is not None else None


def _bound(run: Manifest, measured: MoveMeasures) -> float | None:
    busiest = _busiest(measured)
    if run.move is None or busiest is None:
        return None
    bound, worst = bound_of(run.move, busiest[0].host, busiest[0].direction), busiest[0].worst_window
    if bound is not None and worst is not None:
        bound = allowed(bound, worst.in_sync_bytes)
    return None if bound is None else bound / (run.move.quota_bytes_per_s * run.move.window_s)


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
register(Measure("seconds-per-gb", "the same for each GB that moved", "s/GB", "lower", _seconds_per_gb, followed=False))
register(
    Measure(
        "steady-mean",
        "mean rate of the steady part's windows, where highest; compared: how near to 1",
        "of the quota",
        "higher",
        _steady_mean,
        standing=_nearness,
    )
)
register(Measure("highest-11s", "highest rate over the quota's window", "of the quota", "lower", _highest_window))
register(
    Measure("cpu-per-gb", "CPU time of the whole machine per moved GB", "CPU s/GB", "lower", _cpu_per_gb, coarse=0.15)
)
register(
    Measure(
        "lowest-11s", "lowest rate over the quota's window", "of the quota", "higher", _lowest_window, compared=False
    )
)
register(
    Measure(
        "quota-bound-11s", "highest rate that the bound allows there", "of the quota", "lower", _bound, compared=False
    )
)


def _of_clients(kind: ClientKind, part: Part) -> Callable[[Manifest, MoveMeasures], float | None]:
    def value(_run: Manifest, measured: MoveMeasures) -> float | None:
        views = (view for view in measured.clients if (view.kind, view.part) == (kind, part))
        p99_us = next((view.p99_us for view in views), None)
        return None if p99_us is None else p99_us / 1000

    return value


def _most_in_flight(_run: Manifest, measured: MoveMeasures) -> float | None:
    return measured.burden.most_in_flight if measured.burden else None


def _nic_share(name: str) -> Callable[[Manifest, MoveMeasures], float | None]:
    """Return a measure: of all NICs and directions the highest, as a share of what that one was measured to carry."""

    def value(run: Manifest, measured: MoveMeasures) -> float | None:
        carries = {(nic.host, nic.direction): nic.payload_bytes_per_s for nic in run.nics}
        found = []
        for use in measured.burden.nics if measured.burden else ():
            used, most = getattr(use, name), carries.get((use.host, use.direction))
            if used is None or not most:
                return None
            found.append(used / most)
        return max(found, default=None)

    return value


def _highest_second(run: Manifest, measured: MoveMeasures) -> float | None:
    quota, highest = _quota(run), [rates.highest_second_bytes_per_s for rates in measured.rates]
    known = [rate for rate in highest if rate is not None]
    return max(known) / quota if quota and known else None


def _rest_s(_run: Manifest, measured: MoveMeasures) -> float | None:
    return measured.rests.total_s if measured.rests else None


def _silence(kind: ClientKind) -> Callable[[Manifest, MoveMeasures], float | None]:
    """Return the measure of the longest time, in seconds, in which a client's count did not grow during the move."""

    def value(_run: Manifest, measured: MoveMeasures) -> float | None:
        return next((view.silence_s for view in measured.clients if (view.kind, view.part) == (kind, "during")), None)

    return value


def _copied_gb(_run: Manifest, measured: MoveMeasures) -> float | None:
    received = _received(measured)
    return sum(rates.total_bytes for rates in received) / 1e9 if received else None


def _under_min_isr(_run: Manifest, measured: MoveMeasures) -> float | None:
    return measured.burden.under_min_isr_s if measured.burden else None


def _lowest_isr(_run: Manifest, measured: MoveMeasures) -> float | None:
    return measured.burden.lowest_isr if measured.burden else None


_CLIENTS: tuple[tuple[ClientKind, str], ...] = (
    ("produce", "until a record is acknowledged"),
    ("consume", "until read"),
)
for _kind, _what in _CLIENTS:
    for _part in ("before", "during"):
        register(
            Measure(
                f"{_kind}-p99{'-before' if _part == 'before' else ''}",
                f"99th percentile {_what}, {_part} the move",
                "ms",
                "lower",
                _of_clients(_kind, _part),
                compared=_part == "during",
                only_on_request=True,
            )
        )
_CLUSTER_MEASURES: tuple[tuple[str, str, str, Better, Callable[[Manifest, MoveMeasures], float | None], bool], ...] = (
    ("nic-max-1s", "highest second of any NIC", "of the NIC", "lower", _nic_share("peak_bytes_per_s"), True),
    ("nic-mean", "mean of the busiest NIC over the move", "of the NIC", "lower", _nic_share("mean_bytes_per_s"), True),
    ("highest-1s", "highest second of throttled copying", "of the quota", "lower", _highest_second, True),
    ("rest-seconds", "time in which no partition was being reassigned", "s", "lower", _rest_s, False),
    ("produce-gap", "longest time without an acknowledgement", "s", "lower", _silence("produce"), False),
    ("consume-gap", "longest time without a record read", "s", "lower", _silence("consume"), False),
    ("in-flight", "most partitions being reassigned at once", "", "lower", _most_in_flight, False),
    ("copied", "what the new replicas received", "GB", "lower", _copied_gb, False),
    ("under-min-isr", "time with an ISR under min.insync.replicas", "s", "lower", _under_min_isr, False),
    ("lowest-isr", "fewest replicas in sync of any partition", "", "higher", _lowest_isr, False),
)
for _name, _summary, _unit, _better, _value, _compared in _CLUSTER_MEASURES:
    # One second is mostly luck where a throttle lets whole responses pass: runs of the same differ by up to 22 %. The
    # mean is bytes ÷ time: from night to night a move that is slower would be reported as one that spares its NIC.
    _followed = _name not in ("nic-max-1s", "nic-mean", "highest-1s")
    register(
        Measure(_name, _summary, _unit, _better, _value, compared=_compared, only_on_request=True, followed=_followed)
    )


Value = Callable[[Manifest, MoveMeasures], float | None]


def _formula(run: Manifest, _measured: MoveMeasures) -> float | None:
    return None if run.relocation is None else formula(run, run.relocation, whole=True)


def _of_formula(run: Manifest, measured: MoveMeasures) -> float | None:
    seconds = _formula(run, measured)
    return measured.done_s / seconds if seconds and measured.done_s is not None else None


def _between(run: Manifest, measured: MoveMeasures) -> float | None:
    copied = None if run.relocation is None else copied_bytes(run.relocation, measured)
    return None if copied is None else max(0.0, copied) / 1e6


def _longest_ack(_run: Manifest, measured: MoveMeasures) -> float | None:
    found = measured.relocation.longest_ack_us if measured.relocation else None
    return None if found is None else found / 1000


def _requests(_run: Manifest, measured: MoveMeasures) -> float | None:
    found = measured.relocation.requests if measured.relocation else None
    return None if found is None else sum(each.count for each in found)


def _back(_run: Manifest, measured: MoveMeasures) -> float | None:
    return measured.relocation.p99_back_s if measured.relocation else None


FORMULA = "formula-seconds"
_RELOCATION_MEASURES: tuple[tuple[str, str, str, Better, Value, bool], ...] = (
    (FORMULA, "the whole log ÷ NIC", "s", "lower", _formula, False),
    ("time-vs-log-size", "seconds of the move ÷ the formula's", "of the formula", "lower", _of_formula, True),
    ("inter-broker-bytes", "NIC bytes between brokers beyond the load's", "MB", "lower", _between, True),
    ("longest-ack", "longest that a record waited to be acknowledged", "ms", "lower", _longest_ack, True),
    ("store-requests", "requests to the object store during the move", "", "lower", _requests, False),
    ("p99-back", "until acknowledgements are as quick as before", "s", "lower", _back, False),
)
for _name, _summary, _unit, _better, _value, _compared in _RELOCATION_MEASURES:
    register(Measure(_name, _summary, _unit, _better, _value, compared=_compared, only_on_request=True))
