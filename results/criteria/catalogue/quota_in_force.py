"""Each broker describes its quotas, at every poll of the move, as the quota that was asked for."""

from results.contract.move import Move
from results.contract.texts import plural
from results.contract.verdict import Finding, Verdict
from results.criteria.criterion import FACTS, Criterion
from results.criteria.findings import finding
from results.criteria.measures import MoveMeasures, QuotaPolls
from results.criteria.phase_directions import quotas_text
from results.criteria.quantities import GAP_S, at, rate

POLL_EVERY_S = 2.0


def _quota(host: str, sides: list[QuotaPolls], measures: MoveMeasures, move: Move) -> Finding:
    wrong = [
        f"{q.side} {rate(said)} at {at(first_s)}, {len(q.different)} of {q.polls} polls"
        for q in sides
        for first_s, said in q.different[:1]
    ]
    lacking = [
        f"{q.side} list without {said:.0f} of its replicas at {at(first_s)}, {len(q.unlisted)} of {q.polls} polls"
        for q in sides
        for first_s, said in q.unlisted[:1]
    ]
    asked = quotas_text(measures, move)
    verdict: Verdict = "inconclusive"
    observed: str | None = None
    if wrong or lacking:
        verdict = "fail"
        observed = "; ".join([*wrong, *lacking])
        what = f"another quota than {asked}" if wrong else "not all that is throttled in its lists"
        why = f"the broker had {what}: {observed}"
    elif measures.started_us is None or not sides:
        why = "no move.started was recorded"
    elif missing := _too_few(sides, measures):
        why = missing
    else:
        verdict = "pass"
        fewest = min(q.polls for q in sides)
        observed = f"{asked} in all {plural(fewest, 'poll')}"
        why = "every poll of leader and follower quota says so, and that every listed replica is in its list"
    return finding(
        "quota-in-force",
        f"{asked}, leader and follower, for every listed replica, at every poll",
        verdict,
        why,
        host=host,
        observed=observed,
        series=("quota.leader.rate", "quota.follower.rate", "quota.leader.unlisted", "quota.follower.unlisted"),
    )


def _too_few(sides: list[QuotaPolls], measures: MoveMeasures) -> str | None:
    seconds = measures.throttled_s
    if seconds is None:
        return "no throttled bytes were seen, so there is no time to poll in"
    for quota in sides:
        if quota.polls < max(1.0, seconds / POLL_EVERY_S):
            times = plural(quota.polls, "time")
            return f"{quota.side} quota polled {times} in {seconds:.1f} s, less than once in 2 s"
        if quota.longest_gap_s is None or quota.longest_gap_s > GAP_S:
            return f"{quota.side} quota was not polled for {quota.longest_gap_s or 0:.1f} s"
    return None


CRITERION = Criterion(
    name="quota-in-force",
    title="The quota was in force all the time",
    section=FACTS,
    judge=lambda run: [
        _quota(host, [q for q in run.measures.quotas if q.host == host], run.measures, run.move)
        for host in run.move.brokers
    ],
    by_name=False,
    catches="A broker that describes another quota, or another list, while data moves.",
)
