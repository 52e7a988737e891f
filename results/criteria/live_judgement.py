"""Criteria about what goes on around a move: replicas in sync, a move that is stuck, the load and its records."""

from collections.abc import Sequence

from results.contract.live import LiveAudit, LiveLoad, LoadProcess
from results.contract.manifest import Move
from results.contract.move import LISTED
from results.contract.verdict import Finding, Verdict
from results.criteria.frame import criterion
from results.criteria.live_measures import Isr, Stuck
from results.criteria.measures import GAP_S, MoveMeasures
from results.criteria.words import at, rate

NOTICE_S = 3.0
"""How much longer than it says a move may have been stuck when that is noticed."""


def judge_isr(measures: MoveMeasures, move: Move) -> list[Finding]:
    """Nothing that was in sync before the move left the ISR: by the brokers' own counts, and on any look."""
    isr = measures.isr
    # Where all replicas are alone and nobody writes the brokers' own counts say all there is.
    watched = move.inbound_bytes_per_s > 0 or any(f.kind == "keepup" for f in move.flows)
    listed = {(f.topic, p) for f in move.flows if f.kind in LISTED for p in f.partitions}
    verdict: Verdict = "inconclusive"
    observed: float | None = None
    if isr is None:
        why = "no move.started was recorded"
    elif shrunk := [(h.host, h.shrinks) for h in isr.hosts if h.shrinks]:
        observed = sum(times for _, times in shrunk)
        verdict = "fail"
        why = "; ".join(f"{host} took replicas out of ISRs {times:g} times" for host, times in shrunk)
    elif isr.smaller:
        observed, verdict = float(isr.smaller), "fail"
        why = (
            f"{isr.first_partition} had {isr.first_size or 0:g} in sync at {at(isr.first_s or 0.0)}, "
            f"{isr.first_before or 0:g} before; {isr.smaller} partitions like it"
        )
    elif missing := _isr_unseen(isr, len(listed) if watched else None):
        why = missing
    else:
        observed, verdict = 0.0, "pass"
        why = "no ISR shrank on any broker"
        if isr.partitions:
            why += f"; {isr.partitions} partitions were looked at {isr.polls} times or more"
    return [
        criterion(
            "no-isr-shrink",
            "no replica that was in sync leaves the ISR",
            verdict,
            why,
            observed=observed,
            unit="shrinks",
            series=("broker.isr_shrinks", "isr.size"),
        )
    ]


def _isr_unseen(isr: Isr, listed: int | None) -> str | None:
    """What was not looked at; with None as `listed` partitions need not be."""
    for host in isr.hosts:
        if host.shrinks is None:
            return f"{host.host} was not asked for its ISR shrinks from the move's start past its end"
        if host.longest_gap_s is None or host.longest_gap_s > GAP_S:
            return f"{host.host} was not asked for its ISR shrinks for {host.longest_gap_s or 0.0:.1f} s"
    if listed is None:
        return None
    if isr.partitions < max(1, listed):
        return f"the ISR of {isr.partitions} of {listed} listed partitions was looked at before the move"
    if isr.polls < 1 or isr.longest_gap_s is None or isr.longest_gap_s > GAP_S:
        return f"the ISR of a partition was not looked at for {isr.longest_gap_s or 0.0:.1f} s"
    return None


def judge_stuck(measures: MoveMeasures, patience_s: float | None) -> list[Finding]:
    """A throttle below what comes in is noticed, no sooner than the lag has really stopped falling, and raised.

    Nor much later: of the time that the lag had not fallen for then nearly all was told, and that is the patience.
    """
    stuck, done_s = measures.stuck, measures.done_s
    verdict: Verdict = "inconclusive"
    observed: str | None = None
    if stuck is None:
        why = "nobody noticed that the move was stuck"
        if done_s is not None:
            verdict, observed, why = "fail", f"done at {at(done_s)}", f"{why}; it was done at {at(done_s)} all the same"
    elif stuck.seconds is None or stuck.lag_before is None or stuck.lag_since is None:
        why = f"noticed at {at(stuck.noticed_s)}, but the lag before that was not recorded"
    else:
        observed = f"noticed at {at(stuck.noticed_s)}"
        lag = f"the lowest lag was {stuck.lag_before:g}, and {stuck.lag_since:g} in the {stuck.seconds:.1f} s since"
        if stuck.lag_since < stuck.lag_before:
            verdict, why = "fail", f"noticed too soon: {lag}"
        elif late := _late(stuck, patience_s):
            verdict, why = "fail", f"noticed too late: {late}; {lag}"
        elif stuck.raised_s is None:
            verdict, why = "fail", f"{lag}; the throttle was not raised"
        elif done_s is None or done_s < stuck.raised_s:
            verdict, why = "fail", f"{lag}; raised at {at(stuck.raised_s)}, but not done after that"
        else:
            verdict = "pass"
            to = f" to {rate(stuck.raised_to)}" if stuck.raised_to is not None else ""
            why = f"{lag}; raised{to} at {at(stuck.raised_s)}, done at {at(done_s)}"
    return [
        criterion(
            "stall-detected",
            "noticed once the lag has stopped falling; raised; done",
            verdict,
            why,
            observed=observed,
            series=("move.lag", "events"),
        )
    ]


