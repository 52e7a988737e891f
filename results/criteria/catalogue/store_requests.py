"""The store was asked all the time; a new broker reads from it what its partitions need."""

from results.contract.relocation import Relocation
from results.contract.texts import plural
from results.contract.verdict import Finding, Verdict
from results.criteria.criterion import FACTS, Criterion, has_relocation
from results.criteria.findings import finding
from results.criteria.foreign_traffic import unless_shared
from results.criteria.measures import MoveMeasures
from results.criteria.quantities import GAP_S
from results.criteria.relocation_measures import NOTHING, READS


def judge_requests(asked: Relocation, measures: MoveMeasures) -> Finding:
    """Judge `store-requests`: the store's counters were polled all the time; a new broker reads from the store.

    Tiered: at least once for each partition, as each segment's leader epochs are an object of their own. AutoMQ: at
    least once, as an object of AutoMQ has blocks of many partitions. A log on disk needs no read of the store.
    """
    found = measures.relocation or NOTHING
    read = [r.count for r in found.requests or () if r.operation.lower().startswith(READS)]
    verdict: Verdict = "inconclusive"
    least = asked.partitions if asked.storage == "tiered" else 1
    if found.requests is None or found.requests_gap_s is None:
        why = "the store's requests were not counted from the move's start past its end"
    elif found.requests_gap_s > GAP_S:
        why = f"the store was not asked for its requests for {found.requests_gap_s:.1f} s"
    else:
        verdict = "pass" if sum(read) >= least else "fail"
        why = ", ".join(f"{r.count:g} {r.operation}" for r in found.requests) or "no request at all"
    return finding(
        "store-requests",
        f"counted all the time; {plural(least, 'read')} or more",
        verdict,
        why,
        observed=sum(read) if verdict != "inconclusive" else None,
        unit="reads",
        series=("s3.requests",),
    )


CRITERION = Criterion(
    name="store-requests",
    title="Requests to the object store",
    section=FACTS,
    judge=lambda run: [unless_shared(run, judge_requests(run.relocation, run.measures))],
    needs=lambda run: has_relocation(run) and run.relocation.storage != "disk" and bool(run.relocation.stores),
    catches="A replica that takes its log from a broker instead of the store.",
)
