"""Of tiered logs under a tenth lies on disk when the move begins."""

from results.contract.relocation import LOCAL_MOST, Relocation
from results.contract.verdict import Finding, Verdict
from results.criteria.criterion import FACTS, Criterion, has_relocation
from results.criteria.findings import finding
from results.criteria.quantities import percent, size


def judge_local(asked: Relocation) -> Finding:
    """Judge `tiered-local-fraction`: of tiered logs, under a tenth lies on disk when the move begins."""
    local, total = asked.local_bytes, asked.total_bytes
    share = local / total if local is not None and total else None
    verdict: Verdict = "inconclusive" if share is None else "pass" if share < LOCAL_MOST else "fail"
    return finding(
        "tiered-local-fraction",
        f"less than {percent(LOCAL_MOST)} of the log on disk",
        verdict,
        "not seen" if share is None else f"{size(local or 0)} of {size(total)} on the leaders' disks",
        observed=share,
        unit="fraction",
        series=("log.bytes", "manifest.relocation"),
    )


CRITERION: Criterion[Relocation] = Criterion(
    name="tiered-local-fraction",
    title="Little of the log on disk",
    section=FACTS,
    measure=lambda run: run.relocation,
    judge=lambda _run, asked: [judge_local(asked)],
    needs=lambda run: has_relocation(run) and run.relocation.storage == "tiered",
    catches="A run in which the disk is measured, not tiered storage.",
)
