"""The bytes that a NIC counted equal the growth of the logs, times the overhead of the wire.

Under load they are also those of clients: see `load_conservation`.
"""

from collections.abc import Sequence

from results.contract.move import Move
from results.contract.verdict import Finding, Verdict
from results.criteria.criterion import RATES, Criterion
from results.criteria.findings import finding, missing_data, times_power
from results.criteria.load_conservation import CLIENTS, COPY_TOLERANCE, LoadedNic, measure_loaded_nics
from results.criteria.measures import Conservation
from results.criteria.quantities import NIC_BYTES, percent, size
from results.criteria.run_view import RunView

CONSERVATION_TOLERANCE = COPY_TOLERANCE
EXPECTED = "NIC bytes = (throttled + control + client bytes) × NIC bytes per log byte"


def _conservation(found: Conservation, move: Move) -> Finding:
    logs, overhead = found.log_bytes, move.nic_bytes_per_log_byte
    verdict: Verdict = "inconclusive"
    observed: float | None = None
    more, tolerance = CONSERVATION_TOLERANCE, f"± {percent(CONSERVATION_TOLERANCE)}"
    if overhead is None:
        why = "the calibration transfer gave no overhead of the wire"
    elif found.nic_bytes is None:
        why = "the NIC's counter was not sampled from the move's start past its end"
    elif logs is None:
        unknown = "broker.bytes_in" if found.client_bytes is None else "log.bytes"
        why = f"{unknown} was not sampled from the move's start past its end"
    elif logs <= 0:
        why = "no bytes were seen in the logs"
    else:
        copied = logs * overhead
        observed, more = found.nic_bytes / copied, CONSERVATION_TOLERANCE + found.background_bytes / copied
        why = f"NIC {size(found.nic_bytes)}; logs of {size(logs)}, × {overhead:.4f}, make {size(copied)}"
        verdict, open_why = _verdict(observed, CONSERVATION_TOLERANCE, more, hidden=more >= 1)
        why += open_why
        tolerance = f"- {percent(CONSERVATION_TOLERANCE)}, + {percent(more)}: {_background(found.background_bytes)}"
    return finding(
        "nic-conservation",
        EXPECTED,
        verdict,
        why,
        host=found.host,
        direction=found.direction,
        observed=observed,
        unit="of what the logs make",
        tolerance=tolerance,
        power=times_power((1 + more) / observed, "the bytes on the NIC") if observed else None,
        series=(NIC_BYTES[found.direction], "log.bytes", "broker.bytes_in"),
    )


HIDDEN = "; other traffic may be as much as the copies, so bytes that came twice would not be seen"


def _verdict(observed: float, less: float, more: float, *, hidden: bool) -> tuple[Verdict, str]:
    """Return the verdict of a share of what is expected, and why it is open; `hidden`: a second copy passes as well."""
    if not 1 - less <= observed <= 1 + more:
        return "fail", ""
    return ("inconclusive", HIDDEN) if hidden else ("pass", "")


def _background(most: float) -> str:
    return f"other traffic is at most {size(most)}"


def judge_loaded(nics: Sequence[LoadedNic]) -> list[Finding]:
    """Judge whether each NIC counted what brokers copied and clients wrote and read, with the overhead of each."""
    return [_loaded(nic) for nic in nics]


def _loaded(nic: LoadedNic) -> Finding:
    verdict: Verdict = "inconclusive"
    observed: float | None = None
    tolerance, why = f"± {percent(COPY_TOLERANCE)} of copies, the spread of clients' and TCP's overhead", nic.missing
    more = 0.0
    if not why and nic.expected_bytes <= 0:
        why = "no bytes were seen"
    elif not why:
        observed, less = nic.nic_bytes / nic.expected_bytes, nic.slack_bytes / nic.expected_bytes
        more = less + nic.background_bytes / nic.expected_bytes
        hidden = nic.moving and nic.copied_bytes <= more * nic.expected_bytes
        verdict, open_why = _verdict(observed, less, more, hidden=hidden)
        tolerance = f"- {percent(less)}, + {percent(more)}: {tolerance}; {_background(nic.background_bytes)}"
        why = (
            f"NIC {size(nic.nic_bytes)}; {size(nic.copied_bytes)} of copies and {size(nic.client_bytes)} of clients "
            f"make {size(nic.expected_bytes)} ± {size(nic.slack_bytes)}{open_why}"
        )
    return finding(
        "nic-conservation",
        "NIC bytes = copies + clients, each with its overhead",
        verdict,
        why,
        host=nic.host,
        direction=nic.direction,
        observed=observed,
        unit="of copies and clients",
        power=times_power((1 + more) / observed, "the bytes") if observed else None,
        tolerance=tolerance,
        series=(
            *NIC_BYTES.values(),
            "log.bytes" if nic.direction == "receive" else "broker.replication.bytes_out",
            CLIENTS[nic.direction],
        ),
    )


def _judge(run: RunView) -> list[Finding]:
    if run.manifest.facts.live is not None:
        return judge_loaded(measure_loaded_nics(run.manifest, run.series, run.move))
    return [_conservation(c, run.move) for c in run.measures.conservation] or [
        missing_data("nic-conservation", EXPECTED, run.measures, ("nic.tx.bytes", "nic.rx.bytes"))
    ]


CRITERION = Criterion(
    name="nic-conservation",
    title="NIC counters agree with the logs",
    section=RATES,
    judge=_judge,
    rests_on_preconditions=True,
    of_nic_bytes=True,
    catches="Bytes that cross the network and reach no log.",
    smallest="4 % more bytes",
)
