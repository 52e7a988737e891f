"""Measures of a move's cost for its brokers: CPU time, writes, requests, records of the metadata log.

It is that of the whole move, not of its throttled part: after the last throttled byte the controller still writes
records of the partitions that arrive, and a broker deletes the old replicas.
"""

from collections.abc import Callable, Sequence

import numpy as np

from results.criteria.measures import Costs
from results.criteria.quantities import US
from results.criteria.sample_series import Micros, RunSeries, Series
from results.criteria.unfit import KAFKA_CPU
from results.criteria.windows import counted

WRITTEN, REQUESTS, METADATA_OFFSET = "io.write_bytes", "broker.requests", "broker.metadata_offset"
OPENED = "tcp.opened"
NEAR_S = 6.0
"""Longest time from a move's edge to the reading that counts for it: an agent samples once in five seconds at least."""


def measure_costs(run: RunSeries, brokers: Sequence[str], started: int, done: int | None) -> Costs | None:
    """Return what the brokers spent between two instants (µs); None when the move was not done, or its logs not read.

    A broker counts from its last reading at or before the start to its first one at or after the end. A counter that
    goes back has begun again with its broker, at 0: what it counted after its last reading before that is not known.
    """
    if done is None:
        return None
    grown = 0.0
    for host in brokers:
        looked = run.looked(host)
        edges = _edges(looked, started, done)
        if edges is None:
            return None
        grown += run.logs_grown(host, *(int(looked[each]) for each in edges))

    def total(series_of: Callable[[str], Series], *, per_second: bool = False, of_agent: int = 0) -> float | None:
        found = 0.0
        for host in brokers:
            series = series_of(host)
            edges = _edges(series.t, started, done)
            if edges is None:
                return None
            part = series.cut(*edges)
            spent = max(0.0, counted(part.value) - of_agent * (len(part) - 1))
            found += spent / (part.seconds if per_second else 1)
        return found

    return Costs(
        grown_bytes=grown,
        cpu_s=total(lambda host: run.gauge(KAFKA_CPU, host)),
        written_bytes=total(lambda host: run.gauge(WRITTEN, host)),
        follower_fetches=total(lambda host: run.gauge(REQUESTS, host, ["FetchFollower"])),
        metadata_requests_per_s=total(lambda host: run.gauge(REQUESTS, host, ["Metadata"]), per_second=True),
        # For each sample the agent opens one connection to its broker's metrics.
        connections_per_s=total(lambda host: run.gauge(OPENED, host), per_second=True, of_agent=1),
        metadata_records=_metadata_records([run.gauge(METADATA_OFFSET, host) for host in brokers], started, done),
    )


def _edges(t: Micros, begin_us: int, end_us: int) -> tuple[int, int] | None:
    """Return the places of the last reading at or before the begin, and of the first one at or after the end.

    None when one of them is missing, or far from its edge.
    """
    first, last = int(np.searchsorted(t, begin_us, side="right")) - 1, int(np.searchsorted(t, end_us, side="left"))
    if first < 0 or last == len(t) or last == first:
        return None
    return None if max(begin_us - int(t[first]), int(t[last]) - end_us) > NEAR_S * US else (first, last)


def _metadata_records(offsets: Sequence[Series], started: int, done: int) -> float | None:
    """Return how many records the controller appended; None without a broker that was there all the time.

    Each broker applies the whole log, so one is enough. While it starts, its offset is behind. Between two readings the
    log is taken to grow evenly: most of what an idle controller appends is a record twice a second.
    """
    for offset in offsets:
        edges = _edges(offset.t, started, done)
        if edges is None or bool((np.diff(offset.cut(*edges).value) < 0).any()):
            continue
        begin, end = np.interp([started, done], offset.t, offset.value)
        return float(end - begin)
    return None
