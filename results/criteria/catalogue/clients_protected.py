"""No acknowledgement waits longer under the throttle than without it, beyond the throttle's own grain: KIP-73's goal.

The longest wait of each producer while data is copied is compared with the time before the move. So is the share of
late acknowledgements in a quota window. The longest wait where partitions arrive is compared with the move back without
a throttle. `docs/criteria.md` derives what is allowed under *Protected clients*.
A wait so long that the load does not keep its rate is what the criterion looks for, and no excuse.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from results.contract.live_load import BEHIND_S
from results.contract.move import Move, in_sync_through
from results.contract.network import payload_rates
from results.contract.verdict import DIRECTIONS, Direction, Finding, Power, Verdict
from results.criteria.criterion import LOAD_SUSTAINED, RATES, Criterion, has_move
from results.criteria.findings import finding
from results.criteria.measures import P99_BACK, MachineLoad
from results.criteria.model import bound_of, responses
from results.criteria.protection_measures import (
    LATE_BEFORE,
    ClientProtection,
    Lateness,
    LateWindow,
    measure_protection,
)
from results.criteria.quantities import US, at, percent
from results.criteria.run_view import RunView
from results.criteria.unfit import ALWAYS_FIT, UnfitTime

LEAST_RECORDS = 100
"""Fewer are no measure of a share of 1 %."""
MOST_ALLOWED = 0.5
"""Where the throttle may keep a NIC busy for more than half of the time, a share of late records says nothing."""


def _judge(run: RunView, clients: Sequence[ClientProtection]) -> list[Finding]:
    """Judge each producer's waits and late acknowledgements, while copying and where partitions arrive."""
    move, carries = run.move, payload_rates(run.manifest.nics)
    busy, response = busy_s(move, carries), transfer_s(move, carries)
    return [_client(client, move, busy, response, run.measures.load) for client in clients] or [
        _finding(None, "inconclusive", None, "no acknowledgement was seen", "no longer wait than without a throttle")
    ]


def _client(client: ClientProtection, move: Move, busy: float | None, response: float, load: MachineLoad) -> Finding:
    expected = f"copying as before the move ({P99_BACK:g} times its p99), arriving as without a throttle"
    waited = [each.longest_us for each in (client.copying, client.arriving) if each.longest_us is not None]
    if client.limit_us is None or not waited:
        when = "before" if client.limit_us is None else "during"
        why = f"too few acknowledgements were seen {when} the move"
        return _finding(client.client, "inconclusive", None, why, expected)
    copying, arriving = allowed_waits_us(client, client.limit_us, move, response, busy)
    expected += f": waits of at most {_ms(copying)} copying, "
    expected += "unknown arriving" if arriving is None else f"{_ms(arriving)} arriving"
    late = _late(client, busy)
    if busy is not None and late is not None:
        expected += f", {percent(allowed_share(busy, late.seconds))} later than {_ms(client.limit_us)} copying"
    verdict: Verdict = "pass"
    problems = []
    if (client.copying.longest_us or 0.0) > copying:
        problems.append("copying held an acknowledgement back")
    if busy is not None and late is not None and late.share > allowed_share(busy, late.seconds):
        problems.append(f"copying made {percent(late.share)} late in {late.seconds} s from {at(late.start_s)}")
    if arriving is not None and (client.arriving.longest_us or 0.0) > arriving:
        problems.append("arriving took longer than without a throttle")
    why = _seen(client)
    if problems:
        verdict, why = "fail", f"{' and '.join(problems)}: {why}; {_evidence(move, busy, load)}"
    elif arriving is None and client.arriving.records:
        verdict, why = "inconclusive", f"the partitions did not move back without a throttle, to compare: {why}"
    power = Power(copying / US, "s", f"would have failed from a wait of {_ms(copying)} on, while data was copied")
    return _finding(client.client, verdict, max(waited) / US, why, expected, power)


def allowed_waits_us(
    client: ClientProtection, limit_us: float, move: Move, transfer: float, busy: float | None
) -> tuple[float, float | None]:
    """Return the longest waits allowed while copying and where partitions arrive; None: no move back to compare.

    `transfer` is the time of one response in seconds, `busy` that of a window's bytes; see `transfer_s` and `busy_s`.
    """
    grain_s, back = move.sample_s + transfer, client.back_arriving
    copying = limit_us + grain_s * US
    if back is None:
        return copying, None
    if back.share <= LATE_BEFORE:
        return copying, copying
    return copying, max(limit_us, back.longest_us or 0.0) + (grain_s + rest_s(move, busy)) * US


def response_s(move: Move) -> float:
    """Return what a response of each fetcher of a host is worth, in seconds of the throttle."""
    return max(responses(move, host, "receive") for host in move.brokers) / move.quota_bytes_per_s


def rest_s(move: Move, busy: float | None) -> float:
    """Return for how long the throttle may let nothing pass of a partition, in seconds.

    A follower lets a response of each fetcher pass, and rests for its worth. A leader that had followers before the
    move lets a window's bytes pass, and then none until the first of them have expired. A partition that such a burst
    served first may be the last one of the next burst, so `busy` comes on top: how long a burst lasts.
    """
    leaders = {flow.leader for flow in move.flows if flow.kind == "throttled"}
    bursts = any(in_sync_through(move, leader, "transmit") for leader in leaders)
    return max(response_s(move), move.window_s + (busy or 0.0)) if bursts else response_s(move)


