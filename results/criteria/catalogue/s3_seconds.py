"""A move of partitions in an object store takes no longer than its requests, and what still lies on disks."""

from collections.abc import Sequence

from results.contract.relocation import Relocation
from results.contract.texts import plural
from results.contract.verdict import Finding, Verdict
from results.criteria.criterion import RATES, Criterion, has_relocation, old_broker_killed
from results.criteria.findings import finding, times_power
from results.criteria.quantities import US
from results.criteria.relocation_measures import TTFB, formula, read_waits
from results.criteria.run_view import RunView

REQUESTS = 2
"""Requests to the store that one partition needs, one after the other: a follower reads the leader epochs and the
producers' state of a tiered log; a new leader opens its streams, whose old leader has uploaded the rest."""
REQUEST_S = 0.1
"""Seconds of one request at most: 0.25 s for a write-ahead log that collects for so long, and 0.01 to 0.08 s of a read,
divided among the four or more partitions that brokers of either kind treat at once."""
BASE_S = 3.0
"""Seconds of a move without data: two rounds of a fetcher that rests (0.5 s of wait, 1 s of backoff each)."""
ANSWER = "s3.answer.seconds"
NEAR_US = US
"""Readings of a store this long before and after a move count: a move may lie between two readings."""


def most_seconds(asked: Relocation, local_s: float) -> float:
    """Return the longest time: requests × latency, and what lay on disks ÷ NIC."""
    return BASE_S + REQUESTS * REQUEST_S * asked.partitions + local_s


def late_seconds(run: RunView) -> float:
    """Return the most seconds that a store which answers late adds to a move: of each request what answers took.

    The longer of two means counts: of reads until their first byte, as the store counts them, and of the answers to the
    agent. The store does not count what a request waits before it is read.
    """
    started, seconds = run.measures.started_us, run.measures.done_s
    if started is None or seconds is None:
        return 0.0
    until = started + round(seconds * US)
    near = [run.series.gauge(ANSWER, store).between(started - NEAR_US, until + NEAR_US) for store in run.stores]
    # Within the move no request waited longer than the move.
    reads = [(min(limit_s, seconds), count) for limit_s, count in read_waits(run.series, run.stores, started, until)]
    means = [_late_mean(reads), *(_late_mean([(float(wait_s), 1.0) for wait_s in each.value]) for each in near)]
    return REQUESTS * run.relocation.partitions * max(means)


def _late_mean(waits: Sequence[tuple[float, float]]) -> float:
    """Return the mean of these waits, each with its number, where one of `REQUEST_S` or less counts as nothing."""
    number = sum(count for _, count in waits)
    return sum(wait_s * count for wait_s, count in waits if wait_s > REQUEST_S) / number if number else 0.0


def _judge(run: RunView) -> Finding:
    """Return the finding. A failure that a store's late answers may explain is left open."""
    asked, seconds, local_s = run.relocation, run.measures.done_s, formula(run.manifest, run.relocation, whole=False)
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
        requests = plural(REQUESTS * asked.partitions, "request")
        parts = f"{requests} of {REQUEST_S:g} s, {local_s:.1f} s of what lay on disks"
        why = f"{seconds:.1f} s; {parts}, and {BASE_S:g} s without data"
        if most < seconds <= most + (late_s := late_seconds(run)):
            verdict, why = "inconclusive", f"{why}; the object store answered late, which may explain {late_s:.1f} s"
    return finding(
        "s3-seconds",
        expected,
        verdict,
        why,
        observed=seconds,
        unit="s",
        power=times_power(most / seconds, "as long") if seconds and most else None,
        series=("events", "manifest.nics", "manifest.relocation", TTFB, ANSWER),
    )


CRITERION = Criterion(
    name="s3-seconds",
    title="As many seconds as its requests take",
    section=RATES,
    judge=lambda run: [_judge(run)],
    needs=lambda run: has_relocation(run) and run.relocation.storage != "disk" and not old_broker_killed(run),
    rests_on_preconditions=True,
    catches="A move in S3 that waits for something else than its requests.",
    smallest="a wait of 3 s in all, with 4 partitions",
)