def _late(stuck: Stuck, patience_s: float | None) -> str | None:
    """By how much the notice came too late; None when it did not. The lag is read, and looked at, once a second."""
    told = stuck.seconds or 0.0
    if patience_s is not None and told > patience_s + NOTICE_S:
        return f"after {told:.1f} s, with a patience of {patience_s:g} s"
    since = 0.0 if stuck.lowest_s is None else stuck.noticed_s - stuck.lowest_s
    return f"the lag was lowest {since:.1f} s before" if since > told + NOTICE_S else None


def judge_load_held(live: LiveLoad | None) -> list[Finding]:
    """Each process of the load kept its declared rate: if not, what the move did is not known to be under that load."""
    if live is None or not live.processes:
        why = "the run did not establish what its load did"
        return [_held(None, "inconclusive", None, why, "the declared rate, whatever the brokers do")]
    return [_process(process) for process in live.processes]


def _process(process: LoadProcess) -> Finding:
    declared = rate(process.declared_bytes_per_s) if process.declared_bytes_per_s else "it reads until it is stopped"
    cpu = "" if process.cpu_cores is None else f"; {process.cpu_cores:.2f} cores"
    share = process.sent / process.due if process.due > 0 else None
    if share is None:
        return _held(process.name, "inconclusive", None, f"nothing was due{cpu}", declared)
    verdict: Verdict = "pass" if process.held else "inconclusive"
    told = f"{process.sent} of {process.due} records that were due" if process.declared_bytes_per_s else "it did"
    why = process.why or f"{told}{cpu}"
    return _held(process.name, verdict, share, why, declared)


def _held(host: str | None, verdict: Verdict, observed: float | None, why: str, expected: str) -> Finding:
    return criterion(
        "load-rate-sustained",
        expected,
        verdict,
        why,
        host=host,
        observed=observed,
        unit="of what was due",
        tolerance="what the load itself allows",
        series=("manifest.facts.live", "client.produce.due", "client.produce.sent"),
    )


def judge_live_records(live: LiveLoad | None) -> list[Finding]:
    """No acknowledged record is lost or changed; an idempotent producer's are there once, in order."""
    audits: Sequence[LiveAudit] | None = None if live is None else live.audits
    if not audits:
        return [_live(None, "inconclusive", None, "the live records were not read back")]
    return [_audit(audit) for audit in audits]


def _audit(audit: LiveAudit) -> Finding:
    if audit.acked <= 0:
        return _live(audit.name, "inconclusive", None, "no record was acknowledged, so none could be lost")
    wrong = audit.lost + audit.corrupt
    if audit.exactly_once:
        wrong += audit.duplicated + audit.reordered
    short = audit.found < audit.acked and audit.lost == 0
    why = (
        f"{audit.acked} acknowledged, {audit.found} found; {audit.lost} lost, {audit.duplicated} duplicated, "
        f"{audit.reordered} reordered, {audit.corrupt} corrupt"
    )
    if audit.first:
        why += ": " + ", ".join(audit.first[:5])
    return _live(audit.name, "fail" if wrong or short else "pass", float(wrong), why, exactly_once=audit.exactly_once)


def _live(
    host: str | None, verdict: Verdict, observed: float | None, why: str, *, exactly_once: bool = True
) -> Finding:
    return criterion(
        "live-records",
        "every acknowledged record, unchanged" + (", once, in order" if exactly_once else ""),
        verdict,
        why,
        host=host,
        observed=observed,
        unit="wrong",
        tolerance="none" if exactly_once else "a retried record may come twice or late",
        series=("manifest.facts.live",),
    )
