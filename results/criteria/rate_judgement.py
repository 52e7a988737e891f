"""Criteria about rates beside the quota's own windows: control, Kafka's own rate, conservation on the NIC."""

from collections.abc import Iterable

from results.contract.manifest import Move, NicMeasurement
from results.contract.verdict import Finding, Verdict
from results.criteria.bounds import responses
from results.criteria.frame import criterion, of_end
from results.criteria.measures import Conservation, Control, HostRates, MoveMeasures
from results.criteria.unseen import gap_words, unseen
from results.criteria.words import percent, rate, size

CONTROL_LEAST = 2.0
CONTROL_ROOM = 1.1
KAFKA_TOLERANCE = 0.05
KAFKA_POLLS = 5
CONSERVATION_TOLERANCE = 0.03


def judge_controls(measures: MoveMeasures, move: Move, nics: Iterable[NicMeasurement]) -> list[Finding]:
    """Unlisted partitions advance faster than the listed ones beside them."""
    return [_control(c, move, tuple(nics)) for c in measures.controls] or [
        unseen("control-unthrottled", "control faster than throttled partitions", measures, ("log.bytes",))
    ]


def _control(control: Control, move: Move, nics: tuple[NicMeasurement, ...]) -> Finding:
    # A fetch takes partitions in turn: those that are treated alike advance alike, however fast the machine is.
    ends = {(control.host, "receive"), *((leader, "transmit") for leader in control.leaders)}
    measured = [n.payload_bytes_per_s for n in nics if (n.host, n.direction) in ends]
    payload = min((p for p in measured if p is not None), default=None)
    unlisted, listed = (_partitions(move, kind, control.host) for kind in ("control", "throttled"))
    together = control.with_throttled_bytes
    verdict: Verdict = "inconclusive"
    observed: float | None = None
    if payload is None or len(measured) < len(ends):
        why = "the NICs on its way were not measured"
    elif payload <= CONTROL_ROOM * move.quota_bytes_per_s:
        why = f"the NIC carries {rate(payload)}: it leaves too little beside the quota"
    elif control.total_bytes <= 0 or together is None or not unlisted or not listed:
        why = "no control bytes were seen while the throttle was in force"
    elif control.total_bytes < unlisted * move.response_max_bytes:
        why = f"only {size(control.total_bytes)} of control: less than a response for each of {unlisted} partitions"
    else:
        beside = max(together - control.total_bytes, 0.0) / listed
        each = control.total_bytes / unlisted
        observed = each / max(beside, 1.0)  # of throttled ones that did not advance at all: as if by one byte
        why = f"{size(each)} a control partition; {size(beside)} a throttled one in the same time"
        if observed > CONTROL_LEAST:
            verdict = "pass"
        elif gap := gap_words(control.longest_gap_s):
            why = gap
        else:
            verdict, why = "fail", f"{why}: the control is throttled as well"
    return criterion(
        "control-unthrottled",
        f"a control partition advances more than {CONTROL_LEAST:g} times as far as a throttled one",
        verdict,
        why,
        host=control.host,
        direction="receive",
        observed=observed,
        unit="times a throttled partition",
        series=("log.bytes", "manifest.nics"),
    )


def _partitions(move: Move, kind: str, host: str) -> int:
    return sum(len(flow.partitions) for flow in move.flows if flow.kind == kind and flow.follower == host)


def judge_kafka(measures: MoveMeasures, move: Move) -> list[Finding]:
    """The byte-rate by which the broker throttles itself agrees with the growth of the logs."""
    return [_kafka(r, move) for r in measures.rates] or [
        unseen("broker-rate-agrees", "the broker's byte-rate agrees", measures, ("log.bytes",))
    ]


def kafka_excess(rates: HostRates, move: Move) -> float:
    """By which part of the true rate Kafka's own may lie above what the log grew by, and below it.

    Its oldest sample begins with a response, whose bytes count although the time before it does not: n + 1
    responses are divided by the time of n. That is one response per fetcher more than flowed, over the 10 s (the
    window without its youngest sample) that the retained samples span at least. And the log grows by whole responses,
    too: over the same 11 s by one more than flows on average.
    """
    rate = rates.steady.mean_bytes_per_s if rates.steady else move.quota_bytes_per_s
    spanned_s = move.window_s - move.sample_s
    return responses(move, rates.host, rates.direction) / (spanned_s * rate) if rate > 0 and spanned_s > 0 else 0.0


def _kafka(rates: HostRates, move: Move) -> Finding:
    excess = kafka_excess(rates, move)
    side = "leader" if rates.direction == "transmit" else "follower"
    metric = f"broker.{side}_replication.byte_rate"
    ratio = rates.kafka_ratio
    verdict: Verdict = "inconclusive"
    if gap := gap_words(rates.longest_gap_s):
        why = gap
    elif ratio is None or rates.kafka_polls < KAFKA_POLLS:
        why = f"{metric} has {rates.kafka_polls} samples in the steady part; {KAFKA_POLLS} are needed"
    else:
        verdict = "pass" if abs(ratio - 1) <= KAFKA_TOLERANCE + excess else "fail"
        why = f"median of {rates.kafka_polls} samples; Kafka says {ratio:.3f} of the log growth before each"
    return of_end(
        "broker-rate-agrees",
        rates,
        "Kafka's own byte-rate = log growth",
        verdict,
        why,
        observed=ratio,
        unit="of log growth",
        tolerance=f"± {percent(KAFKA_TOLERANCE + excess)}",
        series=(metric, "log.bytes"),
    )


def judge_conservation(measures: MoveMeasures, move: Move) -> list[Finding]:
    """What the NIC counted is what the logs grew by, times the overhead `f` measured before the move."""
    return [_conservation(c, move) for c in measures.conservation] or [
        unseen("nic-conservation", "NIC bytes = f * log bytes", measures, ("nic.tx.bytes", "nic.rx.bytes"))
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
    logs = log_bytes(found)
    verdict: Verdict = "inconclusive"
    observed: float | None = None
    if move.f is None:
        why = "the calibration transfer gave no overhead f"
    elif found.nic_bytes is None:
        why = "the NIC's counter was not sampled from the move's start past its end"
    elif logs is None:
        unknown = "broker.bytes_in" if found.client_bytes is None else "log.bytes"
        why = f"{unknown} was not sampled from the move's start past its end"
    elif logs <= 0:
        why = "no bytes were seen in the logs"
    else:
        observed = found.nic_bytes / (logs * move.f)
        verdict = "pass" if abs(observed - 1) <= CONSERVATION_TOLERANCE else "fail"
        why = f"NIC {size(found.nic_bytes)}; logs {size(logs)} with f = {move.f:.4f} make {size(logs * move.f)}"
    return of_end(
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
