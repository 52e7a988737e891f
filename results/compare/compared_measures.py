"""The measures that a comparison judges: each a number per run, with its better direction.

Rates are shares of the run's own quota, so that variants with different quotas can stand side by side.
"""

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal

from results.contract.aliases import measure_name
from results.contract.manifest import Manifest
from results.contract.network import payload_rates
from results.criteria.host_rates import HostRates, SteadyPart
from results.criteria.measures import ClientKind, MoveMeasures, Part
from results.criteria.model import allowed, bound_of
from results.criteria.relocation_measures import copied_bytes, formula

Better = Literal["lower", "higher"]
Value = Callable[[Manifest, MoveMeasures], float | None]


@dataclass(frozen=True, slots=True)
class Measure:
    """One number of a run; None from `value` where it could not be measured.

    Two runs are compared by the `standing` of their values, and that is what `better` is of.
    A measure that is not `compared` is shown with the others; it says nothing of better or worse.
    What comes `only_on_request` is neither compared nor shown unless it is named.
    `coarse` is a change that counts, as a fraction, where that of other measures would be lost in its noise.
    What is not `followed` is no series of its own from night to night: another measure says it as well, or better, or
    how much it differs from run to run is not known.
    What is `of_amounts` says something of variants only if they move different amounts.
    A measure with a `resolution` may be 0, so it has no ratio: two runs are compared by the difference of their values.
    The resolution is the smallest difference that counts, in the unit.
    """

    name: str
    summary: str
    unit: str
    better: Better
    value: Value
    compared: bool = True
    only_on_request: bool = False
    standing: Callable[[float], float] = float
    followed: bool = True
    of_amounts: bool = False
    coarse: float = 0.0
    resolution: float | None = None

    def limit(self, threshold: float) -> float:
        """Return the change that counts, where it is `threshold` for most measures."""
        return max(threshold, self.coarse)


def _received(measured: MoveMeasures) -> tuple[HostRates, ...]:
    return tuple(rates for rates in measured.rates if rates.direction == "receive")


def _quota(run: Manifest) -> float | None:
    return run.move.quota_bytes_per_s if run.move is not None else None


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


def _busy_cores(run: Manifest, measured: MoveMeasures) -> float | None:
    busy = measured.load.busy_mean
    return None if busy is None or measured.done_s is None else busy * run.machine.cores


def _spent(name: str, on: float) -> Value:
    """Return a measure: what the brokers spent for each so many bytes by which their logs grew.

    Growth is what moved and what clients wrote, so the measure is that of a byte, however long the move takes. A
    counter that stood still has counted nothing: a disk in memory has no device.
    """

    def value(_run: Manifest, measured: MoveMeasures) -> float | None:
        costs = measured.costs
        spent: float | None = getattr(costs, name) if costs else None
        return spent * on / costs.grown_bytes if costs and spent and costs.grown_bytes > 0 else None

    return value


def _metadata_requests(run: Manifest, measured: MoveMeasures) -> float | None:
    """Return requests per second. Without a throttle the runner asks as often as brokers answer: it says nothing."""
    return (measured.costs.metadata_requests_per_s or None) if run.move and measured.costs else None


def _metadata_records(run: Manifest, measured: MoveMeasures) -> float | None:
    if run.move is not None:
        moving = (flow for flow in run.move.flows if flow.kind in ("throttled", "control"))
        partitions = len({(flow.topic, partition) for flow in moving for partition in flow.partitions})
    else:
        partitions = run.relocation.partitions if run.relocation else 0
    records = measured.costs.metadata_records if measured.costs else None
    return records / partitions if records and partitions else None


def _latency_ms(quantile: Literal["p50_us", "p99_us", "p999_us"], kind: ClientKind, part: Part) -> Value:
    def value(_run: Manifest, measured: MoveMeasures) -> float | None:
        view = measured.seen_by(kind, part)
        found: float | None = None if view is None else getattr(view, quantile)
        return None if found is None else found / 1000

    return value


def _nic_share(name: str) -> Value:
    """Return a measure: of all NICs and directions the highest, as a share of what that one was measured to carry."""

    def value(run: Manifest, measured: MoveMeasures) -> float | None:
        carries = payload_rates(run.nics)
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


def _silence(kind: ClientKind) -> Value:
    return lambda _run, found: view.silence_s if (view := found.seen_by(kind, "during")) else None


def _copied_gb(_run: Manifest, measured: MoveMeasures) -> float | None:
    received = _received(measured)
    return sum(rates.total_bytes for rates in received) / 1e9 if received else None


def _of_burden(name: str) -> Value:
    return lambda _run, found: getattr(found.burden, name) if found.burden else None


def _formula(run: Manifest, _measured: MoveMeasures) -> float | None:
    return None if run.relocation is None else formula(run, run.relocation, whole=True)


