"""A NIC's bytes over a move under load, compared with the bytes it had to carry: copies, clients' records, answers.

The overhead of a copied byte comes from the calibration, that of a client's byte from the time when the load was alone.
Against each full frame goes an acknowledgement of TCP, or fewer: `docs/criteria.md`, *Protected clients*.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from results.contract.manifest import Manifest
from results.contract.move import Move, flows_through
from results.contract.network import FRAME_BYTES
from results.contract.verdict import DIRECTIONS, Direction
from results.criteria.background import background_bytes
from results.criteria.quantities import NIC_BYTES, PAYLOAD, US
from results.criteria.sample_series import RunSeries, Series
from results.criteria.windows import counted, counted_between

COPY_TOLERANCE = 0.03
"""The part of a copy that is fetched again is below 1 % for batches of 16 kB, and 3 % for 64 kB and more
(docs/measurements/throttle-bound.md): the calibration and the move may differ by so much. Busy NICs of healthy brokers
were within 0.1 % (docs/measurements/kip73.md). Bytes that cross twice are not found below 3 % of the copies."""
ACK_BYTES = 66
ACK_MOST = ACK_BYTES / (2 * FRAME_BYTES)
"""The most that acknowledgements add to a NIC: a share of what crosses it the other way."""
DELETED_S = 1.0
"""A log is read once a second: what came to it after its last reading, before it was deleted, is in no sample."""
CLIENTS: dict[Direction, str] = {"transmit": "broker.bytes_out", "receive": "broker.bytes_in"}
REPLICAS: dict[Direction, str] = {
    "transmit": "broker.replication.bytes_out",
    "receive": "broker.replication.bytes_in",
}


@dataclass(frozen=True, slots=True)
class LoadedNic:
    """One NIC, one direction, over the move: what it counted, and what it had to carry, `slack_bytes` more or less.

    `background_bytes` is the most that other traffic may have added. `moving`: throttled partitions are copied there.
    `missing` says what is unknown; then the numbers are 0.
    """

    host: str
    direction: Direction
    nic_bytes: float
    copied_bytes: float
    client_bytes: float
    expected_bytes: float
    slack_bytes: float
    background_bytes: float
    moving: bool
    missing: str = ""


@dataclass(frozen=True, slots=True)
class _Overheads:
    """Bytes on the NIC for each byte of a copy and of clients, each way, and the rate of all writes before the move."""

    copied: dict[Direction, float]
    clients: dict[Direction, float]
    written_bytes_per_s: float


def measure_loaded_nics(manifest: Manifest, run: RunSeries, move: Move) -> tuple[LoadedNic, ...]:
    """Return every broker's NIC, each way."""
    overheads = _overheads(run, move)
    ends = [(host, direction) for host in move.brokers for direction in DIRECTIONS]
    if isinstance(overheads, str):
        return tuple(_unknown(*end, overheads) for end in ends)
    return tuple(_nic(manifest, run, move, overheads, end) for end in ends)


def _unknown(host: str, direction: Direction, missing: str) -> LoadedNic:
    return LoadedNic(host, direction, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, False, missing)


def _overheads(run: RunSeries, move: Move) -> _Overheads | str:
    begun, ended = run.event_us("calibration.started"), run.event_us("calibration.done")
    calm, started = run.event_us("load.before"), run.event_us("move.started")
    source = next((flow.leader for flow in move.flows if flow.kind == "calibration"), None)
    if begun is None or ended is None or source is None or move.nic_bytes_per_log_byte is None:
        return "the calibration transfer gave no overhead of the wire"
    if calm is None or started is None:
        return "the load did not run alone before the move"
    sent = counted_between(run.gauge(NIC_BYTES["transmit"], source), begun, ended)
    replicated = counted_between(run.gauge(REPLICAS["transmit"], source), begun, ended)
    if not sent or not replicated:
        return "the calibration transfer was not counted by its broker"
    clients: dict[Direction, float] = {}
    for direction in DIRECTIONS:
        nic, carried = (
            _alone(run, move.brokers, metrics, (calm, started))
            for metrics in ([NIC_BYTES[direction]], [CLIENTS[direction], REPLICAS[direction]])
        )
        if not nic or not carried:
            return f"{CLIENTS[direction]} or the NICs were not sampled while the load was alone"
        clients[direction] = nic / carried
    written = _alone(run, move.brokers, [CLIENTS["receive"]], (calm, started)) or 0.0
    return _Overheads({"transmit": sent / replicated, "receive": move.nic_bytes_per_log_byte}, clients, written)


def _alone(run: RunSeries, hosts: Sequence[str], metrics: Sequence[str], span: tuple[int, int]) -> float | None:
    """Return the bytes per second of all counters in a span; None when one of them has no two readings."""
    parts = [run.gauge(metric, host).between(*span) for host in hosts for metric in metrics]
    return None if any(len(part) < 2 for part in parts) else sum(counted(p.value) / p.seconds for p in parts)


def _nic(
    manifest: Manifest, run: RunSeries, move: Move, overheads: _Overheads, end: tuple[str, Direction]
) -> LoadedNic:
    host, direction = end
    other: Direction = "receive" if direction == "transmit" else "transmit"
    devices = {nic.device for nic in manifest.nics if nic.host == host}
    counters = {way: run.gauge(NIC_BYTES[way], host, devices) for way in DIRECTIONS}
    span = _readings(run, counters[direction])
    if not devices or span is None:
        return _unknown(host, direction, f"{NIC_BYTES[direction]} was not sampled from the move's start past its end")
    found = [
        counted_between(series, *span)
        for series in (
            counters[direction],
            counters[other],
            run.gauge(CLIENTS["receive"], host),
            run.gauge(CLIENTS[direction], host),
            run.gauge(REPLICAS["transmit"], host),
        )
    ]
    known = [value for value in found if value is not None]
    if len(known) < len(found):
        return _unknown(host, direction, "the broker's counters were not sampled from the move's start past its end")
    nic, against, written, clients, sent = known
    copied = sent if direction == "transmit" else run.logs_grown(host, *span) - written
    wire = overheads.copied[direction]
    expected = copied * wire + clients * overheads.clients[direction] + ACK_MOST / 2 * against
    slack = COPY_TOLERANCE * abs(copied) * wire + ACK_MOST / 2 * against
    # A byte of clients costs at least a full frame's overhead; as far above it as below it the rest may vary.
    slack += abs(overheads.clients[direction] - 1 / PAYLOAD) * clients
    if direction == "receive":
        slack += overheads.written_bytes_per_s * DELETED_S * wire
    background = background_bytes(move, (span[1] - span[0]) / US)
    moving = bool(flows_through(move.flows, "throttled", host, direction))
    return LoadedNic(host, direction, nic, copied, clients, expected, slack, background, moving)


def _readings(run: RunSeries, counter: Series) -> tuple[int, int] | None:
    """Return the last reading before the move, and the first after its end and the control's."""
    started, done = run.event_us("move.started"), run.event_us("move.done")
    if started is None or done is None:
        return None
    until = max(done, run.event_us("control.done") or done)
    first = int(np.searchsorted(counter.t, started, side="right")) - 1
    last = int(np.searchsorted(counter.t, until, side="left"))
    return None if first < 0 or last >= len(counter) else (int(counter.t[first]), int(counter.t[last]))
