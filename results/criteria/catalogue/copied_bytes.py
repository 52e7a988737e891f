"""What crossed the brokers' NICs is what lay on disks, no more; of a log on disk no less either."""

from results.contract.relocation import Relocation
from results.contract.verdict import Finding, Verdict
from results.criteria.background import received_background_bytes
from results.criteria.catalogue.nic_conservation import CONSERVATION_TOLERANCE
from results.criteria.criterion import NOT_KAFKAS, RATES, Criterion, has_relocation
from results.criteria.findings import finding, times_power
from results.criteria.foreign_traffic import unless_shared
from results.criteria.measures import MoveMeasures
from results.criteria.quantities import percent, size
from results.criteria.relocation_measures import (
    NOTHING,
    WRITTEN_S,
    copied_bytes,
    most_copied_bytes,
    next_sent_bytes,
    unread_nic,
)


def _judge(asked: Relocation, measures: MoveMeasures) -> Finding:
    verdict: Verdict = "inconclusive"
    observed, local, f = copied_bytes(asked, measures), asked.local_bytes, asked.nic_bytes_per_log_byte
    nics = (measures.relocation or NOTHING).nics
    expected, low, high = "what lay on the leaders' disks, times the overhead of the wire", 0.0, 0.0
    if local is None:
        why = "what lay on the leaders' disks when the move began was not seen"
    elif f is None:
        why = "the calibration gave no overhead of the wire"
    elif observed is None or (gap := unread_nic(nics, {*asked.brokers, *asked.stores})):
        why = gap if observed is not None else "a NIC's bytes are not known from before the move past its end"
    else:
        covered_s = max(nic.covered_s or 0.0 for nic in nics)
        low, high = local * f, (local + asked.written_bytes_per_s * covered_s) * f
        slack = CONSERVATION_TOLERANCE * high + asked.written_bytes_per_s * f * WRITTEN_S
        requests = received_background_bytes(asked, covered_s)
        if asked.storage == "disk":
            low, high = low - slack, high + slack + requests
        else:
            # Requests of before the move are subtracted, so fewer of them lower what is observed.
            slack += next_sent_bytes(asked, measures) + requests
            low, high = -slack, high + slack
        expected = f"{size(low)} to {size(high)}: {size(local)} on disks × {f:.3f}, and what is written meanwhile"
        share = f", {percent(observed / (asked.total_bytes * f))} of the whole log" if asked.total_bytes else ""
        why = f"{size(observed)} between brokers{share}"
        if observed < low and asked.storage != "disk":
            # Nothing need be copied there, and less than nothing cannot be: the load took less than before the move.
            most = most_copied_bytes(asked, measures)
            if most is not None and most <= high:
                verdict, why = "pass", f"{why}; the brokers received {size(most)} in all, and the load's are among them"
            else:
                why += (
                    ": less than the load alone took before the move, so that a copy may hide in what it did not take"
                )
        else:
            verdict = "pass" if low <= observed <= high else "fail"
        if verdict == "pass" and asked.storage != "disk" and high >= asked.total_bytes * f:
            verdict = "inconclusive"
            why += "; other traffic may be as much as the whole log, so a copy of it would not be seen"
    return finding(
        "copied-bytes",
        expected,
        verdict,
        why,
        observed=observed,
        unit="bytes",
        power=times_power(high / observed, "the bytes between brokers") if observed and observed > 0 else None,
        tolerance=f"± {percent(CONSERVATION_TOLERANCE)}, {WRITTEN_S:g} s of what is written, requests, a store reading",
        series=("nic.rx.bytes", "nic.tx.bytes", "manifest.relocation"),
    )


CRITERION = Criterion(
    name="copied-bytes",
    title="What crossed the brokers' NICs",
    section=RATES,
    judge=lambda run: [unless_shared(run, _judge(run.relocation, run.measures))],
    needs=has_relocation,
    rests_on_preconditions=True,
    of_nic_bytes=True,
    # The load's bytes are its rate times a time, which a clock that is set makes wrong.
    excused_by=NOT_KAFKAS,
    catches="A storage that copies data although it need not.",
    smallest="4 % more bytes",
)
