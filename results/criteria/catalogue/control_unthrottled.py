"""Partitions that no list names advance faster than the throttled ones."""

from collections.abc import Iterable

from results.contract.manifest import NicMeasurement
from results.contract.move import Move
from results.contract.verdict import Finding, Verdict
from results.criteria.criterion import RATES, Criterion
from results.criteria.findings import finding, gap_text, missing_data, times_power
from results.criteria.measures import ControlTransfer, MoveMeasures
from results.criteria.quantities import rate, size

CONTROL_LEAST = 2.0
CONTROL_ROOM = 1.1


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
    unlisted, listed = (_partitions(move, kind, control.host) for kind in ("control", "throttled"))
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
        why = f"only {size(control.total_bytes)} of control: less than a response for each of {unlisted} partitions"
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
            why = f"the NIC carries {rate(payload)}: {unlisted} partitions beside {listed} throttled ones get no more"
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


def _partitions(move: Move, kind: str, host: str) -> int:
    return sum(len(flow.partitions) for flow in move.flows if flow.kind == kind and flow.follower == host)


CRITERION: Criterion[MoveMeasures] = Criterion(
    name="control-unthrottled",
    title="Control partitions run unthrottled",
    section=RATES,
    judge=lambda run, measures: judge_controls(measures, run.move, run.manifest.nics),
    rests_on_preconditions=True,
    catches="A throttle that also holds back partitions that it does not list.",
    smallest="a pace below twice that of throttled partitions",
)
