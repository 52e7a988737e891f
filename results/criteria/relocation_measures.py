"""Measures of a move that no quota holds back: on disk, tiered, in S3."""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from results.contract.manifest import Manifest
from results.contract.network import payload_rates
from results.contract.relocation import Relocation, Sent, formula_seconds
from results.contract.verdict import DIRECTIONS, Direction
from results.criteria.cluster_measures import machine_load, most_in_flight, nic_uses, own_cores
from results.criteria.cost_measures import measure_costs
from results.criteria.measures import (
    P99_BACK,
    P99_CHANCE,
    P99_WINDOW_S,
    P99_WITHIN_S,
    Burden,
    MoveMeasures,
    NicTotals,
    RelocationMeasures,
    StoreRequests,
)
from results.criteria.protection_measures import bucket_quantile, bucket_us, calm_us, measure_clients
from results.criteria.quantities import GAP_S, QUOTA_WINDOW_S, US
from results.criteria.sample_series import Floats, Micros, RunSeries, Series
from results.criteria.unfit import ALWAYS_FIT, UnfitTime
from results.criteria.windows import counted, counted_between, enclosing, longest_gap_s, sum_of_all

REQUESTS, DEVICE_READ = "s3.requests", "io.read_bytes"
TTFB = "s3.ttfb"
READS = ("get", "head")
"""How the names of the operations begin that read, in small letters."""
STORE_BYTES: Mapping[Direction, str] = {"transmit": "s3.tx.bytes", "receive": "s3.rx.bytes"}
"""What a server of the store counts of its clients' requests."""
WRITTEN_S = 1.0
"""Clients that had to wait make up for it afterwards: what they write may be off by that much at the move's ends."""
NOTHING = RelocationMeasures((), None, None, None, None, None)


def measure_relocation(manifest: Manifest, run: RunSeries, unfit: UnfitTime = ALWAYS_FIT) -> MoveMeasures:
    """Return all measures of the run. Raise ValueError when its manifest has no relocation.

    After the move `unfit` time is no part of a wait.
    """
    if manifest.relocation is None:
        raise ValueError(f"run {manifest.run_id}: its manifest has no relocation to measure")
    asked = manifest.relocation
    started, done = run.event_us("move.started"), run.event_us("move.done")
    if started is None:
        return MoveMeasures(relocation=NOTHING)
    until = done or run.last_us() or started
    calm = calm_us(run)
    uses = nic_uses(run, manifest.nics, asked.brokers, started, until)
    return MoveMeasures(
        started_us=started,
        done_s=None if done is None else (done - started) / US,
        load=machine_load(run, started, until, QUOTA_WINDOW_S, cores=own_cores(manifest)),
        clients=measure_clients(run, started, done),
        burden=Burden(most_in_flight(run, started, until), uses, None, None),
        relocation=_relocated(run, manifest, asked, calm, started, until, unfit),
        costs=measure_costs(run, asked.brokers, started, done) if asked.storage == "disk" else None,
    )


def _relocated(
    run: RunSeries, manifest: Manifest, asked: Relocation, calm: int, started: int, until: int, unfit: UnfitTime
) -> RelocationMeasures:
    requests, gap_s = _requests(run, asked, started, until)
    cold = run.event_us("cold.started"), run.event_us("cold.done")
    latency, member = run.of_metric("client.produce.latency"), asked.membership
    if (closing := run.event_us("uploads.asked")) is not None:  # the leaders close all segments at once
        latency = latency.filter(pc.less(latency["us"], closing))
    during = latency.filter(pc.and_(pc.greater(latency["us"], started), pc.less_equal(latency["us"], until + US)))
    longest_us = float(np.max(bucket_us(during))) if during.num_rows else None
    settled_s = (until - started + (longest_us or 0.0)) / US
    # From when on a broker was asked to join the machine starts it.
    asked_us = member.asked_us if member is not None and member.change == "joined" else started
    before_us, back_s, never = _p99(latency, calm, started, settled_s, asked_us, unfit)
    return RelocationMeasures(
        nics=tuple(
            _nic(run, manifest, host, way, calm, started, until)
            for host in (*asked.brokers, *asked.stores)
            for way in DIRECTIONS
        ),
        requests=requests,
        requests_gap_s=gap_s,
        longest_ack_us=longest_us,
        p99_before_us=before_us,
        p99_back_s=back_s,
        p99_never=never,
        device_bytes=_total([run.gauge(DEVICE_READ, host) for host in asked.brokers], *cold),
        store_bytes=_total([_carried(run, manifest, host, "transmit") for host in asked.stores], *cold),
    )


def _carried(run: RunSeries, manifest: Manifest, host: str, direction: Direction) -> Series:
    """Return the bytes that a host's NICs counted; of one of several servers of a store, those of clients' requests.

    The servers of one store send each other what they store and read, and their NICs count that as well.
    """
    stores = manifest.relocation.stores if manifest.relocation else ()
    if host in stores and len(stores) > 1:
        return run.gauge(STORE_BYTES[direction], host)
    return run.nic_bytes(manifest.nics, host, direction)


