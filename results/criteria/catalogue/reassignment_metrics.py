"""The brokers' metrics of reassignments are not 0 all the time while a reassignment copies."""

from collections.abc import Mapping

import numpy as np

from results.contract.move import throttled_through
from results.contract.verdict import Direction, Finding, Verdict
from results.criteria.criterion import FACTS, Criterion, has_move
from results.criteria.findings import finding
from results.criteria.quantities import DRIVER, US
from results.criteria.run_view import RunView

METRICS: Mapping[str, Direction] = {
    "broker.reassigning": "transmit",
    "broker.reassignment.bytes_out": "transmit",
    "broker.reassignment.bytes_in": "receive",
}
"""Each metric, and the side of the copies whose brokers have it: leaders count their partitions and what they send."""
COPIED_S = 10.0
READINGS = 5
"""A copy of so long is read ten times, or twice where a costly agent reads once in 5 s: then the verdict is open."""


def copied_us(run: RunView) -> tuple[int, int] | None:
    """Return when the adding replicas' logs first and last grew while the controller listed their reassignment.

    None where they grew for less than `COPIED_S`.
    """
    polls = run.series.gauge("move.in_flight", DRIVER)
    listed = polls.t[polls.value > 0]
    if not len(listed):
        return None
    copied = [flow for flow in run.move.flows if flow.kind == "throttled"]
    logs = run.series.flow_bytes(copied).between(int(listed[0]), int(listed[-1]))
    grew = logs.t[1:][np.diff(logs.value) > 0]
    if not len(grew) or grew[-1] - grew[0] < COPIED_S * US:
        return None
    return int(grew[0]), int(grew[-1])


def judge_metrics(run: RunView) -> list[Finding]:
    """Judge whether each metric was above 0 at any broker, at any time of the run: the calibration counts as well."""
    span = copied_us(run)
    if span is None:
        return []
    silent: list[str] = []
    unread: list[str] = []
    for metric, direction in METRICS.items():
        readings = {host: run.series.gauge(metric, host) for host in run.brokers}
        if any(np.any(each.value > 0) for each in readings.values()):
            continue
        hosts = [host for host in run.brokers if throttled_through(run.move, host, direction)]
        enough = all(len(readings[host].between(*span)) >= READINGS for host in hosts)
        (silent if enough else unread).append(metric)
    verdict: Verdict = "fail" if silent else "inconclusive" if unread else "pass"
    copied = f"replicas that a reassignment adds grew for {(span[1] - span[0]) / US:.1f} s"
    why = f"{copied}; each metric was above 0"
    if silent:
        why = f"{copied}, and every reading of {', '.join(silent)} of the run is 0"
    elif unread:
        why = f"{copied}; {', '.join(unread)} has fewer than {READINGS} readings of a broker meanwhile"
    return [
        finding(
            "reassignment-metrics",
            "above 0 in one reading of the run at least",
            verdict,
            why,
            observed=None if unread and not silent else float(len(silent)),
            unit="metrics that are always 0",
            series=tuple(METRICS),
        )
    ]


CRITERION = Criterion(
    name="reassignment-metrics",
    title="Brokers count the move in their metrics",
    section=FACTS,
    judge=judge_metrics,
    # In steps a reassignment may be over before the next reading. An empty broker that is filled, under a wildcard,
    # has no reassignment: the runner polls replicas that are out of sync.
    needs=lambda run: has_move(run) and not run.batched and not run.move.wildcard,
    catches="A broker whose metrics say that nothing is reassigned while it moves partitions.",
    smallest="a metric that is always 0",
)
