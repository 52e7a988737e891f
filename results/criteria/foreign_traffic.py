"""Traffic on a broker's NIC that is neither Kafka's nor the testbed's, while data moved. Pure.

A connection is named by its ports at each reading. Datagrams are counted: they count from a share of the NIC's bytes on
that a rate cannot stand. Only the kernel is asked: what a broker counts as its clients' may be copies.
"""

from collections import Counter
from collections.abc import Iterator

from results.contract.texts import and_more
from results.criteria.background import REQUESTS_BYTES_PER_S
from results.criteria.quantities import FRAME_BYTES, NIC_BYTES, US, at
from results.criteria.run_view import RunView
from results.criteria.windows import counted

FOREIGN, DATAGRAMS = "nic.foreign", "nic.datagrams"
METRICS = (FOREIGN, DATAGRAMS)
MOST = 0.01
"""Of a NIC's bytes: a third of what `nic-conservation` allows to copies. It also allows for requests: on a NIC that is
almost idle, as many bytes as those are nothing."""


def foreign_traffic(run: RunView, host: str) -> list[str]:
    """Return what else used the NIC of a broker while data moved, in words; empty where nothing is known to have."""
    started, until = run.measures.started_us, run.series.event_us("move.done") or run.series.last_us()
    if started is None or until is None:
        return []
    return [*_connections(run, host, started, until), *_datagrams(run, host, started, until)]


def _connections(run: RunView, host: str, started: int, until: int) -> Iterator[str]:
    table = run.series.of_metric(FOREIGN)
    rows = zip(*(table[name].to_pylist() for name in ("us", "host", "label")), strict=True)
    seen = sorted((us, label) for us, other, label in rows if other == host and started <= us <= until)
    if seen:
        (first, label), readings = seen[0], Counter(label for _us, label in seen)
        text = f"{label} in {readings[label]} readings, first at {at((first - started) / US)}"
        yield ", ".join([text, *and_more(len(readings) - 1, "connection")])


def _datagrams(run: RunView, host: str, started: int, until: int) -> Iterator[str]:
    nic = sum(_growth(run, metric, host, started, until) for metric in NIC_BYTES.values())
    frames = _growth(run, DATAGRAMS, host, started, until)
    if frames * FRAME_BYTES > max(MOST * nic, REQUESTS_BYTES_PER_S * (until - started) / US):
        yield f"{frames:.0f} messages of ICMP or UDP"


def _growth(run: RunView, metric: str, host: str, started: int, until: int) -> float:
    series = run.series.gauge(metric, host).between(started, until)
    return counted(series.value) if len(series) > 1 else 0.0
