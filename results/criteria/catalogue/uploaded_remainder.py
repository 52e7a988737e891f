"""The old broker of a handover uploads what its write-ahead log has and no object has yet, not the whole partitions."""

import re
from collections.abc import Mapping
from typing import Any

from results.contract.verdict import Finding, Verdict
from results.criteria.catalogue.nic_conservation import CONSERVATION_TOLERANCE
from results.criteria.criterion import RATES, Criterion, has_relocation, old_broker_killed
from results.criteria.findings import finding, times_power
from results.criteria.quantities import percent, size
from results.criteria.relocation_measures import WRITTEN_S, received_by_stores, unread_nic
from results.criteria.run_view import RunView
from results.criteria.windows import sum_of_all

THRESHOLD, CACHE, POLICY = "s3.wal.upload.threshold", "s3.wal.cache.size", "s3.stream.allocator.policy"
OWN_HEAP = "512MiB"
"""The largest heap of a broker whose topology declares none."""
THRESHOLD_OF_HEAP = 1 / 18
"""AutoMQ gives half of the heap to its buffers, a third of that to the cache of the log, a third of that to one block
(`KafkaConfig.adjustS3Configs` of 1.7, with buffers in the heap: its default is `POOLED_HEAP`)."""
THRESHOLD_OF_CACHE = 1 / 3
"""The same where `s3.wal.cache.size` is given; `S3Storage` takes no larger threshold."""
MOST_THRESHOLD = 500 << 20
"""The largest threshold that AutoMQ chooses itself (`KafkaConfig.adjustS3Configs`)."""
BLOCKS = 2
"""Blocks that no object has yet: one is being filled, and the one before it is being uploaded. AutoMQ spreads an upload
over 20 s at most (`S3Storage.uploadDeltaWAL0`)."""
COPIES = 2
"""Uploads of each byte: an object of the write-ahead log, then a data object."""
FAR = 0.5
"""The largest bound, as a share of a second upload of everything, with which a run is judged as passed."""
_SIZE = re.compile(r"(\d+(?:\.\d+)?)(KiB|MiB|GiB|kB|MB|GB|B)?")
_UNITS = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "kB": 1e3, "MB": 1e6, "GB": 1e9, "B": 1, None: 1}


def threshold_bytes(kafka: Mapping[str, Any]) -> float | None:
    """Return the bytes at which a broker uploads its log's block, from its topology; None: a value is not readable."""
    properties = kafka.get("properties") or {}
    if THRESHOLD in properties:
        return _bytes(properties[THRESHOLD])
    if CACHE in properties:
        share, base = THRESHOLD_OF_CACHE, _bytes(properties[CACHE])
    elif str(properties.get(POLICY, "HEAP")).endswith("HEAP"):
        share, base = THRESHOLD_OF_HEAP, _bytes((kafka.get("jvm") or {}).get("heap", OWN_HEAP))
    else:
        return None  # the buffers are outside of the heap: their size is an option of the JVM
    return None if base is None else min(share * base, MOST_THRESHOLD)


def _bytes(text: object) -> float | None:
    found = _SIZE.fullmatch(str(text))
    # AutoMQ takes 0 for a value that is not given.
    return (float(found[1]) * _UNITS[found[2]] or None) if found else None


def most_uploaded(block: float, written_bytes_per_s: float, covered_s: float) -> float:
    """Return the most NIC bytes that stores receive in `covered_s` around a handover.

    `block` is the largest block of the brokers' logs, and `written_bytes_per_s` what clients write, both in NIC bytes.
    What clients write meanwhile is uploaded `COPIES` times. The stores' own rate before the move says nothing of it:
    it has the end of the preload, 6.5 MB/s under a load of 0.5 MB/s in run 20261125T104443Z-s3-reassign-2aadc2.
    """
    return BLOCKS * block + COPIES * written_bytes_per_s * (covered_s + WRITTEN_S)


def _judge(run: RunView) -> Finding:
    """Judge whether stores receive the load, twice, and two blocks of each old broker's log.

    All sizes are NIC bytes from before the move until the last sample, but for `left`, which is of records.
    """
    asked, hosts = run.relocation, run.manifest.topology.document.get("hosts", {})
    nics, f = received_by_stores(run.manifest, run.series), asked.nic_bytes_per_log_byte
    leaders = dict.fromkeys(sent.leader for sent in asked.sent)
    left = sum_of_all([threshold_bytes((hosts.get(host) or {}).get("kafka") or {}) for host in leaders])
    sending = [nic for nic in run.manifest.nics if nic.host in leaders and nic.direction == "transmit"]
    carried_bytes_per_s = sum_of_all([nic.payload_bytes_per_s for nic in sending])
    verdict: Verdict = "inconclusive"
    expected, most, observed = "the load, twice, and what the old broker's log had left", None, None
    received = sum_of_all([nic.bytes for nic in nics])
    covered_s = max((nic.covered_s or 0.0 for nic in nics), default=0.0)
    if (gap := unread_nic(nics, asked.stores)) or not nics:
        why = gap or "there was no store"
    elif received is None:
        why = "what the store received is not known until the last sample"
    elif left is None:
        why = f"the topology does not say when a broker uploads: its heap, {CACHE} or {THRESHOLD} is not readable"
    elif f is None or carried_bytes_per_s is None:
        why = "the wire's overhead or a NIC of an old broker was not measured"
    else:
        observed = received
        block, written = f * left, f * asked.written_bytes_per_s
        most = (1 + CONSERVATION_TOLERANCE) * most_uploaded(block, written, covered_s)
        expected = f"{size(most)} at most: {BLOCKS} × {size(block)} of the log, {COPIES} × {size(written)}/s of load"
        again = min(f * asked.total_bytes, carried_bytes_per_s * covered_s)
        why = f"{size(received)} in {covered_s:.1f} s; everything again would be {size(again)} more"
        if received > most:
            verdict = "fail"
        elif most > FAR * again:
            why += f", too little for a bound of {size(most)}"
        else:
            verdict = "pass"
    return finding(
        "uploaded-remainder",
        expected,
        verdict,
        why,
        observed=observed,
        unit="bytes",
        power=times_power(most / observed, "the bytes that the store received") if most and observed else None,
        tolerance=f"{percent(CONSERVATION_TOLERANCE)}, and {WRITTEN_S:g} s of what is written",
        series=("nic.rx.bytes", "manifest.relocation", "manifest.topology"),
    )


CRITERION = Criterion(
    name="uploaded-remainder",
    title="What the object store received around a handover",
    section=RATES,
    judge=lambda run: [_judge(run)],
    needs=lambda run: has_relocation(run) and run.relocation.storage == "automq" and not old_broker_killed(run),
    rests_on_preconditions=True,
    catches="A handover that uploads again what objects already have.",
    smallest="one more upload of everything, where that is twice the bound",
)
