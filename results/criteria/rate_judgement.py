"""Criteria about rates: window bound, steady mean, control, Kafka's own rate, conservation on the NIC."""

from collections.abc import Iterable

from results.criteria.bounds import window_bound
from results.criteria.measures import GAP_S, Conservation, Control, HostRates, MoveMeasures
from results.criteria.words import at, percent, rate, size
from results.manifest import Move, NicMeasurement
from results.verdict import Criterion, Direction, Verdict

STEADY_LOWEST, STEADY_HIGHEST = 0.95, 1.00
STEADY_WINDOWS = 3
CONTROL_LEAST = 2.0
CONTROL_ROOM = 1.1
KAFKA_TOLERANCE = 0.05
KAFKA_POLLS = 5
CONSERVATION_TOLERANCE = 0.03


def judge_windows(measures: MoveMeasures, move: Move) -> list[Criterion]:
    """No quota window has more throttled bytes than the bound. A window over it fails even beside a gap."""
    return [_window(r, move) for r in measures.rates] or [
        _unseen("throttled-window", "throttled bytes within the bound of any window", measures, ("log.bytes",))
    ]


def bound_of(move: Move, host: str, direction: Direction) -> float | None:
    """The window bound for one host in bytes; None when the manifest does not say its fetchers.

    A leader's followers cannot log more of what it sends than they may receive.
    """
    bound = _bound(move, host, direction)
    if bound is None or direction == "receive":
        return bound
    followers = {f.follower for f in move.flows if f.kind == "throttled" and f.leader == host}
    received = [_bound(move, follower, "receive") for follower in followers]
    known = [r for r in received if r is not None]
    return min(bound, sum(known)) if known and len(known) == len(received) else bound


def _bound(move: Move, host: str, direction: Direction) -> float | None:
    fetchers = move.fetchers.get(host)
    count = 0 if fetchers is None else fetchers.transmit if direction == "transmit" else fetchers.receive
    if count < 1:
        return None
    return window_bound(
        move.quota_bytes_per_s,
        direction,
        fetchers=count,
        response_max_bytes=move.response_max_bytes,
        window_s=move.window_s,
        sample_s=move.sample_s,
    )


def _window(rates: HostRates, move: Move) -> Criterion:
    worst, highest = rates.worst_window, rates.highest_window_bytes_per_s
    bound = bound_of(move, rates.host, rates.direction)
    verdict: Verdict = "inconclusive"
    if rates.longest_gap_s is None or rates.total_bytes <= 0 or worst is None:
        why = "no throttled bytes were seen"
    elif bound is None:
        why = f"the manifest names no fetcher of {rates.host} that could {rates.direction}"
    else:
        why = f"{size(worst.bytes)} in {worst.elapsed_s:.2f} s from {at(worst.start_s)}"
        if highest is not None:
            why += f"; highest {move.window_s:g} s rate {highest / move.quota_bytes_per_s:.3f} of the strict quota"
        if worst.bytes > bound:
            verdict = "fail"
        elif gap := _gap(rates.longest_gap_s):
            why = f"{gap}: a burst may hide in it"
        elif highest is None:
            why = f"the move took less than {move.window_s:g} s"
        else:
            verdict = "pass"
    return Criterion(
        name="throttled-window",
        host=rates.host,
        direction=rates.direction,
        expected=f"at most {size(bound)} in any {move.window_s:g} s" if bound else "within the bound of any window",
        observed=worst.bytes if worst else None,
        unit="bytes",
        tolerance="none beyond the bound",
        verdict=verdict,
        why=why,
        series=("log.bytes",),
    )


def judge_steady(measures: MoveMeasures, move: Move) -> list[Criterion]:
    """In the steady part a tuned follower uses 0.95 to 1.00 of the quota."""
    return [_steady(r, move) for r in measures.rates] or [
        _unseen("steady-mean", "steady mean close to the quota", measures, ("log.bytes",))
    ]


def _steady(rates: HostRates, move: Move) -> Criterion:
    steady = rates.steady
    verdict: Verdict = "inconclusive"
    edge = _responses(rates, move) / (move.quota_bytes_per_s * steady.seconds) if steady else 0.0
    observed = steady.mean_bytes_per_s / move.quota_bytes_per_s if steady else None
    if rates.longest_gap_s is None or rates.total_bytes <= 0:
        why = "no throttled bytes were seen"
    elif gap := _gap(rates.longest_gap_s):
        why = gap
    elif steady is None or observed is None or steady.windows < STEADY_WINDOWS:
        seconds = steady.seconds if steady else 0.0
        why = f"the steady part is {seconds:.1f} s; {STEADY_WINDOWS} windows of {move.window_s:g} s are needed"
    else:
        # The part begins and ends between two responses: one per fetcher may stand on the wrong side of an edge.
        highest = STEADY_HIGHEST + edge
        verdict = "pass" if STEADY_LOWEST <= observed <= highest else "fail"
        why = f"{rate(steady.mean_bytes_per_s)} over {steady.seconds:.1f} s is {observed:.3f} of the quota"
    return Criterion(
        name="steady-mean",
        host=rates.host,
        direction=rates.direction,
        expected=f"{STEADY_LOWEST:.2f} to {STEADY_HIGHEST:.2f} of {rate(move.quota_bytes_per_s)}",
        observed=observed,
        unit="of quota",
        tolerance=f"{STEADY_LOWEST:.2f} to {STEADY_HIGHEST:.2f} + one response per fetcher, {edge:.4f}",
        verdict=verdict,
        why=why,
        series=("log.bytes",),
    )