def _nic(
    run: RunSeries, manifest: Manifest, host: str, direction: Direction, calm: int, started: int, until: int
) -> NicTotals:
    series = _carried(run, manifest, host, direction)
    if len(series) == 0:
        return NicTotals(host, direction, None, None, None, None)
    first, after = enclosing(series.t, started, until)
    covered_s = (int(series.t[after]) - int(series.t[first])) / US if after < len(series) else None
    quiet = series.between(calm, started)
    before = counted(quiet.value) / quiet.seconds if len(quiet) > 1 else None
    gap_s = longest_gap_s(series.t, started, until)
    following = counted(series.cut(after, after + 1).value) if after + 1 < len(series) else 0.0
    return NicTotals(host, direction, counted_between(series, started, until), covered_s, before, gap_s, following)


def received_by_stores(manifest: Manifest, run: RunSeries) -> tuple[NicTotals, ...]:
    """Return what each store's NIC received from before the move until its last reading; nothing without a move.

    An old broker may upload after the move is done, so the move's end is not the end of this time.
    """
    started = run.event_us("move.started")
    if manifest.relocation is None or started is None:
        return ()
    calm = calm_us(run)
    found = []
    for host in manifest.relocation.stores:
        readings = _carried(run, manifest, host, "receive").t
        if len(readings) > 0 and int(readings[-1]) > started:
            found.append(_nic(run, manifest, host, "receive", calm, started, int(readings[-1])))
    return tuple(found)


def answered(run: RunSeries, store: str) -> Micros:
    """Return when a server of the store gave its counters: of bytes always, of requests from its first one on.

    Clients may send all requests to one of several servers.
    """
    return np.union1d(run.gauge(REQUESTS, store).t, run.gauge(STORE_BYTES["transmit"], store).t)


def _requests(
    run: RunSeries, asked: Relocation, started: int, until: int
) -> tuple[tuple[StoreRequests, ...] | None, float | None]:
    """Return what all stores counted, by operation; None when one was not asked until the end, or started meanwhile."""
    table, counts, gaps = run.of_metric(REQUESTS), dict[str, float](), []
    for host in asked.stores:
        rows = table.filter(pc.equal(table["host"], host))
        looks = answered(run, host)
        gap_s = longest_gap_s(looks, started, until)
        if gap_s is None:
            return None, None
        gaps.append(gap_s)
        first, last = enclosing(looks, started, until)
        if last == len(looks):
            return None, max(gaps)
        for operation in sorted({label or "" for label in rows["label"].to_pylist()}):
            steps = _steps(run.gauge(REQUESTS, host, [operation]), looks, first, last)
            if (steps < 0).any():
                return None, max(gaps)  # it was started again: what it counted since the reading before is lost
            counts[operation] = counts.get(operation, 0.0) + float(np.sum(steps))
    if not asked.stores:
        return None, None
    return tuple(StoreRequests(name, count) for name, count in sorted(counts.items()) if count > 0), max(gaps)


def _steps(counter: Series, looks: Micros, first: int, last: int) -> Floats:
    """Return what a counter of one operation counted from each look at its server to the next one.

    A server names an operation from its first request since its start on: before that it counted none.
    """
    value = np.zeros(len(looks))
    value[np.searchsorted(looks, counter.t)] = counter.value
    return np.diff(value[first : last + 1])


def read_waits(run: RunSeries, stores: Collection[str], started: int, until: int) -> list[tuple[float, float]]:
    """Return after how many seconds at most stores began to answer reads, each with the number of these reads."""
    table, found = run.of_metric(TTFB), list[tuple[float, float]]()
    for host in stores:
        labels = table.filter(pc.equal(table["host"], host))["label"].to_pylist()
        looks = np.union1d(answered(run, host), run.gauge(TTFB, host).t)
        first, last = enclosing(looks, started, until)
        within: dict[str, dict[float, float]] = {}  # operation → limit → reads that were answered within it
        for label in sorted({label or "" for label in labels}):
            operation, _, limit = label.rpartition(" ")
            if operation.lower().startswith(READS):
                steps = _steps(run.gauge(TTFB, host, [label]), looks, first, last)
                within.setdefault(operation, {})[float(limit)] = float(np.sum(np.maximum(steps, 0)))
        for counts in within.values():
            quicker = 0.0
            for limit_s, count in sorted(counts.items()):
                found.append((limit_s, max(0.0, count - quicker)))
                quicker = count
    return found


