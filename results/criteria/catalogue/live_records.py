"""No acknowledged record is lost or changed; an idempotent producer's records are there once, in order.

The audit says it of the logs after the run, and each consumer of what it was given while the load ran.
"""

from results.contract.live_load import LiveAudit, LiveDeliveries, LiveLoad
from results.contract.texts import plural
from results.contract.verdict import Finding, Verdict
from results.criteria.criterion import FACTS, Criterion, has_relocation
from results.criteria.findings import SENT_AGAIN, finding

SHOWN = 5
DELIVERED = "each delivered record the next one of its partition, unchanged"


def judge_live_records(live: LiveLoad | None, *, shared: bool = False) -> list[Finding]:
    """Judge whether no acknowledged record is lost or changed; an idempotent producer's are there once, in order.

    With `shared` storage a log's end that is too low is said and does not fail.
    """
    found: list[Finding] = []
    if live is not None and live.audits is not None:
        found = [*map(_audit, live.audits), *(_delivered(each, shared=shared) for each in live.deliveries)]
    return found or [_live(None, "inconclusive", None, "the live records were not read back")]


def _audit(audit: LiveAudit) -> Finding:
    wrong = audit.lost + audit.corrupt
    if audit.exactly_once:
        wrong += audit.duplicated + audit.reordered
    if audit.acked <= 0 and not wrong:
        return _live(audit.name, "inconclusive", None, "no record was acknowledged, so none could be lost")
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
        why += ": " + ", ".join(audit.first[:SHOWN])
    return _live(audit.name, verdict, float(wrong), why, exactly_once=audit.exactly_once)


def _delivered(found: LiveDeliveries, *, shared: bool) -> Finding:
    if found.records <= 0 and not found.wrong:
        return _live(found.name, "inconclusive", None, "it was given no record", expected=DELIVERED)
    why = (
        f"{found.records} delivered, the values of {found.checked} and the keys, headers and timestamps of "
        f"{found.compared} checked; {plural(found.skipped, 'offset')} skipped, {found.missed} missed, "
        f"{found.repeated} repeated, {found.corrupt} corrupt, {found.refused} refused"
    )
    if found.again:
        why += f"; {found.again} came again after a new assignment"
    if found.behind:
        behind = plural(found.behind, "acknowledged record")
        why += f"; {behind} had not come when the load ended: the consumer was behind"
    if found.older:
        why += f"; {found.older} were written before the load, although the consumer began at the end of the log"
    if found.first:
        why += ": " + ", ".join(found.first[:SHOWN])
    # A leader names its high watermark. After an election it names none until all acknowledged records are below it
    # (KIP-207). The fill was below it when the load began. AutoMQ takes the end from the stream that a broker opens.
    # The testbed knows of no such promise there.
    wrong = found.wrong + (0 if shared else found.older)
    verdict: Verdict = "fail" if wrong else "inconclusive" if found.behind else "pass"
    return _live(found.name, verdict, float(wrong), why, expected=DELIVERED)


def _live(
    host: str | None,
    verdict: Verdict,
    observed: float | None,
    why: str,
    *,
    exactly_once: bool = True,
    expected: str = "every acknowledged record, unchanged",
) -> Finding:
    return finding(
        "live-records",
        expected + (", once, in order" if exactly_once else ""),
        verdict,
        why,
        host=host,
        observed=observed,
        unit="wrong",
        tolerance="none" if exactly_once else "a retried record may come twice or late",
        series=("manifest.facts.live",),
    )


CRITERION = Criterion(
    name="live-records",
    title="Every acknowledged record is there",
    section=FACTS,
    judge=lambda run: judge_live_records(
        run.manifest.facts.live, shared=run.manifest.parameters.get("storage") == "automq"
    ),
    # Without a load other clients may have written, such as the probe of a handover.
    needs=lambda run: run.loaded or (has_relocation(run) and run.manifest.facts.live is not None),
    by_name=False,
    of_records=True,
    catches="A broker that loses acknowledged records during a move, or serves wrong ones for a moment.",
)
