"""Pressure on disk and memory that brokers cause themselves in a move, beyond what the move explains.

A broker that writes more than its logs grow by, waits for its disk after each append, or takes memory beyond its heap
makes every task wait. Such a pressure excuses nothing. On shared and tiered storage logs say little of what is written.
"""

from collections.abc import Iterator, Mapping

import numpy as np

from results.contract.texts import plural
from results.criteria.cluster_measures import on_one_machine
from results.criteria.cost_measures import METADATA_OFFSET, WRITTEN
from results.criteria.quantities import size
from results.criteria.run_view import RunView
from results.criteria.sample_series import RunSeries, Series
from results.criteria.standstill import MACHINE, MOST, Span, between, move_spans
from results.criteria.windows import counted

FLUSHES, MEMORY, HEAP, AVAILABLE = "broker.log_flushes", "jvm.memory.bytes", "jvm.old.max", "memory.available"
EXPLAINED = 2.0
"""Eight healthy moves wrote 1.004 ± 0.0002 of what their logs grew by (docs/measurements/selftest.md). From twice as
much on, the disk would have as much capacity again without the broker's own doing."""
OTHER_BYTES_PER_S = 1e6
"""What a broker writes to other files: its metadata log, checkpoints, its own log lines. A move whose logs grow by less
than this fills no disk, and says nothing of the share."""
PAGE_BYTES = 4096
"""The last page of a log counts again when the kernel wrote it to the disk between two appends: once a second."""
FLUSH_S = 0.01
"""A disk that turns needs as much for one flush. More flushes than fit into the time that a pressure may take at most
are the cause by themselves. Kafka flushes the metadata log after each append, and others when a segment is full."""
SEGMENT, ASKED_FLUSHES = "log.segment.bytes", ("log.flush.", "log.roll.", "log.index.")
"""A topology may give the size of segments, and properties by which a broker flushes, or fills segments, more often."""
HEAP_MOST = 1.5
"""The heap is at most so much larger than its old generation: `NewRatio` is 2."""
REST_BYTES = 512 * 1024 * 1024
"""What a JVM needs besides its heap: at most 240 MB of code, some 100 MB of classes, 1 MB for each of 100 threads."""


def kafkas_writes(run: RunView) -> str:
    """Return what a broker did to its disk beyond what the move explains, in words; empty when it did no such thing."""
    if run.manifest.parameters.get("storage", "disk") != "disk" or not on_one_machine(run.manifest):
        return ""
    hosts, spans = run.manifest.topology.document.get("hosts", {}), move_spans(run)
    properties = {host: (hosts.get(host, {}).get("kafka") or {}).get("properties", {}) for host in run.brokers}
    return next((words for host in run.brokers for words in _writes(run.series, host, spans, properties[host])), "")


def _writes(run: RunSeries, host: str, spans: list[Span], properties: Mapping[str, str]) -> Iterator[str]:
    written = grown = seconds = 0.0
    for part in (part for span in spans for part in between(run.gauge(WRITTEN, host), span)):
        written, seconds = written + counted(part.value), seconds + part.seconds
        grown += _grown(run, host, part)
    others_per_s = OTHER_BYTES_PER_S + PAGE_BYTES * len(run.logs_of(host))
    if written - grown > max((EXPLAINED - 1) * grown, others_per_s * seconds):
        yield f"{host} wrote {size(written)}, and its logs grew by {size(grown)}"
    if any(name.startswith(ASKED_FLUSHES) for name in properties):
        return
    flushes = records = seconds = 0.0
    # Each log may also fill the segment that it had begun. Of the default size, 1 GiB, a move fills a few.
    filled = grown / float(properties[SEGMENT]) + len(run.logs_of(host)) if SEGMENT in properties else 0.0
    for part in (part for span in spans for part in between(run.gauge(FLUSHES, host), span)):
        applied = run.gauge(METADATA_OFFSET, host).between(int(part.t[0]), int(part.t[-1]))
        flushes, seconds = flushes + counted(part.value), seconds + part.seconds
        records += counted(applied.value) if len(applied) > 1 else 0.0
    if (flushes - records - filled) * FLUSH_S > MOST * seconds:
        times = plural(round(flushes), "time")
        yield f"{host} flushed {times} in {seconds:.0f} s, {records:.0f} of them for metadata at most"


def _grown(run: RunSeries, host: str, part: Series) -> float:
    """Return what all logs of a host grew by between the first and the last reading; what was deleted is no loss."""
    total = 0.0
    for t, value in run.logs_of(host).values():
        steps = np.maximum(np.diff(value, prepend=0.0), 0.0)
        total += float(np.sum(steps[(t > part.t[0]) & (t <= part.t[-1])]))
    return total


def kafkas_memory(run: RunView) -> str:
    """Return what brokers took of the memory beyond their heaps, in words; empty when others took more of it."""
    if not on_one_machine(run.manifest):
        return ""
    available = run.series.gauge(AVAILABLE, MACHINE)
    spans = move_spans(run)
    fell = taken = 0.0
    for part in (part for span in spans for part in between(available, span)):
        fell = max(fell, float(available.value[0] - np.min(part.value)))
    for host in run.brokers:
        used, heap = run.series.gauge(MEMORY, host), run.series.gauge(HEAP, host)
        if len(used) and len(heap):
            explained = max(float(used.value[0]), HEAP_MOST * float(np.max(heap.value)) + REST_BYTES)
            taken += max(0.0, float(np.max(used.value)) - explained)
    if not taken or taken < fell / 2:
        return ""
    return f"brokers took {size(taken)} beyond their heaps, of {size(max(fell, taken))} that became less"
