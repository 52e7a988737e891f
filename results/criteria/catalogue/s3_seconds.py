"""A move of partitions in an object store takes no longer than its requests, and what still lies on disks."""

from results.contract.manifest import Manifest
from results.contract.relocation import Relocation
from results.contract.verdict import Finding, Verdict
from results.criteria.criterion import RATES, Criterion, has_relocation, old_broker_killed
from results.criteria.findings import finding, times_power
from results.criteria.measures import MoveMeasures
from results.criteria.relocation_measures import formula

REQUESTS = 2
"""Requests to the store that one partition needs, one after the other: a follower reads the leader epochs and the
producers' state of a tiered log; a new leader opens its streams, whose old leader has uploaded the rest."""
REQUEST_S = 0.1
"""Seconds of one request at most: 0.25 s for a write-ahead log that collects for so long, and 0.01 to 0.08 s of a read,
divided among the four or more partitions that brokers of either kind treat at once."""
BASE_S = 3.0
"""Seconds of a move without data: two rounds of a fetcher that rests (0.5 s of wait, 1 s of backoff each)."""


def most_seconds(asked: Relocation, local_s: float) -> float:
    """Return the longest time: requests × latency, and what lay on disks ÷ NIC."""
    return BASE_S + REQUESTS * REQUEST_S * asked.partitions + local_s


def judge_seconds(manifest: Manifest, asked: Relocation, measures: MoveMeasures) -> Finding:
    """Judge `s3-seconds`: the move takes at most as long as its requests and what lay on disks."""
    seconds, local_s = measures.done_s, formula(manifest, asked, whole=False)
    verdict: Verdict = "inconclusive"
    expected, most = "requests × latency + what lay on disks ÷ NIC", None
    if local_s is None:
        why = "a NIC or a log was not measured: there is no bound"
    elif seconds is None:
        why = "the move was not seen to be done"
    else:
        most = most_seconds(asked, local_s)
        expected = f"{most:.1f} s at most"
        verdict = "pass" if seconds <= most else "fail"
        parts = f"{REQUESTS * asked.partitions} requests of {REQUEST_S:g} s, {local_s:.1f} s of what lay on disks"
        why = f"{seconds:.1f} s; {parts}, and {BASE_S:g} s without data"
    return finding(
        "s3-seconds",
        expected,
        verdict,
        why,
        observed=seconds,
        unit="s",
        power=times_power(most / seconds, "as long") if seconds and most else None,
        series=("events", "manifest.nics", "manifest.relocation"),
    )


CRITERION = Criterion(
    name="s3-seconds",
    title="As many seconds as its requests take",
    section=RATES,
    judge=lambda run: [judge_seconds(run.manifest, run.relocation, run.measures)],
    needs=lambda run: has_relocation(run) and run.relocation.storage != "disk" and not old_broker_killed(run),
    rests_on_preconditions=True,
    catches="A move in S3 that waits for something else than its requests.",
    smallest="a wait of 3 s in all, with 4 partitions",
)
