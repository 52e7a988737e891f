"""A replica that has everything joins the ISR at once, and none joins it before: the move ends with its last byte."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from results.contract.move import Flow, Move
from results.contract.verdict import Finding, Verdict
from results.criteria.criterion import CLOCKS, FACTS, Criterion, has_move
from results.criteria.findings import finding, gap_text
from results.criteria.model import responses
from results.criteria.quantities import DRIVER, GAP_S, READING_S, US
from results.criteria.run_view import RunView
from results.criteria.unfit import ALWAYS_FIT, UnfitTime
from results.criteria.windows import longest_gap_s

NAME = "isr-expansion"
FETCH_S = 1.5
"""Kafka's defaults: a fetch waits up to 0.5 s at the leader, after up to 1 s of the follower's own pause."""
POLL_S = 0.5
"""Time between two polls of the reassignments."""
CONTROLLER_S = 1.0
"""Two requests to the controller, and what one pause of a JVM may add to them."""
ENDS_S = FETCH_S + POLL_S + CONTROLLER_S
"""The most seconds from the last byte to the poll that sees the end of a move without a throttle."""


@dataclass(frozen=True, slots=True)
class IsrExpansion:
    """Seconds from the last growth of a throttled log to the first poll with nothing in flight, and the most allowed.

    `late_s` is None when one of them was not seen. `early_s` is how long before that poll's time a log was read that
    grew afterwards: below 0 it grew after the end. It is None where the old leader leaves: then nothing grows after it.
    """

    late_s: float | None
    longest_gap_s: float | None
    """Between two readings of the logs in the time of `late_s`, or of `early_s` below 0."""
    allowed_s: float
    early_s: float | None = None
    early_host: str = ""


def allowed_s(move: Move) -> float:
    """Return the most seconds that a healthy follower needs after its last byte, until the move is done.

    Its next fetch tells the leader that it has everything. A fetch waits while the quota is exceeded: by one
    response of each fetcher.
    """
    receiving = {flow.follower for flow in move.flows if flow.kind == "throttled"}
    exceeded = max((responses(move, host, "receive") for host in receiving), default=0.0)
    return exceeded / move.quota_bytes_per_s + ENDS_S


def _measure(run: RunView, unfit: UnfitTime = ALWAYS_FIT) -> IsrExpansion:
    """Return the measures; `unfit` time is no part of the time until the move is done."""
    flows = [flow for flow in run.move.flows if flow.kind == "throttled"]
    logs, polls = run.series.flow_bytes(flows), run.series.gauge("move.in_flight", DRIVER)
    grew, moving = np.flatnonzero(np.diff(logs.value) > 0), np.flatnonzero(polls.value > 0)
    if not len(grew) or not len(moving) or moving[-1] + 1 == len(polls):
        return IsrExpansion(None, None, allowed_s(run.move))
    last_us, done_us = int(logs.t[grew[-1] + 1]), int(polls.t[moving[-1] + 1])
    gap_s = longest_gap_s(logs.t, last_us, max(last_us, done_us))
    late_s, most_s = (done_us - last_us) / US - unfit.seconds(last_us, done_us), allowed_s(run.move)
    if run.manifest.parameters.get("add") != "yes":
        return IsrExpansion(late_s, gap_s, most_s)
    read_us, host = max(_read_before(run, flows))
    if read_us > done_us:
        gap_s = longest_gap_s(run.series.looked(host), done_us, read_us)
    return IsrExpansion(late_s, gap_s, most_s, (done_us - read_us) / US, host)


def _read_before(run: RunView, flows: Sequence[Flow]) -> Iterator[tuple[int, str]]:
    """Yield the last reading of each follower's logs after which they still grew, and the follower."""
    for host in sorted({flow.follower for flow in flows}):
        logs = run.series.flow_bytes([flow for flow in flows if flow.follower == host])
        grew = np.flatnonzero(np.diff(logs.value) > 0)
        if len(grew):
            yield int(logs.t[grew[-1]]), host


def _judge(found: IsrExpansion) -> list[Finding]:
    late, most = found.late_s, found.allowed_s
    if late is None:
        return []
    verdict: Verdict = "pass" if late <= most else "fail"
    why = f"the reassignment ended {max(late, 0.0):.1f} s after the last throttled log had grown"
    if gap := gap_text(found.longest_gap_s):
        # A reading has the middle of its time: one that took longer than this may be of before the end.
        verdict, why = "inconclusive", f"the logs were not read to the end of the move: {gap}"
    elif found.early_s is not None and found.early_s < -READING_S:
        verdict = "fail"
        why = f"logs of {found.early_host} grew {-found.early_s:.1f} s or more after the reassignment had ended"
    return [
        finding(
            NAME,
            f"at most {most:.1f} s from the last byte to the end of the reassignment, and no byte after it",
            verdict,
            why,
            observed=late,
            unit="s",
            tolerance="the time of one fetch, one poll and two requests to the controller",
            series=("log.bytes", "move.in_flight"),
        )
    ]


def _early_for_sure(run: RunView, shaky: Sequence[Finding]) -> list[Finding | None]:
    """Return the finding where logs grew after the end on any machine; two clocks tell it.

    The instant of a reading is the middle of the time that it took, which is at most twice as long as a gap.
    """
    found = _measure(run)
    early = found.early_s is not None and found.early_s < -GAP_S
    doubt = not early or any(each.name in CLOCKS for each in shaky)
    return [None if doubt else each for each in _judge(found)]


def _needed(run: RunView) -> bool:
    """Return whether the last growth of a log is the last of the copy: without a load, in one step."""
    return has_move(run) and not run.loaded and not run.batched


CRITERION = Criterion(
    name=NAME,
    title="In sync with the last byte",
    section=FACTS,
    judge=lambda run: _judge(_measure(run)),
    spared=lambda run: _judge(_measure(run, run.unfit)),
    needs=_needed,
    by_name=False,
    rests_on_preconditions=True,
    holds_anyway=_early_for_sure,
    catches="A leader that adds a replica to the ISR seconds after it caught up, or before.",
)
