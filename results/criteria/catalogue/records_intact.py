"""Every preloaded record is there once, unchanged, in the order in which it was written."""

from results.contract.manifest import Records
from results.contract.verdict import Finding, Verdict
from results.criteria.criterion import FACTS, Criterion, has_any_move
from results.criteria.findings import finding


def _records(records: Records | None) -> Finding:
    verdict: Verdict = "inconclusive"
    observed: float | None = None
    if records is None:
        why = "the records were not read back"
    elif records.expected <= 0:
        why = "no record was preloaded, so none could be lost"
    else:
        wrong = records.lost + records.duplicated + records.corrupt + records.reordered + len(records.digest_mismatches)
        short = records.found < records.expected and records.lost == 0
        observed = float(wrong)
        verdict = "pass" if wrong == 0 and not short else "fail"
        why = (
            f"{records.found} of {records.expected} found; {records.lost} lost, "
            f"{records.duplicated} duplicated, {records.corrupt} corrupt; "
            f"{len(records.digest_mismatches)} partitions have another digest"
        )
        if records.reordered:
            why += f"; {records.reordered} after a later record"
        if records.digest_mismatches:
            why += ": " + ", ".join(records.digest_mismatches[:5])
    return finding(
        "records-intact",
        "every preloaded record once, unchanged, in order",
        verdict,
        why,
        observed=observed,
        unit="wrong",
        series=("manifest.facts.records",),
    )


CRITERION: Criterion[Records | None] = Criterion(
    name="records-intact",
    title="Every record is there",
    section=FACTS,
    measure=lambda run: run.manifest.facts.records,
    judge=lambda _run, records: [_records(records)],
    needs=has_any_move,
    by_name=False,
    catches="A move that loses, doubles, changes or reorders a record.",
)