def _of_formula(run: Manifest, measured: MoveMeasures) -> float | None:
    seconds = _formula(run, measured)
    return measured.done_s / seconds if seconds and measured.done_s is not None else None


def _between(run: Manifest, measured: MoveMeasures) -> float | None:
    copied = None if run.relocation is None else copied_bytes(run.relocation, measured)
    return None if copied is None else max(0.0, copied) / 1e6


def _longest_ack_ms(_run: Manifest, measured: MoveMeasures) -> float | None:
    found = measured.relocation.longest_ack_us if measured.relocation else None
    return None if found is None else found / 1000


def _requests(_run: Manifest, measured: MoveMeasures) -> float | None:
    found = measured.relocation.requests if measured.relocation else None
    return None if found is None else sum(each.count for each in found)


_QUOTA, _NIC = "of the quota", "of the NIC"
_ACKED, _READ = "99th percentile until a record is acknowledged", "99th percentile until read"
_MEDIAN = "median time until a record is"
_P50, _P99 = partial(_latency_ms, "p50_us"), partial(_latency_ms, "p99_us")
_SHOWN = partial(Measure, compared=False)
_REQUESTED = partial(Measure, only_on_request=True)
_SHOWN_ON_REQUEST = partial(Measure, compared=False, only_on_request=True)
_COST = partial(Measure, better="lower")
# One second is mostly luck where a throttle lets whole responses pass: runs of the same differ by up to 22 %. A NIC's
# mean is bytes ÷ time: from night to night a move that is slower would be reported as one that spares its NIC.
_NOT_FOLLOWED = partial(Measure, only_on_request=True, followed=False)
_MEASURES = (
    Measure("move-seconds", "from the move's start until it is done", "s", "lower", lambda _run, found: found.done_s),
    Measure(
        "seconds-per-gb",
        "the same for each GB that moved",
        "s/GB",
        "lower",
        _seconds_per_gb,
        followed=False,
        of_amounts=True,
    ),
    Measure(
        "steady-mean",
        "mean rate of the steady part's windows, where highest; compared: how near to 1",
        _QUOTA,
        "higher",
        _steady_mean,
        standing=_nearness,
    ),
    Measure("highest-11s", "highest rate over the quota's window", _QUOTA, "lower", _highest_window),
    # From pair to pair the brokers' CPU time and the metadata's records differ by 4.5 to 5.3 % (standard deviation, 20
    # pairs under a throttle). With 8 % an unchanged Kafka is OK after eight pairs in nine of ten cases.
    _COST(
        "broker-cpu-per-gb",
        "CPU time of the brokers per GB written to logs",
        "CPU s/GB",
        value=_spent("cpu_s", 1e9),
        coarse=0.08,
    ),
    _COST("disk-writes", "bytes that brokers write to devices", "of the logs", value=_spent("written_bytes", 1.0)),
    # Whether a fetch that the quota holds back ends empty is luck. At most two a second do, as each waits 0.5 s
    # (`replica.fetch.wait.max.ms`). Of 12 a second, as at 10 MB/s in responses of 1 MiB, that is 17 %.
    _COST(
        "fetches-per-gb",
        "fetches of followers",
        "per GB",
        value=_spent("follower_fetches", 1e9),
        coarse=0.2,
    ),
    # The runner looks 0.5 s after each answer. If answers take up to 0.1 s longer or less, that is 20 % of the looks.
    _COST("metadata-requests", "Metadata requests to all brokers", "per s", value=_metadata_requests, coarse=0.2),
    _COST("metadata-records", "records of the metadata log", "per partition", value=_metadata_records, coarse=0.08),
    # Healthy brokers open a few connections for a move of half a minute: to those from which they fetch.
    _COST(
        "connections-opened",
        "connections that the brokers' hosts opened",
        "per s",
        value=lambda _run, found: found.costs.connections_per_s if found.costs else None,
        followed=False,
        resolution=1.0,
    ),
    _SHOWN("lowest-11s", "lowest rate over the quota's window", _QUOTA, "higher", _lowest_window),
    _SHOWN("quota-bound-11s", "highest rate that the bound allows there", _QUOTA, "lower", _bound),
    # It counts the CPU time of the runner and of all else on the machine, too: `broker-cpu-per-gb` is compared instead.
    _REQUESTED(
        "cpu-per-gb", "CPU time of the whole machine per moved GB", "CPU s/GB", "lower", _cpu_per_gb, coarse=0.15
    ),
    # Of a move in an object store, which moves no GB.
    _SHOWN_ON_REQUEST("busy-cores", "cores of the machine busy during the move, mean", "cores", "lower", _busy_cores),
    _SHOWN_ON_REQUEST("produce-p99-before", f"{_ACKED}, before the move", "ms", "lower", _P99("produce", "before")),
    _REQUESTED("produce-p99", f"{_ACKED}, during the move", "ms", "lower", _P99("produce", "during")),
    # A record whose leader changes waits for the new one: 3 in 1,000 of a minute at 500 kB/s, if 100 partitions change
    # their leader and each waits 0.2 s.
    _NOT_FOLLOWED(
        "produce-p999",
        "99.9th percentile until a record is acknowledged, during the move",
        "ms",
        "lower",
        _latency_ms("p999_us", "produce", "during"),
    ),
    _SHOWN_ON_REQUEST("consume-p99-before", f"{_READ}, before the move", "ms", "lower", _P99("consume", "before")),
    _REQUESTED("consume-p99", f"{_READ}, during the move", "ms", "lower", _P99("consume", "during")),
    # A quantile of the tail moves with the few seconds of arrival. The median is known to half a percent, so it is
    # compared by default: a broker that answers each request some milliseconds later is found.
    Measure("produce-p50", f"{_MEDIAN} acknowledged, during the move", "ms", "lower", _P50("produce", "during")),
    Measure("consume-p50", f"{_MEDIAN} read, during the move", "ms", "lower", _P50("consume", "during")),
    _NOT_FOLLOWED("nic-max-1s", "highest second of any NIC", _NIC, "lower", _nic_share("peak_bytes_per_s")),
    _NOT_FOLLOWED("nic-mean", "mean of the busiest NIC over the move", _NIC, "lower", _nic_share("mean_bytes_per_s")),
    _NOT_FOLLOWED("highest-1s", "highest second of throttled copying", _QUOTA, "lower", _highest_second),
    # A rest reads longer than it took by up to two looks at the controller's list, which are 0.3 s apart.
    _NOT_FOLLOWED(
        "rest-seconds",
        "time in which no partition was being reassigned",
        "s",
        "lower",
        lambda _run, found: found.rests.total_s if found.rests else None,
        resolution=0.6,
    ),
    # A client's count is read once a second. One reading more is chance, and 1.5 s lies between one and two. Nights
    # follow the same time as `produce-silence` and `consume-silence`.
    _NOT_FOLLOWED(
        "produce-gap", "longest time without an acknowledgement", "s", "lower", _silence("produce"), resolution=1.5
    ),
    _NOT_FOLLOWED(
        "consume-gap", "longest time without a record read", "s", "lower", _silence("consume"), resolution=1.5
    ),
    _SHOWN_ON_REQUEST(
        "in-flight", "most partitions being reassigned at once", "", "lower", _of_burden("most_in_flight")
    ),
    _SHOWN_ON_REQUEST("copied", "what the new replicas received", "GB", "lower", _copied_gb),
    # The runner looks at the ISR every 0.5 s, and an ISR that is too small is known to a look at either end.
    _NOT_FOLLOWED(
        "under-min-isr",
        "time with an ISR under min.insync.replicas",
        "s",
        "lower",
        _of_burden("under_min_isr_s"),
        resolution=1.0,
    ),
    _SHOWN_ON_REQUEST("lowest-isr", "fewest replicas in sync of any partition", "", "higher", _of_burden("lowest_isr")),
    _SHOWN_ON_REQUEST("formula-seconds", "the whole log ÷ NIC", "s", "lower", _formula),
    _REQUESTED("time-vs-log-size", "seconds of the move ÷ the formula's", "of the formula", "lower", _of_formula),
    # Where nothing is copied it is 0 to 2 MB. Clients that had to wait write up to a second's records later, at either
    # end of the move: that is 1 MB of the experiments' 500 kB/s.
    _REQUESTED(
        "inter-broker-bytes",
        "NIC bytes between brokers beyond the load's",
        "MB",
        "lower",
        _between,
        resolution=1.0,
    ),
    _REQUESTED("longest-ack", "longest that a record waited to be acknowledged", "ms", "lower", _longest_ack_ms),
    _SHOWN_ON_REQUEST("store-requests", "requests to the object store during the move", "", "lower", _requests),
    _SHOWN_ON_REQUEST(
        "p99-back",
        "until acknowledgements are as quick as before",
        "s",
        "lower",
        lambda _run, found: found.relocation.p99_back_s if found.relocation else None,
    ),
)
_BY_NAME = {measure.name: measure for measure in _MEASURES}


def measures() -> tuple[Measure, ...]:
    """Return all measures, in the order of the report; the compared ones, unless others are requested."""
    return _MEASURES


def find_measure(name: str) -> Measure:
    """Return the measure of this name, or of this earlier name. Raise ValueError that lists all names."""
    name = measure_name(name)
    if name not in _BY_NAME:
        near = difflib.get_close_matches(name, _BY_NAME, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise ValueError(f"there is no measure {name!r}, only {', '.join(_BY_NAME)}{hint}")
    return _BY_NAME[name]


def values_of(run: Manifest, measured: MoveMeasures) -> Mapping[str, float]:
    """Return measure → value of one run; a value that could not be measured is absent."""
    found = {measure.name: measure.value(run, measured) for measure in _MEASURES}
    return {name: value for name, value in found.items() if value is not None}
