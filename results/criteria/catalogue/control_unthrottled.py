"""Partitions that no list names advance faster than the throttled ones, and a removed throttle holds nothing back.

The move back (`compare=return`) begins when the throttle has been removed. A throttle that stays in force all the same
lets pass what its quota allows.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Set

import numpy as np

from results.contract.manifest import NicMeasurement
from results.contract.move import FlowKind, Move, flows_through, throttled_through
from results.contract.texts import counted, plural
from results.contract.verdict import Finding, Verdict
from results.criteria.criterion import RATES, Criterion
from results.criteria.findings import finding, gap_text, missing_data, times_power
from results.criteria.measures import ControlTransfer, MoveMeasures
from results.criteria.quantities import US, rate, size
from results.criteria.run_view import RunView
from results.criteria.standstill import MACHINE, MOST, highest_share

CONTROL_LEAST = 2.0
"""A fetch takes partitions in turn, so those that are treated alike advance alike: 0.93 with the defect
`throttle-holds-unlisted`. Of two responses each, one more or less is at most a factor of 2. A throttle that slows
unlisted partitions down, and leaves them more than twice the pace of listed ones, is not found."""
CONTROL_ROOM = 1.1
"""Copies have some 1 % more payload than logs grow by, and a NIC may carry 5 % less than measured (`NIC_LOWEST`). The
rest of a tenth is chosen. Where the NIC is nearer to the quota nothing is judged."""


def judge_controls(measures: MoveMeasures, move: Move, nics: Iterable[NicMeasurement]) -> list[Finding]:
    """Judge that unlisted partitions advance faster than the listed ones in the same time."""
    return [_control(c, move, tuple(nics)) for c in measures.controls] or [
        missing_data("control-unthrottled", "control faster than throttled partitions", measures, ("log.bytes",))
    ]


def _control(control: ControlTransfer, move: Move, nics: tuple[NicMeasurement, ...]) -> Finding:
    # A fetch takes partitions in turn: partitions that are treated alike advance alike, however fast the machine is.
    ends = {(control.host, "receive"), *((leader, "transmit") for leader in control.leaders)}
    measured = [n.payload_bytes_per_s for n in nics if (n.host, n.direction) in ends]
    payload = min((p for p in measured if p is not None), default=None)
    kinds: tuple[FlowKind, ...] = ("control", "throttled")
    unlisted, listed = (
        sum(len(flow.partitions) for flow in flows_through(move.flows, kind, control.host, "receive")) for kind in kinds
    )
    together, alone = control.with_throttled_bytes, control.beside_throttled_bytes
    verdict: Verdict = "inconclusive"
    observed: float | None = None
    if payload is None or len(measured) < len(ends):
        why = "the NICs on its way were not measured"
    elif payload <= CONTROL_ROOM * move.quota_bytes_per_s:
        why = f"the NIC carries {rate(payload)}: it leaves too little above the quota"
    elif control.total_bytes <= 0 or together is None or alone is None or not unlisted or not listed:
        why = "no control bytes were seen while the throttle was in force"
    elif control.total_bytes < unlisted * move.response_max_bytes:
        responses = f"a response for each of {plural(unlisted, 'partition')}"
        why = f"only {size(control.total_bytes)} of control: less than {responses}"
    else:
        throttled = max(together - alone, 0.0) / listed
        each = alone / unlisted
        observed = each / max(throttled, 1.0)  # of throttled ones that did not advance at all: as if by one byte
        why = f"{size(each)} a control partition; {size(throttled)} a throttled one in the same time"
        # What the NIC leaves beside the quota is all that the unlisted partitions can have of it.
        room = (payload / move.quota_bytes_per_s - 1) * listed / unlisted
        if observed > CONTROL_LEAST:
            verdict = "pass"
        elif room <= CONTROL_ROOM * CONTROL_LEAST:
            parts = f"{counted(unlisted, 'partition', 'gets')} no more next to {plural(listed, 'throttled one')}"
            why = f"the NIC carries {rate(payload)}: {parts}"
        elif gap := gap_text(control.longest_gap_s):
            why = gap
        else:
            verdict, why = "fail", f"{why}: the control is throttled as well"
    return finding(
        "control-unthrottled",
        f"a control partition advances more than {CONTROL_LEAST:g} times as far as a throttled one",
        verdict,
        why,
        host=control.host,
        direction="receive",
        observed=observed,
        unit="times a throttled partition",
        power=times_power(CONTROL_LEAST / observed, "its pace, or less,") if observed else None,
        series=("log.bytes", "manifest.nics"),
    )


PRESSURES = ("pressure.memory", "pressure.io")
BACK, ARRIVED = "return.started", "return.done"
PARTITION_S = 0.05
"""What a partition takes besides its bytes: on two cores 0.026 s of 2,000 partitions (docs/measurements/scale.md)."""


def judge_return(run: RunView) -> Iterator[Finding]:
    """Yield a finding for each host to which partitions moved back, faster than the throttle would have allowed.

    None where a throttle would let so few bytes pass in twice the time that they need, nor where declared delays, links
    between racks, a disk or memory may hold them back.
    """
    began_us, racks = run.series.event_us(BACK), run.manifest.topology.document.get("racks")
    if began_us is None or run.move.round_trips or isinstance(racks, Mapping):  # with shaped links it is a mapping
        return
    for host in sorted({flow.leader for flow in run.move.flows if flow.kind == "throttled"}):
        if (found := _returned(run, host, began_us)) is not None:
            yield found


def _returned(run: RunView, host: str, began_us: int) -> Finding | None:
    """Return the finding of one host; None where nothing can be said.

    The time ends with the last growth. Seconds in which the machine was unfit are no part of it. Hosts that get from
    the same one share its NIC.
    """
    move, measures = run.move, run.measures
    led = throttled_through(move, host, "transmit")
    partitions = {(flow.topic, partition) for flow in led for partition in flow.partitions}
    carried = _carried(run, host)
    grown, last_us = _grown_again(run, host, partitions, began_us)
    waited = [highest_share(run.series.gauge(each, MACHINE), [(began_us, last_us)]) or 0.0 for each in PRESSURES]
    if carried is None or carried <= 0 or grown <= 0 or max(waited) > MOST:
        return None
    quota = measures.phases[-1].quota_bytes_per_s if measures.phases else move.quota_bytes_per_s
    seconds = (last_us - began_us) / US - run.unfit.seconds(began_us, last_us)
    if grown <= CONTROL_LEAST * _allowed(move, quota, grown / carried + PARTITION_S * len(partitions)):
        return None
    allowed = _allowed(move, quota, seconds)
    return finding(
        "control-unthrottled",
        f"what moves back after the throttle was removed exceeds what {rate(quota)} allows",
        "pass" if grown > allowed else "fail",
        f"{size(grown)} moved back in {seconds:.1f} s, in which the throttle would have allowed {size(allowed)}",
        host=host,
        direction="receive",
        observed=grown / allowed,
        unit="of what the throttle allows",
        power=times_power(grown / allowed, "the time"),
        series=("log.bytes", "manifest.nics"),
    )


def _carried(run: RunView, host: str) -> float | None:
    """Return what the NICs carry to a host, in bytes per second; None where one of them was not measured.

    Consumers and followers in sync get what is produced from the same NIC.
    """
    in_sync = {flow.follower for flow in run.move.flows if flow.kind == "in_sync"}
    pairs = {(flow.follower, flow.leader) for flow in run.move.flows if flow.kind == "throttled"}
    shares = {(host, "receive"): 1}
    for sender in {sender for sender, receiver in pairs if receiver == host}:
        shares[sender, "transmit"] = len({receiver for other, receiver in pairs if other == sender})
    measured = {(nic.host, str(nic.direction)): nic.payload_bytes_per_s for nic in run.manifest.nics}
    carried = [(measured.get(end), sharing) for end, sharing in shares.items()]
    known = [payload / sharing for payload, sharing in carried if payload is not None]
    return min(known) - run.move.inbound_bytes_per_s * (1 + len(in_sync)) if len(known) == len(carried) else None


def _grown_again(run: RunView, host: str, partitions: Set[tuple[str, int]], began_us: int) -> tuple[float, int]:
    """Return the bytes of those of these logs that began again on a host, and when one grew last."""
    grown, last_us = 0.0, began_us
    until_us = run.series.event_us(ARRIVED) or run.series.last_us() or began_us
    for where, (t, value) in run.series.logs_of(host).items():
        first, end = np.searchsorted(t, [began_us, until_us], side="right")
        if where not in partitions or not 0 < first < end or value[first] >= value[first - 1]:
            continue  # it stayed, or it is none of those that moved
        steps = np.flatnonzero(np.diff(value[first:end]) > 0)
        grown += float(value[end - 1])
        last_us = max(last_us, int(t[first + steps[-1] + 1]) if len(steps) else int(t[first]))
    return grown, last_us


def _allowed(move: Move, quota_bytes_per_s: float, seconds: float) -> float:
    """Return most bytes that a throttle lets into a host in a time: a response of each fetcher more in each window.

    The fetchers on the way back are as many as on the way there, of each pair of brokers.
    """
    fetchers = max((max(each.transmit, each.receive) for each in move.fetchers.values()), default=1)
    windows = max(1, math.ceil(seconds / move.window_s))
    in_windows = quota_bytes_per_s * (windows * move.window_s + move.sample_s)
    return in_windows + windows * fetchers * move.response_max_bytes


CRITERION = Criterion(
    name="control-unthrottled",
    title="Control partitions run unthrottled",
    section=RATES,
    judge=lambda run: [*judge_controls(run.measures, run.move, run.manifest.nics), *judge_return(run)],
    rests_on_preconditions=True,
    of_nic_bytes=True,
    catches="A throttle that also holds back partitions that it does not list, or stays in force when it was removed.",
    smallest="a pace below twice that of throttled partitions",
)
