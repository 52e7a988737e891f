"""The bytes that a NIC counted are those that the logs grew by, times the overhead of the wire."""

from results.contract.move import Move
from results.contract.verdict import Finding, Verdict
from results.criteria.criterion import RATES, Criterion, has_move
from results.criteria.findings import missing_data, of_broker_direction
from results.criteria.measures import Conservation, MoveMeasures
from results.criteria.quantities import percent, size

CONSERVATION_TOLERANCE = 0.03


def judge_conservation(measures: MoveMeasures, move: Move) -> list[Finding]:
    """What the NIC counted is what the logs grew by, times the overhead `f` measured before the move."""
    return [_conservation(c, move) for c in measures.conservation] or [
        missing_data("nic-conservation", "NIC bytes = f * log bytes", measures, ("nic.tx.bytes", "nic.rx.bytes"))
    ]


def log_bytes(found: Conservation) -> float | None:
    """All bytes that should have crossed the NIC, without overhead; None when a part is unknown."""
    total = 0.0
    for part in (found.throttled_bytes, found.control_bytes, found.calibration_bytes, found.client_bytes):
        if part is None:
            return None
        total += part
    return total


def _conservation(found: Conservation, move: Move) -> Finding:
    logs, overhead = log_bytes(found), move.nic_bytes_per_log_byte
    verdict: Verdict = "inconclusive"
    observed: float | None = None
    if overhead is None:
        why = "the calibration transfer gave no overhead f"
    elif found.nic_bytes is None:
        why = "the NIC's counter was not sampled from the move's start past its end"
    elif logs is None:
        unknown = "broker.bytes_in" if found.client_bytes is None else "log.bytes"
        why = f"{unknown} was not sampled from the move's start past its end"
    elif logs <= 0:
        why = "no bytes were seen in the logs"
    else:
        observed = found.nic_bytes / (logs * overhead)
        verdict = "pass" if abs(observed - 1) <= CONSERVATION_TOLERANCE else "fail"
        why = f"NIC {size(found.nic_bytes)}; logs {size(logs)} with f = {overhead:.4f} make {size(logs * overhead)}"
    return of_broker_direction(
        "nic-conservation",
        found,
        "NIC bytes = (throttled + control + client) with overhead f",
        verdict,
        why,
        observed=observed,
        unit="of logs with f",
        tolerance=f"± {percent(CONSERVATION_TOLERANCE)}",
        series=(
            "nic.tx.bytes" if found.direction == "transmit" else "nic.rx.bytes",
            "log.bytes",
            "broker.bytes_in",
        ),
    )


CRITERION: Criterion[MoveMeasures] = Criterion(
    name="nic-conservation",
    title="NIC counters agree with the logs",
    section=RATES,
    measure=lambda run: run.measures,
    judge=lambda run, measures: judge_conservation(measures, run.move),
    needs=has_move,
    rests_on_preconditions=True,
    skips=lambda run: "a NIC carries what clients write and read as well" if run.batched and run.loaded else None,
    catches="Bytes that cross the network and reach no log.",
)
