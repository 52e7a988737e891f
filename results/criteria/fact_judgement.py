"""Criteria that hold on any network and machine: the quota in force, the records, what was put back."""

from results.contract.manifest import Differences, Facts, Move, Records
from results.contract.verdict import Finding, Verdict
from results.criteria.frame import criterion
from results.criteria.measures import GAP_S, MoveMeasures, QuotaPolls
from results.criteria.words import at, rate

POLL_EVERY_S = 2.0


def judge_quotas(measures: MoveMeasures, move: Move) -> list[Finding]:
    """Each broker describes its quotas, at every poll of the move, as the quota that was asked for."""
    return [_quota(host, [q for q in measures.quotas if q.host == host], measures, move) for host in move.brokers]


def _quota(host: str, sides: list[QuotaPolls], measures: MoveMeasures, move: Move) -> Finding:
    wrong = [
        f"{q.side} {rate(q.first_different_bytes_per_s or 0.0)} at {at(q.first_different_s or 0.0)}, "
        f"{q.different} of {q.polls} polls"
        for q in sides
        if q.different
    ]
    lacking = [
        f"{q.side} list without {q.first_unlisted_replicas or 0.0:.0f} of its replicas at "
        f"{at(q.first_unlisted_s or 0.0)}, {q.unlisted} of {q.polls} polls"
        for q in sides
        if q.unlisted
    ]
    asked = _asked(measures, move)
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
        observed = f"{asked} in all {fewest} polls"
        why = "every poll of leader and follower quota says so, and that every listed replica is in its list"
    return criterion(
        "quota-in-force",
        f"{asked}, leader and follower, for every listed replica, at every poll",
        verdict,
        why,
        host=host,
        observed=observed,
        series=("quota.leader.rate", "quota.follower.rate", "quota.leader.unlisted", "quota.follower.unlisted"),
    )


def _asked(measures: MoveMeasures, move: Move) -> str:
    """The quotas of the phases, one after the other."""
    rates = [rate(phase.quota_bytes_per_s) for phase in measures.phases] or [rate(move.quota_bytes_per_s)]
    return ", then ".join(now for i, now in enumerate(rates) if i == 0 or now != rates[i - 1])


def _too_few(sides: list[QuotaPolls], measures: MoveMeasures) -> str | None:
    seconds = measures.throttled_s
    if seconds is None:
        return "no throttled bytes were seen, so there is no time to poll in"
    for quota in sides:
        if quota.polls < max(1.0, seconds / POLL_EVERY_S):
            return f"{quota.side} quota polled {quota.polls} times in {seconds:.1f} s, less than once in 2 s"
        if quota.longest_gap_s is None or quota.longest_gap_s > GAP_S:
            return f"{quota.side} quota was not polled for {quota.longest_gap_s or 0:.1f} s"
    return None


def judge_facts(facts: Facts) -> list[Finding]:
    """Records, configuration, leaders and the two ends of the move, as the run established them."""
    done, in_force = facts.done, facts.in_force
    return [
        _records(facts.records),
        _differences(
            "config-restored", "every broker and topic setting as before the move", facts.restored, "restored"
        ),
        _differences(
            "leaders-as-planned",
            "each partition led by its planned broker before the move",
            facts.leaders,
            "leaders",
        ),
        _fact(
            "move-done",
            "nothing in flight; replicas = target; ISR holds the target; old replicas gone",
            None if done is None else done.ok,
            "" if done is None else done.why,
            "done",
        ),
        _fact(
            "quota-before-move",
            "every broker reports the quota before the move starts",
            None if in_force is None else in_force.ok,
            "" if in_force is None else f"in force {in_force.seconds:.2f} s after it was set",
            "in_force",
        ),
    ]


def _records(records: Records | None) -> Finding:
    verdict: Verdict = "inconclusive"
    observed: float | None = None
    if records is None:
        why = "the records were not read back"
    elif records.expected <= 0:
        why = "no record was preloaded, so none could be lost"
    else:
        wrong = records.lost + records.duplicated + records.corrupt + len(records.digest_mismatches)
        short = records.found < records.expected and records.lost == 0
        observed = float(wrong)
        verdict = "pass" if wrong == 0 and not short else "fail"
        why = (
            f"{records.found} of {records.expected} found; {records.lost} lost, "
            f"{records.duplicated} duplicated, {records.corrupt} corrupt; "
            f"{len(records.digest_mismatches)} partitions have another digest"
        )
        if records.digest_mismatches:
            why += ": " + ", ".join(records.digest_mismatches[:5])
    return criterion(
        "records-intact",
        "every preloaded record once, unchanged",
        verdict,
        why,
        observed=observed,
        unit="wrong",
        series=("manifest.facts.records",),
    )


def _differences(name: str, expected: str, found: Differences | None, field: str) -> Finding:
    if found is None:
        return _fact(name, expected, None, "", field)
    ok = found.ok and not found.differences
    shown = "; ".join(found.differences[:5]) or "differences were found, but not which"
    return _fact(name, expected, ok, "no difference" if ok else shown, field)


def _fact(name: str, expected: str, ok: bool | None, why: str, field: str) -> Finding:
    words = {True: "yes", False: "no", None: None}
    verdicts: dict[bool | None, Verdict] = {True: "pass", False: "fail", None: "inconclusive"}
    return criterion(
        name,
        expected,
        verdicts[ok],
        why or "the run did not establish it",
        observed=words[ok],
        series=(f"manifest.facts.{field}",),
    )
