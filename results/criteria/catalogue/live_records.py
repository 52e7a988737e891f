"""No acknowledged record is lost or changed; an idempotent producer's records are there once, in order."""

from collections.abc import Sequence

from results.contract.live import LiveAudit, LiveLoad
from results.contract.verdict import Finding, Verdict
from results.criteria.criterion import FACTS, Criterion, has_load
from results.criteria.findings import SENT_AGAIN, finding


def judge_live_records(live: LiveLoad | None) -> list[Finding]:
    """Judge whether no acknowledged record is lost or changed; an idempotent producer's are there once, in order."""
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
    verdict: Verdict = "fail" if wrong or short else "pass"
    if wrong and wrong == audit.sent_again and not short:
        verdict = "inconclusive"
        why += f"; {SENT_AGAIN}"
    if audit.first:
        why += ": " + ", ".join(audit.first[:5])
    return _live(audit.name, verdict, float(wrong), why, exactly_once=audit.exactly_once)


def _live(
    host: str | None, verdict: Verdict, observed: float | None, why: str, *, exactly_once: bool = True
) -> Finding:
    return finding(
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


CRITERION: Criterion[LiveLoad | None] = Criterion(
    name="live-records",
    title="Every acknowledged record is there",
    section=FACTS,
    measure=lambda run: run.manifest.facts.live,
    judge=lambda _run, live: judge_live_records(live),
    needs=has_load,
    by_name=False,
    catches="A broker that loses acknowledged records during a move.",
)
