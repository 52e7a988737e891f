"""Of tiered logs under a tenth lies on disk when the move begins.

The runner waits for this state before the load begins. Clients, another operator, or a store that is slow may change
it until the move. So it says what the run is about, and nothing about the move: otherwise the run is inconclusive.
"""

from results.contract.relocation import LOCAL_MOST, Relocation
from results.contract.verdict import Finding, Verdict
from results.criteria.criterion import FACTS, Criterion, has_relocation
from results.criteria.findings import finding
from results.criteria.quantities import percent, size


def judge_local(asked: Relocation) -> Finding:
    """Judge `tiered-local-fraction`: of tiered logs, under a tenth lies on disk when the move begins."""
    share = asked.local_share
    verdict: Verdict = "pass" if share is not None and share < LOCAL_MOST else "inconclusive"
    why = "the sizes of the logs on the leaders' disks were not read"
    if share is not None:
        why = f"{size(asked.local_bytes or 0)} of {size(asked.total_bytes)} on the leaders' disks"
        why += "" if share < LOCAL_MOST else ": the disk is measured, not tiered storage"
    return finding(
        "tiered-local-fraction",
        f"less than {percent(LOCAL_MOST)} of the log on disk",
        verdict,
        why,
        observed=share,
        unit="fraction",
        series=("log.bytes", "manifest.relocation"),
    )


CRITERION = Criterion(
    name="tiered-local-fraction",
    title="Little of the log on disk",
    section=FACTS,
    judge=lambda run: [judge_local(run.relocation)],
    needs=lambda run: has_relocation(run) and run.relocation.storage == "tiered",
    catches="A run in which the disk is measured, not tiered storage.",
)
