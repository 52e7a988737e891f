"""Every listed partition is held back: none is copied ahead of the others.

A fetch takes the partitions of a broker in turn, one response each. With responses much smaller than a partition all
listed partitions of a fetcher advance alike; one that the throttle does not hold back is fetched alone whenever the
quota is exceeded, and is copied whole before most others have had a turn.
"""

from results.contract.move import Move
from results.contract.verdict import Finding, Power, Verdict
from results.criteria.criterion import RATES, Criterion, has_move
from results.criteria.findings import finding, gap_text
from results.criteria.partition_measures import Lead, measure_leads
from results.criteria.quantities import at, size
from results.criteria.run_view import RunView

TURNS = 3
"""Responses by which one partition may lead: one of its turn, one because the first responses reorder the partitions
(those without data go to the end, too), and one because a turn may be shared by the end of another log."""


def judge_leads(leads: tuple[Lead, ...], move: Move) -> list[Finding]:
    """No listed partition leads the median of those still copied by more than three responses."""
    if not leads:
        why = "no partition's log was seen to grow, or too few at the same time"
        return [_finding("inconclusive", why, None, move, None)]
    return [_judged(lead, move) for lead in leads]


def _judged(lead: Lead, move: Move) -> Finding:
    verdict: Verdict = "inconclusive"
    why = f"{lead.partition} was {size(lead.bytes)} ahead of the median of {lead.partitions} at {at(lead.at_s)}"
    if lead.bytes > TURNS * move.response_max_bytes:
        verdict = "fail"
    elif gap := gap_text(lead.longest_gap_s):
        why = gap
    else:
        verdict = "pass"
    return _finding(verdict, why, lead.bytes, move, lead)


def _finding(verdict: Verdict, why: str, observed: float | None, move: Move, lead: Lead | None) -> Finding:
    return finding(
        "listed-partitions-throttled",
        f"no listed partition leads the others by more than {TURNS} responses, {size(TURNS * move.response_max_bytes)}",
        verdict,
        why,
        observed=observed,
        unit="bytes",
        host=lead.follower if lead else None,
        direction="receive" if lead else None,
        tolerance="none beyond the turns",
        power=_power(lead, move) if lead else None,
        series=("log.bytes",),
    )


def _power(lead: Lead, move: Move) -> Power | None:
    """A partition that is copied whole at once leads by its size, while most others have nothing."""
    least = TURNS * move.response_max_bytes
    if lead.largest <= least:
        return None
    text = f"would have failed from {size(least)} on that one partition is ahead; the largest has {size(lead.largest)}"
    return Power(float(least), "bytes", text)


def _skips(run: RunView) -> str | None:
    """Why the partitions of a move do not take turns, or are too small for a lead to show."""
    move = run.move
    if run.batched:
        return "a move in steps copies one batch after the other"
    if run.manifest.parameters.get("storage") == "tiered":
        return "a tiered log is copied from its local part on, which need not be a response long"
    flows = [flow for flow in move.flows if flow.kind == "throttled"]
    for follower in {flow.follower for flow in flows}:
        leaders = {flow.leader for flow in flows if flow.follower == follower}
        fetchers = move.fetchers.get(follower)
        if fetchers is None:
            return f"the manifest names no fetcher of {follower}"
        if fetchers.receive > len(leaders):
            return "a follower has several fetchers for one leader, and each has turns of its own"
    partitions = sum(len(flow.partitions) for flow in flows)
    copied = sum(each.bytes for each in move.expected if each.direction == "receive") or move.total_log_bytes
    each, least = copied / max(1, partitions), TURNS * move.response_max_bytes
    if each <= least:
        return f"a partition has {size(each)}: it must be larger than {TURNS} responses, {size(least)}"
    return None


CRITERION: Criterion[tuple[Lead, ...]] = Criterion(
    name="listed-partitions-throttled",
    title="Every listed partition is held back",
    section=RATES,
    measure=lambda run: measure_leads(run.series, run.move),
    judge=lambda run, leads: judge_leads(leads, run.move),
    needs=has_move,
    rests_on_preconditions=False,
    skips=_skips,
    catches="A listed partition that the throttle does not hold back.",
    smallest="one partition of more than three responses",
)