def _p99(
    latency: pa.Table, calm: int, started: int, settled_s: float, asked_us: int, unfit: UnfitTime
) -> tuple[float | None, float | None, bool]:
    """Return the highest 99th percentile before the move, when it was last above, and `RelocationMeasures.p99_never`.

    Windows of acknowledgements are compared. After the move none was due before `settled_s` any more.

    A window before the move ends before `asked_us`. Of the waits after the move `unfit` time is no part.
    """
    rows = latency.filter(pc.greater_equal(latency["us"], calm + US))
    if rows.num_rows == 0:
        return None, None, False
    due, waits, count = rows["us"].to_numpy(), bucket_us(rows), rows["value"].to_numpy()
    second = (due - started) // US
    bucket = np.where(due > started, unfit.spare(due - US, waits), waits)
    first, last = int(np.min(second)), int(np.max(second))
    found = {
        end: bucket_quantile(bucket[inside], count[inside], 0.99)
        for end in range(first + P99_WINDOW_S - 1, last + 1)
        if (inside := (second > end - P99_WINDOW_S) & (second <= end)).any()
    }
    quiet = (asked_us - started) // US
    before = [p99 for end, p99 in found.items() if end < min(0, quiet) and p99 is not None]
    if not before:
        return None, None, False
    most = P99_BACK * max(before)
    above = [end for end, p99 in found.items() if end >= 0 and p99 is not None and p99 > most]
    if not above:
        return max(before), 0.0 if last >= 0 else None, False
    begins = {end: end - P99_WINDOW_S - settled_s for end in found}
    after = [
        p99 > most
        for end, p99 in found.items()
        if p99 is not None and 0 <= begins[end] < P99_WITHIN_S - P99_WINDOW_S + 1
    ]
    apart = [(len(each) + P99_WINDOW_S - 1) // P99_WINDOW_S for each in (before, after)]  # they share no second
    never = bool(after) and all(after) and math.comb(sum(apart), apart[0]) >= 1 / P99_CHANCE
    return max(before), None if above[-1] == last else float(above[-1] + 1), never


def _total(counters: list[Series], begun: int | None, ended: int | None) -> float | None:
    """Return what all of them counted in that time; None when one did not, or there is no such time."""
    if begun is None or ended is None or not counters:
        return None
    return sum_of_all([counted_between(counter, begun, ended) for counter in counters])


def unread_nic(nics: Sequence[NicTotals], hosts: Collection[str]) -> str:
    """Return which NIC of these hosts was not read all the time; empty when all were."""
    for nic in nics:
        if nic.longest_gap_s is None or nic.longest_gap_s > GAP_S:
            return f"the NIC of {nic.host} was not read for {nic.longest_gap_s or 0.0:.1f} s"
    missing = {*hosts} - {nic.host for nic in nics}
    return f"the NIC of {min(missing)} was not read" if missing else ""


def copied_bytes(asked: Relocation, measures: MoveMeasures) -> float | None:
    """Return NIC bytes that brokers sent each other beyond what the load explains.

    What brokers received, less what the stores sent them, less both at the rates before the move. None when a part is
    not known.
    """
    return _beyond_load(_between_brokers(asked, measures))


def most_copied_bytes(asked: Relocation, measures: MoveMeasures) -> float | None:
    """Return NIC bytes that brokers received from anything but the stores, the load's included; None: not known.

    No copy between brokers was larger, however little the load took meanwhile.
    """
    total = 0.0
    for sign, nic in _between_brokers(asked, measures):
        if nic.bytes is None:
            return None
        total += sign * nic.bytes
    return total


def next_sent_bytes(asked: Relocation, measures: MoveMeasures) -> float:
    """Return NIC bytes that the stores sent up to one reading after the move's last.

    A broker's NIC that was read a moment later than a store's has received them already.
    """
    return sum(nic.next_bytes for sign, nic in _between_brokers(asked, measures) if sign < 0)


def _between_brokers(asked: Relocation, measures: MoveMeasures) -> Iterator[tuple[int, NicTotals]]:
    for nic in (measures.relocation or NOTHING).nics:
        if nic.host in asked.brokers and nic.direction == "receive":
            yield 1, nic
        elif nic.host in asked.stores and nic.direction == "transmit":
            yield -1, nic


def uploaded_bytes(asked: Relocation, measures: MoveMeasures) -> float | None:
    """Return NIC bytes that the stores received beyond the rate before the move; None when a part is not known."""
    found = [
        nic for nic in (measures.relocation or NOTHING).nics if nic.host in asked.stores and nic.direction == "receive"
    ]
    return _beyond_load((1, nic) for nic in found)


def _beyond_load(signed: Iterable[tuple[int, NicTotals]]) -> float | None:
    total, parts = 0.0, list(signed)
    for sign, nic in parts:
        if nic.bytes is None or nic.covered_s is None or nic.before_bytes_per_s is None:
            return None
        total += sign * (nic.bytes - nic.before_bytes_per_s * nic.covered_s)
    return total if parts else None


def formula(manifest: Manifest, asked: Relocation, *, whole: bool) -> float | None:
    """Log size ÷ NIC, with the whole logs or with what lay on disks; None when a part is not known."""
    sizes: list[tuple[Sent, int]] = []
    for sent in asked.sent:
        found = sent.total_bytes if whole else sent.local_bytes
        if found is None:
            return None
        sizes.append((sent, found))
    return formula_seconds(sizes, payload_rates(manifest.nics))


def nic_share(manifest: Manifest, measures: MoveMeasures) -> float | None:
    """Return the mean of the busiest NIC over the move, as a share of what it was measured to carry."""
    carries = payload_rates(manifest.nics)
    found = [
        use.mean_bytes_per_s / rate
        for use in (measures.burden.nics if measures.burden else ())
        if use.mean_bytes_per_s is not None and (rate := carries.get((use.host, use.direction)))
    ]
    return max(found, default=None)
