"""Traffic on a NIC of a broker or an object store that is neither Kafka's nor the testbed's. Pure.

A connection is named by its ports at each reading. Datagrams are counted: they count from a share of the NIC's bytes on
that a rate cannot stand. Only the kernel is asked: what a broker counts as its clients' may be copies.
Of a store the bytes of each connection count that comes from no host of Kafka and no other server of the store.
"""

from collections import Counter
from collections.abc import Iterator

import numpy as np

from results.contract.network import FRAME_BYTES
from results.contract.texts import and_more, plural
from results.contract.verdict import Finding
from results.criteria.background import REQUESTS_BYTES_PER_S
from results.criteria.criterion import NETWORK_CHANGED
from results.criteria.findings import finding, not_judged
from results.criteria.protection_measures import calm_us
from results.criteria.quantities import NIC_BYTES, US, at, size
from results.criteria.run_view import RunView
from results.criteria.windows import counted

FOREIGN, DATAGRAMS = "nic.foreign", "nic.datagrams"
OTHERS = "s3.others.bytes"
METRICS = (FOREIGN, DATAGRAMS, OTHERS)
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
        text = f"{label} in {plural(readings[label], 'reading')}, first at {at((first - started) / US)}"
        yield ", ".join([text, *and_more(len(readings) - 1, "connection")])


def _datagrams(run: RunView, host: str, started: int, until: int) -> Iterator[str]:
    frames = _growth(run, DATAGRAMS, host, started, until)
    if frames * FRAME_BYTES > _negligible_bytes(run, host, started, until):
        yield f"{frames:.0f} messages of ICMP or UDP"


def _negligible_bytes(run: RunView, host: str, started: int, until: int) -> float:
    """Return how many bytes of something else on a NIC are too few to matter."""
    nic = sum(_growth(run, metric, host, started, until) for metric in NIC_BYTES.values())
    return max(MOST * nic, REQUESTS_BYTES_PER_S * (until - started) / US)


def store_clients(run: RunView, store: str) -> list[str]:
    """Return what other clients exchanged with a server of the object store, in words; empty where it is nothing.

    The time begins with that of the load alone: what stores send and receive then is subtracted. It ends with the run,
    as brokers upload after the move, and a consumer may read then.
    """
    since, until = calm_us(run.series) or run.measures.started_us, run.series.last_us()
    if since is None or until is None:
        return []
    table = run.series.of_metric(OTHERS)
    rows = zip(table["host"].to_pylist(), table["label"].to_pylist(), strict=True)
    carried = {
        label: _carried(run, store, label, since, until) for label in {label for host, label in rows if host == store}
    }
    total = sum(carried.values())
    if total <= _negligible_bytes(run, store, since, until):
        return []
    most = max(sorted(carried), key=lambda label: carried[label])
    return [f"other clients of the object store exchanged {size(total)} with it, {most} the most"]


def _carried(run: RunView, store: str, label: str, since: int, until: int) -> float:
    """Return the bytes of one connection in a time: one that begins in it has none at its begin."""
    first, last = run.series.gauge(OTHERS, store, [label]).at(np.array([since, until]))
    return max(0.0, float(last - first))


def foreign_finding(host: str, found: list[str]) -> Finding:
    """Return the finding of a NIC that something else used."""
    why = f"{host}: {'; '.join(found)}: not the testbed's"
    expected = "no traffic but Kafka's and the testbed's"
    return finding(NETWORK_CHANGED, expected, "inconclusive", why, observed=found[0], host=host, series=METRICS)


def shared_stores(run: RunView) -> list[Finding]:
    """Return a finding for each server of the object store that other clients used."""
    return [foreign_finding(store, found) for store in run.stores if (found := store_clients(run, store))]


def unless_shared(run: RunView, found: Finding) -> Finding:
    """Return a finding from what the stores sent and answered; a pass is left open where other clients used them."""
    shared = shared_stores(run) if found.verdict == "pass" else []
    return not_judged(found, shared) if shared else found


def _growth(run: RunView, metric: str, host: str, started: int, until: int) -> float:
    series = run.series.gauge(metric, host).between(started, until)
    return counted(series.value) if len(series) > 1 else 0.0