def judge_controls(measures: MoveMeasures, move: Move, nics: Iterable[NicMeasurement]) -> list[Criterion]:
    """Unlisted partitions advance faster than the listed ones beside them."""
    return [_control(c, move, tuple(nics)) for c in measures.controls] or [
        _unseen("control-unthrottled", "control faster than throttled partitions", measures, ("log.bytes",))
    ]


def _control(control: Control, move: Move, nics: tuple[NicMeasurement, ...]) -> Criterion:
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
        observed = each / beside if beside > 0 else None
        why = f"{size(each)} a control partition; {size(beside)} a throttled one in the same time"
        if observed is None or observed > CONTROL_LEAST:
            verdict = "pass"
        elif gap := _gap(control.longest_gap_s):
            why = gap
        else:
            verdict, why = "fail", f"{why}: the control is throttled as well"
    return Criterion(
        name="control-unthrottled",
        host=control.host,
        direction="receive",
        expected=f"a control partition advances more than {CONTROL_LEAST:g} times as far as a throttled one",
        observed=observed,
        unit="times a throttled partition",
        tolerance="none",
        verdict=verdict,
        why=why,
        series=("log.bytes", "manifest.nics"),
    )


def _partitions(move: Move, kind: str, host: str) -> int:
    return sum(len(flow.partitions) for flow in move.flows if flow.kind == kind and flow.follower == host)


def judge_kafka(measures: MoveMeasures, move: Move) -> list[Criterion]:
    """The byte-rate by which the broker throttles itself agrees with the growth of the logs."""
    return [_kafka(r, move) for r in measures.rates] or [
        _unseen("broker-rate-agrees", "the broker's byte-rate agrees", measures, ("log.bytes",))
    ]


def kafka_excess(rates: HostRates, move: Move) -> float:
    """By which part of the true rate Kafka's own may lie above it, from how Kafka counts.

    Its oldest sample begins with a response, whose bytes count although the time before it does not: n + 1
    responses are divided by the time of n. That is one response per fetcher more than flowed, over the 10 s (the
    window without its youngest sample) that the retained samples span at least.
    """
    rate = rates.steady.mean_bytes_per_s if rates.steady else move.quota_bytes_per_s
    spanned_s = move.window_s - move.sample_s
    return _responses(rates, move) / (spanned_s * rate) if rate > 0 and spanned_s > 0 else 0.0


def _responses(rates: HostRates, move: Move) -> float:
    """Bytes of one response of each fetcher that carries throttled bytes this way."""
    fetchers = move.fetchers.get(rates.host)
    count = 0 if fetchers is None else getattr(fetchers, rates.direction)
    return float(count * move.response_max_bytes)


def _kafka(rates: HostRates, move: Move) -> Criterion:
    excess = kafka_excess(rates, move)
    side = "leader" if rates.direction == "transmit" else "follower"
    metric = f"broker.{side}_replication.byte_rate"
    ratio = rates.kafka_ratio
    verdict: Verdict = "inconclusive"
    if gap := _gap(rates.longest_gap_s):
        why = gap
    elif ratio is None or rates.kafka_polls < KAFKA_POLLS:
        why = f"{metric} has {rates.kafka_polls} samples in the steady part; {KAFKA_POLLS} are needed"
    else:
        verdict = "pass" if -KAFKA_TOLERANCE <= ratio - 1 <= KAFKA_TOLERANCE + excess else "fail"
        why = f"median of {rates.kafka_polls} samples; Kafka says {ratio:.3f} of the log growth before each"
    return Criterion(
        name="broker-rate-agrees",
        host=rates.host,
        direction=rates.direction,
        expected="Kafka's own byte-rate = log growth",
        observed=ratio,
        unit="of log growth",
        tolerance=f"- {percent(KAFKA_TOLERANCE)}, + {percent(KAFKA_TOLERANCE + excess)}",
        verdict=verdict,
        why=why,
        series=(metric, "log.bytes"),
    )


def judge_conservation(measures: MoveMeasures, move: Move) -> list[Criterion]:
    """What the NIC counted is what the logs grew by, times the overhead `f` measured before the move."""
    return [_conservation(c, move) for c in measures.conservation] or [
        _unseen("nic-conservation", "NIC bytes = f * log bytes", measures, ("nic.tx.bytes", "nic.rx.bytes"))
    ]


def log_bytes(found: Conservation) -> float | None:
    """All bytes that should have crossed the NIC, without overhead; None when a part is unknown."""
    total = 0.0
    for part in (found.throttled_bytes, found.control_bytes, found.calibration_bytes, found.client_bytes):
        if part is None:
            return None
        total += part
    return total


def _conservation(found: Conservation, move: Move) -> Criterion:
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
    return Criterion(
        name="nic-conservation",
        host=found.host,
        direction=found.direction,
        expected="NIC bytes = (throttled + control + client) with overhead f",
        observed=observed,
        unit="of logs with f",
        tolerance=f"± {percent(CONSERVATION_TOLERANCE)}",
        verdict=verdict,
        why=why,
        series=(
            "nic.tx.bytes" if found.direction == "transmit" else "nic.rx.bytes",
            "log.bytes",
            "broker.bytes_in",
        ),
    )


def _gap(longest_gap_s: float | None) -> str | None:
    if longest_gap_s is None:
        return "no samples"
    return f"no sample for {longest_gap_s:.1f} s" if longest_gap_s > GAP_S else None


def _unseen(name: str, expected: str, measures: MoveMeasures, series: tuple[str, ...]) -> Criterion:
    """What stands in the place of a criterion for which no host was found at all."""
    missing = "no move.started was recorded" if measures.started_us is None else "the manifest lists no such flow"
    return Criterion(
        name=name,
        host=None,
        direction=None,
        expected=expected,
        observed=None,
        unit="",
        tolerance="none",
        verdict="inconclusive",
        why=missing,
        series=series,
    )
