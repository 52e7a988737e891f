"""Each process of the load kept its declared rate, whatever the brokers did."""

from results.contract.live_load import LiveLoad, LoadProcess
from results.contract.verdict import Finding, Verdict
from results.criteria.criterion import PRECONDITIONS, Criterion
from results.criteria.findings import finding
from results.criteria.quantities import rate


def judge_load_held(live: LiveLoad | None) -> list[Finding]:
    """Judge whether each process of the load kept its declared rate: else it is not known what the move was under."""
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
    counts = f"{process.sent} of {process.due} records that were due" if process.declared_bytes_per_s else "it did"
    why = process.why or f"{counts}{cpu}"
    return _held(process.name, verdict, share, why, declared)


def _held(host: str | None, verdict: Verdict, observed: float | None, why: str, expected: str) -> Finding:
    return finding(
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


CRITERION = Criterion(
    name="load-rate-sustained",
    title="The load sustained its rate",
    section=PRECONDITIONS,
    judge=lambda run: judge_load_held(run.manifest.facts.live),
    needs=lambda run: run.loaded,
    by_name=False,
    catches="A load generator that was slower than declared.",
)
