"""A copied byte crosses the wire once: the calibration transfer cost the headers and little more."""

from results.contract.network import FRAME_BYTES, FRAME_PAYLOAD_BYTES
from results.contract.verdict import Finding
from results.criteria.criterion import FACTS, NOT_KAFKAS, Criterion, has_any_move, has_move, has_relocation
from results.criteria.findings import finding
from results.criteria.run_view import RunView

HEADERS = FRAME_BYTES / FRAME_PAYLOAD_BYTES - 1
"""Ethernet, IPv4 and TCP with time stamps, for each full segment's payload."""
BATCH_BYTES, PARTITION_BYTES = 16_384, 1 << 20
"""A response ends within a batch of at most 16 KiB, whose bytes are fetched again; a partition has 1 MiB of it."""


def _calibrated(run: RunView) -> bool:
    """Return whether a transfer was measured before the move. On shared storage there is none to measure."""
    return has_any_move(run) and not (has_relocation(run) and run.relocation.storage == "automq")


def _judge(run: RunView) -> list[Finding]:
    """Return nothing without a calibration transfer.

    Twice the overhead is allowed: retransmissions of a transfer at line rate, and requests, are the rest.
    """
    found = run.move.nic_bytes_per_log_byte if has_move(run) else run.relocation.nic_bytes_per_log_byte
    if found is None:
        return []
    part = min(PARTITION_BYTES, run.move.response_max_bytes) if has_move(run) else PARTITION_BYTES
    limit = 1 + 2 * (HEADERS + BATCH_BYTES / part)
    return [
        finding(
            "wire-overhead",
            f"at most {limit:.3f} bytes on the wire for each byte of the log",
            "pass" if found <= limit else "fail",
            f"the calibration transfer took {found:.3f} bytes on the wire for each byte of the log",
            observed=found,
            unit="bytes per byte",
            tolerance="twice the headers and the batches that are fetched again",
            series=("manifest.move", "manifest.relocation"),
        )
    ]


CRITERION = Criterion(
    name="wire-overhead",
    title="Each byte copied once",
    section=FACTS,
    judge=_judge,
    needs=_calibrated,
    by_name=False,
    rests_on_preconditions=True,
    excused_by=NOT_KAFKAS,
    catches="A follower that fetches the same bytes again.",
)