def transfer_s(move: Move, carries: Mapping[tuple[str, Direction], float | None]) -> float:
    """Return for how long a response of each fetcher keeps the slowest receiving NIC busy, in seconds."""
    found = [
        responses(move, host, "receive") / rate for host in move.brokers if (rate := carries.get((host, "receive")))
    ]
    return max(found, default=0.0)


def busy_s(move: Move, carries: Mapping[tuple[str, Direction], float | None]) -> float | None:
    """Return for how long a window's bytes, and the response on its way at their end, keep the busiest NIC busy.

    In seconds. `carries` is what each NIC carried when it was measured, in B/s. None when a NIC on the way of throttled
    bytes was not measured.
    """
    found = []
    for host in move.brokers:
        for direction in DIRECTIONS:
            most, rate = bound_of(move, host, direction), carries.get((host, direction))
            if most is None:
                continue
            if not rate:
                return None
            found.append(most / rate)
    return max(found) + transfer_s(move, carries) if found else None


def allowed_share(busy: float, seconds: float) -> float:
    """Return the share of acknowledgements that may be late in so many consecutive seconds."""
    return LATE_BEFORE + (1 - LATE_BEFORE) * min(1.0, busy / seconds)


def _late(client: ClientProtection, busy: float | None) -> LateWindow | None:
    """Return the window that exceeds what is allowed by most, or comes nearest to it; None where none says anything."""
    if busy is None:
        return None

    def over(window: LateWindow) -> float:
        return window.share - allowed_share(busy, window.seconds)

    judged = [
        window
        for window in client.windows
        if window.records >= LEAST_RECORDS and allowed_share(busy, window.seconds) <= MOST_ALLOWED
    ]
    return max(judged, key=over, default=None)


def _seen(client: ClientProtection) -> str:
    text = f"p99 (longest) {_both(client.before)} before, {_both(client.copying)} copying"
    text += f" for {client.copying.seconds} s, {_both(client.arriving)} arriving"
    if client.back_copying is None or client.back_arriving is None:
        return text
    return f"{text}; without a throttle {_both(client.back_copying)} copying, {_both(client.back_arriving)} arriving"


def _evidence(move: Move, busy: float | None, load: MachineLoad) -> str:
    """Return what a wait may come from: the worth of a response, how long the throttle rests, a busy machine."""
    text = f"a response of each fetcher is worth {response_s(move):.1f} s of the throttle"
    text += f", which rests {rest_s(move, busy):.1f} s"
    return text + ("" if load.busy_mean is None else f", the CPU was {percent(load.busy_mean)} busy")


def _both(found: Lateness) -> str:
    if found.p99_us is None or found.longest_us is None:
        return "none"
    return f"{_ms(found.p99_us)} ({found.longest_us / 1000:,.0f})"


def _ms(us: float) -> str:
    return f"{us / 1000:,.0f} ms"


def _finding(
    host: str | None,
    verdict: Verdict,
    observed: float | None,
    why: str,
    expected: str,
    power: Power | None = None,
) -> Finding:
    return finding(
        "clients-protected",
        expected,
        verdict,
        why,
        host=host,
        observed=observed,
        unit="s",
        power=power,
        tolerance="a sample of the quota's window; where partitions arrive, the longest rest of the throttle as well",
        series=("client.produce.latency", "move.in_flight", "return.in_flight", "isr.size", "manifest.nics"),
    )


def _judged(run: RunView, unfit: UnfitTime = ALWAYS_FIT) -> list[Finding]:
    """Return the findings; a failure is left open that would not be one from when the producer handed records over.

    With transactions a producer is late itself while brokers commit.
    """
    found = _judge(run, measure_protection(run.series, run.move.window_s, unfit))
    if all(each.verdict != "fail" for each in found) or run.manifest.parameters.get("transactions"):
        return found
    handed_over = measure_protection(run.series, run.move.window_s, unfit, handed_over=True)
    since = _judge(run, handed_over)
    return [
        replace(each, verdict="inconclusive", why=f"the producer itself handed records over late: {each.why}")
        if each.verdict == "fail" and other.verdict != "fail"
        else each
        for each, other in zip(found, since, strict=True)
    ]


def _kept_waiting(run: RunView, shaky: Sequence[Finding]) -> list[Finding | None]:
    """Return the failures of a run whose load kept its rate but for brokers that did not answer from the move on.

    A producer that was behind before the move waits for something else.
    """
    live = run.manifest.facts.live
    slow = [each for each in live.processes if not each.held] if live else []
    if any(each.name != LOAD_SUSTAINED for each in shaky) or not all(each.kept_waiting for each in slow):
        return []
    clients = measure_protection(run.series, run.move.window_s)
    if not slow or any((client.before.longest_us or 0.0) > BEHIND_S * US for client in clients):
        return []
    return [each if each.verdict == "fail" else None for each in _judged(run)]


CRITERION = Criterion(
    name="clients-protected",
    title="Clients are protected",
    section=RATES,
    judge=_judged,
    spared=lambda run: _judged(run, run.unfit),
    needs=lambda run: has_move(run) and run.loaded,
    rests_on_preconditions=True,
    holds_anyway=_kept_waiting,
    catches="A throttle under which clients wait: for the copying, or for what the throttle itself holds back.",
    smallest="a wait of a second more than usual",
)
